"""Rooms for tests that are plain functions: one event loop, driven from outside."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from codechat.domain import Output
from codechat.environments import ENVIRONMENTS, Environment, Room
from codechat.tasks import Workspace

T = TypeVar("T")


class Driven:
    """An environment with an event loop of its own."""

    def __init__(self, kind: str, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self.config = ENVIRONMENTS.validate({"kind": kind, **options})
        self.environment: Environment = ENVIRONMENTS.build(self.config)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def open(self, workspace: Workspace) -> "DrivenRoom":
        return DrivenRoom(self, self.wait(self.environment.open(workspace)))

    def close(self) -> None:
        self.wait(self.environment.aclose())
        self._runner.close()


class DrivenRoom:
    """A room whose methods block."""

    def __init__(self, of: Driven, room: Room) -> None:
        self._of, self.room = of, room

    def run(self, command: str) -> Output:
        return self._of.wait(self.room.run(command))

    def text(self, command: str) -> str:
        """The output of a command that must succeed."""
        output = self.run(command)
        assert output.status == 0, output
        return output.text

    def close(self) -> None:
        self._of.wait(self.room.aclose())
