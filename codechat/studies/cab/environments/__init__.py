"""Environments: worktrees in which a model explores a repository by commands. One file per kind.

A worktree has the repository at one commit and nothing later. It belongs to one session, is writable, and is thrown
away. Commands are hostile (docs/environments.md). Names of options, and messages, call a worktree a room.
"""

from collections.abc import Mapping
from typing import Protocol

from codechat.base.config import Config, result_option, run_option
from codechat.base.domain import Build, Output
from codechat.base.registry import NoTraits, Registry
from codechat.datasets.tasks import Workspace


class EnvironmentConfig(Config):
    """Options of every environment."""

    kind: str = result_option(..., "where a model may run commands in a repository")
    max_rooms: int = run_option(16, "worktrees that are open at once; further sessions wait for one", ge=1)

    def room_of(self, workspace: Workspace) -> str:
        """The kind of worktree that a workspace gets, which may be a fallback."""
        return self.kind

    def networked(self, workspace: Workspace) -> bool:
        """Whether a workspace's commands reach a network."""
        return False

    def lacking(self, workspace: Workspace) -> tuple[str, str] | None:
        """A part that a workspace lacks for a worktree of this kind, and the remedy; None if nothing is missing."""
        return None


class Worktree(Protocol):
    """A session's repository. One command at a time."""

    async def run(self, command: str) -> Output:
        """Run a command by a fresh shell in the root: files last, processes don't. Raises `InfrastructureError`."""

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        """Build the repository's image again: with further files (path and text), and with another Dockerfile if given.

        Without either, the worktree's own image counts as built. The workspace's test command runs in the built image.
        The worktree does not change: a session writes the files into it by commands. Raises `InfrastructureError` if
        the engine fails.
        """

    async def aclose(self) -> None:
        """End the worktree and throw its files away."""


Room = Worktree  # its earlier name, which others' packages may import


class Environment(Protocol):
    """Opens worktrees."""

    @property
    def commands(self) -> bool:
        """Whether commands can be run in a worktree."""

    @property
    def builds(self) -> bool:
        """Whether a build can be tried in a worktree."""

    async def check(self) -> None:
        """Check before the first worktree. Raises `UserError` if no worktree could be opened."""

    async def open(self, workspace: Workspace) -> Worktree:
        """A fresh worktree, once there are fewer than `max_rooms`.

        Raises `UserError` if the repository does not hold the commit, and `InfrastructureError` if no worktree can be
        made: an engine is away, or the dataset's own Dockerfile does not build.
        """

    async def aclose(self) -> None:
        """Close every worktree."""


ENVIRONMENTS: Registry[Environment, NoTraits] = Registry(
    "environment", "codechat.studies.cab.environments", NoTraits, Environment, EnvironmentConfig
)
