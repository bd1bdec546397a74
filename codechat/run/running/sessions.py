"""From a cell to its session records: resumes from the journal, runs sessions concurrently, records failures."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from codechat.base.domain import BATCH, Usage
from codechat.base.environment import collect_seldom
from codechat.base.errors import (
    BrokenTest,
    ConversationRefused,
    InfrastructureError,
    JudgeUnreadable,
    Stopped,
    UserError,
)
from codechat.base.files import write_atomically
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.texts import writable
from codechat.datasets.tasks import Task
from codechat.models import MODELS, UNDER_TEST, ModelConfig
from codechat.models.calls import BRAKE, Brake, run_coroutine
from codechat.models.calls.batches import BATCH_SCHEDULER, BatchScheduler
from codechat.models.calls.purse import PURSE, Purse
from codechat.models.endpoints import ENDPOINT_LISTENER
from codechat.models.roles import models_in, role_of
from codechat.run.answering.endpoints import EndpointCheck
from codechat.run.answering.servers import ServerCapacity, capacity_of, serving
from codechat.run.cell import Cell, session_id
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import sizes_of
from codechat.run.cell.examining import examine
from codechat.run.cell.references import References, now_and_then, sandbox_for
from codechat.run.cell.stopping import checkpoints, tasks_needed
from codechat.run.journal import Journal
from codechat.run.protocols import DialogueProtocol, Kit
from codechat.run.protocols.kit import clear_desk
from codechat.run.protocols.services import Asked, CheckOnce, Player, Services, SessionLog
from codechat.run.running.observer import Counts, Follow, Observer
from codechat.run.running.room import UNMEASURED, Room
from codechat.sandbox import Sandbox
from codechat.sandbox.suites.checker import Checker, NoSandbox

# An endpoint that stays dead would cost every remaining session minutes of retries: after this many failures in a
# row, without a finished session in between, the cell stops asking.
FAILURES_IN_A_ROW = 5

# Seconds for calls under way to finish when the cell must end; their answers are kept. This leaves time to write the
# records: SLURM kills 30 s after SIGTERM (its default KillWait).
GRACE_S = 20.0

MOST_BATCHED = 4_000
"""The most sessions at once whose calls are batched: each takes a quarter of a megabyte."""


@dataclass(frozen=True)
class SessionsInJournal(Iterable[SessionRecord]):
    """The sessions in a cell's journal, in dataset order, without their texts; each iteration reads them again."""

    cell: Cell
    journal: Journal

    def __iter__(self) -> Iterator[SessionRecord]:
        for outline in filter(None, map(self.journal.outline, self._ids())):
            yield SessionRecord.model_validate_json(outline)

    def lines(self) -> Iterator[str]:
        """The lines of sessions.jsonl: whole records."""
        return (self._renamed(record) + "\n" for record in filter(None, map(self.journal.record, self._ids())))

    def write(self) -> None:
        """Replace sessions.jsonl, once there is a session."""
        lines = self.lines()
        if (first := next(lines, None)) is not None:
            write_atomically(self.cell.folder / "sessions.jsonl", itertools.chain([first], lines))

    @contextlib.contextmanager
    def writing_at_end(self) -> Iterator[None]:
        """Write sessions.jsonl on leaving, after an error too; a full disk is reported once."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(UserError):
                self.write()
            raise
        self.write()

    def _renamed(self, record: str) -> str:
        """The record with the current name of the dataset, which is not in the id: the user may have changed it."""
        name = self.cell.dataset.name
        if not self.cell.dataset.own or f'"dataset":{json.dumps(name, ensure_ascii=False)}' in record[:2000]:
            return record
        return SessionRecord.model_validate_json(record).model_copy(update={"dataset": name}).line()

    def _ids(self) -> Iterator[str]:
        return (session_id(self.cell.id, task.task_id) for task in tasks_needed(self.cell, self.journal))


def run_sessions(
    cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget, *, follow: Follow | None = None
) -> None:
    """Run the missing sessions and the servers they need, shown by `follow`. An interruption pulls the brake."""
    counts, ledger = Counts(cell.turns), journal.ledger

    async def work() -> None:
        async with servers.at_work():
            with follow.sessions(counts, ledger, watcher.note) if follow else contextlib.nullcontext():
                await run_missing_sessions(cell, journal, watcher, brake, budget, counts=counts)

    try:
        with watcher.watching(counts, ledger), serving(cell, journal, watcher.note) as servers:
            run_coroutine(work, brake)
    except (KeyboardInterrupt, asyncio.CancelledError):
        brake.pull("interrupted", interrupted=True)


async def run_missing_sessions(
    cell: Cell, journal: Journal, watcher: Observer, brake: Brake, budget: Budget, *, counts: Counts | None = None
) -> None:
    """Run the missing sessions until they are done, a budget is reached, or the user interrupts.

    `counts` are updated before the watcher is called.
    """
    async with working(journal, brake, budget, cell.endpoints, watcher) as scheduler:
        counts = counts or Counts(cell.turns)
        await _run_sessions(cell, journal, watcher, brake, budget, counts=counts, scheduler=scheduler)


class _Watcher(Protocol):
    def note(self, text: str) -> None: ...

    def interruptible(self, brake: Brake) -> contextlib.AbstractContextManager[object]: ...


@contextlib.asynccontextmanager
async def working(
    journal: Journal, brake: Brake, budget: Budget, endpoints: Mapping[str, ModelConfig], watcher: _Watcher
) -> AsyncIterator[BatchScheduler]:
    """Surrounds the work of a cell or a construction in the event loop.

    Watches the budget and interruptions, records endpoints, and schedules batches. On leaving, all is on disk.
    """

    def check_budget(_: object = None) -> None:
        if reason := budget.reason_to_stop(journal.ledger, purse.spent):
            brake.pull(reason)

    def fits(reserved: Mapping[str, Usage]) -> bool:
        return budget.left(journal.ledger, reserved) >= 0.0

    purse = Purse(fits if budget.is_limited else None, check_budget)
    journal.watch = check_budget
    check_budget()
    BRAKE.set(brake)
    PURSE.set(purse)
    ENDPOINT_LISTENER.set(EndpointCheck(endpoints, journal, watcher.note))
    scheduler = BatchScheduler(journal.batches)
    BATCH_SCHEDULER.set(scheduler)
    with watcher.interruptible(brake), collect_seldom():
        try:
            yield scheduler
        finally:
            await journal.settle()
            journal.ledger.unrecorded = purse.spent


async def _run_sessions(
    cell: Cell,
    journal: Journal,
    observer: Observer,
    brake: Brake,
    budget: Budget,
    *,
    counts: Counts,
    scheduler: BatchScheduler,
) -> None:
    """Run a cell's missing sessions until the brake is pulled. Raises `UserError`, or a bug, outside any group.

    Calls under way are then finished and kept. Unfinished sessions are errored after a budget, left to the next run
    after an interruption.
    """
    protocol, missing = cell.protocol, set[str]()
    has_desk = MODELS.of(cell.config.model).traits.has_desk
    for task in tasks_needed(cell, journal):
        identity = session_id(cell.id, task.task_id)
        known = journal.outline(identity, completed=True)
        if known is None:
            missing.add(task.task_id)
        else:
            if has_desk:
                clear_desk(journal, identity)  # the session may have been completed in a shard
            session, planned = SessionRecord.model_validate_json(known), protocol.turns(task)
            counts.recalled(session, planned)
            observer.recalled(session, planned)
    if not missing:
        return
    async with services_of(cell, journal, observer.note, brake) as services, finish_steps(journal):
        if "sandbox" in cell.uses:
            sandbox, note = cell.config.sandbox, observer.note
            progress, stopped = now_and_then(note), lambda: brake.interrupted
            references = References(cell.dataset, services.tests, sandbox, note, progress, stopped)
            await unwrap_group(references.refuse(cell.tasks))
        unfinished = [task for task in cell.tasks if task.task_id in missing]
        await examine(cell, unfinished, services, scheduler, observer.note)
        room = room_of(cell, journal, brake, budget)
        workers = _Workers(cell, protocol, services, counts, observer, scheduler, capacity_of(cell), room)
        for checkpoint in checkpoints(len(cell.tasks)):  # all tasks at the first, unless the cell may end early
            ready = [task for task in tasks_needed(cell, journal, checkpoint) if task.task_id in missing]
            missing -= {task.task_id for task in ready}
            queue = iter(ready)
            count = min(len(ready), _sessions_at_once(cell))
            await unwrap_group(run_together([workers.work(queue) for _ in range(count)]))


def room_of(cell: Cell, journal: Journal, brake: Brake, budget: Budget) -> Room:
    """The sessions that the budget lets run side by side, in parts of the budget."""
    sizes, tasks = sizes_of(cell), {task.task_id: task for task in cell.tasks}

    def costs(task_id: str) -> list[float]:
        task = tasks[task_id]
        asks = list(cell.protocol.asks(task))
        return [budget.part(sizes.tokens(asks, done)) for done in range(cell.protocol.turns(task))]

    # a batch takes hours: no round of a single session measures the others
    return Room(lambda: budget.left(journal.ledger), costs, brake, 1.0 if is_batched(cell) else UNMEASURED)


def is_batched(cell: Cell) -> bool:
    """Whether calls to one of a cell's models go into batches."""
    return any(getattr(model, "tier", None) == BATCH for model in cell.endpoints.values())


def _sessions_at_once(cell: Cell) -> int:
    """The most sessions at once: if calls are batched, as many as memory holds, else twice the number of slots.

    Then a session being tested leaves no slot idle, and few slots are idle when the last sessions end.
    """
    return MOST_BATCHED if is_batched(cell) else 2 * (cell.config.model.max_concurrency + cell.resources.workers)


@contextlib.asynccontextmanager
async def finish_steps(journal: Journal) -> AsyncIterator[None]:
    """Wait on leaving for the steps under way, unless cancelled."""
    try:
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException:
            await journal.finish_steps(GRACE_S)
            raise
        await journal.finish_steps(GRACE_S)
    finally:
        await journal.abandon()


@dataclass
class _Workers:
    """The concurrent workers of a cell, with the failures of this process since its last completed session."""

    cell: Cell
    protocol: DialogueProtocol
    services: Services
    counts: Counts
    observer: Observer
    scheduler: BatchScheduler
    capacity: ServerCapacity
    room: Room
    failures_in_a_row: int = 0
    last_failure: str = ""

    async def work(self, queue: Iterator[Task]) -> None:
        """Run sessions until the queue is empty, or the user interrupts."""
        brake, journal = self.services.brake, self.services.journal
        for task in queue:
            if brake.interrupted:
                break
            async with self.room.session(task.task_id), self.capacity.slot():
                with self.scheduler.working():
                    record, apart = await self._session(task)
            if apart and self.services.brake.interrupted:
                break
            completed, outline = record.status == "completed", record.slim()
            await journal.finish(record.session_id, record.line(), outline.line(), completed=completed)
            if completed and self.services.players[UNDER_TEST].has_desk:
                clear_desk(journal, record.session_id)
            if not apart:
                self.note_end(record)
            if completed and outline.turns:
                last = outline.turns[-1].usage
                self.capacity.session_ended(last.input_tokens + last.output_tokens)
            self.counts.session(outline, self.protocol.turns(task))
            self.observer.session(outline, self.protocol.turns(task))

    @property
    def hopeless(self) -> bool:
        """Whether to stop asking."""
        return self.failures_in_a_row >= FAILURES_IN_A_ROW

    def note_end(self, record: SessionRecord) -> None:
        """Count the failures in a row."""
        if record.status == "completed":
            self.failures_in_a_row = 0
        else:
            self.last_failure = self.last_failure if self.hopeless else record.error or ""
            self.failures_in_a_row += 1

    def _turn(self, task: Task, turn: TurnRecord, new: bool) -> None:
        if new:
            self.capacity.turn_ended()
        self.room.turn_ended(task.task_id, new=new)
        self.counts.turn(turn, new=new)
        self.observer.turn(turn, new=new)

    async def _session(self, task: Task) -> tuple[SessionRecord, bool]:
        """Run a session. Returns its record, and whether its end is no sign of a failing endpoint.

        That is so if a budget, an interruption or an unreadable judge cut it short, a test is broken, or the endpoint
        refused this conversation.
        """
        identity = session_id(self.cell.id, task.task_id)
        kit = Kit(task, identity, self.cell.config.seed, self.services, partial(self._turn, task))
        kit.log.agenda = self.protocol.agenda(kit.generator("agenda", self.cell.agenda_seed))
        if self.hopeless:
            error = f"not attempted: too many failures in a row; the last: {self.last_failure}"
            return self._record(task, kit.log, error), False
        try:
            await unwrap_group(self.protocol.run(task, kit))
            if not kit.log.turns and kit.log.ended is None:
                remedy = "its run() must record each turn by kit.finish_turn; docs/write-your-own.md shows how"
                raise UserError(f"protocol={self.cell.protocol_name} recorded no turn of {task.task_id}", remedy)
        except Stopped as stop:
            return self._record(task, kit.log, f"not finished: {stop}"), True
        except JudgeUnreadable as unreadable:
            brake = self.services.brake
            brake.pull(str(unreadable), unreadable.remedy)
            brake.refused = True
            return self._record(task, kit.log, f"not finished: {unreadable}"), True
        except BrokenTest as broken:
            return self._record(task, kit.log, f"a test decides nothing: {broken}"), True
        except InfrastructureError as error:
            cause = str(error) or type(error).__name__
            return self._record(task, kit.log, cause), isinstance(error, ConversationRefused)
        finally:
            await kit.aclose()
        return self._record(task, kit.log, None), False

    def _record(self, task: Task, log: SessionLog, error: str | None) -> SessionRecord:
        cell = self.cell
        return SessionRecord(
            cell_id=cell.id,
            session_id=session_id(cell.id, task.task_id),
            task_id=task.task_id,
            dataset=cell.dataset.name,
            model=cell.model_label,
            protocol=cell.protocol_name,
            agenda=log.agenda,
            seed=cell.config.seed,
            status="completed" if error is None else "errored",
            ended=log.ended,
            error=writable(error),
            turns=log.turns,
            language=task.target.language,
            judgement=log.judgement,
        )


async def run_together(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines at once; raises an exception group."""
    async with asyncio.TaskGroup() as group:
        for coroutine in coroutines:
            group.create_task(coroutine)


async def unwrap_group(coroutine: Awaitable[None]) -> None:
    """Await; from an exception group raise the most important member: a bug, then a `UserError`, then others."""
    try:
        await coroutine
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        kinds = (UserError, InfrastructureError, Stopped)
        leaves.sort(key=lambda leaf: max((n for n, kind in enumerate(kinds, 1) if isinstance(leaf, kind)), default=0))
        raise leaves[0] from None


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


@contextlib.asynccontextmanager
async def services_of(
    cell: Cell, journal: Journal, note: Callable[[str], None], brake: Brake
) -> AsyncIterator[Services]:
    """Build the components, and close them at the end. `note` gets remarks for the user."""
    config = cell.config
    async with contextlib.AsyncExitStack() as stack:
        groups = [group for group in cell.study_groups if group.serves]
        serving = {group.name: group.registry.build(config.part(group.name)) for group in groups}
        for component in serving.values():
            stack.push_async_callback(component.aclose)
        players = _players(cell, tuple(serving.values()), stack)
        judge = None
        if "judge" in cell.uses:
            judge = Asked.of(config.judge)
            stack.push_async_callback(judge.judge.aclose)
        sandbox: Sandbox = NoSandbox(config.sandbox)
        if "sandbox" in cell.uses:
            trusted = MODELS.of(config.model).traits.baseline
            room = sandbox_for(cell.tasks, config.sandbox, cell.resources.workers, note, trusted=trusted)
            sandbox = await stack.enter_async_context(room)
        services = Services(players, journal, Checker(sandbox), judge, brake, serving, workers=cell.resources.workers)
        stack.push_async_callback(services.opened.aclose)
        yield services


def _players(cell: Cell, serving: Sequence[Any], stack: contextlib.AsyncExitStack) -> dict[str, Player]:
    """The model under test and the models in the protocol's config, by role.

    The `serving` components are checked before the model under test is asked.
    """
    config, tested = cell.config, MODELS.build(cell.config.model)
    traits = MODELS.of(config.model).traits
    players = {UNDER_TEST: Player(tested, CheckOnce(*serving, tested), traits.baseline, traits.has_desk)}
    for place, model in models_in(config.protocol, "protocol"):
        players[role_of(place)] = Player.of(MODELS.build(model))
    for player in players.values():
        stack.push_async_callback(player.model.aclose)
    return players
