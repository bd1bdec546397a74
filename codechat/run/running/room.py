"""How many sessions may be under way at once: as many as a budget will see to their end.

All sessions at once would each spend a part of a small budget, and none would be finished.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from codechat.base.errors import Stopped
from codechat.models.calls import Brake

UNMEASURED = 20.0
"""How many times its estimate a session may cost, until a turn has ended: a model may think for long."""
LEAST = 0.5
"""The least measured cost in parts of the estimate: replies of the response cache cost nothing, later ones may."""


class Room:
    """Lets sessions begin. Amounts are in dollars or tokens.

    `left` returns what is left of the budget, None without one. `costs` returns what a session of a task will cost from
    each of its turns on, by estimate; the estimates are scaled by what the turns so far have cost, until a turn has
    ended by `unmeasured`.
    """

    def __init__(
        self,
        left: Callable[[], float | None],
        costs: Callable[[str], Sequence[float]],
        brake: Brake,
        unmeasured: float = UNMEASURED,
    ) -> None:
        self._left, self._costs, self._brake, self._unmeasured = left, costs, brake, unmeasured
        self._began = left()
        self._inside: dict[str, tuple[Sequence[float], int]] = {}
        self._expected = 0.0  # of the turns that have ended, by estimate
        self._changed: set[asyncio.Future[None]] = set()

    @contextlib.asynccontextmanager
    async def session(self, task_id: str) -> AsyncIterator[None]:
        """Surrounds a session. After a budget or an interruption no session waits."""
        if self._began is None:
            yield
            return
        costs = self._costs(task_id)
        while not (self._brake.reason or self._has_room(costs)):
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._changed.add(change)
            with contextlib.suppress(Stopped):
                await self._brake.wait(change)
            self._changed.discard(change)
        self._inside[task_id] = costs, 0
        try:
            yield
        finally:
            del self._inside[task_id]
            self._wake()

    def turn_ended(self, task_id: str, *, new: bool) -> None:
        """A turn has ended: `new` if its calls were made now."""
        if task_id in self._inside:
            costs, done = self._inside[task_id]
            self._inside[task_id] = costs, done + 1
            if new:
                self._expected += _from(costs, done) - _from(costs, done + 1)
            self._wake()

    @property
    def _scale(self) -> float:
        left = self._left()
        if not self._expected or left is None or self._began is None:
            return self._unmeasured
        return max(LEAST, (self._began - left) / self._expected)

    def _has_room(self, costs: Sequence[float]) -> bool:
        left = self._left()
        if not self._inside or left is None:
            return True
        others = sum(_from(each, done) for each, done in self._inside.values())
        return self._scale * (others + _from(costs, 0)) <= left

    def _wake(self) -> None:
        for change in self._changed:
            if not change.done():
                change.set_result(None)


def _from(costs: Sequence[float], turn: int) -> float:
    return costs[turn] if turn < len(costs) else 0.0
