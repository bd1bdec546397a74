"""Code of any language, found by its fence: nothing about the language itself is known."""

import re
from dataclasses import dataclass

from codechat.domain import Extraction, Target
from codechat.languages.blocks import Block, Fences, split
from codechat.languages.thinking import without_thinking
from codechat.languages.unfenced import without_prose

MAX_REASON = 300


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
        fences = Fences(lambda tag: tag.lower() in self.names)
        blocks = [block for block in split(answer, fences).blocks if block.text.strip()]
        bare = self.unfenced and not target.entry_point and "```" not in answer and "~~~" not in answer
        if bare and (code := without_prose(answer)):
            return Extraction(code, code, None, "a reply without a fence")
        candidates, where = self._candidates(blocks)
        if not candidates:
            return no_code("no fence holds code" if answer.strip() else "the reply is empty, but for what it thinks")
        word = re.compile(rf"(?<!\w){re.escape(target.entry_point)}(?!\w)")
        for block in candidates:
            code = without_indent(block)
            if not target.entry_point or word.search(code):
                return Extraction(code, code, None, where)
        return no_code(f"the code does not define {target.entry_point}")

    def _candidates(self, blocks: list[Block]) -> tuple[list[Block], str]:
        """The best kind of blocks in the reply, and its name."""
        tagged = [block for block in blocks if block.tag in self.names]
        closed = [block for block in tagged if block.closed]
        if closed:
            return closed, "a fenced block"
        if tagged:
            return tagged, "an unclosed fence"
        return blocks, "a fenced block of another tag, or of none"

    def defines(self, code: str) -> frozenset[str] | None:
        return None


def without_indent(block: Block) -> str:
    """The block's text without its fence's indentation and without white space at its end."""
    text = block.text.rstrip()
    return re.sub(rf"(?m)^[ \t]{{1,{min(block.indent, 99)}}}", "", text) if block.indent else text


def no_code(reason: str) -> Extraction:
    """That a reply holds no code, and why."""
    return Extraction(None, None, "no_code", " ".join(reason.split())[:MAX_REASON])
