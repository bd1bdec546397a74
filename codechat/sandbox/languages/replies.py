"""The parts of a reply: its fenced blocks, and prose around code without a fence."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

_LIST_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])?\Z")
_DIFF = re.compile(r"(?m)^(?:@@ .*@@|\+\+\+ |diff --git )")
_MARKUP = frozenset({"markdown", "md"})
_ELEMENT = re.compile(
    r"(?P<page><pre\b[^<>]{0,200}>\s*)?(?P<mark>[<\[])(?P<name>[A-Za-z][\w+#-]{0,40})"
    r"(?P<attributes>(?:\s[^<>\[\]]{0,1000})?)(?<!/)[>\]]"
)
_HOLDS_CODE = re.compile(
    r"\w*artifact|\w*action|code(?:[_-]?block)?|answer|solution|program|file|source[_-]?code|snippet|implementation",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"""\blang(?:uage)?\s*=\s*["']?([\w+#-]+)|\bclass\s*=\s*["']?(?:[\w -]*\s)?lang(?:uage)?-([\w+#-]+)""",
    re.IGNORECASE,
)
_BEGUN = re.compile(r"[ \t]*<[A-Za-z][\w+#-]{0,40}(?:\s[^<>]{0,1000})?\Z")
_MOST_LINES_OF_TAG, _DEEPEST_TAGS = 8, 3
_CDATA = re.compile(r"\A\s*<!\[CDATA\[(.*?)(?:\]\]>\s*)?\Z", re.DOTALL)
_TAG_LINE = re.compile(
    r"\s{0,200}?[ \t]{0,200}(?P<tag>[A-Za-z][\w+#.-]{0,30}?):?[ \t]*(?:\n?Copy(?: code)?[ \t]*)?(?:\n|\Z)"
)
_ATTRIBUTES = re.compile(r"[,:={(\[]")  # what may follow a tag without a blank: `js{1,3}`, `python:main.py`, `python=`
_CLOSE_INDENT = 3  # columns by which a closing fence may be indented more than its opening (CommonMark)


@dataclass(frozen=True, slots=True)
class Fences:
    """A language's fences: its tags, in any case, and how its code begins, if that is certain. Models forget line ends:
    code of a language with a `code_start` is also found after the opening fence, and between two fences of one line."""

    is_tag: Callable[[str], bool]
    code_start: re.Pattern[str] | None = None

    def begins_code(self, text: str) -> bool:
        """Whether the text certainly begins with code of the language."""
        return self.code_start is not None and bool(self.code_start.match(text))


@dataclass(frozen=True, slots=True)
class Block:
    """The content of one fence, or of a tag for code. `indent`: columns by which it is indented. `tag`: lower case, or
    empty."""

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

    def ends(self, opening: "_Fence") -> bool:
        """Whether the fence closes an open one or is a tagged fence inside it: no code has such a line."""
        near = not self.before.strip() and len(self.before) <= len(opening.before) + _CLOSE_INDENT
        matches = near and self.run[0] == opening.run[0] and len(self.run) >= len(opening.run)
        return matches and (not self.after.strip() or "`" not in self.after)

    def opens(self, fences: Fences) -> bool:
        if self.run[0] == "`" and "`" in self.after:
            return False
        tag = self.after.strip()
        return bool(_LIST_MARKER.match(self.before.strip())) or bool(tag and fences.is_tag(tag))


def split(text: str, fences: Fences) -> Markdown:
    """Split a reply into blocks. Markdown inside a fence is split again, unless it is the requested language. Linear in
    the length of the text."""
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
    end: re.Pattern[str] | None = None  # what ends it if it is no fence but a tag (`<artifact language="rust">`)
    page: bool = False

    def holds(self, line: str, fence: _Fence | None, fences: Fences) -> bool:
        """Whether a line within a tag opens what really holds the code: a fence, or a tag that says the language."""
        if self.tag and any(map(str.strip, self.lines)):
            return False
        if fence is not None and fence.opens(fences) and _LIST_MARKER.match(fence.before.strip()):
            return True
        inner = _element(line, fences)
        return inner is not None and bool(inner.tag) >= bool(self.tag)

    def block(self, fences: Fences, closed: bool) -> list[Block]:
        """The block; none if it is a tag around prose."""
        text, tag = "\n".join(self.lines), self.tag
        if self.end is not None:
            text = html.unescape(text) if self.page else text
            text = found[1] if (found := _CDATA.match(text)) else text
            text = (text if self.tag else without_prose(text)).strip("\n")
            if not text.strip():
                return []
        if not tag or fences.is_tag(tag):
            said, text = untag(text, fences.is_tag)
            tag = tag or said
        return [Block(text, tag, len(self.fence.before.expandtabs(4)), closed)]


def untag(text: str, is_tag: Callable[[str], bool]) -> tuple[str, str]:
    """The language's tag that models write on the line after the fence, in lower case, and the text without it; empty
    if the first line is none, or the only one. Pages copied from a browser add "Copy code" to it."""
    found = _TAG_LINE.match(text)
    if found is None or not is_tag(found["tag"].lower()) or not text[found.end() :].strip():
        return "", text
    return found["tag"].lower(), text[found.end() :]


def _split(text: str, fences: Fences) -> Markdown:
    splitter = _Splitter(fences)
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        current = splitter.current
        if current is not None and current.end is None:  # most lines of a reply stand in a fence
            begin = place
            while place < len(lines) and "```" not in lines[place] and "~~~" not in lines[place]:
                place += 1
            current.lines += lines[begin:place]
            if place == len(lines):
                break
        taken = 1 if current is not None else _lines_of_tag(lines, place, fences)
        splitter.take(" ".join(lines[place : place + taken]))
        place += taken
    if splitter.current is not None:
        splitter.blocks += splitter.current.block(fences, closed=False)
    return Markdown(tuple(splitter.blocks), "\n".join(splitter.outside))


@dataclass(slots=True)
class _Splitter:
    fences: Fences
    blocks: list[Block] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    current: _Open | None = None

    def take(self, line: str) -> None:
        """Read the next line."""
        fence = _fence(line) if "```" in line or "~~~" in line else None
        tag = self.current
        if tag is not None and tag.end is not None:
            if not tag.holds(line, fence, self.fences):
                self._take_in_tag(tag, line, tag.end)
                return
            self.outside += tag.lines  # what is within the tag says more
            self.current = None
        if self.current is None:
            self._take_outside(line, fence)
        elif fence and fence.ends(self.current.fence):
            closes = not fence.after.strip()
            self.blocks += self.current.block(self.fences, closed=closes)
            self.current = None if closes else _open_block(fence, self.fences)
        else:
            self.current.lines.append(line)

    def _take_in_tag(self, current: _Open, line: str, end: re.Pattern[str]) -> None:
        closing = end.search(line)
        current.lines.append(line[: closing.start()] if closing else line)
        if closing:
            self.blocks += current.block(self.fences, closed=True)
            self.outside.append(line[closing.end() :])
        self.current = None if closing else current

    def _take_outside(self, line: str, fence: _Fence | None) -> None:
        if fence and fence.opens(self.fences):
            self.current = _open_block(fence, self.fences)
            if fence.before.strip():
                self.outside.append(fence.before)
        elif fence and (content := _one_line_block(fence, self.fences)):
            self.blocks.append(content)
        elif (element := _element(line, self.fences)) and element.end is not None:
            self.outside.append(element.fence.before)
            after = element.lines.pop()
            for _ in range(_DEEPEST_TAGS):  # tags in tags, on one line
                inner = _element(after, self.fences)
                if inner is None or inner.fence.before.strip() or bool(inner.tag) < bool(element.tag):
                    break
                element, after = inner, inner.lines.pop()
            assert element.end is not None
            self._take_in_tag(element, after, element.end)
        else:
            self.outside.append(line)


def _lines_of_tag(lines: list[str], place: int, fences: Fences) -> int:
    """The number of lines of the line at a place: more than one for a tag for code that continues."""
    if _BEGUN.match(lines[place]):
        for number in range(2, _MOST_LINES_OF_TAG + 1):
            if ">" in "".join(lines[place + number - 1 : place + number]):
                joined = " ".join(lines[place : place + number])
                return number if _element(joined, fences) else 1
    return 1


def _element(line: str, fences: Fences) -> _Open | None:
    """The block that a tag for code opens: one that says a language, or one that its line begins with. Names in square
    brackets count if nothing else is in the line: `[PYTHON]`."""
    if ">" not in line and "]" not in line:
        return None
    first, last = len(line) - len(line.lstrip()), len(line.rstrip())
    for found in _ELEMENT.finditer(line):  # without copies of the line, which may hold thousands of tags
        name, begins = found["name"].lower(), found.start() == 0
        said = (language for pair in _SAID.findall(found["attributes"]) for language in pair if language)
        language = next(said, "").lower()
        is_language = fences.is_tag(name) and not found["attributes"].strip()
        if found["mark"] == "[":
            known = (is_language or name == "code") and found.start() <= first and found.end() >= last and not language
        else:
            holds = bool(_HOLDS_CODE.fullmatch(name))
            known = (holds and (bool(language) or begins)) or (is_language and begins)
        if known and line[max(0, found.start() - 1) : found.start()] not in ("`", "'", '"'):
            end = re.compile(rf"{re.escape(found['mark'])}/{re.escape(name)}\s*[>\]]", re.IGNORECASE)
            tag = language or (name if is_language else "")
            before, after = line[: found.start()], line[found.end() :]
            return _Open(_Fence(before, "", ""), tag, [after], end, bool(found["page"]))
    return None


def _fence(line: str) -> _Fence:
    start = min(start for start in (line.find("```"), line.find("~~~")) if start >= 0)
    rest = line[start:].lstrip(line[start])
    return _Fence(line[:start], line[start : len(line) - len(rest)], rest)


def _open_block(fence: _Fence, fences: Fences) -> _Open:
    before = fence.before if _LIST_MARKER.match(fence.before.strip()) else ""
    fence = _Fence(before, fence.run, fence.after)
    info = fence.after.strip()
    if fences.begins_code(info):
        return _Open(fence, "", [info])
    words = info.split(maxsplit=1)
    tag = _ATTRIBUTES.split(words[0].strip("{}."))[0].lower() if words else ""
    rest = words[1] if len(words) > 1 else ""
    return _Open(fence, tag, [rest] if fences.begins_code(rest) else [])


def _one_line_block(fence: _Fence, fences: Fences) -> Block | None:
    body = fence.after.rstrip()
    if fences.code_start is None or fence.before.strip() or not body.endswith(fence.run):
        return None
    body = body.rstrip(fence.run[0]).strip()
    words = body.split(maxsplit=1)
    if len(words) == 2 and fences.is_tag(words[0]):
        body = words[1]
    return Block(body, "") if fences.begins_code(body) or "=" in body else None


_SENTENCE = re.compile(r"\s*(?:[#*>-]+\s+)?[*_]*[A-Z]\S*(?:(?:\s+\S+)+|(?<=[.!?:]))\s*")
_CODE_MARKS = re.compile(r"[;{}=]|\(\)|->|::|^[^\S\n]*(?://|/\*|#include|--)", re.MULTILINE)


def without_prose(reply: str) -> str:
    """The reply without the paragraphs of prose before and after its code; empty if it is nothing but prose."""
    place, found = 0, list[int]()
    for filled, lines in groupby(reply.splitlines(keepends=True), lambda line: bool(line.strip())):
        paragraph = "".join(lines)
        if filled and not all(_is_prose(line) for line in paragraph.splitlines()):
            found += [place, place + len(paragraph)]
        place += len(paragraph)
    return reply[found[0] : found[-1]].rstrip() if found else ""


def _is_prose(line: str) -> bool:
    """Whether a line begins like a sentence and has no mark of code."""
    return not _CODE_MARKS.search(line) and bool(_SENTENCE.fullmatch(line))
