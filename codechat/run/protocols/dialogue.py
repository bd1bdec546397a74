"""Parts of dialogues: the opening prompt, expected calls for estimates, and tests of turns while the dialogue goes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

from pydantic import field_validator

from codechat.base.config import Config, original_option
from codechat.base.domain import Message
from codechat.base.errors import InfrastructureError
from codechat.base.records import TurnRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.run.protocols import Ask
from codechat.run.protocols.services import reply_of as reply_of  # noqa: PLC0414  for protocols of others


class OpeningPrompt(Config):
    """The first prompt; `{{name}}` is filled in."""

    initial: str = original_option(..., "the task; fills {{prompt}}, {{signature}} and {{language}}")

    @field_validator("initial")
    @classmethod
    def _check_initial(cls, text: str) -> str:
        return require(text, "prompt", may=("signature", "language"))

    def opening(self, task: Task) -> Message:
        """The first message of a dialogue over a task."""
        target = task.target
        fields = {"prompt": task.prompt.strip("\n"), "signature": target.signature, "language": target.language}
        return Message("user", fill(self.initial, **fields))


PROSE = 200
"""Characters of a reply beyond the reference's code, if the prompts ask for code alone."""
EXPLANATION = 1_300
"""The same of prompts that allow an explanation: 1,200 to 2,300 by model in the dialogues of CodeIF-Bench."""
UNKNOWN_CODE = 1_000
"""Characters of the code for a task without a reference."""
CHECKS = 2
"""Candidates checked for each instruction, as if every second one applied."""


def length_of(task: Task) -> int:
    """The expected number of characters of a task's code.

    A reference may begin with the task's text, as HumanEval's do; replies leave it out but for the signature.
    """
    if not task.reference:
        return UNKNOWN_CODE
    text, reference = task.prompt.strip(), task.reference.strip()
    return (
        len(reference) - len(text) + len(task.target.signature)
        if text and reference.startswith(text)
        else len(task.reference)
    )


def growing_dialogue(
    task: Task, turns: int, initial: int, followup: int, *, prose: int = PROSE, continued: bool = True
) -> Iterator[Ask]:
    """The calls of a dialogue sent whole at every turn; `initial` and `followup` are characters around its texts.

    `prose`: characters of a reply beyond the reference. `continued`: each request begins with the previous request and
    reply.
    """
    answer, opening = length_of(task) + prose, initial + len(task.prompt)
    for turn in range(turns):
        shared = opening + (turn - 1) * followup if turn and continued else 0
        told = opening + turn * followup
        yield Ask(UNDER_TEST, turn, told, answer, replies=turn, shared=shared, shared_replies=turn if shared else 0)


Graded = asyncio.Task[TurnRecord]


class Grading:
    """Grades the turns of one session. Each gets the task of the previous turn, whose record must come first."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._last: Graded | None = None

    def start(self, grade: Callable[[Graded | None], Coroutine[Any, Any, TurnRecord]]) -> None:
        """Grade a turn while the dialogue continues. `grade` awaits its argument before it records its own turn."""
        self._last = self._group.create_task(grade(self._last))

    async def settle(self) -> None:
        """Wait for the turns so far."""
        if self._last is not None:
            await self._last


@contextlib.asynccontextmanager
async def grade_in_order() -> AsyncIterator[Grading]:
    """A session's grading; leaving waits for it.

    After an `InfrastructureError` the turns so far are finished first: an errored session has the same turns for any
    timing.
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
