"""Studies of one's own, end to end: no figure under a wrong name, beside the wrong figures, or lost on the way."""

import contextlib
import csv
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import dataset_in
from codechat.cli.app import main
from codechat.datasets import DATASETS, load
from support.cab import Assisted, issue, write_assisted

WORDS = ["agenda.turns=2", "tracking=none", "model=echo", "hardware.workers=1"]
TASK = {"prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return 2\n", "base_input": [[1]],
        "plus_input": [], "atol": 0, "contract": "", "assertion": ""}  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HUMANEVAL_OVERRIDE_PATH", "MBPP_OVERRIDE_PATH"):
        monkeypatch.delenv(name, raising=False)


def write(path: str, *rows: dict[str, Any]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def table(name: str) -> list[dict[str, str]]:
    with Path("out/tables", f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_a_benchmark_takes_its_own_tasks_and_says_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    """A path that a sweep gives to every dataset would have run the same tasks twice."""
    write(
        "MbppPlus.jsonl",
        *({**TASK, "task_id": f"HumanEval/{number}"} for number in range(3)),
        {**TASK, "task_id": "Mbpp/2"},
    )
    assert main(["dataset=humaneval", "dataset.path=MbppPlus.jsonl", *WORDS]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert all(name in told for name in ("dataset=humaneval", "HumanEvalPlus", "'Mbpp/2'"))
    assert "HUMANEVAL_OVERRIDE_PATH=FILE" in told and "dataset.path=FILE dataset.name=NAME" in told
    assert not Path("runs").exists()


def test_part_of_a_release_is_marked_wherever_its_figures_stand(capsys: pytest.CaptureFixture[str]) -> None:
    write("part.jsonl", *({**TASK, "task_id": f"HumanEval/{number}"} for number in range(3)))
    assert main(["dataset=humaneval", "dataset.path=part.jsonl", *WORDS]) == 0
    summary = capsys.readouterr().out
    assert "caution" in summary and "are not HumanEvalPlus v0.1.10" in " ".join(summary.split())
    assert main(["report", "runs=runs", "out=out"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    (cell,) = Path("runs").glob("*/")
    name = f"humaneval ({dataset_in(cell)['content_hash'][:8]}, not as published)"
    assert f"caution: echo, {name}: 3 tasks with the content" in told
    assert {row["dataset"] for row in table("counts")} == {name}
    page = Path("out/index.html").read_text()
    assert page.count("not as published") >= 2 and "compare no figure" in page
    # under a name of one's own the tasks claim nothing, and no model is called again
    assert main(["dataset=humaneval", "dataset.path=part.jsonl", "dataset.name=mine", *WORDS]) == 0
    assert "are not HumanEvalPlus" not in capsys.readouterr().err
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert {row["dataset"] for row in table("counts")} == {"mine"}


def test_one_content_is_never_two_datasets(capsys: pytest.CaptureFixture[str]) -> None:
    write("part.jsonl", *({**TASK, "task_id": f"HumanEval/{number}"} for number in range(3)))
    assert main(["dataset=humaneval", "dataset.path=part.jsonl", *WORDS]) == 0
    assert main(["dataset=jsonl", "dataset.path=part.jsonl", *WORDS, "seed=1"]) == 0
    capsys.readouterr()
    assert main(["report", "runs=runs", "out=out"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "the same tasks" in told and "dataset.name" in told


@pytest.mark.long
def test_issues_of_ones_own_stand_beside_no_published_figure(tmp_path: Path) -> None:
    """A cell of the published issues has the paper's rows; the same cell with another content has none."""
    cell = write_assisted(Assisted("deepseek-r1"), tmp_path / "runs")
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert "published" in {row["source"] for row in table("assist_correctness")}
    about = {"content_hash": "0" * 64, "departure": "42 tasks with the content 00000000 are not issues as published"}
    (cell / "tracking.json").write_text(json.dumps({"dataset": about}))
    assert main(["report", "runs=runs", "out=out"]) == 0
    assert {row["source"] for row in table("assist_correctness")} == {"measured"}
    assert "cab (00000000, not as published)" in {row["dataset"] for row in table("assist_languages")}


def test_issues_of_ones_own_have_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    write("issues.jsonl", issue())
    words = ["protocol=assist", "dataset=cab", "dataset.path=issues.jsonl", "model=maintainer", "environment=none",
             "model@protocol.roles.user=gpt5_nano", "model@protocol.roles.judge=gpt5_nano", "dry_run=true"]  # fmt: skip
    assert main([*words, "dataset.name=shop"]) == 0
    assert "maintainer shop protocol=assist" in capsys.readouterr().out
    named = load(DATASETS.validate({"benchmark": "cab", "path": "issues.jsonl", "name": "shop"}))
    plain = load(DATASETS.validate({"benchmark": "cab", "path": "issues.jsonl"}))
    assert (named.name, named.departure, named.content_hash) == ("shop", "", plain.content_hash)
    assert "CodeAssistBench" in plain.departure


@pytest.mark.parametrize("stream", ["", "2>&1"])
@pytest.mark.long
def test_a_reader_that_has_seen_enough_ends_no_cell(stream: str) -> None:
    """The cell is finished and tracked, and the status is 0."""
    words = "model=echo dataset.limit=2 agenda.turns=2 hardware.workers=1"
    script = f"{sys.executable} -m codechat {words} {stream} | head -c 1 > /dev/null; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    (cell,) = Path("runs").glob("*/")
    assert json.loads((cell / "metrics.json").read_text())["completed"] == 2
    assert Path("mlflow/store.db").is_file()
    with contextlib.closing(sqlite3.connect("mlflow/store.db")) as store:
        (ended_as,) = store.execute("select status from runs where status <> 'RUNNING'").fetchall()
        found = store.execute("select value from metrics where key = 'final/mst'").fetchall()
    assert (ended_as, found) == (("FINISHED",), [(2.0,)])


def test_the_name_of_a_benchmark_on_tasks_of_ones_own_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    write("mine.jsonl", {**TASK, "task_id": "mine/1"})
    assert main(["dataset=jsonl", "dataset.path=mine.jsonl", "dataset.name=humaneval", *WORDS]) == 0
    assert "name of dataset=humaneval: compare no figure" in " ".join(capsys.readouterr().err.split())
    assert main(["report", "runs=runs", "out=out"]) == 0
    (row,) = table("counts")
    assert row["dataset"].startswith("humaneval (") and row["dataset"].endswith(", not as published)")
