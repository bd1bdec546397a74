"""Keeps the calls under way within a budget: what they will cost is reserved, and others wait until there is room.

One call may always be under way, so that a wrong estimate stops nothing: the budget itself does, see `Brake`. Calls
that wait begin in the order in which their units (sessions, items) made their first call: near the end of a budget one
unit is finished rather than many begun.
"""

import asyncio
import bisect
import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

from codechat.base.domain import NO_USAGE, Usage
from codechat.models.calls.brake import BRAKE
from codechat.models.calls.limits import COUNTERS


@dataclass(frozen=True, order=True)
class _Waiting:
    """A call that waits, in the order of beginning."""

    unit: int
    number: int
    payer: str = field(compare=False)
    expected: Usage = field(compare=False)
    turn: "asyncio.Future[None]" = field(compare=False)


class Purse:
    """The reservations of a cell. `fits` decides whether tokens, by payer, fit into what is left.

    `spent` has the tokens of steps that are not recorded yet; `watch` is called when they change.
    """

    def __init__(
        self, fits: Callable[[Mapping[str, Usage]], bool] | None = None, watch: Callable[[], None] = lambda: None
    ) -> None:
        self._fits, self._watch = fits, watch
        self.spent: dict[str, Usage] = {}
        self._reserved: dict[str, Usage] = {}
        self._under_way = 0
        self._units: dict[str, int] = {}
        self._numbers = itertools.count()
        self._waiting: list[_Waiting] = []

    async def reserve(self, unit: str, payer: str, expected: Usage) -> Callable[[], None]:
        """Wait for room for a call; returns what gives the room back, to be called once. Raises `Stopped`."""
        if self._fits is None:
            return lambda: None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        order = self._units.setdefault(unit, len(self._units))
        one = _Waiting(order, next(self._numbers), payer, expected, turn)
        bisect.insort(self._waiting, one)
        self._admit()
        COUNTERS.waiting += 1
        try:
            await BRAKE.get().wait(turn)
        except BaseException:
            if one in self._waiting:
                self._waiting.remove(one)
            else:
                self._give_back(one)
            raise
        finally:
            COUNTERS.waiting -= 1
        return lambda: self._give_back(one)

    def spend(self, payer: str, usage: Usage) -> Callable[[], None]:
        """Count tokens of a step of many calls; returns what ends this, when the step is recorded or never will be."""
        self.spent[payer] = self.spent.get(payer, NO_USAGE) + usage
        self._watch()

        def end() -> None:
            self.spent[payer] -= usage
            self._admit()

        return end

    def _admit(self) -> None:
        while self._waiting and self._has_room(self._waiting[0]):
            one = self._waiting.pop(0)
            self._under_way += 1
            self._reserved[one.payer] = self._reserved.get(one.payer, NO_USAGE) + one.expected
            with suppress(asyncio.InvalidStateError):  # cancelled: its caller gives the room back
                one.turn.set_result(None)

    def _has_room(self, one: _Waiting) -> bool:
        assert self._fits is not None
        if not self._under_way:
            return True
        return self._fits(plus(plus(self._reserved, self.spent), {one.payer: one.expected}))

    def _give_back(self, one: _Waiting) -> None:
        self._under_way -= 1
        self._reserved[one.payer] -= one.expected
        self._admit()


def plus(some: Mapping[str, Usage], others: Mapping[str, Usage]) -> dict[str, Usage]:
    """The sums of tokens by payer."""
    return {payer: some.get(payer, NO_USAGE) + others.get(payer, NO_USAGE) for payer in {**some, **others}}


PURSE: ContextVar[Purse] = ContextVar("PURSE", default=Purse())  # noqa: B039  the default reserves nothing
"""The running cell's purse, set by the engine; outside of cells there is no budget."""
