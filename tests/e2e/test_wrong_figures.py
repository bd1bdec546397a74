"""What a careless or unlucky person does with finished cells: refused, or told before any figure, never wrong."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import SCOPES
from codechat.cli.app import main
from codechat.run.cell import build_cell
from codechat.run.settings.compose import compose

pytestmark = pytest.mark.long

TASK = {"task_id": "m/0", "prompt": 'def f(x):\n    """x + 1"""\n', "entry_point": "f", "tests": ["assert f(1) == 2"],
        "canonical_solution": "    return x + 1\n"}  # fmt: skip
OTHER = {**TASK, "task_id": "m/1", "prompt": 'def f(x):\n    """x + 2"""\n', "tests": ["assert f(1) == 3"],
         "canonical_solution": "    return x + 2\n"}  # fmt: skip
OWN = ("dataset=jsonl", "dataset.path=mine.jsonl", "agenda.turns=2", "tracking=none", "hardware.workers=1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished cell over two tasks."""
    place = tmp_path_factory.mktemp("made")
    write(TASK, OTHER, folder=place)
    words = [*OWN, f"dataset.path={place / 'mine.jsonl'}", f"runs_dir={place / 'runs'}", "model=echo"]
    assert main(words) == 0
    return next((place / "runs").iterdir())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*tasks: dict[str, Any], folder: Path = Path()) -> None:
    (folder / "mine.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))


def change_lines(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def edit(cell: Path) -> None:
        path = cell / "sessions.jsonl"
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))

    return edit


def fail_a_turn(lines: list[str]) -> list[str]:
    session = json.loads(lines[0])
    session["turns"][-1] |= {"outcome": "fail", "passed": False, "passed_base": False}
    return [json.dumps(session) + "\n", *lines[1:]]


def better(cell: Path) -> None:
    path = cell / "metrics.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "mst": 9.99}))


def relabel(cell: Path) -> None:
    path = cell / "config.yaml"
    path.write_text(path.read_text().replace("\nseed: 0\n", "\nseed: 7\n"))


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("sessions.jsonl", change_lines(fail_a_turn)),
        ("sessions.jsonl", change_lines(lambda lines: [lines[0], lines[0]])),
        ("sessions.jsonl", change_lines(lambda lines: lines[:1])),
        ("sessions.jsonl", change_lines(lambda lines: [lines[0], lines[1][:-500]])),
        ("metrics.json", better),
        ("config.yaml", relabel),
    ],
    ids=["edited verdict", "line twice", "line lost", "cut short", "edited figure", "edited setting"],
)
def test_a_cell_that_was_changed_is_told_or_refused_everywhere(
    file: str, edit: Callable[[Path], None], made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made, "cell")
    edit(Path("cell"))
    capsys.readouterr()
    for command in ("report runs=cell out=out", "export runs=cell out=x.csv", "export run=cell out=x.csv",
                    "rescore run=cell out=again", "audit export runs=cell out=audit"):  # fmt: skip
        status, said = main(command.split()), capsys.readouterr().err
        told = f"cell: {file} is not what the run wrote (seal.json)" in said
        assert told or (status == 2 and said.startswith("error: cell")), command
        assert told or file == "sessions.jsonl", command


def test_the_same_command_writes_a_changed_cell_anew(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(TASK)
    assert main([*OWN, "model=echo"]) == 0
    cell = next(Path("runs").iterdir())
    whole = (cell / "sessions.jsonl").read_bytes()
    better(cell)
    change_lines(fail_a_turn)(cell)
    assert main(["export", "runs=runs", "out=x.csv"]) == 0
    assert "metrics.json and sessions.jsonl are" in capsys.readouterr().err
    assert main([*OWN, "model=echo"]) == 0
    assert (cell / "sessions.jsonl").read_bytes() == whole
    capsys.readouterr()
    assert main(["export", "runs=runs", "out=x.csv"]) == 0
    assert "sessions.jsonl" not in capsys.readouterr().err


def test_replies_are_not_scored_by_the_tests_of_another_task(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made, "cell")
    write({**OTHER, "task_id": "m/0"}, OTHER)
    assert main(["rescore", "run=cell", "out=again", "tracking=none", "dataset.path=mine.jsonl"]) == 2
    assert re.search("error: .*m/0 of mine .*another.*\n.*dataset.path=FILE", capsys.readouterr().err)
    assert main([*OWN, "model=replay", "model.path=cell/sessions.jsonl", "sandbox.allow_weak=true"]) == 2
    assert re.search("turn 0 of m/0: .*other words", capsys.readouterr().err)


def test_a_rescoring_by_other_tests_says_so(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made, "cell")
    write({**TASK, "tests": ["assert f(1) == 2", "assert f(0) == 1"]}, OTHER)
    capsys.readouterr()
    assert main(["rescore", "run=cell", "out=again", "tracking=none", "dataset.path=mine.jsonl"]) == 0
    said = capsys.readouterr()
    assert re.search(r"tasks of mine .*changed .*\(content ", said.err)
    assert main(["rescore", "run=again", "out=once-more", "tracking=none"]) == 0
    assert "were changed" not in capsys.readouterr().err


def test_cells_on_different_tasks_are_told_before_their_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    write(TASK, OTHER)
    assert main([*OWN, "model=echo"]) == 0
    assert main([*OWN, "model=refactorer", "dataset.limit=1"]) == 0
    capsys.readouterr()
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert re.match("note: .* on mine .*different tasks: echo 2, refactorer 1; 1 in all", capsys.readouterr().err)


def test_one_task_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    write(TASK)
    assert main([*OWN, "model=echo"]) == 0
    metrics = json.loads((next(Path("runs").iterdir()) / "metrics.json").read_text())
    assert metrics["mst"] == 2.0
    assert metrics["ci"]["mst"] is None and metrics["ci"]["pass_at_1"] == [None, None]
    assert "Mean Sustainable Turns  2.000 of 2" in capsys.readouterr().out


def test_a_key_that_is_given_twice_is_told_and_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    write(TASK)
    assert main([*OWN, "model=echo", "seed=1", "seed=2"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("seed ") and said.err.splitlines()[0].endswith("seed=2 counts")
    assert said.out.startswith("echo mine balanced 2 turns seed=2 · ")


def test_part_of_a_release_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    numbered = [{**task, "task_id": f"HumanEval/{number}", "base_input": [[1]], "tests": []}
                for number, task in enumerate((TASK, OTHER))]  # fmt: skip
    write(*numbered)
    words = ["dataset=humaneval", "dataset.path=mine.jsonl", "agenda.turns=2", "tracking=none", "model=echo"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.err.startswith("warning: 2 tasks ")
    assert "not HumanEvalPlus v0.1.10: compare no figure" in said.err
    Path("samples.jsonl").write_text(json.dumps({"task_id": "HumanEval/0", "solution": TASK["prompt"] + " return 2"}))
    assert main(["verify", *words[:2], "samples=samples.jsonl", "out=v.jsonl", "sandbox.allow_weak=true"]) == 0
    assert "are not HumanEvalPlus v0.1.10" in capsys.readouterr().err


def test_errored_sessions_of_an_export_are_told(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made, "cell", ignore=shutil.ignore_patterns("seal.json"))
    change_lines(lambda lines: [lines[0], lines[1].replace('"status":"completed"', '"status":"errored"')])(Path("cell"))
    assert main(["export", "run=cell", "out=x.csv"]) == 0
    told = "note: 1 errored session in it, which belong in no figure: keep status == completed\n"
    assert capsys.readouterr().err.endswith(told)


def test_one_cell_in_two_folders_counts_once_or_not_at_all(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        shutil.copytree(made, f"runs/{name}")
    assert main(["report", "runs=runs", "out=out"]) == 2
    assert "runs/a and runs/b hold the same" in capsys.readouterr().err
    shutil.rmtree("runs/b")
    Path("runs/b").symlink_to("a")
    assert main(["export", "runs=runs", "out=x.csv"]) == 0
    assert capsys.readouterr().out.startswith("1 cell, 4 turns")


def test_whatever_is_edited_between_two_runs_makes_another_cell() -> None:
    rules = 'text,scope,rule\n' + "".join(
        f'Remove all comments ({scope}).,{scope},"{{""pattern"": ""comment""}}"\n' for scope in SCOPES
    )  # fmt: skip
    files = {"pool.csv": rules, "first.md": "Write this.\n{{prompt}}\n"}
    words = [*OWN, "model=echo", "instructions.path=pool.csv", "protocol.prompts.initial=@first.md"]

    def identity(*tasks: dict[str, Any], **changed: str) -> str:
        write(*tasks)
        for name, text in {**files, **{key.replace("_", "."): text for key, text in changed.items()}}.items():
            Path(name).write_text(text)
        return build_cell(compose(words)).id

    plain = identity(TASK, OTHER)
    edited = [
        identity(OTHER, TASK),
        identity(TASK),
        identity(TASK, {**OTHER, "tests": ["assert f(1) == 3", "assert f(2) == 4"]}),
        identity(TASK, {**OTHER, "prompt": OTHER["prompt"].replace("x + 2", "x plus 2")}),
        identity(TASK, OTHER, pool_csv=rules.replace("Remove all comments", "Drop all comments")),
        identity(TASK, OTHER, first_md="Write that.\n{{prompt}}\n"),
    ]
    assert len({plain, *edited}) == 1 + len(edited)
    assert identity({**TASK, "note": "not used"}, OTHER) == plain, "and nothing else does"
