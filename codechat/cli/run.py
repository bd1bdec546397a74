"""Run one cell: compose → validate → sessions → records → metrics → tracking → summary → exit status."""

import asyncio
import contextlib
import gc
import itertools
import json
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.budget import Budget
from codechat.calls import Brake
from codechat.cell import Cell, Composed, build_cell, held
from codechat.cli.estimate import show_assumptions, show_estimate
from codechat.cli.interruption import heeded, termination_as_interrupt
from codechat.cli.progress import ProgressBar
from codechat.cli.summary import summary
from codechat.cli.terminal import err, out
from codechat.cli.tracked import track
from codechat.domain import Usage
from codechat.errors import UserError
from codechat.estimate import Estimate, estimate_of
from codechat.files import write_atomically
from codechat.journal import Journal
from codechat.judges import JUDGES
from codechat.metrics import Effort
from codechat.metrics.measures import FIELD
from codechat.metrics.spending import tariff_of
from codechat.models import MODELS
from codechat.report import write_figures, write_tables
from codechat.runner import Observer, Recorded, run_sessions
from codechat.tracking import TRACKING

DONE, BUG, MISTAKE, TOO_MANY_ERRORS, INTERRUPTED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class CellOutcome:
    """What a cell ended with."""

    status: int
    cell: Cell
    metrics: Mapping[str, Any] | None
    estimate: Estimate | None = None


def run_cell(composed: Composed, command: Sequence[str], sweep: str | None) -> CellOutcome:
    """Build a cell and run it, as `run_built` does; or only estimate what it would take."""
    cell = build_cell(composed)
    if not composed.experiment.dry_run:
        return run_built(cell, command, sweep)
    estimate = estimate_of(cell, budget_of(cell).tariff)
    show_estimate(cell, estimate)
    if sweep is None:
        show_assumptions()
    return CellOutcome(DONE, cell, None, estimate)


def run_built(cell: Cell, command: Sequence[str], sweep: str | None) -> CellOutcome:
    """Run a cell, or what is missing of it. `command` is what resumes it. Raises `UserError`."""
    experiment, protocol = cell.experiment, cell.protocol()
    budget = budget_of(cell)
    tracker = TRACKING.of(experiment.tracking).factory(experiment.tracking)
    turns = sum(protocol.turns(task) for task in cell.tasks)
    out.print(f"[bold]{cell.name}[/bold] · {len(cell.tasks)} tasks, {turns} turns · {cell.folder}")
    started, brake = time.monotonic(), Brake()
    with held(cell), termination_as_interrupt():
        write_atomically(cell.folder / "config.yaml", cell.config_yaml())
        with _open_journal(cell) as journal:
            try:
                with _recorded(cell, journal), ProgressBar(len(cell.tasks), turns, journal.ledger, budget) as bar:
                    asyncio.run(hold_sessions(cell, journal, bar, brake, budget))
            except (KeyboardInterrupt, asyncio.CancelledError):
                brake.pull("interrupted", interrupted=True)
            effort = _effort(journal, budget, journal.add_wall(time.monotonic() - started))
            if brake.interrupted:
                err.print(f"interrupted; everything finished is kept. Resume: {shlex.join(command)}", markup=False)
                return CellOutcome(INTERRUPTED, cell, None)
            found = protocol.metrics(Recorded(cell, journal), seed=experiment.seed, effort=effort)
            metrics = {**found, FIELD: protocol.measures.described()}
            unfinished = _unfinished(journal, budget, brake)
        _write(cell, metrics)
    out.print(summary(protocol.measures, metrics, f"\n{cell.name} ({time.monotonic() - started:.1f} s)"))
    _say_what_it_was(cell)
    track(cell, tracker, metrics, sweep, command)
    if unfinished:
        err.print(unfinished, markup=False)
    return CellOutcome(TOO_MANY_ERRORS if unfinished else _status(cell, metrics), cell, metrics)


def _write(cell: Cell, metrics: Mapping[str, Any]) -> None:
    measures = cell.protocol().measures
    write_atomically(cell.folder / "metrics.json", json.dumps(metrics, indent=1, ensure_ascii=False) + "\n")
    write_tables(measures, metrics, cell.folder / "tables")
    write_figures(measures, metrics, cell.name, cell.folder / "figures")


def _say_what_it_was(cell: Cell) -> None:
    experiment = cell.experiment
    component = MODELS.of(experiment.model)
    if component.baseline:
        part = "involved" if JUDGES.of(experiment.judge).offline else "tested"
        out.print(f"\nNo language model was {part}: model={component.name} is a baseline. {component.summary}.\n")
    out.print(f"run folder  {cell.folder}", markup=False)


def budget_of(cell: Cell) -> Budget:
    """What the cell may spend, and at what prices. Raises `UserError` for dollars without prices."""
    experiment = cell.experiment
    component = MODELS.of(experiment.model)
    tariff = tariff_of(experiment.model, experiment.judge, baseline=component.baseline)
    return Budget(experiment.budget_usd, experiment.budget_tokens, tariff)


async def hold_sessions(cell: Cell, journal: Journal, observer: Observer, brake: Brake, budget: Budget) -> None:
    """Hold the sessions that are missing, until they are done, a budget is reached, or the user interrupts."""

    def look(_: object = None) -> None:
        reason = budget.reached(journal.ledger)
        if reason:
            brake.pull(reason)

    journal.watch = look
    look()
    with heeded(brake), _seldom_collecting():
        try:
            await run_sessions(cell, journal, observer, brake)
        finally:
            await journal.settle()


@contextlib.contextmanager
def _seldom_collecting() -> Iterator[None]:
    """The collector looks less often: replies are read into many small objects, hardly one of them in a cycle.

    At Python's own pace it takes a fifth of the engine's time.
    """
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextlib.contextmanager
def _open_journal(cell: Cell) -> Iterator[Journal]:
    journal = Journal(cell.folder / "journal.db")
    try:
        yield journal
    finally:
        journal.close()


@contextlib.contextmanager
def _recorded(cell: Cell, journal: Journal) -> Iterator[None]:
    """Leaving writes sessions.jsonl, whatever happened; a disk that is full is told once."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(UserError):
            write_sessions(cell, journal)
        raise
    write_sessions(cell, journal)


def write_sessions(cell: Cell, journal: Journal) -> None:
    """Replace sessions.jsonl, once there is a session."""
    lines = Recorded(cell, journal).lines()
    first = next(lines, None)
    if first is not None:
        write_atomically(cell.folder / "sessions.jsonl", itertools.chain([first], lines))


def _effort(journal: Journal, budget: Budget, wall_s: float) -> Effort:
    ledger, tariff = journal.ledger, budget.tariff
    apart = tariff.applicability != tariff.adherence
    return Effort(
        wall_s=wall_s,
        retries=ledger.total("retries"),
        rate_limited=ledger.total("rate_limited"),
        cached_replies=ledger.total("cached_replies"),
        tariff=tariff,
        adherence=journal.adherence_usage() if apart else Usage(),
        spent=ledger.spent,
    )


def _unfinished(journal: Journal, budget: Budget, brake: Brake) -> str:
    """What to tell of a budget that ended the cell early; empty where none did."""
    if not brake.refused:
        return ""
    paid = budget.spent_usd(journal.ledger)
    spent = f"{journal.ledger.tokens:,} tokens" + (f", ${paid:,.2f}" if paid is not None else "")
    key = brake.reason.partition("(")[2].partition(")")[0]
    return (
        f"{brake.reason}: {spent} spent, and everything finished is kept.\n"
        f"To go on, run the same command with a higher {key}: it resumes."
    )


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
