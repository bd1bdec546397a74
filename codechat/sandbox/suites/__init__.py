"""Suites: kinds of tests, one file each. A suite runs its tests in the sandbox.

To add a kind, write one file: a frozen dataclass with the members of `Suite`, and a registered factory of the fields of
a dataset's row (`suite: {kind: …}` of dataset=jsonl).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from codechat.base.domain import Program, Verdict
from codechat.base.registry import NoTraits, Registry
from codechat.sandbox import Sandbox, SandboxConfig


class Suite(Protocol):
    """Tests of one program."""

    @property
    def kind(self) -> str:
        """The name it is registered by."""

    @property
    def key(self) -> str:
        """A hash of all that decides a verdict, content outside the dataset included: equal only for equal tests. It is
        read at every check: cache it."""

    @property
    def outside(self) -> Mapping[str, str]:
        """Content outside the dataset that the verdict depends on, name → content hash: part of the cell id."""

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        """Test a program. The verdict says if the program shared a process with the tests (`Verdict.inside`). Never
        raises for anything that the program does. Raises `InfrastructureError` if the sandbox itself fails, and
        `UserError` if the tests cannot be run at all, such as a reference that fails."""


@runtime_checkable
class HasCost(Protocol):
    """A suite that knows how long it takes, so that the longest can begin first."""

    async def cost_s(self, sandbox: Sandbox) -> float:
        """The rough CPU seconds of a right program on this machine. Raises as `Suite.check`."""


@runtime_checkable
class NeedsSetup(Protocol):
    """A suite that needs something of this machine, such as a compiler."""

    def make_ready(self, config: SandboxConfig, note: Callable[[str], None]) -> None:
        """Check that all is there, before a model is asked, and prepare what is made once; `note` gets remarks. It may
        take long, and may be called from any thread. Raises `UserError` that names what is missing."""


@runtime_checkable
class HasTestCounts(Protocol):
    """A suite that knows how many tests it has."""

    @property
    def test_counts(self) -> tuple[int, int]:
        """The number of the dataset's original tests, and of added tests."""


@runtime_checkable
class SingleLanguage(Protocol):
    """A suite that can test programs in one language only."""

    @property
    def language(self) -> str:
        """Its name."""


@runtime_checkable
class HasSnippets(Protocol):
    """A suite of Python snippets."""

    def unusable(self, entry_point: str) -> Iterator[str]:
        """Snippets that no program can pass, such as snippets that do not parse; each with the reason."""


def syntax_problem(text: str) -> str:
    """The reason, with the line, if a text is no Python program; else empty. Nothing of the text is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the interpreter's opinion of an escape sequence is no error
            compile(text, "<test>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


NOTHING_OUTSIDE: Mapping[str, str] = MappingProxyType({})  # `Suite.outside` if the dataset has all
SUITES: Registry[Suite, NoTraits] = Registry("suite", "codechat.sandbox.suites", NoTraits, Suite)
