"""What a session plays on: options, task and verbs; and the way to ask a role until its reply can be read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from codechat.domain import Message
from codechat.errors import ContextOverflow
from codechat.languages import without_thinking
from codechat.protocols import Kit
from codechat.studies.cab.config import AssistConfig
from codechat.studies.cab.tasks import AssistTask

NO_TEXT = "(no text)"
"""Stands for an empty reply in a conversation, since endpoints refuse empty messages."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """One session's options, task and verbs."""

    config: AssistConfig
    task: AssistTask
    kit: Kit

    @property
    def explores(self) -> bool:
        """Whether the maintainer can run commands: there is a repository, and an environment to run them in."""
        environment = self.kit.environment
        return self.task.workspace is not None and environment is not None and environment.commands

    @property
    def builds(self) -> bool:
        """Whether what the maintainer changes is built: the data has a Dockerfile, and the environment an engine."""
        workspace, environment = self.task.workspace, self.kit.environment
        has_dockerfile = workspace is not None and workspace.dockerfile is not None
        return has_dockerfile and environment is not None and environment.builds

    async def ask_until_read(
        self, role: str, turn: int, prompt: str, *, again: str, read: Callable[[str], T | None]
    ) -> tuple[T | None, str]:
        """What is read of a role's reply, and the last reply without its thinking; None if none can be read.

        `again` is sent after a reply that cannot be read, at most `max_reasks` times. A prompt that does not fit the
        role's context cannot be read either, since it is the candidate's text that makes it long.
        """
        messages: tuple[Message, ...] = (Message("user", prompt),)
        said = ""
        for _ in range(self.config.max_reasks + 1):
            try:
                reply = await self.kit.ask(role, turn, messages)
            except ContextOverflow:
                return None, said
            said = without_thinking(reply.text).strip()
            found = read(said)
            if found is not None:
                return found, said
            messages += (Message("assistant", said or NO_TEXT), Message("user", again.strip("\n")))
        return None, said
