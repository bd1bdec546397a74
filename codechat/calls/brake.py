"""When no new call may be started: the user interrupts, or a budget is reached. Calls under way are finished.

The brake in force belongs to the context (`BRAKE`), so that every call of a cell meets it wherever it waits.
"""

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any

from codechat.errors import Stopped


class Brake:
    """Pulled once, with the reason. An interruption also ends work that costs nothing, such as running tests."""

    def __init__(self) -> None:
        self.reason = ""
        self.interrupted = False
        self.refused = False
        """Whether it ever kept a call from being started."""
        self._waiting: set[asyncio.Future[Any]] = set()

    def pull(self, reason: str, *, interrupted: bool = False) -> None:
        """Start no further call; who waits to try one again is told at once. An interruption goes before a budget."""
        if interrupted or not self.reason:
            self.reason = reason
        self.interrupted = self.interrupted or interrupted
        for wait in self._waiting:
            wait.cancel()

    def check(self) -> None:
        """Raises `Stopped` once it is pulled."""
        if self.reason:
            self.refused = True
            raise Stopped(self.reason)

    async def rest(self, wait: Awaitable[None]) -> None:
        """Wait, unless it is or gets pulled: that raises `Stopped`."""
        waiting = asyncio.ensure_future(wait)
        self._waiting.add(waiting)
        try:
            if self.reason:
                waiting.cancel()
            await asyncio.wait({waiting})
            if not waiting.cancelled():
                waiting.result()
        finally:
            waiting.cancel()
            self._waiting.discard(waiting)
        self.check()


BRAKE: ContextVar[Brake] = ContextVar("BRAKE", default=Brake())  # noqa: B039  this one is never pulled
