"""Samples that are checked without a model: which lines are samples, what is kept between runs, and the figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Failure, Verdict
from codechat.base.errors import UserError
from codechat.base.records import BY_PROGRAM, INSIDE
from codechat.datasets.tasks import Dataset, Task
from codechat.run.results.samples import Partial, Sample, Summary, check_samples, cost_s, read_samples, summarise

TASKS = (Task("a", "def f():\n"), Task("b", "def g():\n"))
DATA: Any = type("Data", (), {"tasks": TASKS})
PASSED = Verdict("pass", passed_base=True, inside="")
FAILED = Verdict("fail", passed_base=True, failure=Failure("wrong \ud800"), inside="alone", by_program=True, cpu_s=2.0)


def read(folder: Path, *lines: Any) -> list[Sample]:
    path = folder / "samples.jsonl"
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines))
    dataset: Dataset = DATA
    return read_samples(path, dataset)


def test_a_sample_is_a_program_or_what_follows_the_prompt(tmp_path: Path) -> None:
    whole, rest = {"task_id": "a", "solution": "x", "completion": "y"}, {"task_id": "b", "completion": " return 1"}
    found = read(tmp_path, whole, "", "  ", rest)
    assert found == [Sample(TASKS[0], "x", whole), Sample(TASKS[1], "def g():\n return 1", rest)]


def test_every_turn_of_a_session_that_has_code_is_a_sample(tmp_path: Path) -> None:
    turns = [{"turn": 0, "code": "x", "official": 1, "other": 2}, {"turn": 1, "code": None}, {"code": "y"}]
    found = read(tmp_path, {"task_id": "a", "model": "m", "turns": turns})
    assert [each.program for each in found] == ["x", "y"]
    assert found[0].row == {"task_id": "a", "model": "m", "turn": 0, "official": 1, "solution": "x"}
    assert found[1].row == {"task_id": "a", "model": "m", "solution": "y"}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["{}"], ":1: no task_id"),
        (["", "[]"], ":2: no task_id"),
        (['{"task_id": 1}'], ":1: no task_id"),
        (['{"task_id": "a"}'], ":1: no solution"),
        (['{"task_id": "a", "solution": 1, "completion": 2}'], ":1: no solution"),
        (['{"task_id": "c", "solution": ""}'], ":1: .*'c'"),
        (['{"task_id": "a", "solution": ""}', "{"], ":2: not JSON"),
        (["", " "], "holds no sample"),
        (['{"task_id": "a", "turns": []}'], "holds no sample"),
        (['{"turns": [{"code": "x"}]}'], ":1: no task_id"),
    ],
)
def test_a_malformed_line_is_told_with_its_number(tmp_path: Path, lines: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        read(tmp_path, *lines)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        read_samples(tmp_path / "nowhere", DATA)


def test_results_are_kept_until_the_run_has_finished(tmp_path: Path) -> None:
    out, kept = tmp_path / "deep" / "out", tmp_path / "deep" / "out.partial"
    partial = Partial(out, "key")
    assert partial.results == {}
    partial.add(3, PASSED)
    partial.add(1, FAILED)
    assert len(kept.read_text().splitlines()) == 3, "it is on disk at once"
    partial.close(finished=False)
    with kept.open("a") as stream:
        stream.write('{"number": 5, "resul')
    again = Partial(out, "key")
    assert again.results == partial.results and list(again.results) == [3, 1]
    assert again.results[3] == {"outcome": "pass", "passed": True, "passed_base": True, "decided": "outside",
                                "failure": None, "cpu_s": 0.0}  # fmt: skip
    failed = again.results[1]
    assert (failed["passed"], failed["passed_base"], failed["decided"], failed["cpu_s"]) == (False, True, "inside", 2.0)
    assert failed[INSIDE] == "alone" and failed[BY_PROGRAM] is True and "wrong" in failed["failure"]["reason"]
    again.close(finished=True)
    assert not kept.exists()


def test_another_runs_results_are_not_taken(tmp_path: Path) -> None:
    one = Partial(tmp_path / "out", "key")
    one.add(0, PASSED)
    one.close(finished=False)
    other = Partial(tmp_path / "out", "another")
    assert other.results == {}
    other.close(finished=False)
    assert (tmp_path / "out.partial").read_text() == '{"key": "another"}\n'


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"out\.partial"):
        Partial(tmp_path / "file" / "out", "key")


def result(outcome: str, *, base: bool = True, **more: Any) -> dict[str, Any]:
    return {"outcome": outcome, "passed": outcome == "pass", "passed_base": base, **more}


def test_figures_are_means_over_tasks() -> None:
    known = Task("Mbpp/255", "")
    samples = [Sample(task, "", {}) for task in (TASKS[0], TASKS[0], TASKS[0], TASKS[1], known, known)]
    results = [result("pass", decided="inside"), result("fail", **{BY_PROGRAM: True}), result("fail", base=False),
               result("pass"), result("pass"), result("timeout")]  # fmt: skip
    found = summarise(samples, results, 7)
    assert (found.samples, found.tasks, found.dataset_tasks) == (6, 3, 7)
    assert found.outcomes == {"pass": 3, "fail": 2, "timeout": 1}
    assert found.pass_at_1 == pytest.approx((1 / 3 + 1 + 1 / 2) / 3)
    assert found.pass_at_1_base == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert (found.differs, found.inside, found.moved) == ({"Mbpp/255": 1}, 1, 1)


def test_what_is_printed_names_only_what_there_is() -> None:
    plain = Summary(1, 1, 2, {"pass": 1}, 1.0, 1.0, {})
    assert len(list(plain.lines())) == 2
    more = list(Summary(3, 1, 2, {"pass": 3}, 1.0, 0.5, {"Mbpp/255": 2}, inside=2, moved=1).lines())
    assert len(more) == 4 and "0.500" in more[1] and more[2].startswith("2 of 3") and more[3].startswith("Mbpp/255: 2")


class Timed:
    """A suite that says how long a right program takes."""

    kind, key = "own", "key"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def cost_s(self, sandbox: Any) -> float:
        return self._seconds

    async def check(self, program: Any, sandbox: Any) -> Verdict:
        return PASSED


async def test_a_task_without_tests_is_refused_and_a_suite_that_does_not_know_costs_nothing() -> None:
    sandbox: Any = None
    with pytest.raises(UserError, match="a has no tests"):
        await cost_s(TASKS[0], sandbox)
    assert await cost_s(Task("c", "", suite=Timed(7.0)), sandbox) == 7.0  # type: ignore[arg-type]
    silent: Any = type("Silent", (), {"check": Timed.check})()
    assert await cost_s(Task("c", "", suite=silent), sandbox) == 0.0


async def test_what_is_missing_is_checked_the_longest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, done = list[str](), dict[int, Verdict]()

    class Noting:
        def __init__(self, sandbox: Any) -> None: ...

        async def check(self, program: Any, suite: Any) -> Verdict:
            seen.append(program.source)
            return PASSED

    monkeypatch.setattr("codechat.run.results.samples.Checker", Noting)
    tasks = [Task(name, "", suite=Timed(cost)) for name, cost in (("a", 1.0), ("b", 9.0), ("c", 5.0))]  # type: ignore[arg-type]
    samples = [Sample(task, f"{task.task_id}{n}", {}) for task in tasks for n in range(2)]
    sandbox: Any = None
    await check_samples(samples, sandbox, {2: {}}, done.__setitem__)
    assert seen == ["b1", "c0", "c1", "a0", "a1"] and done == dict.fromkeys((3, 4, 5, 0, 1), PASSED)
