"""From a cell to its session records: resumes from the journal, runs sessions concurrently, records what failed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from codechat.cell import Cell, session_id
from codechat.domain import Task
from codechat.errors import InfrastructureError, UserError
from codechat.journal import Journal
from codechat.judges import JUDGES
from codechat.models import MODELS
from codechat.protocols import DialogueProtocol, Kit
from codechat.protocols.kit import Gate, Services, SessionLog
from codechat.records import SessionRecord, TurnRecord
from codechat.sandbox import SANDBOXES, admit

# An endpoint that stays dead would cost every remaining session minutes of retries: after this many failures in a
# row, without one session that finished in between, the cell stops asking.
FAILURES_IN_A_ROW = 5


class Observer(Protocol):
    """What shows progress."""

    def note(self, text: str) -> None:
        """Something that the user should know before the first session."""

    def turn(self, turn: TurnRecord) -> None:
        """A turn was finished."""

    def session(self, session: SessionRecord) -> None:
        """A session was finished, found finished in the journal, or errored."""


@dataclass
class Progress:
    """The sessions so far: complete once `run_sessions` returns, partial after an interruption.

    Memory stays small at any number of sessions: `slim` holds records without their texts, by task id; the whole
    record of a completed session is in the journal, that of an errored one, as a line of JSON, in `errored`.
    """

    slim: dict[str, SessionRecord] = field(default_factory=dict)
    errored: dict[str, str] = field(default_factory=dict)
    failures_in_a_row: int = 0
    last_failure: str = ""

    def add(self, record: SessionRecord) -> None:
        self.slim[record.task_id] = record.slim()
        if record.status == "completed":
            self.failures_in_a_row = 0
        else:
            self.errored[record.task_id] = record.line()
            self.last_failure = self.last_failure if self.hopeless else record.error or ""
            self.failures_in_a_row += 1

    @property
    def hopeless(self) -> bool:
        """Whether to stop asking."""
        return self.failures_in_a_row >= FAILURES_IN_A_ROW

    def lines(self, cell: Cell, journal: Journal) -> Iterator[str]:
        """The lines of sessions.jsonl: what is known of the sessions, in dataset order."""
        for task in cell.tasks:
            line = self.errored.get(task.task_id) or journal.finished(session_id(cell.id, task.task_id))
            if line is not None:
                yield line + "\n"


async def run_sessions(cell: Cell, journal: Journal, progress: Progress, observer: Observer) -> None:
    """Run what is missing of a cell. Raises `UserError`, or a bug bare; the sessions so far stay in `progress`."""
    missing: list[Task] = []
    for task in cell.tasks:
        known = journal.finished(session_id(cell.id, task.task_id))
        if known is None:
            missing.append(task)
        else:
            record = SessionRecord.model_validate_json(known)
            progress.add(record)
            observer.session(record)
    if not missing:
        return
    async with _services(cell, journal, observer) as services:
        shift = _Shift(cell, cell.protocol(), services, progress, observer)
        # More sessions than calls are under way, so that a session that is being tested leaves no call slot idle.
        crew = min(len(missing), cell.experiment.model.max_concurrency + 2 * cell.resources().workers)
        queue = iter(missing)
        await _bare(_together([shift.work(queue) for _ in range(crew)]))


@contextlib.asynccontextmanager
async def _services(cell: Cell, journal: Journal, observer: Observer) -> AsyncIterator[Services]:
    experiment = cell.experiment
    component = MODELS.of(experiment.model)
    model = component.factory(experiment.model)
    judge = JUDGES.of(experiment.judge).factory(experiment.judge)
    sandbox = SANDBOXES.of(experiment.sandbox).factory(experiment.sandbox, workers=cell.resources().workers)
    async with contextlib.AsyncExitStack() as stack:
        for each in (model, judge, sandbox):
            stack.push_async_callback(each.aclose)
        if not component.baseline:
            admit(sandbox, experiment.sandbox)
        if sandbox.notice:
            observer.note(sandbox.notice)
        yield Services(model, component.baseline, judge, sandbox, journal, Gate(model), Gate(judge))


@dataclass(frozen=True)
class _Shift:
    """What the concurrent workers of a cell share."""

    cell: Cell
    protocol: DialogueProtocol
    services: Services
    progress: Progress
    observer: Observer

    async def work(self, queue: Iterator[Task]) -> None:
        """Run sessions until the queue is empty."""
        for task in queue:
            record = await self._session(task)
            if record.status == "completed":
                await self.services.journal.finish(record.session_id, record.line())
            self.progress.add(record)
            self.observer.session(record)

    async def _session(self, task: Task) -> SessionRecord:
        identity = session_id(self.cell.id, task.task_id)
        kit = Kit(task, identity, self.cell.experiment.seed, self.services, self.observer.turn)
        kit.log.agenda = self.protocol.agenda(kit.generator("agenda"))
        if self.progress.hopeless:
            last = self.progress.last_failure
            return self._record(task, kit.log, f"not attempted: too many failures in a row; the last: {last}")
        try:
            await _bare(self.protocol.run(task, kit))
        except InfrastructureError as error:
            return self._record(task, kit.log, str(error) or type(error).__name__)
        return self._record(task, kit.log, None)

    def _record(self, task: Task, log: SessionLog, error: str | None) -> SessionRecord:
        cell = self.cell
        return SessionRecord(
            cell_id=cell.id,
            session_id=session_id(cell.id, task.task_id),
            task_id=task.task_id,
            dataset=cell.dataset.name,
            model=cell.model_label,
            protocol=cell.experiment.protocol.kind,  # type: ignore[attr-defined]
            agenda=log.agenda,
            seed=cell.experiment.seed,
            status="completed" if error is None else "errored",
            ended=log.ended,
            error=error,
            turns=log.turns,
        )


async def _together(coroutines: list[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for coroutine in coroutines:
            group.create_task(coroutine)


async def _bare(coroutine: Coroutine[Any, Any, None]) -> None:
    """Await; of a group of failures raise the one that matters most: a bug, then a user's mistake, then the rest."""
    try:
        await coroutine
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        leaves.sort(key=lambda leaf: (isinstance(leaf, InfrastructureError), isinstance(leaf, UserError)))
        raise leaves[0] from None


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each
