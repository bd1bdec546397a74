"""Tasks of one's own whose tests no program can pass are refused at the start, and `verify` lists them all."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.engine.references import References

TASK = {"prompt": 'def f(x):\n    """x + 1"""\n', "entry_point": "f", "canonical_solution": "    return x + 1\n"}
STATIC = ("protocol=static", "model=echo", "tracking=none")
REFINE = ("agenda.turns=2", "model=echo", "tracking=none")
REMEDY = "mend them, or name the tasks to take: dataset.tasks=[…]; `codechat verify dataset=…` lists all"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*rows: dict[str, Any], name: str = "mine.jsonl") -> tuple[str, str]:
    """A file of tasks with a blank line before them, and the words that choose it."""
    lines = [json.dumps({"task_id": f"m/{number}", **TASK, **row}) for number, row in enumerate(rows)]
    Path(name).write_text("\n" + "\n".join(lines) + "\n")
    return "dataset=jsonl", f"dataset.path={name}"


def requires(test: str) -> dict[str, Any]:
    return {"requirements": [{"type": "Edge", "text": "Take None as 0.", "tests": [test]}]}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"tests": ["assert f(1) == 2", "assert f(1) == 3"]},
         "its reference fails tests[1] (assert f(1) == 3): an assertion does not hold"),
        ({"tests": "f(1).real_part"},
         "its reference fails tests[0] (f(1).real_part): AttributeError: 'int' object has no attribute 'real_part'"),
        ({"tests": ["assert f(1) == 2", "assert f(1"]}, "tests[1] does not parse: line 1: '(' was never closed"),
        ({"tests": "assert f(1) == 2\nreturn"}, "tests[0] does not parse: line 2: 'return' outside function"),
        ({"base_input": [[1], [2]], "base_output": [2, 4]},
         "its reference fails base_input[1] (2): expected 4, got 3"),
        ({"base_input": [[1]], "plus_input": [[0]], "plus_output": [5]},
         "its reference fails plus_input[0] (0): expected 5, got 1"),
        ({"canonical_solution": "    return x + y\n", "base_input": [[1]]},
         "its reference fails (0 done): it raises NameError: name 'y' is not defined"),
        ({"suite": {"kind": "exit_status", "tests": ["assert f(1) == 2", "assert f(1"]}},
         "the tests do not parse: line 2: '(' was never closed"),
        ({"suite": {"kind": "tool", "argv": ["{python}", "-c", "raise SystemExit(3)"]}},
         "its reference fails its own tests: it ends with status 3"),
    ],
)  # fmt: skip
def test_a_broken_task_is_refused_at_the_start(
    row: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = write({"tests": "assert f(1) == 2"}, row)
    assert main([*words, *REFINE]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "error: the tests of 1 of 2 tasks fail on their own reference, or do not parse:",
        f"mine.jsonl:3: m/1: {problem}",
        REMEDY,
    ]
    assert not list(Path("runs").glob("*/sessions.jsonl"))


def test_it_says_how_many_and_lists_the_first_three(capsys: pytest.CaptureFixture[str]) -> None:
    words = write(*[{"tests": f"assert f(1) == {number}"} for number in range(6)])
    assert main([*words, *REFINE]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == (
        "error: the tests of 5 of 6 tasks fail on their own reference, or do not parse; 5 problems, the first 3:"
    )
    assert [line.split(": ")[1] for line in told[1:4]] == ["m/0", "m/1", "m/3"]
    assert told[4:] == [REMEDY]


def test_of_requirements_only_the_parsing_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    words = write({"tests": "assert f(1) == 2", **requires("assert f(None) == 1")})
    assert main([*words, *STATIC]) == 0
    words = write({"tests": "assert f(1) == 2", **requires("assert f(None) ==")}, name="other.jsonl")
    capsys.readouterr()
    assert main([*words, *STATIC]) == 2
    assert "other.jsonl:2: m/0: requirement '1': tests[0] does not parse: line 1: invalid syntax\n" in (
        capsys.readouterr().err
    )


def test_without_a_reference_only_the_parsing_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    bare = {"prompt": "def f(x):\n    ...", "canonical_solution": None, **requires("assert True")}
    words = [*write({**bare, "tests": "assert f(1) == 77"}), "protocol=static", "model=scripted", "tracking=none"]
    assert main([*words, "model.replies=[no,no]"]) == 0
    words = [*write({**bare, "tests": "assert f(1"}, name="b.jsonl"), *words[2:]]
    assert main([*words, "model.replies=[no,no]"]) == 2
    assert "b.jsonl:2: m/0: tests[0] does not parse: line 1: '(' was never closed" in capsys.readouterr().err


def test_only_the_chosen_tasks_are_checked() -> None:
    words = write({"tests": "assert f(1) == 2"}, {"tests": "assert f(1) == 3"})
    assert main([*words, *REFINE, "dataset.tasks=[m/0]"]) == 0


def test_a_second_start_runs_no_reference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = write({"tests": "assert f(1) == 2"}, {"base_input": [[1]]})
    assert main([*words, *REFINE]) == 0
    assert len(list((tmp_path / "cache" / "references").iterdir())) == 2

    def forbidden(*_: object) -> None:
        raise AssertionError("a reference is run again")

    monkeypatch.setattr(References, "_problem", forbidden)
    assert main([*words, *REFINE, "seed=1"]) == 0
    changed = write({"tests": "assert f(2) == 3"}, name="changed.jsonl")
    with pytest.raises(AssertionError, match="run again"):
        main([*changed, *REFINE])


def test_it_tells_how_far_it_is_if_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("codechat.engine.references.EVERY_S", 0.0)
    assert main([*write({"tests": "assert f(1) == 2"}, {"base_input": [[1]]}), *REFINE]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if "references" in line] == [
        f"checking that references pass their own tests: {done} of 2" for done in (1, 2)
    ]


def test_verify_lists_all_that_fail(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"tests": f"assert f(1) == {number}", **requires("assert f(")} for number in range(2, 6)]
    assert main(["verify", *write(*rows)]) == 2
    told = capsys.readouterr().out.splitlines()
    unclosed = "requirement '1': tests[0] does not parse: line 1: '(' was never closed"
    assert told[0] == f"mine.jsonl:2: m/0: {unclosed}"
    assert told[-1] == "4 tasks of jsonl, 4 with a reference and tests: 4 problems in 4 tasks"
    assert len(told) == 5


def test_verify_checks_the_references_of_any_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "dataset=starter", "dataset.limit=3", "hardware.workers=1"]) == 0
    assert capsys.readouterr().out == "3 tasks of starter, 3 with a reference and tests: every reference passes\n"


def test_a_published_dataset_keeps_its_defects(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"task_id": 1, "prompt": "Add one.", "code": "def f(x):\n    return x + 1", "test": ["assert f(1) == 3"],
           "requirements": {"Exception Handling": {"requirement": "Raise.", "unit_test": ["assert f("]}},
           "multi-turn": ["Exception Handling"]}  # fmt: skip
    Path("codeif.jsonl").write_text(json.dumps(row))
    words = ["dataset=codeif_bench", "dataset.path=codeif.jsonl"]
    assert main([*words, *STATIC]) == 0
    capsys.readouterr()
    assert main(["verify", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "codeif.jsonl:1: CodeIF/1: its reference fails tests[0] (assert f(1) == 3): an assertion does not hold",
        "codeif.jsonl:1: CodeIF/1: requirement 'Exception Handling': tests[0] does not parse: line 1: "
        "'(' was never closed",
        "1 task of codeif_bench, 1 with a reference and tests: 2 problems in 1 task",
    ]


def test_samples_of_broken_tasks_are_not_scored(capsys: pytest.CaptureFixture[str]) -> None:
    words = write({"tests": "assert f(1) == 3"}, {"base_input": [[1]]})
    sample = {"task_id": "m/0", "solution": "def f(x):\n    return x + 1"}
    Path("samples.jsonl").write_text(json.dumps(sample))
    assert main(["verify", *words, "samples=samples.jsonl", "out=out.jsonl"]) == 2
    assert "mine.jsonl:2: m/0: its reference fails tests[0]" in capsys.readouterr().err
    assert not Path("out.jsonl").exists()
