"""Tasks of one's own whose tests no program can pass are refused at the start, and `verify` lists them all."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.run.cell.references import OF_NAN, References

pytestmark = pytest.mark.long

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
        ({"canonical_solution": "    return [{'a': float('nan')}]\n", "base_input": [[1]]},
         f"its reference fails base_input[0] (1): expected [{{'a': nan}}], got [{{'a': nan}}]. {OF_NAN}"),
        ({"canonical_solution": "    return x * float('nan')\n", "tests": "assert f(1) == float('NaN')"},
         f"its reference fails tests[0] (assert f(1) == float('NaN')): an assertion does not hold. {OF_NAN}"),
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
    summary, *told = capsys.readouterr().err.splitlines()
    assert summary.startswith("error: ") and "1 of 2 tasks" in summary
    assert told == [f"mine.jsonl:3: m/1: {problem}", REMEDY]
    assert not list(Path("runs").glob("*/sessions.jsonl"))


def test_it_says_how_many_and_lists_the_first_three(capsys: pytest.CaptureFixture[str]) -> None:
    words = write(*[{"tests": f"assert f(1) == {number}"} for number in range(6)])
    assert main([*words, *REFINE]) == 2
    told = capsys.readouterr().err.splitlines()
    assert "5 of 6 tasks" in told[0] and "5 problems" in told[0]
    assert [line.split(": ")[1] for line in told[1:4]] == ["m/0", "m/1", "m/3"]
    assert told[4:] == [REMEDY]


def test_of_requirements_only_the_parsing_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    words = write({"tests": "assert f(1) == 2", **requires("assert f(None) == 1")})
    assert main([*words, *STATIC]) == 0
    words = write({"tests": "assert f(1) == 2", **requires("assert f(None) ==")}, name="other.jsonl")
    capsys.readouterr()
    assert main([*words, *STATIC]) == 2
    told = capsys.readouterr().err
    assert re.search(r"other\.jsonl:2: m/0: requirement '1': tests\[0\] .*: line 1: invalid syntax\n", told)


def test_without_a_reference_only_the_parsing_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    bare = {"prompt": "def f(x):\n    ...", "canonical_solution": None, **requires("assert True")}
    words = [*write({**bare, "tests": "assert f(1) == 77"}), "protocol=static", "model=scripted", "tracking=none"]
    assert main([*words, "model.replies=[no,no]"]) == 0
    words = [*write({**bare, "tests": "assert f(1"}, name="b.jsonl"), *words[2:]]
    assert main([*words, "model.replies=[no,no]"]) == 2
    assert re.search(r"b\.jsonl:2: m/0: tests\[0\] .*: line 1: '\(' was never closed", capsys.readouterr().err)


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
    monkeypatch.setattr("codechat.run.cell.references.EVERY_S", 0.0)
    assert main([*write({"tests": "assert f(1) == 2"}, {"base_input": [[1]]}), *REFINE]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in told if "references" in line] == ["1 of 2", "2 of 2"]


def test_verify_lists_all_that_fail(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"tests": f"assert f(1) == {number}", **requires("assert f(")} for number in range(2, 6)]
    assert main(["verify", *write(*rows)]) == 2
    told = capsys.readouterr().out.splitlines()
    unclosed = "requirement '1': tests[0] does not parse: line 1: '(' was never closed"
    assert told[0] == f"mine.jsonl:2: m/0: {unclosed}"
    assert told[-1].startswith("4 tasks of mine, 4 ") and told[-1].endswith(": 7 problems in 4 tasks")
    assert told[1].startswith("mine.jsonl:3: m/1: ") and "tests[0] (assert f(1) == 3): " in told[1]
    assert told[2] == f"mine.jsonl:3: m/1: {unclosed}"
    assert len(told) == 8


def test_verify_checks_the_references_of_any_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "dataset=starter", "dataset.limit=3", "hardware.workers=1"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("3 tasks of starter, 3 ") and "every reference passes" in line


def test_a_published_dataset_keeps_its_defects(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"task_id": 1, "prompt": "Add one.", "code": "def f(x):\n    return x + 1", "test": ["assert f(1) == 3"],
           "requirements": {"Exception Handling": {"requirement": "Raise.", "unit_test": ["assert f("]}},
           "multi-turn": ["Exception Handling"]}  # fmt: skip
    Path("codeif.jsonl").write_text(json.dumps(row))
    words = ["dataset=codeif_bench", "dataset.path=codeif.jsonl"]
    assert main([*words, *STATIC]) == 0
    capsys.readouterr()
    assert main(["verify", *words]) == 0
    fails, broken, count = capsys.readouterr().out.splitlines()
    assert fails.startswith("codeif.jsonl:1: CodeIF/1: ") and "tests[0] (assert f(1) == 3): " in fails
    assert broken.startswith("codeif.jsonl:1: CodeIF/1: requirement 'Exception Handling': tests[0] ")
    assert broken.endswith("line 1: '(' was never closed")
    assert count.startswith("1 task of codeif_bench, 1 ") and count.endswith(": 2 problems in 1 task")


def test_samples_of_broken_tasks_are_not_scored(capsys: pytest.CaptureFixture[str]) -> None:
    words = write({"tests": "assert f(1) == 3"}, {"base_input": [[1]]})
    sample = {"task_id": "m/0", "solution": "def f(x):\n    return x + 1"}
    Path("samples.jsonl").write_text(json.dumps(sample))
    assert main(["verify", *words, "samples=samples.jsonl", "out=out.jsonl"]) == 2
    assert re.search(r"mine\.jsonl:2: m/0: .*tests\[0\]", capsys.readouterr().err)
    assert not Path("out.jsonl").exists()


def only_session(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "sessions.jsonl").read_text().splitlines()[0]))


def test_a_dataset_is_called_after_its_file_or_as_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    words = write({"tests": "assert f(1) == 2"}, name="my_tasks.jsonl")
    assert main([*words, *REFINE]) == 0
    assert "echo my_tasks balanced 2 turns · 1 task, 2 turns · runs/echo-my-tasks-" in capsys.readouterr().out
    [folder] = Path("runs").iterdir()
    assert only_session(folder)["dataset"] == "my_tasks"
    tracked = json.loads((folder / "tracking.json").read_text())
    assert (tracked["dataset"]["name"], tracked["tags"]["codechat.dataset"]) == ("my_tasks", "my_tasks")
    assert tracked["params"]["dataset"]["name"] == "my_tasks"
    Path("data").mkdir()
    Path("my_tasks.jsonl").rename("data/other.jsonl")
    words = ("dataset=jsonl", "dataset.path=data/other.jsonl", "dataset.name=my tasks, renamed")
    assert main([*words[:2], "dataset.name='my tasks, renamed'", *REFINE]) == 0
    assert [folder] == list(Path("runs").iterdir()), "the same cell goes on where it was begun"
    assert only_session(folder)["dataset"] == "my tasks, renamed"


def two_files(*words: str) -> list[Path]:
    """Cells of two models on each of two files that have the same task ids, and one of another name."""
    tests = {"old/mine.jsonl": 2, "new/mine.jsonl": 3, "else.jsonl": 4}
    for name, argument in tests.items():
        Path(name).parent.mkdir(exist_ok=True)
        rows = [{"tests": f"assert f({argument + number}) == {argument + number + 1}"} for number in range(4)]
        chosen = write(*rows, name=name)
        for model in ("echo", "drifter"):
            assert main([*chosen, f"model={model}", *words, "tracking=none"]) == 0
    return sorted(Path("runs").iterdir())


def test_two_files_with_the_same_ids_are_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    folders = two_files("agenda.turns=3")
    contents = {
        folder.name: json.loads((folder / "tracking.json").read_text())["dataset"]["content_hash"][:8]
        for folder in folders
    }
    capsys.readouterr()
    assert main(["report", "runs=runs", "out=report"]) == 0
    told = capsys.readouterr()
    marks = {mark: [name for name in sorted(contents) if contents[name] == mark] for mark in contents.values()}
    mine = {mark: names for mark, names in marks.items() if "mine" in names[0]}
    assert len(mine) == 2
    listed = "; ".join(f"mine ({mark}): {', '.join(sorted(names))}" for mark, names in sorted(mine.items()))
    assert told.err.startswith("note: ") and listed in told.err and "dataset.name=NAME" in told.err
    rows = [line.split(",") for line in Path("report/tables/pairs_mst.csv").read_text().splitlines()[1:]]
    assert sorted((row[0], row[3]) for row in rows) == sorted(
        [("else", "4"), *((f"mine ({mark})", "4") for mark in mine)]
    )
    leaderboard = Path("report/tables/leaderboard.csv").read_text().splitlines()
    dataset = leaderboard[0].split(",").index("dataset")
    shown = [line.split(",")[dataset] for line in leaderboard[1:]]
    named = ["else", *(f"mine ({mark})" for mark in mine)]
    assert sorted(shown) == sorted([*named, *named]), "both models on each, and no mean over tasks of one name"


def test_the_same_content_under_two_paths_is_one_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"tests": "assert f(1) == 2"}
    for name, model in (("a/mine.jsonl", "echo"), ("b/mine.jsonl", "drifter")):
        Path(name).parent.mkdir()
        assert main([*write(row, name=name), f"model={model}", "agenda.turns=2", "tracking=none"]) == 0
    capsys.readouterr()
    assert main(["report", "runs=runs", "out=report"]) == 0
    assert capsys.readouterr().err == ""
    [row_] = Path("report/tables/pairs_mst.csv").read_text().splitlines()[1:]
    assert row_.startswith("mine,")


def test_other_protocols_do_not_compare_them_either(capsys: pytest.CaptureFixture[str]) -> None:
    for folder, result in (("old", 2), ("new", 3)):
        Path(folder).mkdir()
        rows = [{"tests": "assert f(1) == 2", **requires(f"assert f({result}) == {result + 1}")} for _ in range(2)]
        for model in ("echo", "drifter"):
            assert main([*write(*rows, name=f"{folder}/mine.jsonl"), STATIC[0], f"model={model}", "tracking=none"]) == 0
    capsys.readouterr()
    assert main(["report", "runs=runs", "out=report"]) == 0
    assert re.search("^note: Different tasks .*mine", capsys.readouterr().err, re.MULTILINE)
    pairs = Path("report/tables/static_pairs.csv").read_text().splitlines()[1:]
    assert len(pairs) == 2 and len({line.split(",")[0] for line in pairs}) == 2


REPAIR = ("protocol=repair", "protocol.rounds=0", "model=echo", "judge=rules", "tracking=none")


def constrained(*constraints: tuple[str, str]) -> tuple[str, ...]:
    """A file with one task of these types and answers, and the words of a cell that repairs it."""
    rows = [{"type": name, "answer": answer} for name, answer in constraints]
    task = {"task_id": "m/0", "prompt": "Add, in Rust.", "canonical_solution": "fn add_all() {}\n", "constraints": rows}
    Path("mine.jsonl").write_text(json.dumps(task))
    return "dataset=jsonl", "dataset.path=mine.jsonl", *REPAIR


def test_a_task_with_constraints_is_checked_by_all_of_them(folder: Path) -> None:
    pytest.importorskip("tree_sitter_rust", reason="needs codechat[constraints]")
    assert main([*constrained(("naming", "rust;function:snake_case"), ("requirement", "It adds"))]) == 0
    (record,) = folder.glob("runs/*/sessions.jsonl")
    session = json.loads(record.read_text())
    found = [(each["type"], each["by"], each["met"]) for each in session["turns"][0]["constraints"]]
    assert found == [("naming", "rule", True), ("requirement", "judge", None)] and session["language"] == "rust"


def test_a_wrong_constraint_is_told_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*constrained(("naming", "rust"))]) == 2
    said = capsys.readouterr().err
    assert re.search("mine.jsonl:1: .*m/0: .*naming: .*'rust'", said)
