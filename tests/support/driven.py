"""Rooms for tests that are plain functions: one event loop, driven from outside."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from codechat.base.domain import Output
from codechat.datasets.tasks import Workspace
from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.inside.beside import landlock_version
from codechat.studies.cab.environments import ENVIRONMENTS, Environment, Worktree
from codechat.studies.cab.environments.checkout import _works
from support import engines

T = TypeVar("T")


BESIDE = "beside"
"""Rooms of `checkout` where the system grants no namespaces."""
DOCKERFILE = "FROM tiny\nWORKDIR /app\nCOPY . .\n"


def lacking(kind: str) -> str:
    """Why rooms of a kind cannot be had here; empty if they can."""
    if kind == "docker":
        return engines.lacking()
    if kind == BESIDE:
        return "" if landlock_version() else "needs Landlock"
    return "" if kind == "none" or any(map(_works, programs())) else "needs user namespaces"


def in_kind(workspace: Workspace, kind: str) -> Workspace:
    """The workspace with what a kind of room needs."""
    return replace(workspace, dockerfile=DOCKERFILE) if kind == "docker" else workspace


class Driven:
    """An environment with an event loop of its own."""

    def __init__(self, kind: str, **options: Any) -> None:
        self._runner, self._rooms = asyncio.Runner(), list[DrivenRoom]()
        self.config = ENVIRONMENTS.validate({"kind": "checkout" if kind == BESIDE else kind, **options})
        with pytest.MonkeyPatch.context() as patch:
            if kind == BESIDE:
                patch.setattr("codechat.studies.cab.environments.checkout.programs", list)
            self.environment: Environment = ENVIRONMENTS.build(self.config)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def open(self, workspace: Workspace) -> "DrivenRoom":
        self._rooms.append(DrivenRoom(self, self.wait(self.environment.open(workspace))))
        return self._rooms[-1]

    def close(self) -> None:
        for room in self._rooms:
            room.close()
        self.wait(self.environment.aclose())
        self._runner.close()


class DrivenRoom:
    """A room whose methods block."""

    def __init__(self, of: Driven, room: Worktree) -> None:
        self._of, self.room, self._closed = of, room, False

    def run(self, command: str) -> Output:
        return self._of.wait(self.room.run(command))

    def text(self, command: str) -> str:
        """The output of a command that must succeed."""
        output = self.run(command)
        assert output.status == 0, output
        return output.text

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._of.wait(self.room.aclose())
