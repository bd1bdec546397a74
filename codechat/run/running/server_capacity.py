"""Depth first: as many dialogues at once as the model's server keeps in memory.

A vLLM keeps the conversations that it has read, and drops the least recently used. If more dialogues take turns than it
has memory for, each drops the next one's, and every turn is read from its beginning again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from codechat.models import UNDER_TEST
from codechat.models.remote import SERVERS
from codechat.run.cell import Cell
from codechat.run.protocols import Ask

CHARS_PER_TOKEN = 4
FILLED = 0.8
"""The part of their whole length that dialogues under way need, which are at different turns. With less of it more are
under way, and they begin to drop each other's conversations."""
KNOWN_FROM = 5
"""Finished dialogues from which on their own lengths count instead of the estimate."""


class ServerCapacity:
    """Lets sessions begin. `ask` gives the tokens that the server keeps, None if it does not say.

    Until the first turn has ended, when the server is there, one session is under way. A server that does not say, and
    a model without such a server (`ask` None), take any number. `tokens` is the estimated length of a dialogue.
    """

    def __init__(self, tokens: float, ask: Callable[[], int | None] | None) -> None:
        self._tokens, self._ask = tokens, ask
        self._asking: asyncio.Task[None] | None = None
        self._size = None if ask is None else 0  # until it is asked
        self._inside, self._finished, self._sum = 0, 0, 0
        self._changed = asyncio.Condition()

    @property
    def allowed(self) -> float:
        """The sessions that may be under way now."""
        if self._size is None:
            return float("inf")
        mean = self._sum / self._finished if self._finished >= KNOWN_FROM else self._tokens
        return max(1, int(self._size / max(FILLED * mean, 1)))

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Surrounds a session."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._inside < self.allowed)
            self._inside += 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def turn_ended(self) -> None:
        """A new turn has ended: the server is there, and is asked for its memory."""
        if self._asking is None:
            self._asking = asyncio.create_task(self.update())

    def session_ended(self, tokens: int) -> None:
        """A session has ended after a conversation of so many tokens."""
        self._finished += 1
        self._sum += tokens

    async def update(self) -> None:
        """Ask the server for its memory."""
        self._size = None if self._ask is None else await asyncio.to_thread(self._ask)
        async with self._changed:
            self._changed.notify_all()


def capacity_of(cell: Cell) -> ServerCapacity:
    """The capacity for a cell's sessions, by the server of the model under test if that is a vLLM."""
    model, servers = cell.config.model, SERVERS.get()
    if servers is None or getattr(model, "served_by", None) != "vllm":
        return ServerCapacity(0.0, None)
    sizes = [_length(cell.protocol.asks(task)) for task in cell.tasks]
    return ServerCapacity(sum(sizes) / max(len(sizes), 1), lambda: servers.kv_tokens(model))


def _length(asks: Iterable[Ask]) -> float:
    """The tokens of the longest conversation with the model under test, its last reply included."""
    own = [ask for ask in asks if ask.role == UNDER_TEST]
    return max(((ask.characters + (ask.replies + 1) * (ask.answer or 0)) / CHARS_PER_TOKEN for ask in own), default=0.0)
