"""Run one cell: sessions → records → metrics → tables, figures → tracking, as a function that returns its outcome."""

import asyncio
import contextlib
import gc
import itertools
import json
import os
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from codechat.calls import Brake
from codechat.engine.budget import Budget
from codechat.engine.cell import Cell, Composed, build_cell, lock
from codechat.engine.endpoints import Register
from codechat.engine.estimate import Estimate, estimate_of
from codechat.engine.fitting import left_out, left_undecided
from codechat.engine.observer import Observer, Silent
from codechat.engine.recalled import is_finished, recall
from codechat.engine.sessions import Recorded, run_sessions
from codechat.engine.track import Tracking, track
from codechat.environment import shell_command, silence
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

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The result of running a cell.

    `status` is the exit status. `metrics` is the content of metrics.json, None if the cell was interrupted or only
    estimated. `unfinished` says in words why the cell ended early, empty if it did not.
    """

    status: int
    cell: Cell
    metrics: Mapping[str, Any] | None = None
    estimate: Estimate | None = None
    unfinished: str = ""
    seconds: float = 0.0
    tracking: Tracking = field(default_factory=Tracking)

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
    """Build a cell and run its missing sessions; with `dry_run` only estimate its cost.

    Synchronous, even if an event loop is running; prints nothing, but reports progress to `observer`. `sweep` names the
    cell's sweep, and `command` is the command line that starts or resumes it. Raises `UserError` for a user's mistake.
    """
    silence(os.environ)
    for remark in composed.remarks:
        (observer or Silent()).note(remark)
    cell = build_cell(composed)
    if composed.config.dry_run:
        return Outcome(DONE, cell, estimate=estimate_of(cell, Budget.of(cell.config).tariff))
    words = command if command is not None else [shell_command("codechat"), *composed.words]
    return run_built(cell, words, observer, sweep=sweep)


def run_built(
    cell: Cell, command: Sequence[str], observer: Observer | None = None, *, sweep: str | None = None
) -> Outcome:
    """Run the missing sessions of a cell. Raises `UserError`."""
    watcher, protocol = observer or Silent(), cell.protocol()
    budget, tracker = Budget.of(cell.config), TRACKING.build(cell.config.tracking)
    abandoned = cell.abandoned_folder() if not cell.folder.exists() else None
    started, brake = time.monotonic(), Brake()
    with lock(cell):
        with contextlib.closing(Journal(cell.folder / "journal.db")) as journal:
            cell = _begin(cell, journal, watcher, brake, budget)
            if abandoned is not None:
                watcher.note(f"{abandoned} was begun under other rules, baselines or repositories: it is not continued")
            break_seal(cell.folder)
            write_atomically(cell.folder / "config.yaml", cell.config_yaml())
            _run_and_write(cell, journal, watcher, brake, budget)
            effort = _effort(journal, budget, journal.add_wall(time.monotonic() - started))
            if brake.interrupted:
                return Outcome(INTERRUPTED, cell, unfinished="interrupted", seconds=time.monotonic() - started)
            metrics = _metrics(cell, protocol, journal, effort)
            unfinished = _unfinished(journal, budget, brake)
        _write(cell, protocol, metrics)
    seconds = time.monotonic() - started
    watcher.measured(cell, metrics, seconds)
    tracking = track(cell, tracker, metrics, sweep, shlex.join(command))
    early = unfinished or metrics["errored"] > cell.config.max_errors
    return Outcome(TOO_MANY_ERRORS if early else DONE, cell, metrics, None, unfinished, seconds, tracking)


def _begin(cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget) -> Cell:
    """Announce the cell, or that it is finished. A finished cell keeps the addresses of those who answered.

    Raises `UserError` if an endpoint serves another checkpoint than the cell was begun with: before any call, and
    before anything is written.
    """
    notes: tuple[str, ...] = ()
    if is_finished(cell, journal):
        found = run_coroutine(lambda: recall(cell, journal), brake)
        cell, notes = found.cell, found.notes
        watcher.finished(cell, found.words)
    else:
        run_coroutine(lambda: Register(cell.config, journal, watcher.note).check_again(), brake)
    watcher.begin(cell, sum(cell.protocol().turns(task) for task in cell.tasks), budget)
    lacking = (left_out(cell.config, cell.pool), left_undecided(cell.config, cell.tasks))
    for note in filter(None, (*notes, *cell.warnings(), *lacking)):
        watcher.note(note)
    return cell


def _run_and_write(cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget) -> None:
    """Run the missing sessions and write sessions.jsonl in every case. An interruption pulls the brake."""
    try:
        with _write_sessions_at_end(cell, journal), watcher.watching(journal.ledger):
            run_coroutine(lambda: run_missing_sessions(cell, journal, watcher, brake, budget), brake)
    except (KeyboardInterrupt, asyncio.CancelledError):
        brake.pull("interrupted", interrupted=True)


async def run_missing_sessions(cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget) -> None:
    """Run the missing sessions until they are done, a budget is reached, or the user interrupts."""

    def check_budget(_: object = None) -> None:
        reason = budget.reason_to_stop(journal.ledger)
        if reason:
            brake.pull(reason)

    journal.watch = check_budget
    check_budget()
    with watcher.interruptible(brake), _collect_seldom():
        try:
            await run_sessions(cell, journal, watcher, brake)
        finally:
            await journal.settle()


def run_coroutine(start: Callable[[], Coroutine[Any, Any, T]], brake: Brake) -> T:
    """Run a coroutine to its end; in a thread of its own if this thread runs an event loop, as in a notebook.

    A `KeyboardInterrupt` meanwhile pulls the brake and waits for the calls under way.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    result: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(asyncio.run(start()))
        except BaseException as error:  # noqa: BLE001  raised again below, in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=work, name="codechat")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        brake.pull("interrupted", interrupted=True)
        thread.join()
    if failure:
        raise failure[0]
    return result[0]


@contextlib.contextmanager
def _collect_seldom() -> Iterator[None]:
    """Run the garbage collector less often: replies make many small objects, hardly any of them in cycles.

    At Python's default rate it takes a fifth of the engine's time.
    """
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


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
    return {**found, **counts, FIELD: protocol.measures.describe()}


def _write(cell: Cell, protocol: DialogueProtocol, metrics: Mapping[str, Any]) -> None:
    write_atomically(cell.folder / "metrics.json", json.dumps(metrics, indent=1, ensure_ascii=False) + "\n")
    write_tables(protocol.measures, metrics, cell.folder / "tables")
    write_figures(protocol.measures, metrics, cell.name, cell.folder / "figures")
    write_seal(cell.folder)


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


def _unfinished(journal: Journal, budget: Budget, brake: Brake) -> str:
    """A message for the user if a budget ended the cell early, else empty."""
    if not brake.refused:
        return ""
    paid = budget.spent_usd(journal.ledger)
    spent = f"{journal.ledger.tokens:,} tokens" + (f", ${paid:,.2f}" if paid is not None else "")
    key = brake.reason.partition("(")[2].partition(")")[0]
    return (
        f"{brake.reason}: {spent} spent, and everything finished is kept.\n"
        f"To go on, run the same command with a higher {key}: it resumes."
    )
