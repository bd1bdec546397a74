"""Languages whose code is found by its fence: with a grammar (`Coded`), or known by their names alone (`Plain`)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from codechat.base.domain import Extraction, Target
from codechat.sandbox.languages.grammar import Grammar
from codechat.sandbox.languages.replies import Block, Fences, split, without_prose, without_thinking

MAX_REASON = 300
INDENTED_BLOCK = 4
"""Columns by which Markdown indents code without a fence."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A language of which only the names are known, not what its code defines.

    The code of a reply, without its `<think>` parts, is the content of the first closed fence tagged with one of the
    names; if there is none, of the first unclosed one; if there is none, of the first fence of any tag. If an entry
    point is asked for, it is the first of these fences whose code has that name as a word. The program is the code.

    If `unfenced`, and if no entry point is asked for, a reply without a fence is code but for paragraphs of prose
    before and after it.
    """

    names: tuple[str, ...]
    unfenced: bool = False

    def extract(self, reply: str, target: Target) -> Extraction:
        answer = without_thinking(reply)
        blocks = _blocks(answer, self.names)
        best = _best((*_tagged(blocks, self.names), (blocks, "a fenced block of another tag, or of none")))
        return _extraction(answer, best, target, unfenced=self.unfenced and not target.entry_point)

    def defines(self, code: str) -> frozenset[str] | None:
        """Unknown."""
        return None


@dataclass(frozen=True)
class Coded:
    """A language known by its names and its grammar, and to the classifier by its `labels` if not by its name.

    The code of a reply, without its `<think>` parts, is the content of its first closed fence tagged with one of the
    names; then of an unclosed one; then of a fence without a tag, and of any other. A reply without a fence is code
    but for paragraphs of prose before and after it. If an entry point is asked for, the code must have it as a word.
    """

    names: tuple[str, ...]
    grammar: Grammar
    labels: tuple[str, ...] = ()

    def extract(self, reply: str, target: Target) -> Extraction:
        answer = without_thinking(reply)
        blocks = [block for block in _blocks(answer, self.names) if not block.diff]
        untagged = [block for block in blocks if not block.tag]
        others = ((untagged, "a fenced block without a tag"), (blocks, "a fenced block of another tag"))
        return _extraction(answer, _best((*_tagged(blocks, self.names), *others)), target, unfenced=True)

    def defines(self, code: str) -> frozenset[str] | None:
        """Unknown: nothing asks for it yet."""
        return None


Kind = tuple[list[Block], str]
"""Blocks of a reply that are equally likely to be meant, and their name."""


def _blocks(answer: str, names: Sequence[str]) -> list[Block]:
    fences = Fences(lambda tag: tag.lower() in names)
    return [block for block in split(answer, fences).blocks if block.text.strip()]


def _tagged(blocks: list[Block], names: Sequence[str]) -> tuple[Kind, Kind]:
    tagged = [block for block in blocks if block.tag in names]
    closed = [block for block in tagged if block.closed]
    return (closed, "a fenced block"), ([block for block in tagged if not block.closed], "an unclosed fence")


def _best(kinds: Sequence[Kind]) -> list[tuple[str, str]]:
    """The codes of the first kind that has any, each with the kind's name."""
    return next(([(without_indent(block), name) for block in kind] for kind, name in kinds if kind), [])


def _extraction(answer: str, found: list[tuple[str, str]], target: Target, *, unfenced: bool) -> Extraction:
    """The first of the codes that has the entry point as a word; if `unfenced`, of a reply without a fence too."""
    if not found and unfenced and "```" not in answer and "~~~" not in answer:
        found = [(code, "a reply without a fence") for code in [unfenced_code(answer)] if code]
    if not found:
        return no_code("no fence holds code" if answer.strip() else "the reply is empty, but for what it thinks")
    word = re.compile(rf"(?<!\w){re.escape(target.entry_point)}(?!\w)")
    for code, place in found:
        if not target.entry_point or word.search(code):
            return Extraction(code, code, None, place)
    return no_code(f"the code does not define {target.entry_point}")


def without_indent(block: Block) -> str:
    """The block's text without white space at its end, and without the fence's indentation if all lines share it."""
    text = block.text.rstrip()
    margins = re.findall(r"(?m)^[ \t]*(?=\S)", text)
    shared = min(margins, key=len, default="")[: block.indent]
    while len(shared.expandtabs(4)) > block.indent or not all(margin.startswith(shared) for margin in margins):
        shared = shared[:-1]
    return re.sub(rf"(?m)^{re.escape(shared)}", "", text) if shared else text


def unfenced_code(answer: str) -> str:
    """The code of a reply without a fence, which may be an indented block of Markdown; empty if it is prose."""
    return without_indent(Block(without_prose(answer), "", INDENTED_BLOCK))


def no_code(reason: str) -> Extraction:
    """The extraction of a reply that holds no code, and the reason."""
    return Extraction(None, None, "no_code", " ".join(reason.split())[:MAX_REASON])
