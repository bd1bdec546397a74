"""What is said of several cells, and of one: exports with their settings, counts in words, no bars of other tools."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from codechat.cli.app import main
from codechat.cli.commands.export import run_export
from support.mistakes import mistake

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
WORDS = ("model=echo", "dataset.limit=1", "hardware.workers=1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_several_cells_are_exported_with_what_tells_them_apart() -> None:
    cells = [["agenda.turns=2"], ["agenda.turns=3", "agenda=cosmetic", "seed=4"], ["agenda.turns=2", "model=drifter"]]
    for cell in cells:
        assert main([*WORDS, "tracking=none", *cell]) == 0
    folders = sorted(Path("runs").iterdir())
    assert main(["export", "runs=runs", "out=turns.parquet"]) == 0
    frame: Any = pd.read_parquet("turns.parquet")
    names = ["model", "dataset", "agenda", "turns", "judge", "seed", "protocol"]
    found = frame.groupby("cell_id")[names].first().values.tolist()
    assert sorted(found) == [
        ["drifter", "starter", "balanced", 2, "rules", 0, "refine"],
        ["echo", "starter", "balanced", 2, "rules", 0, "refine"],
        ["echo", "starter", "cosmetic", 3, "rules", 4, "refine"],
    ]
    assert len(frame) == 2 + 3 + 2
    assert main(["export", f"runs={folders[0]},{folders[1]}", "out=two.csv"]) == 0
    assert pd.read_csv("two.csv")["cell_id"].nunique() == 2


def test_an_export_says_how_many_and_tells_contents_apart(capsys: pytest.CaptureFixture[str]) -> None:
    task = {"task_id": "m/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n"}
    for folder in ("old", "new"):
        Path(folder).mkdir()
        Path(folder, "mine.jsonl").write_text(
            json.dumps({**task, "tests": f"assert f({len(folder)!r}, ) or '{folder}'"})
        )
        words = ["dataset=jsonl", f"dataset.path={folder}/mine.jsonl", "model=echo", "agenda.turns=2", "tracking=none"]
        assert main(words) == 0
    capsys.readouterr()
    assert main(["export", "runs=runs", "out=turns.csv"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("2 cells, 4 turns, ")
    datasets = sorted(set(pd.read_csv("turns.csv")["dataset"]))
    assert len(datasets) == 2 and all(name.startswith("mine (") for name in datasets)
    assert re.match("note: Different tasks .*mine", told.err)


def test_a_protocol_without_agenda_and_judge_has_none_in_an_export() -> None:
    requirement = {"type": "Edge", "text": "Take 0.", "tests": "assert f(0) == 0"}
    task = {"task_id": "m/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n",
            "tests": "assert f(1) == 1", "requirements": [requirement]}  # fmt: skip
    Path("mine.jsonl").write_text(json.dumps(task))
    words = ["dataset=jsonl", "dataset.path=mine.jsonl", "protocol=static", "model=echo", "tracking=none"]
    assert main(words) == 0
    assert main(["export", "runs=runs", "out=turns.csv"]) == 0
    assert pd.read_csv("turns.csv")[["agenda", "turns", "judge"]].isna().all(axis=None)


def test_an_export_of_one_or_of_several() -> None:
    with mistake("run and runs", "runs=DIR[,DIR]"):
        run_export(["run=a", "runs=b", "out=x.csv"])


def test_one_of_a_thing_is_singular_and_no_foreign_bar_is_shown(tmp_path: Path) -> None:
    """In a process of its own, because MLflow's bars are drawn on its standard error."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
        "COLUMNS": "160",
    }

    def codechat(*words: str) -> Any:
        command = [sys.executable, "-m", "codechat", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done

    ran = codechat(*WORDS, "agenda.turns=2")
    assert "1 task, 2 turns · runs/" in ran.stdout
    reported = codechat("report", "experiment=codechat", "out=report")
    assert reported.stderr == "", "MLflow draws a bar for every file"
    assert "\n1 cell, " in reported.stdout
    assert "sweep adhoc-" in (swept := codechat("-m", *WORDS, "agenda.turns=2", "seed=0", "dry_run=true").stdout)
    assert ": 1 cell\n" in swept
    assert "export|score …" in codechat("--help").stdout
