"""A language with a grammar: how its code is found in a reply, also in one without a fence."""

import re
from dataclasses import dataclass

from codechat.domain import Extraction, Target
from codechat.languages.blocks import Block, Fences, split
from codechat.languages.grammar import Grammar
from codechat.languages.plain import no_code, without_indent
from codechat.languages.thinking import without_thinking
from codechat.languages.unfenced import without_prose


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
        found = [(without_indent(block), where) for block, where in self._blocks(answer)]
        if not found and "```" not in answer and "~~~" not in answer:
            found = [(code, "a reply without a fence") for code in [without_prose(answer)] if code]
        if not found:
            return no_code("no fence holds code" if answer.strip() else "the reply is empty, but for what it thinks")
        word = re.compile(rf"(?<!\w){re.escape(target.entry_point)}(?!\w)")
        for code, where in found:
            if not target.entry_point or word.search(code):
                return Extraction(code, code, None, where)
        return no_code(f"the code does not define {target.entry_point}")

    def _blocks(self, answer: str) -> list[tuple[Block, str]]:
        """The blocks of the best kind in the reply, each with what it is."""
        fences = Fences(lambda tag: tag.lower() in self.names)
        blocks = [block for block in split(answer, fences).blocks if block.text.strip() and not block.diff]
        tagged = [block for block in blocks if block.tag in self.names]
        untagged = [block for block in blocks if not block.tag]
        kinds = (
            ([block for block in tagged if block.closed], "a fenced block"),
            ([block for block in tagged if not block.closed], "an unclosed fence"),
            (untagged, "a fenced block without a tag"),
            (blocks, "a fenced block of another tag"),
        )
        return next(([(block, where) for block in kind] for kind, where in kinds if kind), [])

    def defines(self, code: str) -> frozenset[str] | None:
        """Unknown: nothing asks for it yet."""
        return None
