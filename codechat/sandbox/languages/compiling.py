"""How a language's compiler tells whether a code is valid in a version of the language.

Here a compiler's output is only read: `codechat.sandbox.suites` runs it.
"""

import re
from typing import Protocol, runtime_checkable

Version = tuple[int, ...]
Attempt = tuple[str, ...]

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_LONGEST = 200  # characters of a compiler's message


class Compiler(Protocol):
    """The compiler of a language: its command, and how its output is read. Its methods are pure."""

    @property
    def program(self) -> str:
        """The name of its file; `{version}` in it stands for the first two numbers of the version."""

    @property
    def suffix(self) -> str:
        """The end of its programs' file names."""

    @property
    def asks_version(self) -> tuple[str, ...]:
        """Arguments that make it print its own version."""

    @property
    def asks_home(self) -> tuple[str, ...]:
        """Arguments that make it print the folder of all its files; none if its program is in `bin` of that folder."""

    @property
    def exact(self) -> bool:
        """Whether only a compiler of the very version can check it. Else every one will do that is not older."""

    @property
    def sample(self) -> str:
        """A program that is valid in every version."""

    @property
    def bounds(self) -> Attempt:
        """Arguments that keep it from running anything of a program, and from using too much of a machine."""

    @property
    def checks(self) -> Attempt:
        """Further arguments for a check: it goes on if libraries are missing, and makes nothing."""

    @property
    def newest(self) -> Attempt | None:
        """Arguments for the newest version that it knows, if an error that looks like a missing library may be one of
        an older version: then the newest reports it no more. None if the errors tell that by themselves."""

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """The arguments for a version: a program is valid if it is under any of them."""

    def file_name(self, code: str) -> str:
        """The name that the file of a code must have: at most 200 plain letters, digits and underscores, and suffix."""

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        """Its errors, each in one line: those of the language, and those of libraries that are not there."""


@runtime_checkable
class Compiled(Protocol):
    """A `Language` that also has a compiler."""

    @property
    def compiler(self) -> Compiler:
        """The compiler of the language."""


def version_of(text: str) -> Version:
    """The first version in a text, such as that of `jdk11` or `rustc 1.86.0`. Raises `ValueError` if there is none."""
    found = _NUMBERS.search(text)
    if found is None or len(found[0]) > 20:
        raise ValueError(f"'{text:.60}' names no version")
    return tuple(int(number) for number in found[0].split("."))


def shown(version: Version) -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def at_line(line: str | int, message: str) -> str:
    """An error in one line of bounded length."""
    return f"line {line}: {' '.join(message.split())}"[:_LONGEST]
