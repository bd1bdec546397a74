"""Run one cell: sessions → records → metrics → tables, figures → tracking, as a function that returns its outcome."""

import asyncio
import contextlib
import itertools
import json
import os
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codechat.calls import Brake, run_coroutine
from codechat.engine.answering.endpoints import Register, is_finished, recall
from codechat.engine.answering.servers import described, layout_of, serving
from codechat.engine.cell import Cell, build_cell, journals_in, lock
from codechat.engine.cell.budget import Budget
from codechat.engine.cell.estimate import Estimate, estimate_of
from codechat.engine.cell.fitting import left_out, left_undecided
from codechat.engine.results.tracked import Tracking, finished_cell, track
from codechat.engine.running.observer import Counting, Counts, Follow, Observer, Silent, following
from codechat.engine.running.sessions import Recorded, run_sessions
from codechat.engine.running.shards import Part, Shard, fill, hold, merge, share_of
from codechat.engine.settings.compose import Composed
from codechat.environment import caches_in, collect_seldom, shell_command, silence
from codechat.errors import UserError
from codechat.files import write_atomically
from codechat.journal import Journal
from codechat.metrics import Effort
from codechat.metrics.decided import DECIDED, count_decided
from codechat.metrics.loaded import LOADED, count_loaded
from codechat.metrics.measures import FIELD, fault_of
from codechat.metrics.replies import REPLIES, count_replies
from codechat.protocols import DialogueProtocol
from codechat.records import SessionRecord, read_sessions
from codechat.report import write_figures, write_tables
from codechat.seal import break_seal, write_seal
from codechat.tracking import TRACKING

DONE, BUG, MISTAKE, TOO_MANY_ERRORS, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit statuses (contract, section 1)."""


@dataclass(frozen=True)
class Outcome:
    """The result of running a cell.

    `status` is the exit status. `metrics` is the content of metrics.json, None if the cell was interrupted or only
    estimated, or if a shard of it was run, whose results are in `part`. `unfinished` says in words why the cell ended
    early, empty if it did not. `layout` has a line for each model server that an estimated cell would start.
    """

    status: int
    cell: Cell
    metrics: Mapping[str, Any] | None = None
    estimate: Estimate | None = None
    unfinished: str = ""
    seconds: float = 0.0
    tracking: Tracking = field(default_factory=Tracking)
    part: Part | None = None
    layout: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of the cell's files."""
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
    """Build a cell and run its missing sessions, or those of one shard; with `dry_run` only estimate their cost.

    Synchronous, even if an event loop is running; prints nothing, but reports progress to `observer`. `sweep` names the
    cell's sweep, and `command` is the command line that starts or resumes it. Raises `UserError` for a user's mistake.
    """
    silence(os.environ)
    for remark in composed.remarks:
        (observer or Silent()).note(remark)
    cell, shard = build_cell(composed), Shard.of(composed.config)
    if composed.config.dry_run:
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
    """Run the missing sessions of a cell. Raises `UserError`."""
    budget, tracker = Budget.of(cell.config), TRACKING.build(cell.config.tracking)
    words = shlex.join(command)
    with following(tracker, budget, lambda: finished_cell(cell, None, sweep, words)) as follow:
        outcome = _run_whole(cell, observer or Silent(), budget, follow)
        if outcome.metrics is None:
            follow.end("KILLED")
            return outcome
        tracking = track(outcome.cell, tracker, outcome.metrics, sweep, words)
        follow.tracked(tracking.failure)
    return replace(outcome, tracking=tracking)


def _run_whole(cell: Cell, watcher: Observer, budget: Budget, follow: Follow) -> Outcome:
    """Run what is missing of a cell, and write its results. Raises `UserError`."""
    protocol = cell.protocol()
    abandoned = cell.abandoned_folder() if not cell.folder.exists() else None
    started, brake = time.monotonic(), Brake()
    with caches_in(cell.config.hardware.scratch), lock(cell):
        merge(cell)
        with contextlib.closing(Journal(cell.folder / "journal.db")) as journal:
            cell, finished = _begin(cell, journal, watcher, brake, budget)
            _note_abandoned(abandoned, watcher)
            break_seal(cell.folder)
            write_atomically(cell.folder / "config.yaml", cell.config_yaml())
            with _write_sessions_at_end(cell, journal):
                _run(cell, journal, watcher, brake, budget, follow=None if finished else follow)
            effort = _effort(journal, budget, journal.add_wall(time.monotonic() - started))
            if brake.interrupted:
                return Outcome(INTERRUPTED, cell, unfinished="interrupted", seconds=time.monotonic() - started)
            metrics = _metrics(cell, protocol, journal, effort)
            unfinished = budget.words_on_stop(journal.ledger, brake)
        write_atomically(cell.folder / "metrics.json", json.dumps(metrics, indent=1, ensure_ascii=False) + "\n")
        write_tables(protocol.measures, metrics, cell.folder / "tables")
        seconds = time.monotonic() - started
        watcher.measured(cell, metrics, seconds)
        # After the summary, as matplotlib takes longer than a small cell. The seal says that everything is there.
        write_figures(protocol.measures, metrics, cell.name, cell.folder / "figures")
        write_seal(cell.folder)
    early = unfinished or metrics["errored"] > cell.config.max_errors
    return Outcome(TOO_MANY_ERRORS if early else DONE, cell, metrics, None, unfinished, seconds)


def run_shard(cell: Cell, shard: Shard, observer: Observer | None = None) -> Outcome:
    """Run the missing sessions of a shard of a cell: they are recorded, and nothing is measured. Raises `UserError`."""
    watcher, brake, started = observer or Silent(), Brake(), time.monotonic()
    budget, part = Budget.of(cell.config), shard.part_of(cell)
    abandoned = cell.abandoned_folder() if not cell.folder.exists() else None
    with caches_in(cell.config.hardware.scratch), hold(cell, shard):
        budget = share_of(budget, shard, fill(cell, shard))
        with contextlib.closing(Journal(part.folder / "journal.db")) as journal:
            part, _ = _begin(part, journal, watcher, brake, budget)
            _note_abandoned(abandoned, watcher)
            _run(part, journal, watcher, brake, budget)
            seconds = time.monotonic() - started
            journal.add_wall(seconds)
            if brake.interrupted:
                return Outcome(INTERRUPTED, part, unfinished="interrupted", seconds=seconds)
            done, unfinished = Part.of(part, shard, journal), budget.words_on_stop(journal.ledger, brake)
        done.leave(part.folder)
    early = unfinished or done.errored > cell.config.max_errors
    return Outcome(TOO_MANY_ERRORS if early else DONE, part, None, None, unfinished, seconds, part=done)


def _note_abandoned(folder: Path | None, watcher: Observer) -> None:
    if folder is not None:
        watcher.note(f"{folder} was begun under other rules, baselines or repositories: it is not continued")


def _begin(cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget) -> tuple[Cell, bool]:
    """Announce the cell, or that it is finished: returns which. It then keeps the addresses of those who answered.

    Raises `UserError` if an endpoint serves another checkpoint than the cell was begun with: before any call, and
    before anything is written.
    """
    notes: tuple[str, ...] = ()
    finished = is_finished(cell, journal)
    if finished:
        found = run_coroutine(lambda: recall(cell, journal), brake)
        cell, notes = found.cell, found.notes
        watcher.finished(cell, found.words)
    else:
        run_coroutine(lambda: Register(cell.config, journal, watcher.note).check_again(), brake)
    watcher.begin(cell, _turns(cell), budget)
    lacking = (left_out(cell.config, cell.pool), left_undecided(cell.config, cell.tasks))
    for note in filter(None, (*notes, *cell.warnings(), *lacking)):
        watcher.note(note)
    return cell, finished


def _run(
    cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget, *, follow: Follow | None = None
) -> None:
    """Run the missing sessions, shown by `follow` if it is given. An interruption pulls the brake."""
    counts, ledger = Counts(_turns(cell)), journal.ledger

    async def work() -> None:
        async with servers.at_work():
            with follow.sessions(counts, ledger, watcher.note) if follow else contextlib.nullcontext():
                await run_missing_sessions(cell, journal, Counting(counts, watcher), brake, budget)

    try:
        with watcher.watching(counts, ledger), serving(cell, journal, watcher.note) as servers:
            run_coroutine(work, brake)
    except (KeyboardInterrupt, asyncio.CancelledError):
        brake.pull("interrupted", interrupted=True)


def _turns(cell: Cell) -> int:
    return sum(cell.protocol().turns(task) for task in cell.tasks)


async def run_missing_sessions(cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget) -> None:
    """Run the missing sessions until they are done, a budget is reached, or the user interrupts."""

    def check_budget(_: object = None) -> None:
        reason = budget.reason_to_stop(journal.ledger)
        if reason:
            brake.pull(reason)

    journal.watch = check_budget
    check_budget()
    with watcher.interruptible(brake), collect_seldom():
        try:
            await run_sessions(cell, journal, watcher, brake)
        finally:
            await journal.settle()


@contextlib.contextmanager
def _write_sessions_at_end(cell: Cell, journal: Journal) -> Iterator[None]:
    """Write sessions.jsonl on leaving, after an error too; a full disk is reported once."""
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


def _metrics(cell: Cell, protocol: DialogueProtocol, journal: Journal, effort: Effort) -> dict[str, Any]:
    sessions = Recorded(cell, journal)
    found = protocol.metrics(sessions, seed=cell.config.seed, effort=effort)
    if fault := fault_of(found, protocol.measures):
        remedy = "docs/write-your-own.md says what the metrics of a protocol hold"
        raise UserError(f"protocol={cell.protocol_name}: the result of metrics() {fault}", remedy)
    decided, replies = Counter(count_decided(())), Counter(count_replies(()))
    for session in sessions:  # once for both: each pass reads the journal
        decided.update(count_decided((session,)))
        replies.update(count_replies((session,)))
    counts = {DECIDED: dict(decided), REPLIES: dict(replies), LOADED: count_loaded(cell.tasks)}
    return {**found, **counts, **described(cell, journal), FIELD: protocol.measures.describe()}


def _effort(journal: Journal, budget: Budget, wall_s: float) -> Effort:
    ledger, tariff = journal.ledger, budget.tariff
    return Effort(
        wall_s=wall_s,
        retries=ledger.total("retries"),
        rate_limited=ledger.total("rate_limited"),
        cached_replies=ledger.total("cached_replies"),
        tariff=tariff,
        judged={} if tariff.has_one_price else journal.used(),
        spent=ledger.spent,
    )
