"""Requests that are ready are sent together as a provider's batch, at a part of the price.

A request becomes ready when its session comes to it. A batch is submitted as soon as no session of the cell can add
another request, or by size and age. Its state is written (`Store`) before the provider receives it, so that a killed
process finds every batch again: no request is submitted twice, and every answer is fetched.
"""

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Collection, Coroutine, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from weakref import WeakSet

from codechat.base.domain import Usage
from codechat.models.calls.brake import BRAKE
from codechat.models.calls.limits import COUNTERS

TICK_S = 0.1
"""Seconds between two checks for batches to submit: long enough to see that a session continues."""
MOST_FAILED_POLLS = 20


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its name here, requests, creation (seconds since 1970), and the provider's names of its file and itself.

    `remote` is empty until the provider's answer arrived; it may have arrived at a process that was killed.
    """

    name: str
    size: int
    made: float
    file: str = ""
    remote: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one request: status and body, as if it had been sent alone; status 0: no answer."""

    status: int
    body: bytes

    @property
    def is_good(self) -> bool:
        """Whether it is a paid answer of the model."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class State:
    """The state of a batch, in the provider's word, and the number of finished requests.

    `places`: files with the results of an ended batch. `problem`: why it has no results.
    """

    word: str
    done: int
    ended: bool
    places: tuple[str, ...] = ()
    problem: str = ""


class Unreached(Exception):
    """The provider sent no usable answer; the effect of the request is unknown."""


class Unsure(Exception):
    """It is not known yet whether a batch was created."""


class Declined(Exception):
    """The provider refuses to create or to show a batch: HTTP status and body."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.body = status, body


class Lost(Exception):
    """A request has no answer: its batch expired or failed, or the queue was closed."""


class BatchProtocol(Protocol):
    """A provider's batches. All but the bounds raise `Unreached` and `Declined`."""

    most_requests: int
    most_bytes: int

    async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
        """Upload the requests, if the protocol has files; returns the name of their file, else ""."""

    async def create(self, batch: Batch, requests: dict[str, bytes]) -> str:
        """Create the batch; returns the provider's name."""

    async def find(self, batch: Batch, keys: Collection[str]) -> str:
        """The provider's name of a batch whose creation was not answered; "" if there is none. Raises `Unsure`."""

    async def state(self, batch: Batch) -> State:
        """The current state."""

    async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
        """The answers of an ended batch, in any order; missing answers are absent."""


class Store:
    """Batches and their requests; this one keeps nothing. One on disk returns from every method after the write."""

    def batch_of(self, key: str) -> Batch | None:
        """The batch of a request."""
        return None

    def keys_of(self, batch: Batch) -> list[str]:
        """The requests of a batch."""
        return []

    async def begin(self, batch: Batch, keys: Collection[str]) -> None:
        """Write a batch that will be created next."""

    async def update(self, batch: Batch) -> None:
        """Write the provider's names."""

    async def release(self, keys: Collection[str]) -> None:
        """Forget requests without an answer: they may be sent again."""

    def expect(self, payer: str, usage: Usage) -> None:
        """Count tokens that will be charged to a payer; a budget may pull the brake."""

    def expect_no_more(self, payer: str, usage: Usage) -> None:
        """Remove expected tokens: they were charged, or never will be."""


@dataclass
class RequestKey:
    """The call of a request, equal in every process that makes the call.

    `unit` is the session, `payer` the role that is charged, `expected` the estimated tokens. `answered` is the request
    whose answer was returned last.
    """

    identity: str
    unit: str
    payer: str
    expected: Usage
    answered: str = ""

    def key(self, body: bytes) -> str:
        return hashlib.sha256(self.identity.encode() + b"\0" + body).hexdigest()[:40]


REQUEST_KEY: ContextVar[RequestKey | None] = ContextVar("REQUEST_KEY", default=None)
"""The current call, set by a model of the tier batch."""


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """Most requests of a batch, longest wait of its oldest request, and seconds between two polls."""

    size: int
    age_s: float
    poll_s: float


class BatchScheduler:
    """All batches of a cell. Once all `active` sessions wait for batches, no session can add a request."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()
        self.active = 0
        self.waiting: Counter[str] = Counter()
        self.known: dict[str, Batch] = {}  # by name
        self._names: dict[str, str | None] = {}  # by request: newer than the store
        self.queues: list[BatchQueue] = []
        self._ticking: asyncio.Task[None] | None = None

    def batch_of(self, key: str) -> Batch | None:
        """The batch of a request, created by this or an earlier process."""
        if key in self._names:
            name = self._names[key]
            return None if name is None else self.known[name]
        batch = self.store.batch_of(key)
        return None if batch is None else self.known.setdefault(batch.name, batch)

    async def begin(self, batch: Batch, keys: Collection[str]) -> None:
        """Write a batch that will be created next."""
        self.known[batch.name] = batch
        self._names.update(dict.fromkeys(keys, batch.name))
        await self.store.begin(batch, keys)

    async def update(self, batch: Batch) -> None:
        """Write the provider's names."""
        self.known[batch.name] = batch
        await self.store.update(batch)

    async def release(self, keys: Collection[str]) -> None:
        """Forget requests without an answer: they may be sent again."""
        await self.store.release(keys)
        self._names.update(dict.fromkeys(keys))

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Surrounds a session."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    @contextlib.contextmanager
    def waits(self, unit: str) -> Iterator[None]:
        """Surrounds a wait for a batch."""
        self.waiting[unit] += 1
        if self._ticking is None or self._ticking.done():
            self._ticking = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            self.waiting[unit] -= 1
            self.waiting += Counter()  # without zeros

    async def _tick(self) -> None:
        brake = BRAKE.get()
        while self.waiting:
            await asyncio.sleep(TICK_S)
            all_wait = 0 < self.active <= len(self.waiting)
            for queue in self.queues:
                if brake.interrupted:
                    queue.give_up("interrupted")
                elif all_wait or queue.is_old:
                    queue.flush()


BATCH_SCHEDULER: ContextVar[BatchScheduler | None] = ContextVar("BATCH_SCHEDULER", default=None)
"""The running cell's scheduler, set by the engine; None outside of cells, where every model has a scheduler."""


@dataclass(slots=True)
class _Pending:
    body: bytes
    call: RequestKey
    answer: "asyncio.Future[Result]"


@dataclass
class _RunningBatch:
    """A batch under way: the futures of awaited answers, and the results that were not asked for yet."""

    batch: Batch
    task: "asyncio.Task[None] | None" = None
    answers: dict[str, "asyncio.Future[Result]"] = field(default_factory=dict)
    results: dict[str, Result] | None = None
    state: State = State("submitted", 0, ended=False)
    submitting: bool = False


class BatchQueue:
    """One model's requests: collects, submits, follows and distributes them. Belongs to one event loop."""

    def __init__(self, protocol: BatchProtocol, policy: BatchPolicy) -> None:
        self._protocol, self._policy = protocol, policy
        self._size = min(policy.size, protocol.most_requests)
        self._scheduler = BATCH_SCHEDULER.get() or BatchScheduler()
        self._scheduler.queues.append(self)
        _QUEUES.add(self)
        self._queue: dict[str, _Pending] = {}
        self._bytes, self._since = 0, 0.0
        self._running: dict[str, _RunningBatch] = {}
        self._submitting: set[asyncio.Task[None]] = set()

    @property
    def is_old(self) -> bool:
        return bool(self._queue) and time.monotonic() - self._since >= self._policy.age_s

    async def ask(self, body: bytes, call: RequestKey) -> Result:
        """The answer to a request, from its present or future batch. Raises `Lost`."""
        key = call.key(body)
        with self._scheduler.waits(call.unit):
            batch = self._scheduler.batch_of(key)
            answer = self._collect(key, body, call) if batch is None else await self._attach(batch, key, call)
            result = await asyncio.shield(answer)
        if result.status == 0:
            raise Lost(result.body.decode())
        if result.is_good:
            call.answered = key
        return result

    async def reject(self, call: RequestKey) -> None:
        """Release the request that was answered last, because the answer is unreadable: it may be sent again."""
        if call.answered:
            await self._scheduler.release([call.answered])
            call.answered = ""

    def give_up(self, why: str) -> None:
        """End every wait; submitted batches stay submitted."""
        running = (answer for each in self._running.values() for answer in each.answers.values())
        for answer in (*(pending.answer for pending in self._queue.values()), *running):
            _give(answer, Result(0, why.encode()))
        self._queue.clear()

    async def aclose(self) -> None:
        """Stop polling; batches continue at the provider."""
        self.give_up("closed")
        tasks = [*self._submitting, *(each.task for each in self._running.values() if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._scheduler.queues.remove(self)

    def _collect(self, key: str, body: bytes, call: RequestKey) -> "asyncio.Future[Result]":
        if key in self._queue:
            return self._queue[key].answer
        if not self._queue:
            self._since = time.monotonic()
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue[key] = _Pending(body, call, answer)
        self._bytes += len(body)
        if len(self._queue) >= self._size or self._bytes >= self._protocol.most_bytes:
            self.flush()
        return answer

    def flush(self) -> None:
        """Submit the collected requests."""
        if self._queue:
            queue, self._queue, self._bytes = self._queue, {}, 0
            task = asyncio.create_task(_guard([each.answer for each in queue.values()], self._submit(queue)))
            self._submitting.add(task)
            task.add_done_callback(self._submitting.discard)

    async def _submit(self, queue: dict[str, _Pending]) -> None:
        pending = dict(self._affordable(queue))
        if not pending:
            return
        batch = Batch(secrets.token_hex(8), len(pending), time.time())
        running = self._running[batch.name] = _RunningBatch(batch, submitting=True)
        running.answers = {key: each.answer for key, each in pending.items()}
        for each in pending.values():
            self._charge_later(each.call, each.answer)
        COUNTERS.batches += 1
        requests = {key: each.body for key, each in pending.items()}
        await self._scheduler.begin(batch, requests.keys())
        uploaded = False
        try:
            await self._update(running, replace(batch, file=await self._protocol.upload(batch, requests)))
            uploaded = True
            remote = await self._protocol.create(running.batch, requests)
            await self._update(running, replace(running.batch, remote=remote))
        except (Unreached, Declined) as problem:
            if not uploaded or isinstance(problem, Declined):
                await self._not_made(running, problem)
                return
            # else the batch may exist: `_watch` looks it up
        running.submitting = False
        self._follow(running)

    async def _update(self, running: _RunningBatch, batch: Batch) -> None:
        running.batch = batch
        await self._scheduler.update(batch)

    def _affordable(self, queue: dict[str, _Pending]) -> Iterator[tuple[str, _Pending]]:
        """The requests within the budget; the others are lost."""
        brake = BRAKE.get()
        for key, pending in queue.items():
            self._scheduler.store.expect(pending.call.payer, pending.call.expected)
            if not brake.reason:
                yield key, pending
            else:
                self._scheduler.store.expect_no_more(pending.call.payer, pending.call.expected)
                _give(pending.answer, Result(0, brake.reason.encode()))

    def _charge_later(self, call: RequestKey, answer: "asyncio.Future[Result]") -> None:
        """Count the expected tokens until the answer arrives."""
        answer.add_done_callback(lambda _: self._scheduler.store.expect_no_more(call.payer, call.expected))

    async def _not_made(self, running: _RunningBatch, problem: Exception) -> None:
        await self._scheduler.release(list(running.answers))
        lost = Result(0, f"no batch could be made: {problem}".encode())
        self._end(running, Result(problem.status, problem.body) if isinstance(problem, Declined) else lost)

    async def _attach(self, batch: Batch, key: str, call: RequestKey) -> "asyncio.Future[Result]":
        """The answer to a request of an earlier batch, perhaps of another process."""
        running = self._running.get(batch.name)
        if running is None or (running.results is not None and key not in running.results):
            running = self._running[batch.name] = _RunningBatch(batch)  # fetches the results, perhaps again
        answer = running.answers.get(key)
        if answer is None or answer.done():
            answer = running.answers[key] = asyncio.get_running_loop().create_future()
            self._scheduler.store.expect(call.payer, call.expected)
            self._charge_later(call, answer)
        if running.results is not None:
            await self._distribute(running)
        elif not running.submitting:
            self._follow(running)
        return answer

    def _follow(self, running: _RunningBatch) -> None:
        if running.task is None or running.task.done():
            running.task = asyncio.create_task(_guard(running.answers.values(), self._watch(running)))

    async def _watch(self, running: _RunningBatch) -> None:
        """Poll a batch until it ends, and distribute the answers."""
        failed = 0
        while running.results is None:
            try:
                if not running.batch.remote and not await self._is_found(running):
                    return
                running.state = await self._protocol.state(running.batch)
                if running.state.ended:
                    running.results = dict(await self._protocol.results(running.batch, running.state))
                    break
                failed = 0
            except Unsure:
                pass
            except (Unreached, LookupError, TypeError, ValueError, AttributeError) as problem:  # or of another shape
                failed += 1
                if failed >= MOST_FAILED_POLLS:
                    self._end(running, Result(0, f"batch {running.batch.remote}: {problem}".encode()))
                    return
            except Declined as problem:
                if problem.status == 404:
                    await self._scheduler.release(list(running.answers))
                    self._end(running, Result(0, f"batch {running.batch.remote} is gone".encode()))
                else:
                    self._end(running, Result(problem.status, problem.body))
                return
            await asyncio.sleep(self._policy.poll_s)
        await self._distribute(running)

    async def _is_found(self, running: _RunningBatch) -> bool:
        """Look up a batch whose creation was not answered. If it does not exist, its requests may be sent again."""
        keys = self._scheduler.store.keys_of(running.batch) or list(running.answers)
        remote = await self._protocol.find(running.batch, keys)
        if remote:
            await self._update(running, replace(running.batch, remote=remote))
            return True
        await self._scheduler.release(keys)
        self._end(running, Result(0, b"its batch was never made"))
        return False

    async def _distribute(self, running: _RunningBatch) -> None:
        """Set the awaited answers of an ended batch; other results stay until they are asked for."""
        assert running.results is not None
        why = running.state.problem or f"the batch has the state {running.state.word}, and no answer to this request"
        none = Result(0, why.encode())
        awaited = {key: running.results.get(key, none) for key, answer in running.answers.items() if not answer.done()}
        if unanswered := [key for key, result in awaited.items() if not result.is_good]:
            await self._scheduler.release(unanswered)
        for key, result in awaited.items():
            running.results.pop(key, None)
            _give(running.answers.pop(key), result)
        if not running.results:
            self._running.pop(running.batch.name, None)

    def _end(self, running: _RunningBatch, result: Result) -> None:
        """End the waits for a batch; a later request for it starts polling again."""
        self._running.pop(running.batch.name, None)
        for answer in running.answers.values():
            _give(answer, result)

    def words(self) -> Iterator[str]:
        """Progress, for people."""
        if self._queue:
            yield f"{len(self._queue):,} collected"
        for running in self._running.values():
            waiting = sum(1 for answer in running.answers.values() if not answer.done())
            if waiting:
                state = running.state
                yield f"batch of {running.batch.size:,}: {state.word.replace('_', ' ')}, {state.done:,} done"


async def _guard(answers: Collection["asyncio.Future[Result]"], work: Coroutine[Any, Any, None]) -> None:
    """Run work that answers depend on; its exception becomes their exception."""
    try:
        await work
    except Exception as failure:  # noqa: BLE001  raised to every waiting call
        for answer in list(answers):
            if not answer.done():
                answer.set_exception(failure)


def _give(answer: "asyncio.Future[Result]", result: Result) -> None:
    if not answer.done():
        answer.set_result(result)


_QUEUES: "WeakSet[BatchQueue]" = WeakSet()


def batches_in_words() -> list[str]:
    """The progress of all models' batches in this process."""
    return [words for queue in list(_QUEUES) for words in queue.words()]
