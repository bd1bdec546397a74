"""Stops new calls if the user interrupts, a budget is reached, or a judge is of no use. Calls under way are finished.

The brake belongs to the context (`BRAKE`): every call of a cell checks it before and during each wait.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent import futures
from contextvars import ContextVar
from typing import Any, TypeVar

from codechat.base.errors import Stopped

T = TypeVar("T")


class Brake:
    """Is pulled once, with the reason. An interruption also stops free work, such as running tests."""

    def __init__(self) -> None:
        self.reason = ""
        self.remedy = ""
        """What to do, if the reason is no budget."""
        self.interrupted = False
        self.refused = False
        """Whether a call was refused."""
        self._waiting: set[asyncio.Future[Any]] = set()

    def pull(self, reason: str, remedy: str = "", *, interrupted: bool = False) -> None:
        """Start no further call; waits for a retry end at once. An interruption takes precedence over a budget."""
        if interrupted or not self.reason:
            self.reason, self.remedy = reason, remedy
        self.interrupted = self.interrupted or interrupted
        for wait in self._waiting:
            wait.cancel()

    def check(self) -> None:
        """Raises `Stopped` if the brake is pulled."""
        if self.reason:
            self.refused = True
            raise Stopped(self.reason)

    async def wait(self, sleep: Awaitable[object]) -> None:
        """Wait; raises `Stopped` if the brake is already pulled or is pulled meanwhile."""
        waiting = asyncio.ensure_future(sleep)
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


BRAKE: ContextVar[Brake] = ContextVar("BRAKE", default=Brake())  # noqa: B039  the default is never pulled


def run_coroutine(start: Callable[[], Coroutine[Any, Any, T]], brake: Brake) -> T:
    """Run a coroutine to its end; in a new thread if this thread runs an event loop, as in a notebook.

    A `KeyboardInterrupt` meanwhile pulls the brake and waits for the calls under way.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    with futures.ThreadPoolExecutor(1, "codechat") as pool:
        running = pool.submit(lambda: asyncio.run(start()))
        try:
            futures.wait([running])
        except KeyboardInterrupt:
            brake.pull("interrupted", interrupted=True)
        return running.result()
