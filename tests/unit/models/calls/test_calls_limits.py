"""The limits of an endpoint: slots in order, paces without bursts, and slots that follow the endpoint."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from codechat.models.calls import Endpoint, Limits, Timing, endpoint_at


class Clock:
    """Sleepers wake in the order of their time; time passes while everybody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self.timing = Timing(lambda: self.now, self.sleep)

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self._sleepers.append((self.now + seconds, woken))
        await woken.wait()

    async def until_done(self, *coroutines: Coroutine[Any, Any, None]) -> None:
        everybody = asyncio.gather(*coroutines)
        while not everybody.done():
            await settled()
            if self._sleepers:
                self._sleepers.sort(key=lambda sleeper: sleeper[0])
                self.now, woken = self._sleepers.pop(0)
                woken.set()
        await everybody


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def full(endpoint: Endpoint) -> list[Any]:
    """The tickets of as many requests as may be under way at once."""
    tickets = [await endpoint.enter(0) for _ in range(endpoint.allowed)]
    extra = asyncio.create_task(endpoint.enter(0))
    await settled()
    assert not extra.done(), "one more than allowed"
    extra.cancel()
    await settled()
    return tickets


async def answer_well(endpoint: Endpoint, count: int) -> None:
    """So many good answers, while there is always somebody who waits to ask."""
    left = iter(range(count))

    async def ask() -> None:
        for _ in left:
            ticket = await endpoint.enter(0)
            await asyncio.sleep(0)
            endpoint.leave(ticket, used=1)

    await asyncio.gather(*(ask() for _ in range(200)))


# -- slots -------------------------------------------------------------------------------------------------------


async def test_slots_are_given_in_the_order_of_asking() -> None:
    endpoint, order = Endpoint(), []
    endpoint.join(Limits(2))

    async def use(number: int) -> None:
        ticket = await endpoint.enter(0)
        order.append(number)
        await asyncio.sleep(0)
        endpoint.leave(ticket, 1)

    await asyncio.gather(*(use(number) for number in range(10)))
    assert order == list(range(10))


async def test_a_slot_given_to_somebody_who_left_goes_to_the_next() -> None:
    endpoint = Endpoint()
    endpoint.join(Limits(1))
    held = await endpoint.enter(0)
    first, second, third = (asyncio.create_task(endpoint.enter(0)) for _ in range(3))
    await settled()
    second.cancel()  # while it queues
    endpoint.leave(held, 1)
    first.cancel()  # after the slot was handed to it, before it could run
    await settled()
    assert [first.cancelled(), second.cancelled()] == [True, True]
    assert third.done()
    endpoint.leave(third.result(), 1)
    assert len(await full(endpoint)) == 1


async def test_the_tightest_limits_of_an_address_count() -> None:
    clock = Clock()
    endpoint = Endpoint(clock.timing)
    for limits in (Limits(8, 60), Limits(3), Limits(5, 120)):
        endpoint.join(limits)
    assert endpoint.allowed == 3
    assert await moments(clock, endpoint, 3) == [0, 1, 2]


async def test_an_address_has_one_endpoint_in_a_loop() -> None:
    assert endpoint_at("http://a/v1") is endpoint_at("http://a/v1")
    assert endpoint_at("http://a/v1") is not endpoint_at("http://b/v1")


def test_another_loop_has_endpoints_of_its_own() -> None:
    async def find() -> Endpoint:
        return endpoint_at("http://a/v1")

    assert asyncio.run(find()) is not asyncio.run(find())


# -- paces -------------------------------------------------------------------------------------------------------


async def moments(clock: Clock, endpoint: Endpoint, count: int, tokens: int = 0, used: int = 1) -> list[float]:
    """When so many requests begin that end at once."""
    begun = []

    async def use() -> None:
        ticket = await endpoint.enter(tokens)
        begun.append(round(clock.now, 6))
        endpoint.leave(ticket, used)

    await clock.until_done(*(use() for _ in range(count)))
    return begun


async def test_requests_are_spread_over_the_minute() -> None:
    clock = Clock()
    endpoint = Endpoint(clock.timing)
    endpoint.join(Limits(64, requests_per_minute=120))
    assert await moments(clock, endpoint, 5) == [0, 0.5, 1, 1.5, 2]


async def test_time_that_was_not_used_is_not_saved_up() -> None:
    clock = Clock()
    endpoint = Endpoint(clock.timing)
    endpoint.join(Limits(64, requests_per_minute=60))
    await moments(clock, endpoint, 1)
    clock.now = 100.0
    assert await moments(clock, endpoint, 3) == [100, 101, 102]


async def test_tokens_are_reserved_by_estimate_and_corrected_by_use() -> None:
    clock = Clock()
    endpoint = Endpoint(clock.timing)
    endpoint.join(Limits(1, tokens_per_minute=6000))  # 100 a second
    assert endpoint.counts_tokens
    assert await moments(clock, endpoint, 3, tokens=200, used=200) == [0, 2, 4]
    clock.now = 100.0
    assert await moments(clock, endpoint, 3, tokens=200, used=500) == [100, 105, 110]
    clock.now = 200.0
    assert await moments(clock, endpoint, 3, tokens=200, used=50) == [200, 200.5, 201]


async def test_a_refused_request_used_no_tokens() -> None:
    clock = Clock()
    endpoint = Endpoint(clock.timing)
    endpoint.join(Limits(1, tokens_per_minute=60))
    endpoint.refuse(await endpoint.enter(600), 0.0)
    assert await moments(clock, endpoint, 1) == [0]


async def test_a_pause_holds_for_those_who_wait_already() -> None:
    clock = Clock()
    endpoint = Endpoint(clock.timing)
    endpoint.join(Limits(8, requests_per_minute=60))
    refused = await endpoint.enter(0)
    began = []

    async def use() -> None:
        endpoint.leave(await endpoint.enter(0), 1)
        began.append(clock.now)

    async def refuse() -> None:
        endpoint.refuse(refused, 30.0)

    await clock.until_done(use(), refuse())
    assert began == [30]


# -- adaptive slots ----------------------------------------------------------------------------------------------


def adaptive(most: int = 64) -> Endpoint:
    endpoint = Endpoint()
    endpoint.join(Limits(most, adaptive=True))
    return endpoint


async def test_slots_grow_by_one_with_every_good_answer_until_the_first_refusal() -> None:
    endpoint = adaptive()
    assert len(await full(endpoint)) == 4
    endpoint = adaptive()
    await answer_well(endpoint, 400)
    assert endpoint.allowed == 64
    endpoint = adaptive()
    await answer_well(endpoint, 30)
    assert 16 <= endpoint.allowed <= 34  # the last answers come while fewer and fewer ask


async def test_after_a_refusal_slots_are_half_as_many_and_grow_by_one_a_round() -> None:
    endpoint = adaptive()
    await answer_well(endpoint, 400)
    tickets = await full(endpoint)
    for ticket in tickets:  # all of one crowd: it was too large once
        endpoint.refuse(ticket, 0.0)
    assert endpoint.allowed == 32
    await answer_well(endpoint, 400)
    assert 40 <= endpoint.allowed <= 45


async def test_every_further_crowd_that_is_refused_halves_again_down_to_one() -> None:
    endpoint, seen = adaptive(), []
    for _ in range(4):
        for ticket in await full(endpoint):
            endpoint.refuse(ticket, 0.0)
        seen.append(endpoint.allowed)
    assert seen == [2, 1, 1, 1]


@pytest.mark.parametrize("most", [1, 3, 10])
async def test_slots_never_pass_the_configured_most(most: int) -> None:
    endpoint = adaptive(most)
    await answer_well(endpoint, 100)
    assert endpoint.allowed == most


async def test_an_endpoint_that_is_hardly_used_proves_nothing() -> None:
    endpoint = adaptive()
    for _ in range(50):
        endpoint.leave(await endpoint.enter(0), used=1)
    assert endpoint.allowed == 4


async def test_failures_of_another_kind_change_nothing() -> None:
    endpoint = adaptive()
    for ticket in await full(endpoint):
        endpoint.leave(ticket, used=0)
    assert endpoint.allowed == 4
