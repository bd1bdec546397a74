"""The verbs of a session in a repository: open a worktree, run a command there, build the environment again."""

import functools
from collections.abc import Mapping

from codechat.base.domain import Build, Output
from codechat.base.files import content_hash
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.models.calls import Brake
from codechat.run.protocols import Kit
from codechat.studies.cab.environments import Environment, Worktree
from codechat.studies.cab.environments.build_files import commands_writing


def environment_of(kit: Kit) -> Environment | None:
    """The environment of the session's repository; None if the protocol does not name `environment` in `uses`."""
    return kit.services.serving.get("environment")


async def enter(kit: Kit, turn: int) -> None:
    """Open the session's repository before the first call, with its image. Raises as `Environment.open`."""

    async def enter() -> bool:
        await kit.player(UNDER_TEST).gate.check()
        await _visit(kit).enter()
        return True

    await kit.step_at(turn, "room", "", bool, enter, free=True)


async def run_command(kit: Kit, turn: int, command: str) -> Output:
    """Run a command by a fresh shell in the session's repository. Raises as `Environment.open`."""
    visit, name = _visit(kit), f"command/{kit.number(turn, 'command')}"
    run = functools.partial(visit.run, command)
    output: Output = await kit.step_at(turn, name, content_hash(command), Output, run, free=True)
    visit.remember(command)
    return output


async def build(kit: Kit, turn: int, files: Mapping[str, str], dockerfile: str | None) -> Build:
    """Build the session's environment with a maintainer's files, and with another Dockerfile if there is one.

    Later commands find the files in the repository, whether or not the build succeeds.
    """
    visit, name = _visit(kit), f"build/{kit.number(turn, 'build')}"
    digest = content_hash([dict(files), dockerfile])
    built = await kit.step_at(turn, name, digest, Build, lambda: visit.build(files, dockerfile))
    visit.remember_build(files)
    return built


def _visit(kit: Kit) -> "Visit":
    return kit.opened.get("visit", lambda: Visit(kit.task, environment_of(kit), kit.services.brake))


class Visit:
    """One session's stay in its repository. A resumed session gets another worktree, in the state of the first."""

    def __init__(self, task: Task, environment: Environment | None, brake: Brake) -> None:
        self._workspace = task.workspace
        self._environment, self._brake = environment, brake
        self._worktree: Worktree | None = None
        self._known: list[str] = []  # every command with an effect on the session's worktree

    async def run(self, command: str) -> Output:
        """Run a new command. Raises as `Environment.open` and `Worktree.run`."""
        return await (await self.enter()).run(command)

    def remember(self, command: str) -> None:
        """Note a command whose output the session has, new or recorded."""
        self._known.append(command)

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        """Build with a maintainer's files, and write them into the worktree.

        Raises as `Environment.open`, `Worktree.build` and `Worktree.run`.
        """
        worktree = await self.enter()
        built = await worktree.build(files, dockerfile)
        for command in commands_writing(files):
            await worktree.run(command)
        return built

    def remember_build(self, files: Mapping[str, str]) -> None:
        """Note the files of a build whose result the session has, new or recorded."""
        self._known += commands_writing(files)

    async def aclose(self) -> None:
        worktree, self._worktree = self._worktree, None
        if worktree is not None:
            await worktree.aclose()

    async def enter(self) -> Worktree:
        """The worktree, opened at the first call. Raises as `Environment.open`."""
        if self._worktree is not None:
            return self._worktree
        if self._environment is None:
            raise ValueError("the protocol runs a command, and does not name the environment in `uses`")
        if self._workspace is None:
            raise ValueError("the protocol runs a command, and the task has no repository")
        self._worktree = worktree = await self._environment.open(self._workspace)
        for command in self._known:
            if self._brake.interrupted:  # during a command, or while other sessions had all worktrees
                self._brake.check()
            await worktree.run(command)
        return worktree
