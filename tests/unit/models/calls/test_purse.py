"""Reservations of calls under way: who waits, in which order, and what becomes of who waits no more."""

import asyncio
from collections.abc import Mapping

import pytest

from codechat.base.domain import Usage
from codechat.base.errors import Stopped
from codechat.models.calls.brake import BRAKE, Brake
from codechat.models.calls.purse import Purse

ONE = Usage(10, 0)


def purse_of(tokens: int) -> Purse:
    def fits(reserved: Mapping[str, Usage]) -> bool:
        return sum(each.input_tokens for each in reserved.values()) <= tokens

    BRAKE.set(Brake())
    return Purse(fits)


async def turns() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def test_as_many_calls_as_fit_are_under_way() -> None:
    purse = purse_of(20)
    first, _ = [await purse.reserve("a", "model", ONE), await purse.reserve("b", "judge", ONE)]
    third = asyncio.create_task(purse.reserve("c", "model", ONE))
    await turns()
    assert not third.done()
    first()
    (await third)()


async def test_a_call_that_never_fits_goes_alone() -> None:
    purse = purse_of(5)
    first = await purse.reserve("a", "model", ONE)
    second = asyncio.create_task(purse.reserve("a", "model", ONE))
    await turns()
    assert not second.done()
    first()
    (await second)()


async def test_the_unit_that_began_first_goes_first() -> None:
    purse, order = purse_of(10), list[str]()

    async def call(unit: str) -> None:
        give_back = await purse.reserve(unit, "model", ONE)
        order.append(unit)
        await turns()
        give_back()

    (await purse.reserve("a", "model", ONE))()
    hold = await purse.reserve("b", "model", ONE)
    waiting = [asyncio.create_task(call(unit)) for unit in ("c", "b", "a")]
    await turns()
    hold()
    await asyncio.gather(*waiting)
    assert order == ["a", "b", "c"]


async def test_a_cancelled_call_keeps_no_room() -> None:
    purse = purse_of(10)
    hold = await purse.reserve("a", "model", ONE)
    waits, late = [asyncio.create_task(purse.reserve("b", "model", ONE)) for _ in range(2)]
    await turns()
    waits.cancel()
    await turns()
    hold()
    late.cancel()  # it has the room already, and does not know yet
    await turns()
    assert waits.cancelled() and late.cancelled()
    async with asyncio.timeout(5):
        (await purse.reserve("c", "model", ONE))()


async def test_the_brake_ends_every_wait() -> None:
    purse = purse_of(10)
    await purse.reserve("a", "model", ONE)
    waits = asyncio.create_task(purse.reserve("b", "model", ONE))
    await turns()
    BRAKE.get().pull("the budget is reached")
    with pytest.raises(Stopped):
        await waits
    with pytest.raises(Stopped):
        await purse.reserve("c", "model", ONE)


async def test_without_a_budget_nobody_waits() -> None:
    for _ in range(99):
        await Purse().reserve("a", "model", ONE)


async def test_what_a_step_has_spent_takes_room_until_it_is_recorded() -> None:
    seen: list[dict[str, Usage]] = []
    BRAKE.set(Brake())
    purse = Purse(lambda used: used["model"].input_tokens <= 20, lambda: seen.append(dict(purse.spent)))
    recorded = purse.spend("model", ONE)
    assert seen == [{"model": ONE}]
    (await purse.reserve("a", "model", Usage(99)))()  # one call may always be under way
    first = await purse.reserve("a", "model", ONE)
    second = asyncio.create_task(purse.reserve("b", "model", ONE))
    await turns()
    assert not second.done()
    recorded()
    (await second)()
    first()
