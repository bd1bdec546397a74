"""A session's stay in its repository: opened once, caught up with what the session knows, and left."""

from typing import Any

import pytest

from codechat.base.domain import Build, Output
from codechat.base.errors import Stopped
from codechat.datasets.tasks import Task
from codechat.models.calls import Brake
from codechat.studies.cab.environments.build_files import commands_writing
from codechat.studies.cab.verbs import Visit

WORKSPACE: Any = object()
FILES = {"a/b": "text", "c": "more"}


class Rooms:
    """An environment whose only worktree notes what is done in it."""

    def __init__(self) -> None:
        self.opened, self.done = list[Any](), list[Any]()
        self.output: Any = Output("said", 0)
        self.built: Any = object()

    async def open(self, workspace: Any) -> Any:
        self.opened.append(workspace)
        return self

    async def run(self, command: str) -> Output:
        self.done.append(command)
        return self.output  # type: ignore[no-any-return]

    async def build(self, files: Any, dockerfile: str | None) -> Build:
        self.done.append((dict(files), dockerfile))
        return self.built  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        self.done.append("closed")


def visit(rooms: Any, *, workspace: Any = WORKSPACE, brake: Brake | None = None) -> Visit:
    return Visit(Task("t", "p", workspace=workspace), rooms, brake or Brake())


async def test_a_repository_is_opened_once_and_left_once() -> None:
    rooms = Rooms()
    one = visit(rooms)
    await one.aclose()
    await one.enter()
    assert await one.run("ls") is rooms.output and await one.run("pwd") is rooms.output
    assert rooms.opened == [WORKSPACE]
    await one.aclose()
    await one.aclose()
    assert rooms.done == ["ls", "pwd", "closed"]


async def test_a_later_worktree_is_in_the_state_of_the_first() -> None:
    rooms = Rooms()
    one = visit(rooms)
    one.remember("ls")
    one.remember_build(FILES)
    one.remember("pwd")
    await one.run("new")
    assert rooms.done == ["ls", *commands_writing(FILES), "pwd", "new"]


async def test_the_files_of_a_build_are_in_the_worktree() -> None:
    rooms = Rooms()
    one = visit(rooms)
    assert await one.build(FILES, "FROM x") is rooms.built
    assert rooms.done == [(FILES, "FROM x"), *commands_writing(FILES)] and len(rooms.done) > 1


async def test_after_an_interruption_nothing_known_is_run_again_and_a_budget_stops_nothing() -> None:
    brake, rooms = Brake(), Rooms()
    brake.pull("budget")
    one = visit(rooms, brake=brake)
    one.remember("ls")
    await one.run("new")
    assert rooms.done == ["ls", "new"]
    brake.pull("interrupted", interrupted=True)
    one = visit(rooms, brake=brake)
    one.remember("ls")
    with pytest.raises(Stopped):
        await one.run("new")
    assert rooms.done == ["ls", "new"]


async def test_without_an_environment_or_a_repository_nothing_can_be_run() -> None:
    with pytest.raises(ValueError, match="`uses`"):
        await visit(None).enter()
    with pytest.raises(ValueError, match="no repository"):
        await visit(Rooms(), workspace=None).enter()
