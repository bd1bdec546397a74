"""Whether a code is valid in a version of a language, by the output of a compiler that `sandbox.suites` runs."""

import re
from typing import Protocol, runtime_checkable

Version = tuple[int, ...]
Attempt = tuple[str, ...]

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_LONGEST = 200  # characters of a compiler's message


class Compiler:
    """The compiler of a language: its command, and how its output is read. The methods are pure."""

    program: str  # the name of its file; `{version}` stands for the first two numbers of the version
    suffix: str  # the end of its programs' file names
    sample: str  # a program that is valid in every version
    asks_version: Attempt  # arguments that print the compiler's own version
    asks_home: Attempt = ()  # arguments that print the folder of all its files; empty: the program is in `bin` of it
    exact = False  # whether only a compiler of the very version can check it; else any compiler that is not older
    bounds: Attempt  # arguments that run nothing of a program and limit the use of the machine
    checks: Attempt = ()  # further arguments for a check: go on if libraries are missing, write no files
    newest: Attempt | None = None
    """Arguments for the newest version that it knows, if an error that looks like a missing library may be an error of
    an older version: the newest version does not report it. None if the errors alone decide."""

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """The arguments for a version: a program is valid if it is under any of them."""
        raise NotImplementedError

    def file_name(self, code: str) -> str:
        """The name of a code's file: at most 200 plain letters, digits and underscores, and the suffix."""
        return f"program{self.suffix}"

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        """The errors, each in one line: first errors of the language, then of missing libraries."""
        raise NotImplementedError


@runtime_checkable
class Compiled(Protocol):
    """A `Language` that also has a compiler."""

    @property
    def compiler(self) -> Compiler:
        """The compiler of the language."""


def version_of(text: str) -> Version:
    """The first version in a text, such as `jdk11` or `rustc 1.86.0`. Raises `ValueError` if there is none."""
    found = _NUMBERS.search(text)
    if found is None or len(found[0]) > 20:
        raise ValueError(f"'{text:.60}' names no version")
    return tuple(int(number) for number in found[0].split("."))


def shown(version: Version) -> str:
    """A version as text, such as `3.11`."""
    return ".".join(map(str, version))


def at_line(line: str | int, message: str) -> str:
    """An error in one line of bounded length."""
    return f"line {line}: {' '.join(message.split())}"[:_LONGEST]
