"""A model with prepared answers, for tests and demonstrations, on the path of a real model."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from codechat.base.config import original_option
from codechat.base.domain import Reply
from codechat.base.errors import UserError, nearest
from codechat.models import MODELS, ModelConfig, Request

Answer = str | Reply | Exception
Script = Sequence[Answer] | Mapping[str, Sequence[Answer]] | Callable[[Request], Answer | Awaitable[Answer]]


class ScriptedConfig(ModelConfig):
    """The script: one reply per turn, for all tasks or by task."""

    kind: Literal["scripted"] = original_option("scripted", "which provider answers")
    name: str = original_option("scripted", "the name that the records show", min_length=1)
    replies: list[str] | dict[str, list[str]] = original_option(
        ...,
        "the replies, entry t for turn t (of a construction: question t of a stage), or a list for every task id",
        min_length=1,
    )


class Scripted:
    """Answers from a list by turn, for all tasks or by task id, or from a function of the request, maybe a coroutine.

    A `str` is a reply, an `Exception` is raised. The answer depends on the request alone, not on the order of calls.
    """

    def __init__(self, script: Script) -> None:
        self._script = script

    async def check(self) -> None:
        """Nothing to check."""

    async def aclose(self) -> None:
        """Nothing to release."""

    async def complete(self, request: Request) -> Reply:
        """The scripted answer. Raises `UserError` if the script has no answer left."""
        answer = await self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer)

    async def _answer(self, request: Request) -> Answer:
        if callable(self._script):
            answer = self._script(request)
            return await answer if inspect.isawaitable(answer) else answer
        script = self._script
        if isinstance(script, Mapping):
            if request.task_id not in script:
                raise UserError(f"the script has no task {request.task_id}", nearest(request.task_id, script))
            script = script[request.task_id]
        if request.turn >= len(script):
            raise UserError(
                f"the script ended: it has {len(script)} replies, and turn {request.turn} was asked",
                "give model.replies one entry per turn",
            )
        return script[request.turn]


@MODELS.register("scripted", ScriptedConfig, offline=True)
def from_config(config: ScriptedConfig) -> Scripted:
    """Replies written in the config, one per turn, for all tasks or by task (for tests; offline)."""
    return Scripted(config.replies)
