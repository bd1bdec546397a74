"""Requests that are ready are sent together as a provider's batch, at a part of the price.

A request becomes ready when its session comes to it. A batch is submitted as soon as no session of the cell can add
another request, or by size and age. Its state is written (`Store`) before the provider receives it, so that a killed
process finds every batch again: no request is submitted twice, and every answer is fetched.
"""

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from codechat.base.domain import Usage
from codechat.models.calls.brake import BRAKE

TICK_S = 0.1
"""Seconds between two checks for batches to submit: long enough to see that a session continues."""


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

    async def charge(self, payer: str, usage: Usage) -> None:
        """Count tokens that were paid for an answer that no call returns."""


@dataclass
class RequestKey:
    """The call of a request, equal in every process that makes the call.

    `unit` is the session, `payer` the role that is charged, `expected` the estimated tokens. `answered` is the request
    whose answer was returned last, `body` that answer.
    """

    identity: str
    unit: str
    payer: str
    expected: Usage
    answered: str = ""
    body: bytes = b""

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


class Queue(Protocol):
    """What the scheduler needs of a `codechat.models.calls.batch_queue.BatchQueue`."""

    @property
    def is_old(self) -> bool: ...

    def flush(self) -> None: ...

    def give_up(self, why: str) -> None: ...


class BatchScheduler:
    """All batches of a cell. Once all `active` sessions wait for batches, no session can add a request."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()
        self.active = 0
        self.waiting: Counter[str] = Counter()
        self.known: dict[str, Batch] = {}  # by name
        self._names: dict[str, str | None] = {}  # by request: newer than the store
        self.queues: list[Queue] = []
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
