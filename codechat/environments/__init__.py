"""Environments: rooms in which a model explores a repository by commands. One file per kind.

A room holds the repository at one commit and nothing later. It belongs to one session, is writable, and is thrown
away. Commands are hostile: docs/environments.md says what a room keeps from them.
"""

from collections.abc import Mapping
from typing import Protocol

from codechat.config import Config, result_option, run_option
from codechat.domain import Build, Output
from codechat.registry import NoTraits, Registry
from codechat.tasks import Workspace


class EnvironmentConfig(Config):
    """Options of every environment."""

    kind: str = result_option(..., "where a model may run commands in a repository")
    max_rooms: int = run_option(16, "rooms that are open at once; further sessions wait for one", ge=1)


class Room(Protocol):
    """A session's repository. One command at a time."""

    async def run(self, command: str) -> Output:
        """Run a command by a fresh shell in the repository's root: files last, processes don't.

        Raises nothing for what the command does; `InfrastructureError` if the room broke.
        """

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        """Build the repository's image again: with further files (path and text), and with another Dockerfile if given.

        The room stays as it is: a session writes the files into it by commands. Raises `InfrastructureError` if the
        engine fails.
        """

    async def aclose(self) -> None:
        """End the room and throw its files away."""


class Environment(Protocol):
    """Opens rooms."""

    @property
    def commands(self) -> bool:
        """Whether commands can be run in a room."""

    @property
    def builds(self) -> bool:
        """Whether a build can be tried in a room."""

    async def check(self) -> None:
        """Find out what can be known before the first room. Raises `UserError` if no room could be opened."""

    async def open(self, workspace: Workspace) -> Room:
        """A fresh room, once there are fewer than `max_rooms`.

        Raises `UserError` if the repository does not hold the commit, and `InfrastructureError` if no room can be made:
        an engine is away, or the dataset's own Dockerfile does not build.
        """

    async def aclose(self) -> None:
        """Close every room."""


ENVIRONMENTS: Registry[Environment, NoTraits] = Registry(
    "environment", "codechat.environments", NoTraits, Environment, EnvironmentConfig
)

__all__ = ["ENVIRONMENTS", "Environment", "EnvironmentConfig", "Room"]
