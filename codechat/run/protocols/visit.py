"""The worktree of a session: opened at the first new command, after the recorded ones were run in it again."""

from collections.abc import Mapping

from codechat.base.domain import Build, Output
from codechat.datasets.tasks import Task
from codechat.models.calls import Brake
from codechat.studies.cab.environments import Environment, Worktree
from codechat.studies.cab.environments.build_files import commands_writing


class Visit:
    """One session's stay in its repository. A resumed session gets another worktree, in the state of the first."""

    def __init__(self, task: Task, environment: Environment | None, brake: Brake) -> None:
        self._workspace = task.workspace
        self._environment, self._brake = environment, brake
        self._worktree: Worktree | None = None
        self._known: list[str] = []  # every command whose effect the session knows

    async def enter(self) -> None:
        """Open the worktree now. Raises as `Environment.open`."""
        await self._open()

    async def run(self, command: str) -> Output:
        """Run a new command. Raises as `Environment.open` and `Room.run`."""
        return await (await self._open()).run(command)

    def remember(self, command: str) -> None:
        """Note a command whose output the session was given, new or recorded."""
        self._known.append(command)

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        """Build the session's environment with a maintainer's files, which are in the worktree from then on.

        Raises as `Environment.open`, `Room.build` and `Room.run`.
        """
        worktree = await self._open()
        built = await worktree.build(files, dockerfile)
        for command in commands_writing(files):
            await worktree.run(command)
        return built

    def remember_build(self, files: Mapping[str, str]) -> None:
        """Note the files of a build whose result the session was given, new or recorded."""
        self._known += commands_writing(files)

    async def aclose(self) -> None:
        """Leave the worktree, if there is one."""
        worktree, self._worktree = self._worktree, None
        if worktree is not None:
            await worktree.aclose()

    async def _open(self) -> Worktree:
        if self._worktree is not None:
            return self._worktree
        if self._environment is None:
            raise ValueError("the protocol runs a command, and does not name the environment in `uses`")
        if self._workspace is None:
            raise ValueError("the protocol runs a command, and the task has no repository")
        self._worktree = worktree = await self._environment.open(self._workspace)
        for command in self._known:
            if self._brake.interrupted:  # meanwhile, or while other sessions had all worktrees
                self._brake.check()
            await worktree.run(command)
        return worktree
