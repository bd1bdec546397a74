"""Tasks whose tests import packages: what is printed to install, what is told, and a run in an environment's set."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.cli.app import main
from support.sreval import unit_test

pytestmark = pytest.mark.long

WEAK = "sandbox.allow_weak=true"  # where there is no bubblewrap
RUN = [
    "protocol=stepwise",
    "dataset=sreval_python",
    "dataset.path=tasks.jsonl",
    "model=reference",
    "tracking=none",
    WEAK,
]


def row(name: str, source: str, test: str) -> dict[str, object]:
    turns = [{"turn_num": 1, "instruction": "Count.", "solution": source, "test": unit_test(test)}]
    return {"hash_id": name, "total_turn": 1, "turn_datas": turns}


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The interpreter of an environment with the package `abacus`; the tasks lie in the current folder."""
    monkeypatch.chdir(tmp_path)
    rows = [
        row("a" * 24, "import abacus\ndef task_func(x):\n    return abacus.count(x)\n", "self.assertEqual(task_func([1, 2]), 2)"),
        row("b" * 24, "import sklearn_abacus_x\ndef task_func(x):\n    return 1\n", "self.assertTrue(task_func(0))"),
        row("c" * 24, "def task_func(x):\n    return x\n", "self.assertTrue(task_func(1))"),
    ]  # fmt: skip
    Path("tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "set"], check=True)
    (place,) = Path("set").glob("lib/python*/site-packages")
    (place / "abacus.py").write_text("def count(x):\n    return len(x)\n")
    return f"sandbox.python={tmp_path}/set/bin/python"


def test_what_to_install(python: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["requirements", *RUN[1:3]]) == 0
    *packages, note = capsys.readouterr().out.splitlines()
    assert packages == ["abacus", "sklearn-abacus-x"] and note.startswith("# for 2 of 3 tasks")
    turn = {"instruction": "Plot.", "solution": "import sklearn\n", "tests": ["import numpy\nassert f()"]}
    Path("own.jsonl").write_text(json.dumps({"task_id": "o", "entry_point": "f", "turns": [turn]}) + "\n")
    assert main(["requirements", "dataset=jsonl", "dataset.path=own.jsonl"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["numpy==1.26.4", "scikit-learn==1.3.1"]
    assert main(["requirements", "dataset=jsonl", "dataset.path=own.jsonl", "versions=newest"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["numpy", "scikit-learn"]
    Path("plain.jsonl").write_text(Path("tasks.jsonl").read_text().splitlines()[-1])
    assert main(["requirements", RUN[1], "dataset.path=plain.jsonl"]) == 0
    (note,) = capsys.readouterr().out.splitlines()
    assert note.startswith("# ") and "1 task" in note
    assert main(["requirements", *RUN[1:3], "versions=old"]) == 2
    assert main(["requirements"]) == 2


@pytest.mark.parametrize("command", [RUN, ["verify", *RUN[1:3]]], ids=["run", "verify"])
def test_missing_packages_are_told_at_the_start(
    python: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, python]) == 2
    told = capsys.readouterr().err
    assert "1 of 3 tasks" in told and f"sklearn_abacus_x: {'b' * 24}" in told
    assert "codechat requirements" in told and "dataset.runnable" in told
    assert main(command) == 2
    told = capsys.readouterr().err
    assert "own interpreter" in told and "2 of 3 tasks" in told


def test_a_run_in_the_set(python: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = f"dataset.tasks=[{'a' * 24},{'c' * 24}]"
    assert main([*RUN, python, chosen]) == 0
    (metrics,) = Path("runs").glob("*/metrics.json")
    assert json.loads(metrics.read_text())["acc"] == [1.0]
    assert main(["verify", *RUN[1:3], python, chosen]) == 0
    assert "every reference passes" in capsys.readouterr().out
    assert main(["rescore", f"run={metrics.parent}", "out=again", python, "tracking=none", WEAK]) == 0
    assert json.loads(Path("again/metrics.json").read_text())["acc"] == [1.0]


def test_a_wrong_interpreter_ends_the_command(python: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "sandbox.python=/no/such/python"]) == 2
    assert "no interpreter /no/such/python" in capsys.readouterr().err
