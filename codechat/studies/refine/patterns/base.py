"""Patterns, the table of all of them, and the rules that are made of them."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, wraps
from itertools import chain
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, TypeAdapter, ValidationError

from codechat.base.domain import Change
from codechat.base.errors import UserError, nearest
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.neutral import TreeCode
from codechat.studies.refine.patterns.reading.tree import Function
from codechat.studies.refine.patterns.reading.use import idle

_SHOWN = 5
Readable: TypeAlias = Code | TreeCode
"""A program in Python, or in another language."""
_adapter = cache(TypeAdapter)  # of equal kinds of options one checks all
Named: TypeAlias = tuple[str, str, str]
"""A pattern's name, its noun, and the noun's plural, which is empty if adding an s makes it."""


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One place where a pattern is found.

    `line` counts from 1; `what` says what is found there if the line alone would not; `node` is the syntax tree's
    node, None for what is found in tokens.
    """

    line: int
    what: str = ""
    node: ast.AST | None = field(default=None, compare=False, repr=False)


Finder = Callable[..., Iterable[Occurrence]]


@dataclass(frozen=True)
class Pattern:
    """Something that is present in code or not.

    `noun` names one occurrence in reasons and `plural` several; both may contain required options, such as
    `{names}`. A pattern `on_tokens` can be found in code that does not parse; one on the syntax tree cannot.
    """

    name: str
    find: Finder
    noun: str
    plural: str
    on_tokens: bool

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise `UserError` for an option that the pattern does not take, for a wrong value, and for a missing one."""
        taken = _options(self.find)
        names = [parameter.name for parameter in taken]
        for option in options:
            if option not in names:
                raise UserError(f"the pattern '{self.name}' has no option '{option}'", nearest(option, names))
        for parameter in taken:
            if parameter.name in options:
                value = options[parameter.name]
                try:
                    _adapter(parameter.annotation).validate_python(value, strict=True)
                except ValidationError as error:
                    problem = error.errors()[0]["msg"].removeprefix("Value error, ")
                    place = f"the option {self.name}.{parameter.name}"
                    raise UserError(f"{place}: {problem} (got {value!r:.60})") from error
            elif parameter.default is parameter.empty:
                raise UserError(f"the pattern '{self.name}' needs '{parameter.name}'", f"add `{parameter.name}: …`")

    def present(self, code: Readable, options: Mapping[str, Any]) -> tuple[Occurrence, ...]:
        """The occurrences in a program, in source order."""
        return tuple(sorted(self.find(code, **options)))


@cache
def _options(find: Finder) -> Sequence[inspect.Parameter]:
    """The options that a finder takes."""
    return tuple(inspect.signature(find).parameters.values())[1:]


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


def each_of(
    name: str, noun: str, *kinds: type[ast.AST], plural: str = "", when: Callable[[Code, Any], bool] | None = None
) -> None:
    """Register the pattern of all nodes of some kinds that fulfil `when`."""

    def find(code: Code) -> Iterable[Occurrence]:
        return (at(node) for node in code.find(*kinds) if when is None or when(code, node))

    pattern(name, noun, plural)(find)


def of_functions(name: str, noun: str, plural: str = "", *, when: Callable[[Code, Function], bool]) -> None:
    """Register the pattern of all functions that fulfil `when`."""

    def find(code: Code) -> Iterable[Occurrence]:
        return (at(function, function.name) for function in code.functions if when(code, function))

    pattern(name, noun, plural)(find)


Sorter = Callable[..., Iterable[tuple[Occurrence, bool]]]


def pair(
    these: Named, others: Named, *, register: Callable[..., Any] = pattern, **options: bool
) -> Callable[[Sorter], Sorter]:
    """Register two patterns with one function, which yields places and whether each belongs to the first pattern."""

    def half(sorter: Sorter, wanted: bool) -> Finder:
        @wraps(sorter)
        def find(code: Readable, **options: Any) -> Iterable[Occurrence]:
            return (place for place, found in sorter(code, **options) if found is wanted)

        return find

    def remember(sorter: Sorter) -> Sorter:
        for names, wanted in ((these, True), (others, False)):
            register(*names, **options)(half(sorter, wanted))
        return sorter

    return remember


@cache
def patterns() -> Mapping[str, Pattern]:
    """All patterns by name, once every module of this package is imported."""
    room = importlib.import_module("codechat.studies.refine.patterns")
    for module in pkgutil.walk_packages(room.__path__, "codechat.studies.refine.patterns."):
        importlib.import_module(module.name)
    return _patterns


def at(node: ast.AST, what: str = "") -> Occurrence:
    """The occurrence at a node's first line."""
    return Occurrence(getattr(node, "lineno", 1), what, node)


@dataclass(frozen=True, eq=False)
class Clause:
    """One or several patterns with options, any of which counts. Identity is the key of what a program remembers."""

    parts: tuple[tuple[Pattern, Mapping[str, Any]], ...]

    @property
    def pattern(self) -> Pattern:
        """The first of the patterns."""
        return self.parts[0][0]

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the first pattern."""
        return self.parts[0][1]

    @cached_property
    def on_tokens(self) -> bool:
        """Whether all of the patterns can be found in code that does not parse."""
        return all(one.on_tokens for one, _ in self.parts)

    def present(self, code: Readable) -> tuple[Occurrence, ...]:
        """The occurrences of all the patterns, in source order."""
        if self not in code.found:
            found_by = [one.present(code, options) for one, options in self.parts]
            code.found[self] = found_by[0] if len(found_by) == 1 else tuple(sorted(chain.from_iterable(found_by)))
        found: tuple[Occurrence, ...] = code.found[self]
        return found

    def used(self, code: Readable, earlier: Readable | None = None) -> tuple[Occurrence, ...]:
        """The occurrences that something uses; without definitions that `earlier` lacks and nothing names.

        A function that was there at module level does not become a helper by being called.
        """
        found = self.present(code)
        if not isinstance(code, Code) or isinstance(earlier, TreeCode):
            return found  # the patterns of trees look for the use themselves
        if self.pattern.name == "helper" and earlier is not None and earlier.tree is not None:
            known = {getattr(one, "name", "") for one in earlier.tree.body}
            found = tuple(one for one in found if one.what not in known)
        unused = idle(code, earlier) if any(one.node is not None for one in found) else frozenset()
        return tuple(one for one in found if one.node not in unused)

    @lru_cache(maxsize=4096)  # noqa: B019 - clauses of rules live as long as the process
    def count(self, number: int) -> str:
        """A number with the noun: `1 comment`, `2 comments`, `no comment`; `2 loops or lambdas` of two patterns."""
        nouns = []
        for one, options in self.parts:
            named = {key: ", ".join(value) if isinstance(value, list) else value for key, value in options.items()}
            nouns.append((one.noun if number < 2 else one.plural).format(**named))
        return f"{number or 'no'} {' or '.join(nouns)}"

    def list(self, found: tuple[Occurrence, ...]) -> str:
        """The number and the lines: `2 comments: lines 3, 9`."""
        shown = [f"{one.what} (line {one.line})" if one.what else str(one.line) for one in found[:_SHOWN]]
        more = ", …" if len(found) > _SHOWN else ""
        lines = "" if found and found[0].what else "line " if len(found) == 1 else "lines "
        return f"{lines}{', '.join(shown)}{more}"


def clause_of(value: Any) -> Clause:
    """The clause for a pattern's name, for a mapping of `pattern` and its options, or for a list of either."""
    parts = []
    for each in value if isinstance(value, list) and value else [value]:
        options = {"pattern": each} if isinstance(each, str) else dict(each) if isinstance(each, Mapping) else {}
        name = options.pop("pattern", None)
        known = patterns()
        if name not in known:
            raise UserError(f"no pattern is called '{name}'", nearest(str(name), known))
        known[name].check_options(options)
        parts.append((known[name], options))
    return Clause(tuple(parts))


@dataclass(frozen=True)
class Rule:
    """The data that decides one instruction.

    If it `keeps_parameters`, renaming a parameter of a function that others may call is a violation. If it
    `counts_idle`, an addition counts even if nothing uses it.
    """

    subject: Clause
    change: Change
    quantifier: str
    where: Clause | None
    into: Clause | None
    at_least: int
    keeps_parameters: bool
    counts_idle: bool

    @cached_property
    def on_tokens(self) -> bool:
        """Whether code that does not parse can still be decided."""
        clauses = (self.subject, self.where, self.into)
        return all(clause.on_tokens for clause in clauses if clause is not None)

    def unreadable(self, code: Readable) -> str:
        """The reason why the rule cannot be decided on this code; empty if it can."""
        return code.tokens_problem if self.on_tokens and isinstance(code, Code) else code.problem

    def made(self, clause: Clause, code: Readable, earlier: Readable | None = None) -> tuple[Occurrence, ...]:
        """The occurrences that count as added or as replacements; with `earlier`, new definitions must be used too."""
        return clause.present(code) if self.counts_idle else clause.used(code, earlier)
