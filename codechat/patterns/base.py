"""What a pattern is, and the table of all of them."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, TypeAdapter, ValidationError

from codechat.errors import UserError, nearest
from codechat.patterns.reading.code import Code


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One place where a pattern is found: its line, what is there where the line alone would not tell, its node."""

    line: int
    what: str = ""
    node: ast.AST | None = field(default=None, compare=False, repr=False)


Finder = Callable[..., Iterable[Occurrence]]


@dataclass(frozen=True)
class Pattern:
    """Something that is present in code or not.

    `noun` names one occurrence in reasons, `plural` several; both may hold required options, as `{names}`. A pattern on
    tokens can be found in code that does not parse; one on the tree cannot.
    """

    name: str
    find: Finder
    noun: str
    plural: str
    on_tokens: bool

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise `UserError` for an option that the pattern does not take, for a wrong value, and for a missing one."""
        taken = _options(self.find)
        for option in options:
            if option not in (parameter.name for parameter in taken):
                raise UserError(
                    f"the pattern '{self.name}' has no option '{option}'", nearest(option, (one.name for one in taken))
                )
        for parameter in taken:
            if parameter.name in options:
                _check(f"{self.name}.{parameter.name}", options[parameter.name], parameter.annotation)
            elif parameter.default is parameter.empty:
                raise UserError(f"the pattern '{self.name}' needs '{parameter.name}'", f"add `{parameter.name}: …`")

    def present(self, code: Code, options: Mapping[str, Any]) -> tuple[Occurrence, ...]:
        """Its occurrences in source order."""
        return tuple(sorted(self.find(code, **options)))


@cache
def _options(find: Finder) -> Sequence[inspect.Parameter]:
    """The options that a finder takes."""
    return tuple(inspect.signature(find).parameters.values())[1:]


_adapter = cache(TypeAdapter)  # of equal kinds of options one checks all


def _check(name: str, value: Any, kind: Any) -> None:
    try:
        _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UserError(f"the option {name}: {problem} (got {value!r:.60})") from error


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


Regex = Annotated[str, AfterValidator(_regex)]
"""An option that is a regular expression."""

_patterns: dict[str, Pattern] = {}


def pattern(name: str, noun: str, plural: str = "", *, on_tokens: bool = False) -> Callable[[Finder], Finder]:
    """Register a finder under a name that rules use."""

    def remember(finder: Finder) -> Finder:
        known = _patterns.get(name)
        if known is not None and known.find.__module__ != finder.__module__:
            raise ValueError(f"the pattern '{name}' is registered twice")
        _patterns[name] = Pattern(name, finder, noun, plural or f"{noun}s", on_tokens)
        return finder

    return remember


Sorter = Callable[..., Iterable[tuple[Occurrence, bool]]]
Named: TypeAlias = tuple[str, str, str]
"""A pattern's name, its noun and the noun's plural, which is empty if an s makes it."""


def pair(these: Named, others: Named, *, on_tokens: bool = False) -> Callable[[Sorter], Sorter]:
    """Register two patterns at once: of the places that a function goes through, those it calls true and the rest."""

    def remember(sorter: Sorter) -> Sorter:
        for (name, noun, plural), wanted in ((these, True), (others, False)):
            pattern(name, noun, plural, on_tokens=on_tokens)(_half(sorter, wanted))
        return sorter

    return remember


def _half(sorter: Sorter, wanted: bool) -> Finder:
    @wraps(sorter)
    def find(code: Code, **options: Any) -> Iterable[Occurrence]:
        return (place for place, found in sorter(code, **options) if found is wanted)

    return find


@cache
def patterns() -> Mapping[str, Pattern]:
    """Every pattern of the room and its inner rooms by name."""
    room = importlib.import_module("codechat.patterns")
    for module in pkgutil.walk_packages(room.__path__, "codechat.patterns."):
        importlib.import_module(module.name)
    return _patterns


def at(node: ast.AST, what: str = "") -> Occurrence:
    """The occurrence at a node's first line."""
    return Occurrence(getattr(node, "lineno", 1), what, node)
