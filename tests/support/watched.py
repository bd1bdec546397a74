"""Cells that run in a process of their own and are shown in a store meanwhile, and what can be seen of them there."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

EAGER = (
    "import sys; from codechat.report.tracking import live; live.FIRST_S, live.PAUSE_S = 0.0, 0.2;"
    "from codechat.cli.app import entry; entry()"
)
"""The command line of a codechat that shows its cells at once, and more often than people need."""


class Seen(NamedTuple):
    """A run as it is in the store now."""

    run_id: str
    status: str
    sessions: tuple[tuple[int, float], ...]


def seen(store: Path) -> list[Seen]:
    """The runs in an SQLite store; none as long as it is being made. It is read without MLflow, which would make it."""
    try:
        with contextlib.closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as db:
            runs = db.execute("SELECT run_uuid, status FROM runs WHERE lifecycle_stage = 'active'").fetchall()
            query = "SELECT step, value FROM metrics WHERE key = 'progress/sessions' AND run_uuid = ? ORDER BY step"
            return [Seen(run, status, tuple(db.execute(query, (run,)).fetchall())) for run, status in runs]
    except sqlite3.OperationalError:
        return []


@contextlib.contextmanager
def started(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A codechat in a working folder; what is left of it at the end of the block is killed."""
    command: list[Any] = [sys.executable, "-c", EAGER, *words]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
