"""A study carried out into a package of its own: found by its entry point, with ids and records as in the tree."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat import studies as studies_of_the_tree

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
STUDY = "cab"
WORDS = ("protocol=assist", "dataset=assist_starter", "tracking=none", "hardware.workers=1")
# Runs commands, one a line of standard input, in a codechat whose studies are those of the folder in argv.
COMMANDS = """
import shlex, sys
import codechat.studies
codechat.studies.__path__ = [sys.argv[1]]
from codechat.cli.app import main
for line in sys.stdin:
    if status := main(shlex.split(line)):
        sys.exit(status)
assert not any(name.startswith("codechat.studies.cab") for name in sys.modules)
"""


def carry_out(folder: Path) -> Path:
    """Install the study as a package in `folder`; returns the folder of the studies that are left."""
    inside = Path(studies_of_the_tree.__path__[0])
    package = shutil.copytree(inside / STUDY, folder / f"codechat_{STUDY}", ignore=shutil.ignore_patterns("*.pyc"))
    for file in package.rglob("*.py"):
        file.write_text(file.read_text().replace(f"codechat.studies.{STUDY}", package.name))
    info = folder / f"{package.name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[codechat.study]\n{STUDY} = {package.name}\n")
    left = folder / "studies"
    left.mkdir()
    for study in inside.iterdir():
        if study.is_dir() and study.name != STUDY:
            (left / study.name).symlink_to(study)
    return left


def recorded(cell: Path) -> list[Any]:
    """The sessions and metrics of a cell, without times."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(each) for key, each in value.items() if not key.endswith("_s")}
        return [timeless(each) for each in value] if isinstance(value, list) else value

    lines = [*(cell / "sessions.jsonl").read_text().splitlines(), (cell / "metrics.json").read_text()]
    return [timeless(json.loads(line)) for line in lines]


def test_a_study_is_a_package_of_its_own_without_a_line_changed_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = carry_out(tmp_path)
    command = [sys.executable, "-c", COMMANDS, str(left)]
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    lines = [" ".join((*WORDS, "runs_dir=apart")), "report runs=apart out=report"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, input="\n".join(lines),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.chdir(tmp_path)
    own = run(compose(WORDS)).folder
    (apart,) = (tmp_path / "apart").iterdir()
    assert apart.name == own.name, "the folder's name ends in the cell's id"
    assert recorded(apart) == recorded(own)
    assert "CodeAssistBench" in (tmp_path / "report" / "index.html").read_text()
