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

RULES_VERSION = 2
"""The number of changes of rules that can change a verdict: cells of two versions are never pooled."""
Harness = Literal["official", "guarded"]
By = Literal["rule", "judge", "classifier", "compiler"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A published answer, `language;value;…`: as written, the language's canonical name (empty if it names none), and
    the values after that."""

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
        """The tree of a code in the language; open brackets are closed first, if more of the code can be read then.

        They are closed at the code's end, so that places stay the same; a last line that prevents this is left out.
        """
        grammar = self.grammar
        code = grammar.within(code)
        tree = grammar.parse(code)
        if not tree.broken:
            return tree
        kept = (code.rstrip(), code.rstrip().rpartition("\n")[0])
        closed = [f"{each}{closing}\n" for each in kept if (closing := _closing(grammar.parse(each)))]
        trees = (tree, *map(grammar.parse, closed))
        return max(trees, key=lambda each: (not each.broken, len(each.functions) + len(each.classes)))


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether code keeps a constraint, None if undecided; and the reason, in one line."""

    met: bool | None
    reason: str


Rule = Callable[[Answer, str], Finding]


@dataclass(frozen=True, slots=True)
class ConstraintType:
    """A type of constraint.

    `published` is the category and type as the benchmark writes them. `solved`: the published answer is a whole
    solution, which no model under test may see. `read` reads a published answer and raises `ValueError` for a
    malformed one; `words` states the constraint. `guarded` checks code correctly, `official` as the published harness
    does, faults included; None if nothing was published. `unknown` returns why no rule knows an answer's language, so
    that every code is undecided; empty if one does. `impossible` returns why no program can keep an answer, by the
    syntax of the language; empty if nothing is known against it. `form` is the form of an answer, `examples` are
    answers.
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
    impossible: Callable[[Answer], str] = lambda _: ""
    form: str = "the demand in words"
    examples: tuple[str, ...] = ()

    def reads(self, language: str) -> bool:
        """Whether a rule, a classifier or a compiler decides answers in a language, by the examples."""
        for example in self.examples if self.by != "judge" else ():
            _, mark, values = example.partition(";")
            try:
                if not self.unknown(self.read(f"{language}{mark}{values}")):
                    return True
            except ValueError:
                continue
        return False


_REGISTERED: dict[str, ConstraintType] = {}


def register(kind: ConstraintType) -> ConstraintType:
    """Register a type by its name. Raises `ValueError` for a name that is taken, and for rules that do not fit `by`.

    A type that is decided by a rule or by a classifier needs the rule `guarded`; others have none.
    """
    if (kind.guarded is not None) != (kind.by in ("rule", "classifier")):
        raise ValueError(f"the constraint type '{kind.name}' needs the rule guarded if rules decide it, else none")
    if kind.official is not None and kind.guarded is None:
        raise ValueError(f"the constraint type '{kind.name}' has the rule official, and no rules decide it")
    if _REGISTERED.setdefault(kind.name, kind) != kind:
        raise ValueError(f"the constraint type '{kind.name}' is registered twice")
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
    """A constraint on code: the name of the type, and the demand."""

    type: str
    answer: Answer

    @classmethod
    def of(cls, name: str, answer: str) -> "Constraint":
        """A type's constraint by its answer as written. Raises `ValueError` for an unknown type or malformed answer."""
        try:
            return cls(name, constraint_type(name).read(answer))
        except UserError as error:
            raise ValueError(", ".join(str(error).splitlines())) from None

    @property
    def words(self) -> str:
        """The constraint in words, for a model under test or a judge."""
        return constraint_type(self.type).words(self.answer)

    @property
    def unknown(self) -> str:
        """Why every code stays undecided: no rule knows the language well enough. Empty if one does."""
        return constraint_type(self.type).unknown(self.answer)

    @property
    def impossible(self) -> str:
        """Why no program of the language can keep it; empty if nothing is known against it."""
        return constraint_type(self.type).impossible(self.answer)

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


def read_values(raw: str, count: int, form: str) -> Answer:
    """The answer with `count` values after its language. Raises `ValueError` that quotes the `form` of a right one."""
    language, *values = (part.strip() for part in raw.strip().strip(";").split(";"))
    if len(values) != count or not language or not all(values):
        raise ValueError(f"the answer '{raw:.60}' is not of the form {form}")
    if not isinstance(language_of(language), Parsed):
        raise ValueError(f"no rule reads the language '{language}'")
    return Answer(raw, language_of(language).names[0], tuple(values))


def read_listed(raw: str, form: str) -> Answer:
    """The answer whose values are a name and the entries of a list. Raises `ValueError` as `read_values`."""
    answer = read_values(raw, 2, form)
    name, text = answer.values
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"'{text:.60}' is not a list in square brackets")
    entries, depth = [""], 0
    for character in text[1:-1]:  # commas within brackets divide nothing, as in `[int, map[string]bool]`
        depth += (character in "[(<{") - (character in "])>}")
        if character == "," and depth == 0:
            entries.append("")
        else:
            entries[-1] += character
    listed = [entry.strip().strip("'\"") for entry in entries]
    if not all(listed):
        raise ValueError(f"'{text:.60}' has an empty entry")
    return replace(answer, values=(name, *listed))


def one_of(answer: Answer, value: str, known: Iterable[str]) -> Answer:
    """The answer, if the value is known. Raises `ValueError` otherwise."""
    if value.lower() not in {each.lower() for each in known}:
        raise ValueError(f"'{value}' is none of {', '.join(sorted(known))}")
    return answer


def lacks(*questions: str) -> Callable[[Answer], str]:
    """A function that returns why no rule knows an answer's language: its grammar leaves one of the questions open."""

    def reason(answer: Answer) -> str:
        open_ = [question for question in questions if not answer.grammar.answers(question)]
        return f"no rule knows {answer.language}'s {open_[0]}s" if open_ else ""

    return reason


@lru_cache(maxsize=8)
def code_of(tree: Tree) -> bytes:
    """The code's bytes with spaces in place of comments; lines and places stay."""
    return _spaced(tree, tree.comments)


@lru_cache(maxsize=8)
def blanked(tree: Tree) -> str:
    """The code with a space for each byte of comments and strings; lines stay."""
    return _spaced(tree, (*tree.comments, *tree.strings)).decode("utf-8", "replace")


def text_of(tree: Tree, start: int, end: int) -> str:
    """The text between two places of the code, in bytes."""
    return tree.data[max(0, start) : end].decode("utf-8", "replace")


def _spaced(tree: Tree, left_out: Iterable[Found]) -> bytes:
    data = bytearray(tree.data)
    for found in left_out:
        lines = data[found.start : found.end].split(b"\n")
        data[found.start : found.end] = b"\n".join(b" " * len(line) for line in lines)
    return bytes(data)


def _closing(tree: Tree) -> str:
    """The brackets that would close the open ones of a code."""
    opened: list[str] = []
    for character in blanked(tree):
        if character in "([{":
            opened.append({"(": ")", "[": "]", "{": "}"}[character])
        elif opened and character == opened[-1]:
            opened.pop()
    return "".join(reversed(opened))


def words_of(text: str) -> frozenset[str]:
    """The words of a list with spaces between them."""
    return frozenset(re.findall(r"\S+", text))


def last_part(path: str) -> str:
    """The last part of an imported path, which may have quotes: `array` of `numpy.array`, `http` of `"net/http"`."""
    return re.split(r"\W+", path.strip("\"'`"))[-1]
