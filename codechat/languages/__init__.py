"""Languages: one file each, with a language's fences, its rules of extraction, and the names that code defines.

To add a language, write one file: a class with the members of `Language`, and `register(TheClass())` below it. Put the
file into this folder, or name it as a module of an installed package under the entry-point group `codechat.language`.
For a language that needs only aliases, `register(Plain(("elixir", "ex")))` is enough. An unknown tag is read as plain
fenced code; if none is asked for, a reply may also be code without a fence.
"""

import re
from functools import cache
from typing import Protocol, runtime_checkable

from codechat.domain import Extraction, Target
from codechat.languages.plain import Plain
from codechat.languages.thinking import without_thinking
from codechat.plugins import import_all

_BACKTICKS = re.compile("`+")


class Language(Protocol):
    """One language as written in replies. Its methods are pure and never raise, for any text."""

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical name, then its aliases in fences, in lower case."""

    def extract(self, reply: str, target: Target) -> Extraction:
        """The code of a reply, and the program to run. Linear in the reply's length."""

    def defines(self, code: str) -> frozenset[str] | None:
        """The names that the code defines at top level; None if that is unknown."""


@runtime_checkable
class ComparesCode(Protocol):
    """What else a `Language` may be: one that knows which programs compile to the same code."""

    def code_key(self, program: str) -> str | None:
        """A hash that two programs have in common only if their compiled code is equal and neither can tell which of
        the two texts it was compiled from; None for a program that shares its verdicts with no other text.

        It is pure, never raises, and takes a time that is bounded whatever the program says.
        """


_REGISTERED: dict[str, Language] = {}


def register(language: Language) -> None:
    """Register a language by its names. Raises `ValueError` for a name that is taken or not in lower case."""
    for name in language.names:
        if name != name.lower():
            raise ValueError(f"the language name '{name}' must be in lower case")
        if _REGISTERED.setdefault(name, language) != language:
            raise ValueError(f"the language name '{name}' is registered twice")


def languages() -> tuple[Language, ...]:
    """The registered languages, by name. Raises `UserError` if a package with a language cannot be loaded."""
    _discover()
    return tuple(_REGISTERED[name] for name in sorted(_REGISTERED) if _REGISTERED[name].names[0] == name)


def language_of(tag: str) -> Language:
    """The language of a tag, in any case; plain fenced code if none is registered. Raises as `languages` does."""
    _discover()
    name = tag.strip().lower()
    return _REGISTERED.get(name) or Plain((name,), unfenced=not name)


def is_registered(tag: str) -> bool:
    """Whether a language is registered by that name, in any case. Raises as `languages` does."""
    _discover()
    return tag.strip().lower() in _REGISTERED


@cache
def _discover() -> None:
    import_all(__name__, "language")


def extract(reply: str, target: Target) -> Extraction:
    """The code of a reply that should be `target`, and the program to run. Raises only as `languages` does."""
    return language_of(target.language).extract(reply, target)


def fence(code: str, language: str) -> str:
    """The code in a fence tagged `language` that no backticks in it can close, without white space at its end."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", code.rstrip(), fence, ""))


__all__ = [
    "ComparesCode",
    "Language",
    "Plain",
    "extract",
    "fence",
    "is_registered",
    "language_of",
    "languages",
    "register",
    "without_thinking",
]
