"""Fenced blocks of a Markdown reply in any language, also malformed ones."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

_LIST_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])?\Z")
_DIFF = re.compile(r"(?m)^(?:@@ .*@@|\+\+\+ |diff --git )")
_MARKUP = frozenset({"markdown", "md"})
_CLOSE_INDENT = 3
"""Columns by which a closing fence may be indented more than its opening (CommonMark)."""


@dataclass(frozen=True, slots=True)
class Fences:
    """A language's fences: its tags, in any case, and how its code begins, if that is certain.

    Models forget line ends: code of a language with a `code_start` is also found after the opening fence,
    and between two fences of one line.
    """

    is_tag: Callable[[str], bool]
    code_start: re.Pattern[str] | None = None

    def begins_code(self, text: str) -> bool:
        """Whether the text certainly begins with code of the language."""
        return self.code_start is not None and bool(self.code_start.match(text))


@dataclass(frozen=True, slots=True)
class Block:
    """The content of one fence. `indent`: columns by which the fence is indented. `tag`: lower case, or empty."""

    text: str
    tag: str
    indent: int = 0
    closed: bool = True

    @property
    def diff(self) -> bool:
        """Whether the block is a patch: a patch is never applied, because the whole code was asked for."""
        return self.tag in ("diff", "patch") or (not self.tag and bool(_DIFF.search(self.text)))


@dataclass(frozen=True, slots=True)
class Markdown:
    """The blocks of a reply in order, and the lines outside them."""

    blocks: tuple[Block, ...]
    outside: str


class _Fence(NamedTuple):
    before: str
    run: str
    after: str

    def closes(self, opening: "_Fence") -> bool:
        return (
            self.run[0] == opening.run[0]
            and len(self.run) >= len(opening.run)
            and not self.before.strip()
            and not self.after.strip()
            and len(self.before) <= len(opening.before) + _CLOSE_INDENT
        )

    def opens_another(self, opening: "_Fence") -> bool:
        """A tagged fence inside an open one: the earlier is unclosed, because no code has such a line."""
        return (
            self.run[0] == opening.run[0]
            and len(self.run) >= len(opening.run)
            and not self.before.strip()
            and bool(self.after.strip())
            and "`" not in self.after
            and len(self.before) <= len(opening.before) + _CLOSE_INDENT
        )

    def opens(self, fences: Fences) -> bool:
        if self.run[0] == "`" and "`" in self.after:
            return False
        tag = self.after.strip()
        return bool(_LIST_MARKER.match(self.before.strip())) or bool(tag and fences.is_tag(tag))


def split(text: str, fences: Fences) -> Markdown:
    """Split a reply into blocks. Markdown inside a fence is split again, unless it is the requested language.

    Linear in the length of the text.
    """
    whole = _split(text.replace("\r\n", "\n").replace("\r", "\n"), fences)
    blocks: list[Block] = []
    for block in whole.blocks:
        taken_apart = block.tag in _MARKUP and not fences.is_tag(block.tag)
        inner = _split(block.text, fences).blocks if taken_apart else ()
        blocks += inner or [block]
    return Markdown(tuple(blocks), whole.outside)


@dataclass(slots=True)
class _Open:
    fence: _Fence
    tag: str
    lines: list[str] = field(default_factory=list)

    def block(self, closed: bool) -> Block:
        return Block("\n".join(self.lines), self.tag, len(self.fence.before.expandtabs(4)), closed)


def _split(text: str, fences: Fences) -> Markdown:
    blocks: list[Block] = []
    outside: list[str] = []
    current: _Open | None = None
    for line in text.split("\n"):
        fence = _fence(line) if "```" in line or "~~~" in line else None
        if current is not None:
            if fence and fence.closes(current.fence):
                blocks.append(current.block(closed=True))
                current = None
            elif fence and fence.opens_another(current.fence):
                blocks.append(current.block(closed=False))
                current = _open_block(fence, fences)
            else:
                current.lines.append(line)
        elif fence and fence.opens(fences):
            current = _open_block(fence, fences)
            if fence.before.strip():
                outside.append(fence.before)
        elif fence and (content := _one_line_block(fence, fences)):
            blocks.append(content)
        else:
            outside.append(line)
    if current is not None:
        blocks.append(current.block(closed=False))
    return Markdown(tuple(blocks), "\n".join(outside))


def _fence(line: str) -> _Fence:
    start = min(start for start in (line.find("```"), line.find("~~~")) if start >= 0)
    rest = line[start:].lstrip(line[start])
    return _Fence(line[:start], line[start : len(line) - len(rest)], rest)


def _open_block(fence: _Fence, fences: Fences) -> _Open:
    """The block that a fence line opens: its info string is a language and attributes, or code."""
    before = fence.before if _LIST_MARKER.match(fence.before.strip()) else ""
    fence = _Fence(before, fence.run, fence.after)
    info = fence.after.strip()
    if fences.begins_code(info):
        return _Open(fence, "", [info])
    words = info.split(maxsplit=1)
    tag = words[0].strip("{}.").split(",")[0].split(":")[0].lower() if words else ""
    rest = words[1] if len(words) > 1 else ""
    return _Open(fence, tag, [rest] if fences.begins_code(rest) else [])


def _one_line_block(fence: _Fence, fences: Fences) -> Block | None:
    """A block that opens and closes on one line."""
    body = fence.after.rstrip()
    if fences.code_start is None or fence.before.strip() or not body.endswith(fence.run):
        return None
    body = body.rstrip(fence.run[0]).strip()
    words = body.split(maxsplit=1)
    if len(words) == 2 and fences.is_tag(words[0]):
        body = words[1]
    return Block(body, "") if fences.begins_code(body) or "=" in body else None
