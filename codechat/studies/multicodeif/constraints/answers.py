"""Published answers: what a constraint demands, written as `language;value;…`; and the code that is held against it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from codechat.sandbox.languages import language_of
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
