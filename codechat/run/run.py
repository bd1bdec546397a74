"""Run one cell: sessions → records → metrics → tables, figures → tracking, as a function that returns its outcome."""

import contextlib
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codechat.base.environment import caches_in, shell_command, silence
from codechat.base.files import write_atomically
from codechat.base.records import SessionRecord, read_sessions
from codechat.base.seal import break_seal, write_seal
from codechat.models.calls import Brake, run_coroutine
from codechat.report import write_figures
from codechat.report.tracking import TRACKING
from codechat.run.answering.endpoints import EndpointCheck, is_finished, recall
from codechat.run.answering.servers import layout_of
from codechat.run.cell import Cell, build_cell, journals_in, lock
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import Estimate, estimate_of
from codechat.run.cell.stopping import check_stop, measures_of
from codechat.run.journal import Journal
from codechat.run.results.measured import Tracking, effort_of, finished_cell, measure, send, write_metrics
from codechat.run.running.observer import Observer, Silent, following
from codechat.run.running.sessions import SessionsInJournal, run_sessions
from codechat.run.running.shards import Shard, ShardResult, import_steps, lock_shard, merge, share_of
from codechat.run.settings.compose import Composed

DONE, BUG, MISTAKE, TOO_MANY_ERRORS, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit statuses (contract, section 1)."""


@dataclass(frozen=True)
class Outcome:
    """The result of running a cell.

    `status` is the exit status. `metrics` is the content of metrics.json, None if the cell was interrupted or only
    estimated, or if a shard was run, whose result is `part`. `unfinished` is the reason if the cell ended early, else
    empty. `layout` has a line for each model server that an estimated cell would start.
    """

    status: int
    cell: Cell
    metrics: Mapping[str, Any] | None = None
    estimate: Estimate | None = None
    unfinished: str = ""
    seconds: float = 0.0
    tracking: Tracking = field(default_factory=Tracking)
    part: ShardResult | None = None
    layout: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.cell.folder

    @property
    def sessions(self) -> Iterator[SessionRecord]:
        """The cell's sessions in dataset order, read lazily from sessions.jsonl."""
        path = self.folder / "sessions.jsonl"
        return read_sessions(path) if path.exists() else iter(())


def run(
    composed: Composed,
    observer: Observer | None = None,
    *,
    sweep: str | None = None,
    command: Sequence[str] | None = None,
) -> Outcome:
    """Build a cell and run its missing sessions, or one shard; with `dry_run` only estimate their cost.

    Synchronous, even if an event loop is running; prints nothing, but reports progress to `observer`. `sweep` names the
    cell's sweep, `command` is the command line that resumes it. Raises `UserError` for a user's mistake.
    """
    silence(os.environ)
    for remark in composed.remarks:
        (observer or Silent()).note(remark)
    cell = build_cell(composed)
    check_stop(cell)
    shard = Shard.of(cell.config.shard)
    if cell.config.dry_run:
        part = cell if shard is None else shard.part_of(cell)
        expected = estimate_of(part, Budget.of(cell.config).tariff, journals_in(cell.folder))
        return Outcome(DONE, part, estimate=expected, layout=layout_of(part))
    if shard is not None:
        return run_shard(cell, shard, observer)
    words = command if command is not None else [shell_command("codechat"), *composed.words]
    return run_built(cell, words, observer, sweep=sweep)


def run_built(
    cell: Cell, command: Sequence[str], observer: Observer | None = None, *, sweep: str | None = None
) -> Outcome:
    """Run the missing sessions of a cell, then measure and track all of them. Raises `UserError`."""
    watcher, brake, started, words = observer or Silent(), Brake(), time.monotonic(), shlex.join(command)
    budget, tracker, abandoned = Budget.of(cell.config), TRACKING.build(cell.config.tracking), cell.abandoned()
    with following(tracker, budget, lambda: finished_cell(cell, None, sweep, words)) as follow:
        with caches_in(cell.config.hardware.scratch), lock(cell.folder):
            if not (settings := cell.folder / "config.yaml").exists():
                write_atomically(settings, cell.config_yaml())  # first: `rescore` knows its folder by them
            merge(cell)  # 1. the shards' journals
            with contextlib.closing(Journal(cell.folder / "journal.db")) as journal:
                cell, finished = _begin(cell, journal, watcher, brake, budget, abandoned=abandoned)  # 2. the endpoints
                break_seal(cell.folder)
                write_atomically(settings, cell.config_yaml())  # 3.
                with SessionsInJournal(cell, journal).writing_at_end():  # 4. the sessions that are missing
                    run_sessions(cell, journal, watcher, brake, budget, follow=None if finished else follow)
                wall_s = journal.add_wall(time.monotonic() - started)
                if brake.interrupted:
                    return Outcome(INTERRUPTED, cell, unfinished="interrupted", seconds=time.monotonic() - started)
                metrics = measure(cell, journal, effort_of(journal, budget.tariff, wall_s))  # 5. all sessions
                unfinished = budget.words_on_stop(journal.ledger, brake)
            write_metrics(cell, metrics)  # 6. metrics.json, tables
            seconds = time.monotonic() - started
            write_figures(measures_of(cell), metrics, cell.name, cell.folder / "figures")
            write_seal(cell.folder)  # 7. everything is there
        tracking = send(finished_cell(cell, metrics, sweep, words), tracker)  # 8. the run in the store
        follow.tracked()
        watcher.measured(cell, metrics, seconds)  # 9. shown last: all is kept if printing fails
    early = unfinished or metrics["errored"] > cell.config.max_errors
    status = TOO_MANY_ERRORS if early else DONE
    return Outcome(status, cell, metrics, unfinished=unfinished, seconds=seconds, tracking=tracking)


def run_shard(cell: Cell, shard: Shard, observer: Observer | None = None) -> Outcome:
    """Run and record the missing sessions of a shard; nothing is measured. Raises `UserError`."""
    watcher, brake, started = observer or Silent(), Brake(), time.monotonic()
    budget, abandoned, part = Budget.of(cell.config), cell.abandoned(), shard.part_of(cell)
    with caches_in(cell.config.hardware.scratch), lock_shard(cell, shard):
        budget = share_of(budget, shard, import_steps(cell, shard))
        with contextlib.closing(Journal(part.folder / "journal.db")) as journal:
            part, _ = _begin(part, journal, watcher, brake, budget, abandoned=abandoned)
            run_sessions(part, journal, watcher, brake, budget)
            seconds = time.monotonic() - started
            journal.add_wall(seconds)
            if brake.interrupted:
                return Outcome(INTERRUPTED, part, unfinished="interrupted", seconds=seconds)
            done, unfinished = ShardResult.of(part, shard, journal), budget.words_on_stop(journal.ledger, brake)
        done.write(part.folder)
    early = unfinished or done.errored > cell.config.max_errors
    return Outcome(TOO_MANY_ERRORS if early else DONE, part, unfinished=unfinished, seconds=seconds, part=done)


def _begin(
    cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget, *, abandoned: Path | None
) -> tuple[Cell, bool]:
    """Announce the cell; returns it and whether it is finished: then with the addresses that answered it.

    `abandoned` is a folder of the cell that is not continued. Raises `UserError`, before any call or file, if an
    endpoint serves another checkpoint than the cell was begun with.
    """
    notes: list[str] = []
    finished = is_finished(cell, journal)
    if finished:
        cell, words, notes = run_coroutine(lambda: recall(cell, journal), brake)
        watcher.finished(cell, words)
    else:
        run_coroutine(EndpointCheck(cell.endpoints, journal, watcher.note).check_again, brake)
    watcher.begin(cell, cell.turns, budget)
    for note in (*notes, *cell.remarks):
        watcher.note(note)
    if abandoned is not None:
        watcher.note(f"{abandoned} was begun under other rules, baselines or repositories: it is not continued")
    return cell, finished
