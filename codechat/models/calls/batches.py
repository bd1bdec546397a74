"""Calls in lockstep: requests that are ready are sent together as a provider's batch, at a part of the price.

A request becomes ready when its session comes to it; a batch is made as soon as no session of the cell can add another
request, or by size and age. Where its batch stands is written down before the provider hears of it (`Store`), so that a
killed process finds every batch again: nothing is submitted twice, and every answer is fetched.
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
"""How often it is looked whether a batch is due: long enough for sessions that go on to be seen going on."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its name here, its size in requests, and the provider's names of its file and of itself.

    `remote` is empty until the provider has said it, which it may have done to a process that was killed. `made` is in
    seconds since 1970.
    """

    name: str
    size: int
    made: float
    file: str = ""
    remote: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one request: the status and the body that it would have had by itself; status 0 is none."""

    status: int
    body: bytes

    @property
    def is_good(self) -> bool:
        """Whether it is an answer of the model, which is paid for."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class State:
    """The state of a batch as the provider says it, in its word, and how many of its requests are done.

    `places` are where the results of one that has `ended` lie; `problem` says why it has none.
    """

    word: str
    done: int
    ended: bool
    places: tuple[str, ...] = ()
    problem: str = ""


class Unreached(Exception):
    """The provider did not answer, or not with what was asked for; what it has done is not known."""


class Unsure(Exception):
    """It cannot be told yet whether a batch was made."""


class Declined(Exception):
    """The provider refuses to make or to show a batch: HTTP status and body."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.body = status, body


class Lost(Exception):
    """A request has no answer: its batch expired or failed, or nobody waits any more."""


class BatchProtocol(Protocol):
    """A provider's batches. All but the bounds raise `Unreached` and `Declined`."""

    most_requests: int
    most_bytes: int

    async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
        """Hand the requests over, if the protocol does that apart; the name of their file, else empty."""

    async def create(self, batch: Batch, requests: dict[str, bytes]) -> str:
        """Make the batch: the provider's name of it."""

    async def find(self, batch: Batch, keys: Collection[str]) -> str:
        """The provider's name of a batch whose making was not answered; empty if there is none. Raises `Unsure`."""

    async def state(self, batch: Batch) -> State:
        """How far a batch is."""

    async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
        """The answers of an ended batch, in any order; those that it does not have are absent."""


class Store(Protocol):
    """Where batches stand, on disk. A call returns when it is written."""

    def batch_of(self, key: str) -> Batch | None:
        """The batch that a request is in."""

    def keys_of(self, batch: Batch) -> list[str]:
        """The requests of a batch."""

    async def begin(self, batch: Batch, keys: Collection[str]) -> None:
        """A batch is about to be made."""

    async def update(self, batch: Batch) -> None:
        """The provider has named the batch, or its file."""

    async def release(self, keys: Collection[str]) -> None:
        """Requests were not answered, so that they may be sent again."""

    def expect(self, payer: str, usage: Usage) -> None:
        """So many tokens are about to be charged to a payer: a budget may stop the cell for it."""

    def expect_no_more(self, payer: str, usage: Usage) -> None:
        """They were charged, or will not be."""


class NoStore:
    """Keeps batches in memory, outside of cells."""

    def batch_of(self, key: str) -> Batch | None:
        return None

    def keys_of(self, batch: Batch) -> list[str]:
        return []

    async def begin(self, batch: Batch, keys: Collection[str]) -> None: ...

    async def update(self, batch: Batch) -> None: ...

    async def release(self, keys: Collection[str]) -> None: ...

    def expect(self, payer: str, usage: Usage) -> None: ...

    def expect_no_more(self, payer: str, usage: Usage) -> None: ...


class Queue(Protocol):
    """A model's requests that wait, as its cell sees them."""

    @property
    def is_old(self) -> bool:
        """Whether its oldest request has waited long enough."""

    def flush(self) -> None:
        """Submit what is collected."""

    def give_up(self, why: str) -> None:
        """Let nobody wait any longer: what is submitted stays so."""


@dataclass
class RequestKey:
    """Which call a request belongs to: the same in every process that makes the call.

    `unit` is the session, `payer` the role that is charged, `expected` the tokens that the call may take. `answered` is
    the request whose answer was returned last.
    """

    identity: str
    unit: str
    payer: str
    expected: Usage
    answered: str = ""

    def key(self, body: bytes) -> str:
        """The name of a request of this call."""
        return hashlib.sha256(self.identity.encode() + b"\0" + body).hexdigest()[:40]


REQUEST_KEY: ContextVar[RequestKey | None] = ContextVar("REQUEST_KEY", default=None)
"""The call that is being made, set by a model of the tier batch."""


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """The most requests of a batch, the seconds that its oldest request waits at most, and those between two looks."""

    size: int
    age_s: float
    poll_s: float


class BatchScheduler:
    """All batches of a cell. `active` sessions are at work: once all of them wait for batches, none can add more."""

    def __init__(self, store: Store | None = None) -> None:
        self.store: Store = store or NoStore()
        self.active = 0
        self.waiting: Counter[str] = Counter()
        self.known: dict[str, Batch] = {}  # by name: those that this process made or met
        self._names: dict[str, str | None] = {}  # by request, if this process knows better than the store
        self.queues: list[Queue] = []
        self._ticking: asyncio.Task[None] | None = None

    def batch_of(self, key: str) -> Batch | None:
        """The batch that a request is in, of whichever process."""
        if key in self._names:
            name = self._names[key]
            return None if name is None else self.known[name]
        found = self.store.batch_of(key)
        return None if found is None else self.known.setdefault(found.name, found)

    async def begin(self, batch: Batch, keys: Collection[str]) -> None:
        """A batch is about to be made of these requests."""
        self.known[batch.name] = batch
        self._names.update(dict.fromkeys(keys, batch.name))
        await self.store.begin(batch, keys)

    async def update(self, batch: Batch) -> None:
        """The provider has named the batch, or its file."""
        self.known[batch.name] = batch
        await self.store.update(batch)

    async def release(self, keys: Collection[str]) -> None:
        """These requests have no answer and may be sent again."""
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
            none_to_come = 0 < self.active <= len(self.waiting)
            for queue in self.queues:
                if brake.interrupted:
                    queue.give_up("interrupted")
                elif none_to_come or queue.is_old:
                    queue.flush()


BATCH_SCHEDULER: ContextVar[BatchScheduler | None] = ContextVar("BATCH_SCHEDULER", default=None)
"""The scheduler of the cell that runs, set by the engine; None outside of cells, where every model has its own."""
