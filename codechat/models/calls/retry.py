"""One retry loop for every provider and website, bounded in attempts and in time.

A provider makes one attempt and classifies its failure. A `TransientFailure` is repeated after a random wait below a
bound that doubles, or after the time that the endpoint asks for. Any other exception ends the call.
"""

import asyncio
import email.utils
import math
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from codechat.base.domain import Reply
from codechat.base.errors import InfrastructureError
from codechat.models.calls.brake import BRAKE
from codechat.models.calls.limits import ATTEMPTS, COUNTERS, Endpoint, UnderWay

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0

Attempt = Callable[[], Awaitable[Reply]]
R = TypeVar("R")


class HeldSlots:
    """Slots of replies that are not recorded yet: a kill loses at most as many replies as an endpoint has slots.

    The caller will record them for a `step` of a `unit`, and charge `payer`.
    """

    def __init__(self, unit: str = "", step: str = "", payer: str = "") -> None:
        self.unit, self.step, self.payer = unit, step, payer
        self._leave: list[Callable[[], None]] = []

    def keep(self, leave: Callable[[], None]) -> None:
        """Leave the slot later."""
        self._leave.append(leave)

    def leave(self) -> None:
        """Free the slots, once the replies are recorded or never will be."""
        for leave in self._leave:
            leave()
        self._leave.clear()


HELD_SLOTS: ContextVar[HeldSlots | None] = ContextVar("slots", default=None)
"""The slots of calls whose replies the caller will record; None if it records nothing."""


class TransientFailure(Exception):
    """A failed attempt that may succeed if repeated; `error` is raised if no attempt does.

    `limited`: the endpoint refused the call as one too many. `after`: seconds that it asks to wait.
    """

    def __init__(self, error: InfrastructureError, *, limited: bool = False, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.limited, self.after = error, limited, after or 0.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of a call: seconds of one attempt, seconds of all attempts and waits, attempts after the first.

    Waits for the endpoint's limits do not count. `place` names the endpoint in messages.
    """

    place: str
    attempt_s: float
    call_s: float
    max_retries: int


@dataclass(frozen=True, slots=True)
class Ended(Generic[R]):
    """The result of the first successful attempt, its seconds, and the failures before it; `rate_limited` were 429s."""

    result: R
    seconds: float
    retries: int
    rate_limited: int


async def call_with_retries(attempt: Attempt, policy: Policy, endpoint: Endpoint, tokens: int = 0) -> Reply:
    """The reply of the first successful attempt, with its latency and the number of failures before it.

    `tokens`: estimate of an attempt, if the endpoint counts tokens. Raises as `repeat`.
    """

    def used(reply: Reply) -> int:
        return reply.usage.input_tokens + reply.usage.output_tokens or max(tokens, 1)

    ended = await repeat(attempt, policy, endpoint, tokens, used)
    return replace(ended.result, latency_s=ended.seconds, retries=ended.retries, rate_limited=ended.rate_limited)


async def repeat(
    attempt: Callable[[], Awaitable[R]],
    policy: Policy,
    endpoint: Endpoint,
    tokens: int = 0,
    used: Callable[[R], int] = lambda _: 1,
) -> Ended[R]:
    """Attempt until one succeeds, within the policy and the endpoint's limits.

    `tokens`: estimate of an attempt; `used`: the tokens of a result (default 1). Raises the last attempt's error, with
    the number of failures, and immediately any error that is not a `TransientFailure`.
    """
    spent, retries, limited = 0.0, 0, 0
    try:
        while True:
            limit_s = min(policy.attempt_s, policy.call_s - spent)
            tried = await _try(attempt, policy, endpoint, tokens, limit_s, used=used)
            result, seconds = tried
            if not isinstance(result, TransientFailure):
                return Ended(result, seconds, retries, limited)
            limited += result.limited
            spent += seconds
            spent += await _wait(result, policy, endpoint, retries, spent)
            retries += 1
            COUNTERS.retries += 1
    except InfrastructureError as error:
        error.retries, error.rate_limited = retries, limited
        raise


async def _try(
    attempt: Callable[[], Awaitable[R]],
    policy: Policy,
    endpoint: Endpoint,
    tokens: int,
    seconds: float,
    *,
    used: Callable[[R], int],
) -> tuple[R | TransientFailure, float]:
    """The result of one attempt, and its seconds."""
    slots = HELD_SLOTS.get()
    if slots is not None:
        slots.leave()  # else the step would wait for its earlier call
    ticket = await endpoint.enter(tokens)
    clock = endpoint.timing.clock
    began, units, limited, pause = clock(), 0, False, 0.0
    COUNTERS.attempts += 1
    COUNTERS.in_flight += 1
    ATTEMPTS[key := object()] = UnderWay(policy.place, began, seconds)
    try:
        async with asyncio.timeout(seconds) as limit:
            result = await attempt()
        units = used(result)
        return result, clock() - began
    except TransientFailure as failed:
        limited, pause = failed.limited, min(failed.after, policy.call_s)
        return failed, clock() - began
    except TimeoutError:
        if not limit.expired():
            raise
        silence = InfrastructureError(f"{policy.place} gave no answer in {seconds:.4g} s")
        return TransientFailure(silence), clock() - began
    finally:
        COUNTERS.in_flight -= 1
        del ATTEMPTS[key]
        COUNTERS.rate_limited += limited
        if limited:
            endpoint.refuse(ticket, pause)
        elif units and slots is not None:
            slots.keep(partial(endpoint.leave, ticket, units))
        else:
            endpoint.leave(ticket, units)


async def _wait(failed: TransientFailure, policy: Policy, endpoint: Endpoint, retries: int, spent: float) -> float:
    """Wait before the next attempt; returns the seconds. Raises the failure if there is none."""
    if retries >= policy.max_retries:
        raise failed.error from None
    timing = endpoint.timing
    wait = failed.after + timing.uniform(0.0, min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**retries))
    if spent + wait >= policy.call_s:
        asked = f" and asks to wait {failed.after:.4g} s" if failed.after else ""
        message = f"{failed.error}{asked}; gave up within {policy.call_s:.4g} s in all (call_timeout_s)"
        raise type(failed.error)(message) from None
    COUNTERS.waiting += 1
    try:
        await BRAKE.get().wait(timing.sleep(wait))
    finally:
        COUNTERS.waiting -= 1
    return wait


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a response asks to wait: in milliseconds, in seconds or as a date (RFC 9110, section 10.2.3).

    `now` is the time of day in seconds since 1970. None if the response has none that can be read.
    """
    asked = headers.get("retry-after", "")
    try:
        seconds = float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(asked)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(asked).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
