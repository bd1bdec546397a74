"""The room where candidate code runs, and the only one. One file per kind of isolation."""

from collections.abc import Callable
from typing import Any, Protocol

from codechat.config import Config, run_option
from codechat.domain import Task, Verdict
from codechat.registry import Registry


class SandboxConfig(Config):
    """The limits that can change a verdict, whatever the kind of isolation."""

    kind: str = run_option(..., "how candidate code is isolated")


class Sandbox(Protocol):
    """Runs programs against tests; knows nothing of models or turns."""

    async def verify(self, program: str, task: Task) -> Verdict:
        """Run the task's base and plus tests on a whole program.

        Never raises for anything the program does; raises `InfrastructureError` where the sandbox itself fails.
        """

    async def aclose(self) -> None:
        """End every process that was started."""


SandboxFactory = Callable[..., Sandbox]
SANDBOXES: Registry[SandboxFactory] = Registry("sandbox", "codechat.sandbox")

__all__ = ["SANDBOXES", "Sandbox", "SandboxConfig", "SandboxFactory"]
