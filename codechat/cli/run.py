"""Run one cell at a terminal, printing the engine's reports."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rich.markup import escape

from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.base.template import counted
from codechat.cli.cell_view import (
    inside_line,
    show_assumptions,
    show_estimate,
    show_layout,
    show_request,
    show_tracking,
    summary,
)
from codechat.cli.interruption import on_signal, termination_as_interrupt
from codechat.cli.progress import ProgressBar
from codechat.cli.terminal import err, out
from codechat.judging import JUDGES
from codechat.models import MODELS
from codechat.models.calls import Brake
from codechat.models.roles import models_in
from codechat.run.cell import Cell
from codechat.run.cell.budget import Budget, is_free
from codechat.run.cell.stopping import measures_of
from codechat.run.journal import Ledger
from codechat.run.launchers import Report, TurnCounts
from codechat.run.run import INTERRUPTED, TOO_MANY_ERRORS, Outcome, run, run_built
from codechat.run.running.observer import Counts, Silent
from codechat.run.running.sessions import first_request, is_batched
from codechat.run.running.shards import ShardResult, without_shard
from codechat.run.settings.compose import Composed


class Terminal(Silent):
    """Prints a cell's name and size, a progress bar while it runs, and its summary. `report` gets the counts."""

    def __init__(self, report: Report | None = None) -> None:
        self._report = report
        self._cell: Cell | None = None
        self._budget: Budget | None = None
        self._bar: ProgressBar | None = None
        self._counts = Counts()
        self._finished = ""

    def finished(self, cell: Cell, words: str) -> None:
        self._finished = f" · {words}"

    def begin(self, cell: Cell, turns: int, budget: Budget) -> None:
        self._cell, self._budget = cell, budget
        facts = f"{counted(len(cell.tasks), 'task')}, {counted(turns, 'turn')} · {cell.folder}"
        out.print(f"[bold]{escape(cell.name)}[/bold]{escape(self._finished)} · {escape(facts)}")

    def note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.note(text)
        else:
            err.print(text, markup=False)

    def watching(self, counts: Counts, ledger: Ledger) -> AbstractContextManager[object]:
        assert self._cell is not None and self._budget is not None
        self._counts = counts
        self._bar = ProgressBar(len(self._cell.tasks), counts, ledger, self._budget)
        return self._bar

    def interruptible(self, brake: Brake) -> AbstractContextManager[object]:
        return on_signal(brake)

    def turn(self, turn: TurnRecord, *, new: bool) -> None:
        self._report_counts()

    def session(self, session: SessionRecord, planned: int) -> None:
        self._report_counts()

    def recalled(self, session: SessionRecord, planned: int) -> None:
        self._report_counts()

    def _report_counts(self) -> None:
        if self._report is not None and self._bar is not None:
            counts = self._counts
            self._report(TurnCounts(counts.turns, counts.planned, counts.passed, counts.scored))

    def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None:
        title = f"\n{escape(cell.name)} ({seconds:.1f} s)"
        out.print(summary(measures_of(cell), metrics, title, cell.dataset.departure))
        inside = inside_line(metrics, read_sessions(cell.folder / "sessions.jsonl"))
        if inside:
            out.print(f"\n{inside}", markup=False)
        _print_identity(cell)


def run_cell(composed: Composed, command: Sequence[str], sweep: str | None, report: Report | None = None) -> Outcome:
    """Build a cell and run it, or only estimate its cost. `command` resumes it. Raises `UserError`."""
    with termination_as_interrupt():
        outcome = run(composed, Terminal(report), sweep=sweep, command=command)
    if outcome.estimate is not None:
        show_estimate(outcome.cell, outcome.estimate)
        show_layout(outcome.layout)
        if sweep is None:
            show_request(outcome.cell.tasks[0].task_id, first_request(outcome.cell))
            show_assumptions()
        return outcome
    return _report(outcome, command)


def run_built_cell(cell: Cell, command: Sequence[str]) -> Outcome:
    """Run a cell that is already built."""
    with termination_as_interrupt():
        return _report(run_built(cell, command, Terminal()), command)


def _report(outcome: Outcome, command: Sequence[str]) -> Outcome:
    """Print the tracked run, and why the cell ended early if it did."""
    if outcome.status == INTERRUPTED:
        kept = "everything finished is kept" + ", and batches go on at their provider" * is_batched(outcome.cell)
        err.print(f"interrupted; {kept}. Resume: {shlex.join(command)}", markup=False)
        return outcome
    show_tracking(outcome.tracking, outcome.cell.config.tracking, outcome.folder)
    if outcome.part is not None:
        _show_part(outcome.part, command)
    if outcome.unfinished:
        err.print(outcome.unfinished, markup=False)
    elif outcome.status == TOO_MANY_ERRORS and outcome.metrics is not None:
        _show_errors(outcome)
    return outcome


def _show_part(part: ShardResult, command: Sequence[str]) -> None:
    """Print what a shard recorded, and the command that merges all of them."""
    completed = counted(part.completed, "session")
    out.print(f"shard {part.shard.name}: {completed} completed, {part.errored} errored", markup=False)
    if part.errored:
        err.print(f"the first error: {part.error:.400}\nRun the same command again to retry.", markup=False)
    merging = shlex.join(without_shard(command))
    out.print(f"when all shards have ended, this merges and measures them: {merging}", markup=False)


def _print_identity(cell: Cell) -> None:
    component = MODELS.of(cell.config.model)
    if component.traits.baseline:
        further = models_in(cell.config.protocol, "protocol")
        offline = JUDGES.of(cell.config.judge).traits.offline and all(map(is_free, (each for _, each in further)))
        part = "involved" if offline else "tested"
        out.print(f"\nNo language model was {part}: model={component.name} is a baseline. {component.summary}.")
    out.print(f"\nrun folder  {cell.folder}", markup=False)


def _show_errors(outcome: Outcome) -> None:
    assert outcome.metrics is not None
    allowed = outcome.cell.config.max_errors
    err.print(
        f"{counted(outcome.metrics['errored'], 'session')} errored, {allowed} are allowed (max_errors); the first:",
        markup=False,
    )
    for session in read_sessions(outcome.folder / "sessions.jsonl"):
        if session.status == "errored":
            err.print(f"  {session.task_id}: {(session.error or '')[:300]}", markup=False)
            break
    err.print("Run the same command again to retry only these.", markup=False)
