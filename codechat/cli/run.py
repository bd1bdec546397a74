"""Run one cell: compose → validate → sessions → records → metrics → tracking → summary → exit status."""

import asyncio
import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.cell import Cell, Composed, build_cell, held
from codechat.cli.summary import summary
from codechat.cli.terminal import ProgressBar, err, out
from codechat.cli.tracked import track
from codechat.files import write_atomically
from codechat.journal import Journal
from codechat.metrics import Effort
from codechat.metrics.measures import FIELD
from codechat.models import MODELS
from codechat.report import write_figures, write_tables
from codechat.runner import Progress, run_sessions
from codechat.tracking import TRACKING

DONE, BUG, MISTAKE, TOO_MANY_ERRORS, INTERRUPTED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class CellOutcome:
    """What a cell ended with."""

    status: int
    cell: Cell
    metrics: Mapping[str, Any] | None


def run_cell(composed: Composed, command: Sequence[str], sweep: str | None) -> CellOutcome:
    """Build a cell and run it, as `run_built` does."""
    return run_built(build_cell(composed), command, sweep)


def run_built(cell: Cell, command: Sequence[str], sweep: str | None) -> CellOutcome:
    """Run a cell, or what is missing of it. `command` is what resumes it. Raises `UserError`."""
    experiment = cell.experiment
    tracker = TRACKING.of(experiment.tracking).factory(experiment.tracking)
    protocol = cell.protocol()
    turns = sum(protocol.turns(task) for task in cell.tasks)
    out.print(f"[bold]{cell.name}[/bold] · {len(cell.tasks)} tasks, {turns} turns · {cell.folder}")
    with held(cell):
        write_atomically(cell.folder / "config.yaml", cell.config_yaml())
        progress = Progress()
        started = time.monotonic()
        try:
            with ProgressBar(len(cell.tasks), turns) as bar:
                effort = asyncio.run(_sessions(cell, progress, bar))
        except (KeyboardInterrupt, asyncio.CancelledError):
            err.print(f"interrupted; everything finished is kept. Resume: {shlex.join(command)}", markup=False)
            return CellOutcome(INTERRUPTED, cell, None)
        sessions = [progress.slim[task.task_id] for task in cell.tasks]
        metrics = {
            **protocol.metrics(sessions, seed=experiment.seed, effort=effort),
            FIELD: protocol.measures.described(),
        }
        write_atomically(cell.folder / "metrics.json", json.dumps(metrics, indent=1, ensure_ascii=False) + "\n")
        write_tables(protocol.measures, metrics, cell.folder / "tables")
        write_figures(protocol.measures, metrics, cell.name, cell.folder / "figures")
    out.print(summary(protocol.measures, metrics, f"\n{cell.name} ({time.monotonic() - started:.1f} s)"))
    component = MODELS.of(experiment.model)
    if component.baseline:
        part = "involved" if experiment.judge.kind == "rules" else "tested"
        out.print(f"\nNo language model was {part}: model={component.name} is a baseline. {component.summary}.\n")
    out.print(f"run folder  {cell.folder}", markup=False)
    track(cell, tracker, metrics, sweep, command)
    return CellOutcome(_status(cell, metrics), cell, metrics)


async def _sessions(cell: Cell, progress: Progress, bar: ProgressBar) -> Effort:
    """Run the sessions and write their records, after an interruption too; returns what the cell took."""
    started = time.monotonic()
    journal = Journal(cell.folder / "journal.db")
    try:
        await run_sessions(cell, journal, progress, bar)
    finally:
        await journal.settle()
        effort = Effort(wall_s=journal.add_wall(time.monotonic() - started), retries=journal.retries())
        if progress.slim:
            write_atomically(cell.folder / "sessions.jsonl", progress.lines(cell, journal))
        journal.close()
    return effort


def _status(cell: Cell, metrics: Mapping[str, Any]) -> int:
    allowed = cell.experiment.max_errors
    if metrics["errored"] <= allowed:
        return DONE
    err.print(f"{metrics['errored']} sessions errored, {allowed} are allowed (max_errors); the first:", markup=False)
    for session in _errored(cell.folder / "sessions.jsonl")[:1]:
        err.print(f"  {session['task_id']}: {session['error'][:300]}", markup=False)
    err.print("Run the same command again to retry only these.", markup=False)
    return TOO_MANY_ERRORS


def _errored(path: Path) -> list[dict[str, Any]]:
    sessions = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [session for session in sessions if session["status"] == "errored"]
