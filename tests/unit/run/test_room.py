"""Sessions side by side within a budget, by their estimates and by what turns have cost."""

import asyncio
import math
from dataclasses import dataclass, field

import pytest

from codechat.models.calls import Brake
from codechat.run.running.room import Room


@dataclass
class Cell:
    """Sessions of two turns that are expected to cost 0.2, of a budget of `left`."""

    left: float
    unmeasured: float = 20.0
    brake: Brake = field(default_factory=Brake)
    inside: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.room = Room(lambda: self.left, lambda task: [0.2, 0.1], self.brake, self.unmeasured)
        self.ends: dict[str, asyncio.Event] = {}

    def begin(self, *tasks: str) -> list["asyncio.Task[None]"]:
        return [asyncio.create_task(self._run(task)) for task in tasks]

    async def _run(self, task: str) -> None:
        self.ends[task] = asyncio.Event()
        async with self.room.session(task):
            self.inside.add(task)
            await self.ends[task].wait()
        self.inside.discard(task)

    def spend(self, amount: float) -> None:
        self.left -= amount


async def turns() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("cost", "count"), [(0.1, 4), (0.2, 2), (0.9, 1), (0.0, 4)])
async def test_one_session_measures_how_many_there_is_room_for(cost: float, count: int) -> None:
    cell = Cell(1.0)
    tasks = cell.begin("a", "b", "c", "d")
    await turns()
    assert cell.inside == {"a"}
    cell.spend(cost)
    cell.room.turn_ended("a", new=True)
    await turns()
    assert len(cell.inside) == count
    for _ in range(4):
        for end in list(cell.ends.values()):
            end.set()
        await turns()
    await asyncio.gather(*tasks)


async def test_a_recorded_turn_measures_nothing() -> None:
    cell = Cell(1.0)
    tasks = cell.begin("a", "b")
    await turns()
    cell.room.turn_ended("a", new=False)
    await turns()
    assert cell.inside == {"a"}
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize(("left", "unmeasured"), [(math.inf, 20.0), (100.0, 20.0), (1.0, 1.0)])
async def test_where_there_is_enough_all_begin(left: float, unmeasured: float) -> None:
    cell = Cell(left, unmeasured)
    tasks = cell.begin(*"abcd")
    await turns()
    assert len(cell.inside) == 4
    for task in tasks:
        task.cancel()


async def test_after_a_budget_nobody_waits() -> None:
    cell = Cell(1.0)
    tasks = cell.begin(*"abc")
    await turns()
    cell.brake.pull("the budget is reached")
    await turns()
    assert len(cell.inside) == 3
    for task in tasks:
        task.cancel()


async def test_sessions_begin_in_order_and_a_change_is_weighed_for_the_first_alone() -> None:
    asked = list[float]()
    room = Room(lambda: asked.append(1.0) or 1.0, lambda task: [0.2, 0.1], Brake(), 1.0)
    order = list[int]()

    async def run(number: int) -> None:
        async with room.session(f"{number}"):
            order.append(number)
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(run(number)) for number in range(500)]
    await turns()
    asked.clear()
    for number in range(5):
        room.turn_ended(f"{number}", new=False)
        await turns()
    assert order == [0, 1, 2, 3, 4, 5, 6] and len(asked) < 20
    for task in tasks:
        task.cancel()
