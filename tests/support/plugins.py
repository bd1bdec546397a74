"""Plugins as a user would install them: one file, named under entry points by a distribution on the path."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "tests" / "plugins"


def install(folder: Path, name: str, groups: tuple[str, ...]) -> None:
    """Make `tests/plugins/NAME.py` a distribution in a folder, found under the entry points of the groups."""
    shutil.copy(PLUGINS / f"{name}.py", folder / f"{name}_plugin.py")
    info = folder / f"{name}_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 1.0\n")
    points = "\n".join(f"[codechat.{group}]\n{name} = {name}_plugin\n" for group in groups)
    (info / "entry_points.txt").write_text(points)


SEVERAL = """
import contextlib, io, json, sys
from codechat.cli.app import main
for words in json.loads(sys.argv[1]):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = main(words)
    print(json.dumps([status, printed.getvalue()]))
"""


def codechat(folder: Path, *words: str) -> tuple[int, str]:
    """Exit status and output of a command, in a process that finds the plugins of the folder."""
    done = _started(folder, "-m", "codechat", *words)
    return done.returncode, done.stdout + done.stderr


def several(folder: Path, *commands: list[str]) -> list[tuple[int, str]]:
    """The same of several commands, one after the other in one process: to load codechat is most of what a short one
    takes.
    """
    done = _started(folder, "-c", SEVERAL, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def _started(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")))},
    )
