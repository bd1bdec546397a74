"""Sessions side by side within a budget, by their estimates and by what turns have cost."""

import asyncio
from dataclasses import dataclass, field

import pytest

from codechat.models.calls import Brake
from codechat.run.running.room import LEAST, Room


@dataclass
class Cell:
    """Sessions of two turns that are expected to cost 0.2, of a budget of `left`."""

    left: float | None
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
        assert self.left is not None
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
    assert cell.room._scale >= LEAST
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


@pytest.mark.parametrize(("left", "unmeasured"), [(None, 20.0), (100.0, 20.0), (1.0, 1.0)])
async def test_where_there_is_enough_all_begin(left: float | None, unmeasured: float) -> None:
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
