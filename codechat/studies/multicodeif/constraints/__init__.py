"""Constraints on code, in any language: one file per family of types.

To add a type, write one file and `register(ConstraintType(…))` in it. Put the file into this folder, or name it as a
module of an installed package under the entry-point group `codechat.constraint`. A type with the rule `guarded` checks
code by itself; the others are decided elsewhere.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

from codechat.base.errors import UserError, nearest
from codechat.base.plugins import import_all
from codechat.sandbox.languages import language_of, too_much
from codechat.sandbox.languages.grammar import Found, Grammar, Parsed, Tree


@lru_cache(maxsize=8)
def code_of(tree: Tree) -> bytes:
    """The code's bytes with spaces for those of its comments; lines and places stay."""
    return _spaced(tree, tree.comments)


@lru_cache(maxsize=8)
def blanked(tree: Tree) -> str:
    """The code with spaces for the bytes of its comments and strings; lines stay."""
    return _spaced(tree, (*tree.comments, *tree.strings)).decode("utf-8", "replace")


def _spaced(tree: Tree, left_out: Iterable[Found]) -> bytes:
    data = bytearray(tree.data)
    for found in left_out:
        kept = data[found.start : found.end].split(b"\n")
        data[found.start : found.end] = b"\n".join(b" " * len(line) for line in kept)
    return bytes(data)


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def tree_of(grammar: Grammar, code: str) -> Tree:
    """The tree of a code; open brackets are closed first, if more of the code can be read then.

    They are closed at the code's end, so that places stay the same; if the last line prevents that, it is left out.
    """
    code = grammar.within(code)
    tree = grammar.parse(code)
    if not tree.broken:
        return tree
    kept = (code.rstrip(), code.rstrip().rpartition("\n")[0])
    closed = [f"{each}{closing}\n" for each in kept if (closing := _closing(grammar.parse(each)))]
    return max(
        (tree, *map(grammar.parse, closed)), key=lambda each: (not each.broken, len(each.functions) + len(each.classes))
    )


def _closing(tree: Tree) -> str:
    """The brackets that would close the open ones of a code."""
    opened: list[str] = []
    for character in blanked(tree):
        if character in _CLOSING:
            opened.append(_CLOSING[character])
        elif opened and character == opened[-1]:
            opened.pop()
    return "".join(reversed(opened))


def last_part(path: str) -> str:
    """The last part of an imported path, which may have quotes: `array` of `numpy.array`, `http` of `"net/http"`."""
    return re.split(r"\W+", path.strip("\"'`"))[-1]


def lacks(*questions: str) -> Callable[["Answer"], str]:
    """A function that says, of an answer, why no rule knows its language: its grammar leaves a question open."""

    def said(answer: Answer) -> str:
        open_ = [question for question in questions if not answer.grammar.answers(question)]
        return f"no rule knows {answer.language}'s {open_[0]}s" if open_ else ""

    return said


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as written, its language's canonical name (empty if it names none), and its values after that."""

    raw: str
    language: str = ""
    values: tuple[str, ...] = ()

    @property
    def grammar(self) -> Grammar:
        """The grammar of the language. Raises `ValueError` if it has none."""
        language = language_of(self.language)
        if not isinstance(language, Parsed):
            raise ValueError(f"no grammar is known for the language '{self.language}'")
        return language.grammar

    def tree(self, code: str) -> Tree:
        """The tree of a code in the language; code that breaks off is closed first."""
        return tree_of(self.grammar, code)


def read_values(raw: str, count: int, form: str) -> Answer:
    """The answer with `count` values after its language. Raises `ValueError` that quotes the `form` of a right one."""
    language, *values = (part.strip() for part in raw.strip().strip(";").split(";"))
    if len(values) != count or not language or not all(values):
        raise ValueError(f"the answer '{raw:.60}' is not of the form {form}")
    answer = Answer(raw, language_of(language).names[0], tuple(values))
    if not isinstance(language_of(language), Parsed):
        raise ValueError(f"no rule reads the language '{language}'")
    return answer


def read_listed(raw: str, form: str) -> Answer:
    """The answer whose values are a name and the entries of a list. Raises `ValueError` as `read_values`."""
    answer = read_values(raw, 2, form)
    return replace(answer, values=(answer.values[0], *_entries(answer.values[1])))


def one_of(answer: Answer, value: str, known: tuple[str, ...] | frozenset[str]) -> Answer:
    """The answer, if its value is one that is known. Raises `ValueError` otherwise."""
    if value.lower() not in {each.lower() for each in known}:
        raise ValueError(f"'{value}' is none of {', '.join(sorted(known))}")
    return answer


def _entries(text: str) -> tuple[str, ...]:
    """The entries of a list such as `[int, map[string]bool]`; commas within brackets divide nothing."""
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise ValueError(f"'{text:.60}' is not a list in square brackets")
    entries, depth = [""], 0
    for character in inner[1:-1]:
        depth += (character in "[(<{") - (character in "])>}")
        if character == "," and depth == 0:
            entries.append("")
        else:
            entries[-1] += character
    found = tuple(entry.strip().strip("'\"") for entry in entries)
    if not all(found):
        raise ValueError(f"'{text:.60}' has an empty entry")
    return found


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
