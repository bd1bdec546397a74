"""Drivers: how programs of a language are called, a file each.

A driver makes a command of a program. The command reads arguments from the file `ARGUMENTS` of its working folder, and
writes frames to its standard output (`codechat.sandbox.inside.wire`): LOADED once the program is, a VALUE for every
call in turn, DONE; or instead of any of them MISSING, SYNTAX, or ERROR. Values are the plain data of marshal, version
2, both ways: `N T F`, `i` 32 bits, `l` digits of 15 bits, `g` a double, `u` UTF-8 after its size, `[ ( <` after their
sizes, `{` up to `0`, all of them little-endian. A call without a value may send `.` alone, which is not `N`. The
command knows nothing else: results are compared elsewhere.

To add a language, write one file with a class that has the members of `Driver`, and `register(TheClass())` below it, in
this folder, or as a module of an installed package under the entry point `codechat.driver`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from codechat.base.domain import Verdict
from codechat.base.errors import UserError, nearest
from codechat.base.plugins import import_all
from codechat.sandbox import Box, Command, SandboxConfig
from codechat.sandbox.languages import language_of

ARGUMENTS = "arguments"  # the file with a list of tuples of arguments
PRINTED = 2048
"""Bytes that are kept of what a program prints: a command writes them to its standard error, after `SAID`."""
SAID = b"\f"  # comes after what an interpreter itself has to say


@dataclass(frozen=True)
class Called:
    """A program to be called: its source, the function, and the `signature` that gives a typed language the types.
    `timed`: before each VALUE the command writes CPU, the seconds of the call. `arguments` is the content of the file
    `ARGUMENTS`, unless the driver's command brings it in another form."""

    source: str
    entry_point: str
    signature: str
    timed: bool
    arguments: bytes


@dataclass(frozen=True)
class Ready:
    """The command that calls a program, and the CPU seconds that it took to make it. It is `alone`, unless it compiles
    the program first: it can start no other process (`Command`)."""

    command: Command
    cpu_s: float = 0.0
    alone: bool = True


class Driver(Protocol):
    """One language. `version` counts changes that can change a verdict."""

    @property
    def language(self) -> str:
        """Its name in `codechat.sandbox.languages`."""

    @property
    def version(self) -> int:
        """From 1."""

    def tools(self, config: SandboxConfig, note: Callable[[str], None]) -> Sequence[str]:
        """The paths that a box must show; `note` gets a message if they must be made first. Raises `UserError` that
        says what to install."""

    def inexpressible(self, arguments: Sequence[Any], signature: str) -> str:
        """Why the language cannot express the arguments of a call; empty if it can. Raises `ValueError`, if the
        signature cannot be read."""

    def ready(self, called: Called, box: Box, config: SandboxConfig) -> Ready | Verdict:
        """The command, whose limits and arguments others add; a verdict if the program is refused before it runs."""


_REGISTERED: dict[str, Driver] = {}


def register(driver: Driver) -> None:
    """Register the driver of a language. Raises `ValueError` if it has one."""
    if _REGISTERED.setdefault(driver.language, driver) is not driver:
        raise ValueError(f"the language {driver.language} has two drivers")


@cache
def drivers() -> dict[str, Driver]:
    """The drivers by language. Raises `UserError` if a package with a driver cannot be loaded."""
    import_all(__name__, "driver")
    return _REGISTERED


def driver_of(language: str) -> Driver:
    """The driver of a language, by any of its names. Raises `UserError` if it has none."""
    try:
        return drivers()[language_of(language).names[0]]
    except KeyError:
        known = ("python", *drivers())
        raise UserError(
            f"no driver calls functions in {language}: base_input is for {', '.join(sorted(known))}",
            nearest(language, known),
        ) from None


def leaves(value: Any) -> Iterator[Any]:
    """Every value within a value that is no container, keys included."""
    if isinstance(value, dict):
        yield from (leaf for pair in value.items() for part in pair for leaf in leaves(part))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from (leaf for item in value for leaf in leaves(item))
    else:
        yield value
