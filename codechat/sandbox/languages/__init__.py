"""Languages: a file each, with a language's fences, its rules of extraction, and the names that code defines.

To add a language, write one file: a class with the members of `Language`, and `register(TheClass())` below it. Put the
file into this folder, or name it as a module of an installed package under the entry-point group `codechat.language`.
For a language that needs only aliases, `register(Plain(("elixir", "ex")))` is enough. An unknown tag is read as plain
fenced code; if none is asked for, a reply may also be code without a fence.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from codechat.base.domain import Extraction, Reply, Target
from codechat.base.plugins import import_all
from codechat.base.promises import check_type, is_plugin
from codechat.sandbox.languages.definitions import definition, may_define
from codechat.sandbox.languages.grammar import Grammar, Parsed
from codechat.sandbox.languages.replies import Block, Fences, split, untag, without_prose
from codechat.sandbox.languages.thoughts import LONGEST_REPLY as LONGEST_REPLY
from codechat.sandbox.languages.thoughts import without_thinking as without_thinking

T = TypeVar("T")
_BACKTICKS = re.compile("`+")
LONGEST_CODE = 200_000  # characters of code that is checked: a rule may take seconds for more
DEEPEST_CODE = 500
"""Brackets in each other in code that is checked: a grammar's time grows with the square of their number."""
_BRACKETS = re.compile(r"[()\[\]{}<>]")


class Language(Protocol):
    """One language as written in replies. Its methods are pure and never raise, for any text."""

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical name, then its aliases in fences, in lower case."""

    def extract(self, reply: str, target: Target) -> Extraction:
        """The code of a reply, and the program to run. Linear in the reply's length."""

    def defines(self, code: str) -> frozenset[str] | None:
        """The names that the code defines at top level; None if that is unknown."""


_REGISTERED: dict[str, Language] = {}


def register(language: Language) -> None:
    """Register a language by its names. Raises `ValueError` for a name that is taken or not in lower case, `UserError`
    for what is no language."""
    _hold(language, language, Language, "")
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
    """The code of a reply that should be `target`, and the program to run; none of a reply longer than `LONGEST_REPLY`.
    Raises only as `languages` does, and `UserError` if another package's language gives anything else."""
    language = language_of(target.language)
    if len(reply) > LONGEST_REPLY:
        return no_code(f"the reply has {len(reply):,} characters, and at most {LONGEST_REPLY:,} are read")
    return _hold(language, language.extract(reply, target), Extraction, "the result of extract()")


def _hold(language: Language, value: T, hint: Any, what: str) -> T:
    """What a language of another package is or gives, if it is what its type says. Raises `UserError`."""
    if is_plugin(type(language)):
        check_type(value, hint, f"{type(language).__name__} of {type(language).__module__}", what)
    return value


def fence(code: str, language: str) -> str:
    """The code in a fence tagged `language` that no backticks in it can close, without white space at its end."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}{language}", code.rstrip(), fence, ""))


def code_text(reply: Reply, language: str) -> str:
    """The text from which the code of a reply is taken: the reply's, or a coding agent's file in a fence."""
    if reply.trajectory is None:
        return reply.text
    return fence(reply.trajectory.file, language) if reply.trajectory.file else ""


def file_for(language: str) -> str:
    """The name of the file in which a coding agent writes a program: `solution.py`."""
    suffix = min(language_of(language).names, key=len) or "txt"
    return f"Solution.{suffix}" if suffix == "java" else f"solution.{suffix}"  # javac wants the name of its class


def too_much(code: str) -> str:
    """Why a code is not parsed at all: it is too long, or too deep. Empty if it is neither."""
    if len(code) > LONGEST_CODE:
        return f"the code is longer than {LONGEST_CODE:,} characters"
    if _depth(code) > DEEPEST_CODE:
        return f"more than {DEEPEST_CODE} brackets are open within each other"
    return ""


def parses(language: str, code: str) -> bool | None:
    """Whether a code in a language, by any of its names, parses by its grammar; blanks alone do not. None if unknown:
    there is no grammar, or too much code. Grammars are milder than compilers, and may take half a minute for broken
    code: ask in a process that can be ended. Raises `UserError` if the grammar is not installed."""
    known = language_of(language)
    if not isinstance(known, Parsed) or too_much(code):
        return None
    return bool(code.strip()) and not known.grammar.parse(known.grammar.within(code)).broken


def _depth(code: str) -> int:
    """The most open brackets, pointed ones counted by line, if there may be too many; else 0."""
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


MAX_REASON = 300
INDENTED_BLOCK = 4  # columns by which Markdown indents code without a fence


@dataclass(frozen=True, slots=True)
class Plain:
    """A language of which only the names are known, not what its code defines.

    The code of a reply, without its thoughts, is the content of the first closed fence tagged with one of the
    names; else of the first unclosed one; else of the first fence of any tag. If an entry point is asked for, the last
    fence that defines it comes first, and only fences with that name as a word count; if not, and if `unfenced`, a
    reply without a fence is code except for paragraphs of prose before and after it. The program is the code.
    """

    names: tuple[str, ...]
    unfenced: bool = False

    def extract(self, reply: str, target: Target) -> Extraction:
        answer = without_thinking(reply)
        blocks = _blocks(answer, self.names)
        others = [block for block in blocks if block.tag not in self.names]
        kinds = (*tagged(blocks, self.names), (others, "a fenced block of another tag, or of none"))
        return _extraction(answer, kinds, target, self.names, unfenced=self.unfenced and not target.entry_point)

    def defines(self, code: str) -> frozenset[str] | None:
        """Unknown."""
        return None


@dataclass(frozen=True)
class Coded:
    """A language known by its names and its grammar, and to the classifier by its `labels` if not by its name.

    The code of a reply, without its thoughts, is the content of its first closed fence tagged with one of the
    names; else of an unclosed one, of a fence without a tag, or of any other; or a reply without a fence, except for
    paragraphs of prose before and after it. If an entry point is asked for, the last fence that defines it comes first,
    and the code must have it as a word.
    """

    names: tuple[str, ...]
    grammar: Grammar
    labels: tuple[str, ...] = ()

    def extract(self, reply: str, target: Target) -> Extraction:
        answer = without_thinking(reply)
        blocks = [block for block in _blocks(answer, self.names) if not block.diff]
        untagged = [block for block in blocks if not block.tag]
        others = [block for block in blocks if block.tag and block.tag not in self.names]
        unnamed = ((untagged, "a fenced block without a tag"), (others, "a fenced block of another tag"))
        return _extraction(answer, (*tagged(blocks, self.names), *unnamed), target, self.names, unfenced=True)

    def defines(self, code: str) -> frozenset[str] | None:
        return None


Kind = tuple[list[Block], str]  # blocks of a reply that are equally likely to be meant, and their name


def _blocks(answer: str, names: Sequence[str]) -> list[Block]:
    return [block for block in split(answer, _fences(names)).blocks if block.text.strip() and not is_stray(block)]


def _fences(names: Sequence[str]) -> Fences:
    return Fences(lambda tag: tag.lower() in names)


def is_stray(block: Block) -> bool:
    """Whether a fence was meant to close what no fence had opened: nothing but prose is behind it."""
    return not block.closed and not block.tag and not without_prose(block.text)


def without_fences(answer: str, fences: Fences) -> str:
    """A reply without stray fences; empty if it has others."""
    markdown = split(answer, fences)
    fenced = not all(map(is_stray, markdown.blocks)) or "```" in markdown.outside or "~~~" in markdown.outside
    return "" if fenced else markdown.outside


def tagged(blocks: list[Block], names: Sequence[str]) -> tuple[Kind, Kind]:
    tagged = [block for block in blocks if block.tag in names]
    closed = [block for block in tagged if block.closed]
    return (closed, "a fenced block"), ([block for block in tagged if not block.closed], "an unclosed fence")


MOST_BLOCKS = 50  # of a reply, in the order of choice, in which definitions are looked for


def last_best(codes: Sequence[tuple[str, str]], strength: Callable[[str], int]) -> tuple[str, str] | None:
    """Of codes with the names of their kinds, best kind first, the one that defines best what is asked for; None if
    none does. Of equals it is the last in the first kind, since models revise themselves."""
    ordered = (each for _, own in groupby(codes, itemgetter(1)) for each in reversed([*own]))
    rated = [(strength(each[0]), each) for each in islice(ordered, MOST_BLOCKS)]
    best, found = max(rated, key=itemgetter(0), default=(0, None))
    return found if best else None


def _extraction(
    answer: str, kinds: Sequence[Kind], target: Target, names: Sequence[str], *, unfenced: bool
) -> Extraction:
    found, name = [(without_indent(block), kind) for blocks, kind in kinds for block in blocks], target.entry_point
    if not found and unfenced:
        code = unfenced_code(without_fences(answer, _fences(names)), names)
        found = [(code, "a reply without a fence")] if code else []
    if not found:
        return no_code("no fence holds code" if answer.strip() else "the reply is empty, but for what it thinks")
    best = [each for each in found if each[1] == found[0][1] and (not name or may_define(each[0], name))]
    chosen = (last_best(found, lambda code: definition(code, name)) if name else None) or next(iter(best), None)
    if chosen is None:
        return no_code(f"the code does not define {name}", lacks_name=True)
    return Extraction(chosen[0], chosen[0], None, chosen[1])


def without_indent(block: Block) -> str:
    """The block's text without white space at its end, and without the fence's indentation if all lines share it."""
    text = block.text.rstrip()
    margins = re.findall(r"(?m)^[ \t]*(?=\S)", text)
    shared = min(margins, key=len, default="")[: block.indent]
    while len(shared.expandtabs(4)) > block.indent or not all(margin.startswith(shared) for margin in margins):
        shared = shared[:-1]
    return "\n".join(line.removeprefix(shared) for line in text.split("\n"))


def unfenced_code(answer: str, names: Sequence[str]) -> str:
    """The code of a reply without a fence, which may be an indented block of Markdown; empty if it is prose."""
    tag, code = untag(without_prose(answer), lambda word: word in names)
    return without_indent(Block(code, tag, INDENTED_BLOCK))


def no_code(reason: str, *, lacks_name: bool = False) -> Extraction:
    """The extraction of a reply that is no attempt at the code, and the reason; `lacks_name` is as in `Extraction`."""
    return Extraction(None, None, "no_code", " ".join(reason.split())[:MAX_REASON], lacks_name)


for aliases in (("lua",), ("julia", "jl"), ("prolog",), ("coffeescript", "coffee")):
    register(Plain(aliases, unfenced=True))  # only recognised: nothing asks for their grammar
