"""`verify`: samples in, one line each out in their order, figures as EvalPlus computes them, resumable."""

import asyncio
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import InfrastructureError, UserError
from codechat.datasets import DATASETS
from codechat.run.results.samples import check_file, read_samples
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.checker import Checker
from support.mistakes import mistake

RIGHT = {"a": "def f(x):\n    return x + 1", "b": "def g(x):\n    return [x]"}


class View:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.notices: list[str] = []

    def progress(self, done: int, of: int) -> None:
        self.seen.append((done, of))

    def notice(self, text: str) -> None:
        self.notices.append(text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "cache"))
    rows = [
        {
            "task_id": "a",
            "prompt": "def f(x):\n",
            "entry_point": "f",
            "canonical_solution": "    return x + 1\n",
            "base_input": [[1]],
            "plus_input": [[2], [-5]],
        },
        {
            "task_id": "b",
            "prompt": "def g(x):\n",
            "entry_point": "g",
            "canonical_solution": "    return [x]\n",
            "base_input": [["x"]],
        },
    ]
    write(tmp_path / "data.jsonl", rows)
    return tmp_path


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(
    folder: Path, samples: list[dict[str, Any]], tasks: dict[str, Any] | None = None, **options: Any
) -> tuple[Any, list[dict[str, Any]], View]:
    dataset: Any = DATASETS.validate({"kind": "jsonl", "path": str(folder / "data.jsonl"), **(tasks or {})})
    sandbox: Any = SANDBOXES.validate({"kind": "process", "allow_weak": True, **options})
    view = View()
    out = folder / "out.jsonl"
    summary = check_file(dataset, sandbox, write(folder / "samples.jsonl", samples), out, workers=2, view=view)
    return summary, [json.loads(line) for line in out.read_text().splitlines()], view


def test_samples_of_the_chosen_tasks_alone_are_checked(folder: Path) -> None:
    samples = [{"task_id": "b", "solution": RIGHT["b"]}, {"task_id": "a", "solution": "def f(x): return 2"}]
    summary, lines, _ = run(folder, samples, {"limit": 1})
    assert [line["task_id"] for line in lines] == ["a"]
    assert (summary.samples, summary.tasks, summary.dataset_tasks, summary.pass_at_1) == (1, 1, 2, 0.0)
    with mistake("no sample", "dataset.tasks", "dataset.limit"):
        run(folder, samples[:1], {"tasks": ["a"]})


def test_one_line_per_sample_in_their_order_with_their_own_fields(folder: Path) -> None:
    samples = [
        {"task_id": "b", "solution": RIGHT["b"], "model": "m", "n": 1},
        {"task_id": "a", "solution": "def f(x):\n    return 2"},
        {"task_id": "a", "completion": "    return x + 1\n", "temperature": 0.5},
        {"task_id": "a", "solution": "def h(x): return x"},
    ]
    summary, lines, view = run(folder, samples)
    assert [line["task_id"] for line in lines] == ["b", "a", "a", "a"]
    assert [line["outcome"] for line in lines] == ["pass", "fail", "pass", "fail"]
    assert [line["passed"] for line in lines] == [True, False, True, False]
    assert [line["passed_base"] for line in lines] == [True, True, True, False]
    assert (lines[0]["model"], lines[0]["n"], lines[2]["temperature"]) == ("m", 1, 0.5)
    assert lines[1]["failure"]["input"] == "2"
    assert "does not define f" in lines[3]["failure"]["reason"]
    assert summary.pass_at_1 == pytest.approx((1 + 1 / 3) / 2)
    assert summary.pass_at_1_base == pytest.approx((1 + 2 / 3) / 2)
    assert view.seen[0] == (0, 4)
    assert view.seen[-1] == (4, 4)
    assert "process is weak" in view.notices[0]
    assert any("pass@1 0.667" in line for line in summary.lines())
    assert not list(folder.glob("*.partial"))


def test_an_interrupted_run_goes_on_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [{"task_id": "a", "solution": f"# {number}\n{RIGHT['a']}"} for number in range(12)]
    real, calls = Checker.check, 0

    async def check(self: Checker, program: Any, suite: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 6:
            await asyncio.sleep(0.5)  # let the others finish
            raise InfrastructureError("pulled the plug")
        return await real(self, program, suite)

    monkeypatch.setattr(Checker, "check", check)
    with pytest.raises(InfrastructureError, match="pulled the plug"):
        run(folder, samples)
    assert not (folder / "out.jsonl").exists()
    kept = (folder / "out.jsonl.partial").read_text().count('"number"')
    assert kept == 11
    with (folder / "out.jsonl.partial").open("a") as stream:
        stream.write('{"number": 5, "resul')
    calls = 100
    summary, lines, view = run(folder, samples)
    assert calls == 101
    assert view.seen[0] == (11, 12)
    assert (summary.samples, summary.pass_at_1, len(lines)) == (12, 1.0, 12)


def test_suites_of_every_kind_are_checked(folder: Path) -> None:
    bare = {"prompt": "", "language": "perl"}
    perl = {"kind": "tool", "argv": ["perl", "-c", "{program}"]}
    extra = [
        {"task_id": "c", **bare, "suite": perl},
        {"task_id": "d", "prompt": "", "tests": ["assert x == 1"]},
        {"task_id": "e", "prompt": ""},
    ]
    write(folder / "data.jsonl", [*map(json.loads, (folder / "data.jsonl").read_text().splitlines()), *extra])
    samples = [
        {"task_id": "c", "solution": "print 1;"},
        {"task_id": "d", "solution": "x = 2"},
        {"task_id": "a", "solution": RIGHT["a"]},
        {"task_id": "c", "solution": "print 1 +;"},
    ]
    _, lines, _ = run(folder, samples)
    assert [line["outcome"] for line in lines] == ["pass", "fail", "pass", "fail"]
    with pytest.raises(UserError, match="e has no tests"):
        run(folder, [{"task_id": "e", "solution": "x = 1"}])


def test_other_limits_take_no_results_of_an_interrupted_run(folder: Path) -> None:
    samples = [{"task_id": "a", "solution": RIGHT["a"]}]
    (folder / "out.jsonl.partial").write_text('{"key": "of another run"}\n{"number": 0, "result": {"passed": false}}\n')
    assert run(folder, samples)[0].pass_at_1 == 1.0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{nonsense", "samples.jsonl:2: not JSON"),
        ('{"solution": "x"}', "samples.jsonl:2: no task_id"),
        ('{"task_id": "aa", "solution": "x"}', "has no task 'aa'"),
        ('{"task_id": "a"}', "samples.jsonl:2: no solution"),
        ("[1]", "samples.jsonl:2: no task_id"),
    ],
)
def test_a_malformed_line_is_named(folder: Path, line: str, words: str) -> None:
    path = folder / "samples.jsonl"
    path.write_text(json.dumps({"task_id": "a", "solution": "x"}) + "\n" + line + "\n")
    config = DATASETS.validate({"kind": "jsonl", "path": str(folder / "data.jsonl")})
    with pytest.raises(UserError, match="sample") as caught:
        read_samples(path, DATASETS.build(config))
    assert words in str(caught.value)


def test_a_weak_sandbox_needs_consent(folder: Path) -> None:
    with pytest.raises(UserError, match="allow_weak=true"):
        run(folder, [{"task_id": "a", "solution": RIGHT["a"]}], allow_weak=False)


DATA = os.environ.get("CODECHAT_TEST_DATA")


@pytest.mark.skipif(DATA is None, reason="CODECHAT_TEST_DATA names no folder with benchmark data")
@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_published_solutions_get_evalpluss_verdict(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of every eighth row; `benchmarks/parity.py` compares all."""
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "cache"))
    release = {"humaneval": "HumanEvalPlus", "mbpp": "MbppPlus"}[name]
    rows = []
    for path in sorted(Path(str(DATA)).glob(f"{name}_samples_*.jsonl")):
        rows += [json.loads(line) for line in path.read_text().splitlines()][::8]
    rows = [row for row in rows if not row["timing_sensitive"] and row["task_id"] not in ("HumanEval/32", "Mbpp/255")]
    wanted = {row["task_id"] for row in rows}
    with gzip.open(Path(str(DATA)) / f"{release}.jsonl.gz", "rt") as stream:
        data = write(tmp_path / "data.jsonl", [task for task in map(json.loads, stream) if task["task_id"] in wanted])
    dataset: Any = DATASETS.validate({"kind": name, "path": str(data)})
    sandbox: Any = SANDBOXES.validate({"kind": "auto", "allow_weak": True})
    samples, out = write(tmp_path / "samples.jsonl", rows), tmp_path / "out.jsonl"
    check_file(dataset, sandbox, samples, out, workers=2, view=View())
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(verdicts) == len(rows) >= 70
    differences = [
        (row["task_id"], row["outcome"], row["failure"])
        for row in verdicts
        if (row["passed_base"], row["passed"]) != (row["evalplus_base"], row["evalplus_plus"])
    ]
    assert differences == []
