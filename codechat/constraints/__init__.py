"""Constraints on code, in any language: one file per type.

To add a type, write one file and `register(ConstraintType(…))` in it. Put the file into this folder, or name it as a
module of an installed package under the entry-point group `codechat.constraint`. A type with the two rules `official`
and `guarded` checks code by itself; the others are decided elsewhere.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from codechat.constraints.answers import Answer
from codechat.errors import UserError, nearest
from codechat.plugins import import_all

Harness = Literal["official", "guarded"]
By = Literal["rule", "judge", "classifier", "compiler"]

LONGEST_CODE = 200_000
"""Characters of code that is checked: a rule may take seconds for more."""
DEEPEST_CODE = 500
"""Brackets in each other in code that is checked: a grammar's time grows with the square of their number."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether code keeps a constraint, None if undecided; and why, in one line."""

    met: bool | None
    reason: str


_BRACKETS = re.compile(r"[()\[\]{}<>]")
Rule = Callable[[Answer, str], Finding]


@dataclass(frozen=True, slots=True)
class ConstraintType:
    """A type of constraint.

    `published` is its category and type as the benchmark writes them. `read` reads a published answer and raises
    `ValueError` if it is none; `words` states the constraint. `official` and `guarded` check a code: as the published
    harness does, faults included, and as is right.
    """

    name: str
    category: str
    published: tuple[str, str]
    by: By
    read: Callable[[str], Answer]
    words: Callable[[Answer], str]
    official: Rule | None = None
    guarded: Rule | None = None


_REGISTERED: dict[str, ConstraintType] = {}


def register(kind: ConstraintType) -> ConstraintType:
    """Register a type by its name. Raises `ValueError` for a name that is taken, and for one rule without the other."""
    if _REGISTERED.setdefault(kind.name, kind) != kind:
        raise ValueError(f"the constraint type '{kind.name}' is registered twice")
    if (kind.official is None) != (kind.guarded is None) or (kind.by == "rule") != (kind.guarded is not None):
        raise ValueError(f"the constraint type '{kind.name}' needs both rules if rules decide it, or none")
    return kind


@cache
def _discover() -> None:
    import_all(__name__, "constraint")


def constraint_types() -> tuple[ConstraintType, ...]:
    """The registered types, by name. Raises `UserError` if a package with a type cannot be loaded."""
    _discover()
    return tuple(_REGISTERED[name] for name in sorted(_REGISTERED))


def constraint_type(name: str) -> ConstraintType:
    """The type of a name. Raises `UserError` if there is none."""
    _discover()
    try:
        return _REGISTERED[name]
    except KeyError:
        raise UserError(f"no constraint type is called '{name}'", nearest(name, _REGISTERED)) from None


def _depth(code: str) -> int:
    """The most brackets that are open at once, wherever they stand, if that may be too many; pointed ones in a line."""
    if sum(map(code.count, "([{<")) <= DEEPEST_CODE:  # the count is much faster, and enough for nearly every code
        return 0
    depth = deepest = 0
    for line in code.split("\n"):
        pointed = 0
        for bracket in _BRACKETS.findall(line):
            if bracket in "<>":
                pointed = max(0, pointed + (1 if bracket == "<" else -1))
            else:
                depth = max(0, depth + (1 if bracket in "([{" else -1))
            deepest = max(deepest, depth + pointed)
    return deepest


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on code: its type's name, and what it demands."""

    type: str
    answer: Answer

    @property
    def words(self) -> str:
        """The constraint in words, for a model that is told of it."""
        return constraint_type(self.type).words(self.answer)

    def check(self, code: str | None, harness: Harness = "guarded") -> Finding:
        """Whether a code keeps the constraint; nothing extracted keeps none.

        No text makes it raise. Raises `UserError` if the language's grammar is not installed.
        """
        kind = constraint_type(self.type)
        rule = kind.official if harness == "official" else kind.guarded
        if rule is None:
            return Finding(None, f"no rule decides it, but a {kind.by}")
        if not (code or "").strip() and harness == "guarded":
            return Finding(False, "the reply holds no code")
        if len(code or "") > LONGEST_CODE:
            return Finding(None, f"the code is longer than {LONGEST_CODE:,} characters")
        if _depth(code or "") > DEEPEST_CODE:
            return Finding(None, f"more than {DEEPEST_CODE} brackets are open within each other")
        try:
            return rule(self.answer, code or "")
        except (RecursionError, MemoryError) as error:
            return Finding(None, f"the code is nested too deeply to be checked ({type(error).__name__})")


__all__ = [
    "Answer",
    "Constraint",
    "ConstraintType",
    "Finding",
    "Harness",
    "constraint_type",
    "constraint_types",
    "register",
]
