"""The loop of attempts, with a clock that nobody waits for."""

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate

import pytest

from codechat.base.domain import Reply, Usage
from codechat.base.errors import ContextOverflow, EndpointDown, InfrastructureError
from codechat.models.calls import (
    Endpoint,
    Limits,
    Policy,
    Timing,
    TransientFailure,
    call_with_retries,
    retry_after,
    traffic,
)

GOOD = Reply("x", usage=Usage(10, 5))
TROUBLE = TransientFailure(InfrastructureError("trouble"))
LIMITED = TransientFailure(InfrastructureError("too many"), limited=True)


class Clock:
    """Time passes only where somebody sleeps; draws are the upper bound."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def timing(self) -> Timing:
        return Timing(lambda: self.now, self.sleep, lambda low, high: high)


def attempts(
    *results: Reply | Exception, clock: Clock | None = None, each_s: float = 0.0
) -> Callable[[], Awaitable[Reply]]:
    """Attempt n ends with result n, after so many seconds; the last one repeats."""
    made = iter(range(1000))

    async def attempt() -> Reply:
        result = results[min(next(made), len(results) - 1)]
        if clock is not None:
            clock.now += each_s
        if isinstance(result, Exception):
            raise result
        return result

    return attempt


def policy(retries: int = 6, call_s: float = 1000.0, attempt_s: float = 300.0) -> Policy:
    return Policy("m at here", attempt_s, call_s, retries)


async def test_a_good_attempt_is_the_reply_with_its_latency() -> None:
    clock = Clock()
    reply = await call_with_retries(attempts(GOOD, clock=clock, each_s=2.0), policy(), Endpoint(clock.timing))
    assert (reply.text, reply.latency_s, reply.retries, reply.rate_limited) == ("x", 2.0, 0, 0)
    assert clock.slept == []


async def test_waits_double_up_to_a_bound_and_the_reply_tells_how_often() -> None:
    clock = Clock()
    reply = await call_with_retries(attempts(*[TROUBLE] * 7, GOOD), policy(retries=7), Endpoint(clock.timing))
    assert clock.slept == [1, 2, 4, 8, 16, 30, 30]
    assert (reply.retries, reply.rate_limited) == (7, 0)


async def test_waits_are_drawn_from_nothing_to_the_bound() -> None:
    clock, bounds = Clock(), []

    def draw(low: float, high: float) -> float:
        bounds.append((low, high))
        return low

    timing = Timing(lambda: clock.now, clock.sleep, draw)
    await call_with_retries(attempts(TROUBLE, TROUBLE, GOOD), policy(), Endpoint(timing))
    assert bounds == [(0.0, 1.0), (0.0, 2.0)]
    assert clock.slept == [0.0, 0.0]


async def test_what_the_endpoint_asks_for_is_waited_at_least() -> None:
    clock = Clock()
    busy = TransientFailure(InfrastructureError("busy"), limited=True, after=20.0)
    reply = await call_with_retries(attempts(busy, GOOD), policy(), Endpoint(clock.timing))
    assert clock.slept == [21.0]
    assert (reply.retries, reply.rate_limited) == (1, 1)


async def test_the_last_failure_is_raised_with_what_it_took() -> None:
    clock = Clock()
    with pytest.raises(InfrastructureError, match=r"^too many$") as caught:
        await call_with_retries(attempts(TROUBLE, LIMITED), policy(retries=2), Endpoint(clock.timing))
    assert (caught.value.retries, caught.value.rate_limited) == (2, 2)


async def test_the_kind_of_the_failure_is_kept() -> None:
    clock = Clock()
    down = TransientFailure(EndpointDown("nobody there"))
    for bounds in (policy(retries=1), policy(call_s=2.0)):
        with pytest.raises(EndpointDown, match="nobody there"):
            await call_with_retries(attempts(down), bounds, Endpoint(clock.timing))


async def test_the_time_of_a_call_bounds_attempts_and_waits_together() -> None:
    clock = Clock()
    with pytest.raises(InfrastructureError, match=r"trouble.* 10 s .*call_timeout_s") as caught:
        await call_with_retries(attempts(TROUBLE, clock=clock, each_s=2.0), policy(call_s=10.0), Endpoint(clock.timing))
    assert clock.slept == [1, 2]  # 2 + 1 + 2 + 2 + 2 = 9, and the next wait would be 4
    assert caught.value.retries == 2


async def test_a_wait_beyond_the_calls_time_is_not_begun() -> None:
    clock = Clock()
    busy = TransientFailure(InfrastructureError("busy"), limited=True, after=3600.0)
    with pytest.raises(InfrastructureError, match=r"busy.* 3600 s.* 60 s"):
        await call_with_retries(attempts(busy), policy(call_s=60.0), Endpoint(clock.timing))
    assert clock.slept == []


async def test_an_attempt_that_does_not_end_is_cut_and_tried_again() -> None:
    calls = 0

    async def attempt() -> Reply:
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.sleep(60)
        return GOOD

    clock = Clock()
    reply = await call_with_retries(attempt, policy(attempt_s=0.01), Endpoint(clock.timing))
    assert (reply.retries, calls) == (1, 2)


async def test_a_timeout_of_the_providers_own_is_its_bug() -> None:
    with pytest.raises(TimeoutError):
        await call_with_retries(attempts(TimeoutError("not ours")), policy(), Endpoint(Clock().timing))


@pytest.mark.parametrize("error", [ContextOverflow("full"), EndpointDown("no quota"), ValueError("bug")])
async def test_anything_else_ends_the_call_at_once(error: Exception) -> None:
    before = traffic()
    with pytest.raises(type(error)):
        await call_with_retries(attempts(error), policy(), Endpoint(Clock().timing))
    after = traffic()
    assert after.attempts - before.attempts == 1
    assert (after.in_flight, after.waiting) == (before.in_flight, before.waiting)


async def test_an_error_of_a_later_attempt_tells_what_came_before() -> None:
    with pytest.raises(EndpointDown) as caught:
        await call_with_retries(attempts(LIMITED, EndpointDown("gone")), policy(), Endpoint(Clock().timing))
    assert (caught.value.retries, caught.value.rate_limited) == (1, 1)


async def test_a_pause_that_the_endpoint_asks_of_one_call_holds_for_all() -> None:
    clock = Clock()
    endpoint = Endpoint(clock.timing)
    busy = TransientFailure(InfrastructureError("busy"), limited=True, after=20.0)
    with pytest.raises(InfrastructureError):
        await call_with_retries(attempts(busy), policy(retries=0), endpoint)
    await call_with_retries(attempts(GOOD), policy(), endpoint)
    assert clock.now == 20.0


async def test_traffic_is_counted() -> None:
    clock, before = Clock(), traffic()
    seen = []

    async def attempt() -> Reply:
        seen.append(traffic().in_flight - before.in_flight)
        if len(seen) < 3:
            raise LIMITED
        return GOOD

    await call_with_retries(attempt, policy(), Endpoint(clock.timing))
    after = traffic()
    assert seen == [1, 1, 1]
    assert after.in_flight == before.in_flight
    assert after.attempts - before.attempts == 3
    assert after.retries - before.retries == after.rate_limited - before.rate_limited == 2


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    endpoint, before = Endpoint(), traffic()
    endpoint.join(Limits(1))

    async def attempt() -> Reply:
        await asyncio.sleep(60)
        return GOOD

    calls = [asyncio.create_task(call_with_retries(attempt, policy(), endpoint)) for _ in range(3)]
    await asyncio.sleep(0.01)
    assert (traffic().in_flight - before.in_flight, traffic().waiting - before.waiting) == (1, 2)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert (traffic().in_flight, traffic().waiting) == (before.in_flight, before.waiting)
    assert (await call_with_retries(attempts(GOOD), policy(), endpoint)).text == "x"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1_800_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(1_700_000_000, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "soon"}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, 1_800_000_000) == seconds


@pytest.mark.parametrize(("usage", "estimate", "used"), [(Usage(10, 5), 4, 15), (Usage(), 4, 4), (Usage(), 0, 1)])
async def test_an_answer_used_its_tokens_or_the_estimate_or_at_least_one(
    usage: Usage, estimate: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, left = Endpoint(Clock().timing), list[int]()
    monkeypatch.setattr(endpoint, "leave", lambda ticket, used: left.append(used))
    await call_with_retries(attempts(TROUBLE, Reply("x", usage=usage)), policy(), endpoint, estimate)
    assert left == [0, used]
