"""Suites: kinds of tests. One file a kind; a suite knows what it tests, and runs it in the sandbox.

To add a kind, write one file: a frozen dataclass with the members of `Suite`, and a registered factory that makes it
from the fields of a dataset's row (`suite: {kind: …}` of dataset=jsonl).
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from codechat.domain import Program, Verdict
from codechat.registry import NoTraits, Registry
from codechat.sandbox import Sandbox


class Suite(Protocol):
    """Tests of one program."""

    @property
    def kind(self) -> str:
        """The name that it is registered by."""

    @property
    def forgeable(self) -> bool:
        """Whether the tested program shares a process with what decides, so that it could forge its verdict."""

    @property
    def key(self) -> str:
        """Equal for equal tests alone: a hash of all that decides a verdict, content outside the dataset included.

        It is asked for at every check: keep it once it is known.
        """

    @property
    def outside(self) -> Mapping[str, str]:
        """What the verdict depends on outside the dataset's own content, name → content hash: part of the cell id."""

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        """Test a program.

        Never raises for anything that the program does. Raises `InfrastructureError` if the sandbox itself fails, and
        `UserError` if the tests cannot be run at all, such as a reference that fails.
        """


@runtime_checkable
class Costed(Protocol):
    """A suite that knows how long it takes: the longest are best begun first."""

    async def cost_s(self, sandbox: Sandbox) -> float:
        """CPU seconds that a right program takes on this machine, about. Raises as `Suite.check`."""


SUITES: Registry[Suite, NoTraits] = Registry("suite", "codechat.suites", NoTraits)

__all__ = ["SUITES", "Costed", "Suite"]
