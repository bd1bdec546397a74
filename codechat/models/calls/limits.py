"""Limits of an endpoint, at once and per minute, shared by all models at its address; counts of all calls.

Limits belong to the running event loop. Of different limits for one address the tightest counts.

An attempt takes a slot by `Endpoint.enter`, which returns a `Ticket`, and frees the slot by `leave`, or after a 429 by
`refuse`. If the caller records the reply, `HeldSlots` (codechat.models.calls.retry) frees the slot after that.
"""

import asyncio
import itertools
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from codechat.base.domain import Usage
from codechat.models.calls.brake import BRAKE


@dataclass(slots=True)
class Traffic:
    """Counts of this process's calls since it started; all but the first two only grow."""

    in_flight: int = 0  # attempts under way now
    waiting: int = 0  # calls that wait now: for a limit of their endpoint, or to try again
    attempts: int = 0
    retries: int = 0
    rate_limited: int = 0  # attempts refused as too many (429)
    cache_hits: int = 0
    batches: int = 0


COUNTERS = Traffic()
"""The running counts; only this folder writes them."""


def traffic() -> Traffic:
    """A snapshot of the counts."""
    return replace(COUNTERS)


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An attempt at `place` that `began` at a moment of its endpoint's clock; `limit_s` seconds end it."""

    place: str
    began: float
    limit_s: float


ATTEMPTS: dict[object, UnderWay] = {}
"""The attempts under way in this process, the oldest first."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock and the random waits of calls, in seconds; tests replace them.

    The draws of `uniform` spread calls in time and change no result, so they need no seed.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform


REAL = Timing()

FIRST_LEVEL = 4.0
"""The first number of concurrent requests to an adaptive endpoint."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits in a model's config; None: no limit."""

    max_concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    adaptive: bool = False


class Pace:
    """Spaces units evenly: at most `per_minute` of them, and one request more, in any minute.

    Every caller gets its moment at once: first come, first served.
    """

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        self._free_at = -math.inf

    def reserve(self, units: float, now: float) -> float:
        """Take units; returns the seconds to wait before they may be used."""
        begins = max(self._free_at, now)
        self._free_at = begins + 60 * units / self.per_minute
        return begins - now

    def correct(self, units: float) -> None:
        """Report the difference between used and reserved units: later callers wait accordingly."""
        self._free_at += 60 * units / self.per_minute


@dataclass(frozen=True, slots=True)
class Ticket:
    """A running attempt; `Endpoint.leave` and `refuse` take it."""

    tokens: int
    epoch: int


KEPT = 0.5
"""The least part of a conversation's tokens that comes from the cache of a server that still has the conversation."""
LOOKS = 8
"""Calls over which that part is measured."""


class Dialogues:
    """The conversations with the model under test that are under way at one address.

    A server with few slots keeps as many conversations, and reads another one from its beginning. There the
    conversations that began first are continued, and the next one begins when one of them has ended.
    """

    def __init__(self) -> None:
        self.most: float = math.inf
        self._tokens: dict[str, int] = {}  # of each conversation under way, in the order of their beginnings
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._reports = False  # whether the server has ever reported cached tokens
        self._parts: deque[float] = deque(maxlen=LOOKS)

    async def begin(self, name: str) -> None:
        """Wait until a conversation may be continued, or begun. Raises `Stopped`."""
        self._tokens.setdefault(name, 0)
        if self._is_next(name):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((name, turn))
        COUNTERS.waiting += 1
        try:
            await BRAKE.get().wait(turn)
        finally:
            COUNTERS.waiting -= 1
            self._waiting.remove((name, turn))

    def end(self, name: str) -> None:
        """A conversation has ended, or may not have begun."""
        if self._tokens.pop(name, None) is not None:
            self._admit()

    def keep(self, most: float) -> None:
        """Bound the conversations under way too, from now on."""
        self.most = min(self.most, most)
        self._admit()

    def measure(self, name: str, usage: Usage) -> None:
        """Report the usage of a conversation's last reply.

        If the server reads most of its conversations again, half as many are continued from now on.
        """
        before = self._tokens.get(name)
        if before is None:
            return
        self._tokens[name] = usage.input_tokens + usage.output_tokens
        self._reports |= usage.cached_input_tokens > 0
        if before and self._reports:
            self._parts.append(usage.cached_input_tokens / before)
        under_way = min(self.most, len(self._tokens))
        if len(self._parts) == LOOKS and sum(self._parts) < KEPT * LOOKS and under_way > 1:
            self._parts.clear()
            self.keep(under_way // 2)

    def _is_next(self, name: str) -> bool:
        return math.isinf(self.most) or name in itertools.islice(self._tokens, int(self.most))

    def _admit(self) -> None:
        for name, turn in self._waiting:
            if self._is_next(name) and not turn.done():
                turn.set_result(None)


class Endpoint:
    """The requests under way at one address: a queue for their slots, and two paces.

    If adaptive, the slots follow the endpoint: one more for each good answer until its first refusal (429), then one
    more for each full round, and half as many at every refusal of a request sent since the last halving.
    """

    def __init__(self, timing: Timing = REAL) -> None:
        self.timing, self.dialogues = timing, Dialogues()
        self._most: float = math.inf
        self._level: float | None = None  # of an adaptive endpoint
        self._epoch = 0  # how often the level was halved
        self._requests: Pace | None = None
        self._tokens: Pace | None = None
        self._busy = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._paused_until = -math.inf

    def join(self, limits: Limits) -> None:
        """Apply these limits too, from now on."""
        self._most = min(self._most, limits.max_concurrency)
        self._requests = _tighter(self._requests, limits.requests_per_minute)
        self._tokens = _tighter(self._tokens, limits.tokens_per_minute)
        if limits.adaptive and self._level is None:
            self._level = FIRST_LEVEL

    def keeps(self, slots: int) -> None:
        """Apply the number of conversations that the server keeps: to requests, and to conversations under way."""
        self._most = min(self._most, slots)
        self.dialogues.keep(slots)

    @property
    def allowed(self) -> int:
        """The number of requests that may now be under way."""
        most = self._most if self._level is None else min(self._level, self._most)
        return max(1, int(most)) if most < math.inf else 1_000_000

    @property
    def counts_tokens(self) -> bool:
        """Whether callers must estimate their tokens."""
        return self._tokens is not None

    async def enter(self, tokens: int) -> Ticket:
        """Wait until a request of these tokens may be sent; `leave` or `refuse` must follow. Raises `Stopped`."""
        if self._busy < self.allowed and not self._queue:
            self._busy += 1
        else:
            await self._slot()
        now = self.timing.clock()
        wait = self._paused_until - now
        if self._requests is not None:
            wait = max(wait, self._requests.reserve(1, now))
        if self._tokens is not None:
            wait = max(wait, self._tokens.reserve(tokens, now))
        if wait > 0:
            await self._pass(wait)
        elif BRAKE.get().reason:
            self._release()
            BRAKE.get().check()
        return Ticket(tokens, self._epoch)

    def leave(self, ticket: Ticket, used: int) -> None:
        """Report a request that ended in any way except a refusal (429), with its tokens."""
        if self._tokens is not None:
            self._tokens.correct(used - ticket.tokens)
        if used and self._level is not None and 2 * self._busy > self.allowed:  # an idle endpoint proves nothing
            step = 1.0 if self._epoch == 0 else 1.0 / self._level
            self._level = min(self._level + step, self._most)
        self._release()

    def refuse(self, ticket: Ticket, pause_s: float) -> None:
        """Report a refusal (429): no request is sent for so many seconds."""
        self._paused_until = max(self._paused_until, self.timing.clock() + pause_s)
        if self._tokens is not None:
            self._tokens.correct(-ticket.tokens)
        if self._level is not None and ticket.epoch == self._epoch:
            self._level = max(1.0, min(self._level, self._most) / 2)
            self._epoch += 1
        self._release()

    async def _slot(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        COUNTERS.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it already has the slot
                self._release()
            raise
        finally:
            COUNTERS.waiting -= 1

    async def _pass(self, wait: float) -> None:
        """Wait with a slot, also for a pause that began meanwhile."""
        COUNTERS.waiting += 1
        try:
            while wait > 0:
                await BRAKE.get().wait(self.timing.sleep(wait))
                wait = self._paused_until - self.timing.clock()
        except BaseException:
            self._release()
            raise
        finally:
            COUNTERS.waiting -= 1

    def _release(self) -> None:
        self._busy -= 1
        while self._queue and self._busy < self.allowed:
            turn = self._queue.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)


def _tighter(pace: Pace | None, per_minute: float | None) -> Pace | None:
    if per_minute is not None and (pace is None or per_minute < pace.per_minute):
        return Pace(per_minute)
    return pace


_ENDPOINTS: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Endpoint]]" = WeakKeyDictionary()


def endpoint_at(address: str) -> Endpoint:
    """The running event loop's endpoint for an address."""
    return _ENDPOINTS.setdefault(asyncio.get_running_loop(), {}).setdefault(address, Endpoint())


def dialogue_ended(name: str) -> None:
    """Report the end of a conversation to the running event loop's endpoints."""
    for endpoint in _ENDPOINTS.get(asyncio.get_running_loop(), {}).values():
        endpoint.dialogues.end(name)
