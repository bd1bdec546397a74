"""A study carried out into a package of its own: found by its entry point, with ids and records as in the tree."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat import studies as studies_of_the_tree
from support.codeif import write_rows
from support.multicodeif import constrained
from support.sreval import growing

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "cells"
REPAIRED = ("dataset=multicodeif", "dataset.path=rows.jsonl", "judge=rules")
STUDIES = {  # the words of a cell, and what the report says of it
    "cab": (("protocol=assist", "dataset=assist_starter"), "CodeAssistBench"),
    "codeif": (
        ("protocol=static", "dataset=jsonl", f"dataset.path={GOLDEN / 'tasks.jsonl'}", "model=reference"),
        "CodeIF-Bench",
    ),
    "multicodeif": (
        ("protocol=repair", "protocol.rounds=1", "model=scripted", "model.replies=['x = 1','y = 2']", *REPAIRED),
        "MultiCodeIF",
    ),
    "refine": (("model=drifter", "agenda.turns=3", "dataset.limit=2", "judge=rules"), "Pass@1"),
    "sreval": (
        ("protocol=stepwise", "dataset=sreval_python", "dataset.path=steps.jsonl", "model=reference"),
        "SR-Eval",
    ),
}
# Runs commands, one a line of standard input, in a codechat whose studies are those of the folder in argv.
COMMANDS = """
import shlex, sys
import codechat.studies
codechat.studies.__path__ = [sys.argv[1]]
from codechat.cli.app import main
for line in sys.stdin:
    if status := main(shlex.split(line)):
        sys.exit(status)
assert not any(name.startswith(f"codechat.studies.{sys.argv[2]}") for name in sys.modules)
"""


def carry_out(name: str, folder: Path) -> Path:
    """Install the study as a package in `folder`; returns the folder of the studies that are left."""
    inside = Path(studies_of_the_tree.__path__[0])
    package = shutil.copytree(inside / name, folder / f"codechat_{name}", ignore=shutil.ignore_patterns("*.pyc"))
    for file in package.rglob("*.py"):
        file.write_text(file.read_text().replace(f"codechat.studies.{name}", package.name))
    info = folder / f"{package.name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[codechat.study]\n{name} = {package.name}\n")
    left = folder / "studies"
    left.mkdir()
    for comparison in inside.iterdir():
        if comparison.is_dir() and comparison.name != name:
            (left / comparison.name).symlink_to(comparison)
    return left


def recorded(cell: Path) -> list[Any]:
    """The sessions and metrics of a cell, without times."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(each) for key, each in value.items() if not key.endswith("_s")}
        return [timeless(each) for each in value] if isinstance(value, list) else value

    lines = [*(cell / "sessions.jsonl").read_text().splitlines(), (cell / "metrics.json").read_text()]
    return [timeless(json.loads(line)) for line in lines]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_a_package_of_its_own_without_a_line_changed_elsewhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = carry_out(name, tmp_path)
    words, title = (*STUDIES[name][0], "tracking=none", "hardware.workers=1"), STUDIES[name][1]
    write_rows(tmp_path / "steps.jsonl", growing("a" * 24, 3))
    naming = {"category": "coding_style", "constraint_type": "naming", "language": "python"}
    write_rows(tmp_path / "rows.jsonl", constrained(answer="python;function:snake_case", **naming))
    command = [sys.executable, "-c", COMMANDS, str(left), name]
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    lines = [shlex.join((*words, "runs_dir=apart")), "report runs=apart out=report"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, input="\n".join(lines),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.chdir(tmp_path)
    own = run(compose(words)).folder
    (apart,) = (tmp_path / "apart").iterdir()
    assert apart.name == own.name, "the folder's name ends in the cell's id"
    assert recorded(apart) == recorded(own)
    assert title in (tmp_path / "report" / "index.html").read_text()
