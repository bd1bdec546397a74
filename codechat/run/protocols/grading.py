"""Test and judge turns while the dialogue goes on, and record them in order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from codechat.base.domain import Message, Reply
from codechat.base.errors import ContextOverflow, InfrastructureError
from codechat.base.records import TurnRecord

Graded = asyncio.Task[TurnRecord]


class Grading:
    """Grades the turns of one session. Each gets the task of the turn before it, whose record must come first."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._last: Graded | None = None

    def start(self, grade: Callable[[Graded | None], Coroutine[Any, Any, TurnRecord]]) -> None:
        """Grade a turn while the dialogue goes on. `grade` awaits its argument before it records its own turn."""
        self._last = self._group.create_task(grade(self._last))

    async def settle(self) -> None:
        """Wait for the turns so far."""
        if self._last is not None:
            await self._last


@contextlib.asynccontextmanager
async def grade_in_order() -> AsyncIterator[Grading]:
    """A session's grading; leaving waits for it.

    If something outside fails, the turns before it are finished first: an errored session then has the same turns
    whatever the timing.
    """
    async with asyncio.TaskGroup() as group:
        grading = Grading(group)
        try:
            yield grading
        except InfrastructureError:
            await grading.settle()
            raise


def request_of(turn: TurnRecord) -> tuple[Message, ...]:
    """The messages of a recorded turn's request."""
    return tuple(turn.request)


def reply_of(turn: TurnRecord) -> Reply:
    """The reply of a recorded turn. Raises `ContextOverflow` if the conversation no longer fitted the model."""
    if turn.response is None:
        raise ContextOverflow("the recorded conversation no longer fitted the model's context")
    return Reply(turn.response, turn.finish_reason, turn.latency_s, usage=turn.usage)
