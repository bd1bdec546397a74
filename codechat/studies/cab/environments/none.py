"""No environment: a maintainer answers without commands."""

from collections.abc import Mapping
from typing import Literal

from codechat.base.config import result_option
from codechat.base.domain import Build, Output
from codechat.datasets.tasks import Workspace
from codechat.studies.cab.environments import ENVIRONMENTS, Environment, EnvironmentConfig, Worktree

NOT_RUN = "(there is no environment: no command was run)"


class NoneConfig(EnvironmentConfig):
    kind: Literal["none"] = result_option("none", "no commands")


class NoWorktree:
    """A worktree without a repository. Runs nothing."""

    async def run(self, command: str) -> Output:
        return Output(NOT_RUN, None, "killed")

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        return Build(False, NOT_RUN)

    async def aclose(self) -> None:
        """Nothing to end."""


class NoEnvironment:
    commands = builds = False

    async def check(self) -> None:
        """Nothing is needed."""

    async def open(self, workspace: Workspace) -> Worktree:
        return NoWorktree()

    async def aclose(self) -> None:
        """Nothing to close."""


@ENVIRONMENTS.register("none", NoneConfig)
def none(config: NoneConfig) -> Environment:
    """The maintainer answers without commands, as its prompt says."""
    return NoEnvironment()
