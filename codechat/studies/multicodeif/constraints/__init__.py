"""Constraints on code, in any language: one file per family of types.

To add a type, write one file and `register(ConstraintType(…))` in it. Put the file into this folder, or name it as a
module of an installed package under the entry-point group `codechat.constraint`. A type with the rule `guarded` checks
code by itself; the others are decided elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from codechat.base.errors import UserError, nearest
from codechat.base.plugins import import_all
from codechat.sandbox.languages import too_much
from codechat.studies.multicodeif.constraints.answers import Answer

RULES_VERSION = 2
"""A count of the changes of rules that can change a verdict: cells of two versions are never pooled."""
Harness = Literal["official", "guarded"]
By = Literal["rule", "judge", "classifier", "compiler"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether code keeps a constraint, None if undecided; and the reason, in one line."""

    met: bool | None
    reason: str


Rule = Callable[[Answer, str], Finding]


@dataclass(frozen=True, slots=True)
class ConstraintType:
    """A type of constraint.

    `published` is its category and type as the benchmark writes them. `solved`: its published answer is a whole
    solution, which no model under test may see. `read` reads a published answer and raises `ValueError` if it is
    none; `words` states the constraint. `guarded` checks code as is right, `official` as the published harness
    does, faults included; None if nothing was published. `unknown` says why no rule knows an answer's language, so
    that every code is undecided; empty if one does. `form` is that of an answer, and `examples` are some.
    """

    name: str
    category: str
    published: tuple[str, str]
    by: By
    read: Callable[[str], Answer]
    words: Callable[[Answer], str]
    official: Rule | None = None
    guarded: Rule | None = None
    solved: bool = False
    unknown: Callable[[Answer], str] = lambda _: ""
    form: str = "the demand in words"
    examples: tuple[str, ...] = ()

    def reads(self, language: str) -> bool:
        """Whether something decides answers in a language, as its examples are: no model, but a rule or a compiler."""
        for example in self.examples if self.by != "judge" else ():
            _, mark, rest = example.partition(";")
            try:
                if not self.unknown(self.read(f"{language}{mark}{rest}")):
                    return True
            except ValueError:
                continue
        return False


_REGISTERED: dict[str, ConstraintType] = {}


def register(kind: ConstraintType) -> ConstraintType:
    """Register a type by its name. Raises `ValueError` for a name that is taken, and for rules that do not fit `by`.

    A type that is decided by a rule or by a classifier needs the rule `guarded`; others have none.
    """
    if _REGISTERED.setdefault(kind.name, kind) != kind:
        raise ValueError(f"the constraint type '{kind.name}' is registered twice")
    if (kind.guarded is not None) != (kind.by in ("rule", "classifier")):
        raise ValueError(f"the constraint type '{kind.name}' needs the rule guarded if rules decide it, else none")
    if kind.official is not None and kind.guarded is None:
        raise ValueError(f"the constraint type '{kind.name}' has the rule official, and no rules decide it")
    return kind


@cache
def _discover() -> None:
    import_all(__name__, "constraint")


def constraint_types() -> tuple[ConstraintType, ...]:
    """The registered types, by name. Raises `UserError` if a package with a type cannot be loaded."""
    _discover()
    return tuple(_REGISTERED[name] for name in sorted(_REGISTERED))


@cache
def solved_types() -> frozenset[str]:
    """The names of the types whose published answer is a whole solution."""
    return frozenset(kind.name for kind in constraint_types() if kind.solved)


def constraint_type(name: str) -> ConstraintType:
    """The type of a name. Raises `UserError` if there is none."""
    _discover()
    try:
        return _REGISTERED[name]
    except KeyError:
        raise UserError(f"no constraint type is called '{name}'", nearest(name, _REGISTERED)) from None


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on code: its type's name, and what it demands."""

    type: str
    answer: Answer

    @property
    def words(self) -> str:
        """The constraint in words, for a model under test or a judge."""
        return constraint_type(self.type).words(self.answer)

    @property
    def unknown(self) -> str:
        """Why every code stays undecided: no rule knows the language well enough. Empty if one does."""
        return constraint_type(self.type).unknown(self.answer)

    def require(self) -> None:
        """Raises `UserError` if something that its rules need is not installed."""
        if constraint_type(self.type).by == "rule":
            self.answer.grammar.require()

    def check(self, code: str | None, harness: Harness = "guarded") -> Finding:
        """Whether a code keeps the constraint; if no code was extracted it does not.

        A type without a published rule is decided by `guarded`. No text makes this raise. Raises `UserError` if
        the language's grammar is not installed.
        """
        kind = constraint_type(self.type)
        if kind.official is None:
            harness = "guarded"
        rule = kind.official if harness == "official" else kind.guarded
        if rule is None:
            return Finding(None, f"no rule decides it, but a {kind.by}")
        empty = not (code or "").strip()
        if harness == "guarded" and (empty or self.unknown):
            return Finding(False, "the reply holds no code") if empty else Finding(None, self.unknown)
        if why := too_much(code or ""):
            return Finding(None, why)
        try:
            found = rule(self.answer, code or "")
            return Finding(found.met, " ".join(found.reason.split()))
        except (RecursionError, MemoryError) as error:
            return Finding(None, f"the code is nested too deeply to be checked ({type(error).__name__})")
        except (KeyError, ValueError):  # it looks languages up, and asks their grammars for kinds of node
            if harness == "guarded":
                raise
            return Finding(None, f"the published harness has no rule for {self.answer.language}")


__all__ = [
    "RULES_VERSION", "Answer", "Constraint", "ConstraintType", "Finding", "Harness", "constraint_type",
    "constraint_types", "register", "solved_types",
]  # fmt: skip
