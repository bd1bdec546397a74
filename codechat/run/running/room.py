"""How many sessions may be under way at once: as many as a budget will see to their end.

All sessions at once would each spend a part of a small budget, and none would be finished.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Sequence

from codechat.base.errors import Stopped
from codechat.models.calls import Brake

UNMEASURED = 20.0
"""How many times its estimate a session may cost, until a turn has ended: a model may think for long."""
LEAST = 0.5
"""The least measured cost in parts of the estimate: replies of the response cache cost nothing, later ones may."""


class Room:
    """Lets sessions begin, in order. Amounts are parts of the budget.

    `left` returns what is left of it, infinity without a limit. `costs` returns what a session of a task will cost from
    each of its turns on, by estimate; the estimates are scaled by what the turns so far have cost, until a turn has
    ended by `unmeasured`.
    """

    def __init__(
        self,
        left: Callable[[], float],
        costs: Callable[[str], Sequence[float]],
        brake: Brake,
        unmeasured: float = UNMEASURED,
    ) -> None:
        self._left, self._costs, self._brake, self._unmeasured = left, costs, brake, unmeasured
        self._began = left()
        self._inside: dict[str, Sequence[float]] = {}  # the costs from the current turn on
        self._expected = 0.0  # of the turns that have ended, by estimate
        self._next, self._changed = asyncio.Lock(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def session(self, task_id: str) -> AsyncIterator[None]:
        """Surrounds a session. After a budget or an interruption no session waits."""
        if math.isinf(self._began):
            yield
            return
        costs = self._costs(task_id)
        async with self._next:  # a change is weighed for the next session alone
            while not (self._brake.reason or self._has_room(costs)):
                self._changed.clear()
                with contextlib.suppress(Stopped):
                    await self._brake.wait(self._change())
            self._inside[task_id] = costs
        try:
            yield
        finally:
            del self._inside[task_id]
            self._changed.set()

    def turn_ended(self, task_id: str, *, new: bool) -> None:
        """A turn has ended: `new` if its calls were made now."""
        if task_id in self._inside:
            costs = self._inside[task_id]
            self._inside[task_id] = costs[1:]
            if new:
                self._expected += _first(costs) - _first(costs[1:])
            self._changed.set()

    async def _change(self) -> None:
        await self._changed.wait()

    def _has_room(self, costs: Sequence[float]) -> bool:
        if not self._inside:
            return True
        left, needed = self._left(), sum(map(_first, (costs, *self._inside.values())))
        scale = max(LEAST, (self._began - left) / self._expected) if self._expected else self._unmeasured
        return scale * needed <= left


def _first(costs: Sequence[float]) -> float:
    return costs[0] if costs else 0.0
