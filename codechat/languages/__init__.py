"""Languages: one file each, which says how a language is fenced, how its code is found, and what an answer defines.

To add a language, write one file: a class with the members of `Language`, and `register(TheClass())` below it. The file
lies in this room, or is a module that an installed package names under the entry-point group `codechat.language`. For a
language that needs nothing but its aliases, `register(Plain(("kotlin", "kt")))` is enough. A tag that nobody registered
is read as plain fenced code.
"""

import re
from functools import cache
from typing import Protocol

from codechat.domain import Extraction, Target
from codechat.languages.plain import Plain
from codechat.languages.thinking import without_thinking
from codechat.plugins import import_all

_BACKTICKS = re.compile("`+")


class Language(Protocol):
    """One language as it is written in replies. Its methods are pure; none raises, for any text."""

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical name, then its aliases in fences, in lower case."""

    def extract(self, reply: str, target: Target) -> Extraction:
        """The code of a reply, and the program to run. Takes time that is linear in the reply's length."""

    def defines(self, code: str) -> frozenset[str] | None:
        """The names that the code defines at top level; None if that cannot be said."""


_REGISTERED: dict[str, Language] = {}


def register(language: Language) -> None:
    """Make a language known by its names. Raises `ValueError` for a name that is taken or not in lower case."""
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
    return _REGISTERED.get(name) or Plain((name,))


@cache
def _discover() -> None:
    import_all(__name__, "language")


def extract(reply: str, target: Target) -> Extraction:
    """The code of a reply that was to be `target`, and the program to run. Raises as `languages` does, nothing else."""
    return language_of(target.language).extract(reply, target)


def fenced(code: str, language: str) -> str:
    """The code in a fence tagged `language` that no run of backticks in it can close; white space at its end goes."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", code.rstrip(), fence, ""))


__all__ = [
    "Language",
    "Plain",
    "extract",
    "fenced",
    "language_of",
    "languages",
    "register",
    "without_thinking",
]
