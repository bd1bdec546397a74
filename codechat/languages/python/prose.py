"""Code among prose without fences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from codechat.languages.python.definitions import acts
from codechat.languages.python.source import Source, parse, read
from codechat.languages.python.syntax import LONGEST_SOURCE

MAX_CHUNKS = 2000
"""Pieces of one reply that are tried, `LONGEST_SOURCE` characters in all; one with more is no answer to a task."""

_CODE_LINE = re.compile(
    r"(?m)^([ \t]*)(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]|import[ \t]+\w|@\w)"
)
_FROM_LINE = re.compile(r"(?m)^([ \t]*)from[ \t]+[\w.]+[ \t]+import\b")
_SURELY_CODE = re.compile(r"(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]")
_FIRST_LINE = re.compile(
    r"(?:async|def|class|import|from|if|for|while|try|with)\b|[@#]|[\w.\[\], ]+[-+*/|&]?=[^=]|\w+\("
)
_CONTINUATION = re.compile(r"(?:else|elif|except|finally)\b|[)\]}]")
_TOKEN = re.compile(r"\\.|'''|\"\"\"|['\"#()\[\]{}]")


@dataclass(slots=True)
class _OpenStatement:
    """Whether a line belongs to a statement begun above, because a triple quote or a bracket is open."""

    quote: str = ""
    depth: int = 0

    @property
    def inside(self) -> bool:
        return bool(self.quote) or self.depth > 0

    def take(self, line: str) -> None:
        short = ""
        for match in _TOKEN.finditer(line):
            token = match[0]
            if self.quote:
                self.quote = "" if token == self.quote else self.quote
            elif short:
                short = "" if token == short else short
            elif len(token) == 3:
                self.quote = token
            elif token in "'\"":
                short = token
            elif token == "#":
                return
            elif token in "([{":
                self.depth += 1
            elif token in ")]}":
                self.depth = max(0, self.depth - 1)


@dataclass(slots=True)
class _Chunk:
    lines: list[str] = field(default_factory=list)


def code_start(text: str) -> int | None:
    """The position of the first line that can only be code, or None."""
    found = [match.start() for pattern in (_CODE_LINE, _FROM_LINE) if (match := pattern.search(text))]
    return min(found, default=None)


def gather(text: str) -> Source | None:
    """The statements of a text that is partly prose, without the prose, or None.

    A function or class that is not valid Python is broken code, not prose: the result is None. All code is taken to
    have the indentation of its first line. Each piece is parsed once: linear.
    """
    start = code_start(text)
    if start is None:
        return None
    margin = len(text[start:]) - len(text[start:].lstrip(" \t"))
    kept: list[str] = []
    comments: list[str] = []
    left = LONGEST_SOURCE
    for number, chunk in enumerate(_chunks(text, margin)):
        piece = "\n".join(chunk.lines)
        left -= len(piece)
        if number == MAX_CHUNKS or left < 0:
            break
        if piece.startswith("#") and len(chunk.lines) == 1:
            comments.append(piece)
        elif _is_code(piece):
            kept += [*comments, piece]
            comments = []
        elif _SURELY_CODE.match(piece):
            return None
        else:
            comments = []
    return read("\n".join(kept)) if kept else None


def _chunks(text: str, margin: int) -> Iterator[_Chunk]:
    """Runs of lines at the margin that may be code."""
    chunk: _Chunk | None = None
    reader = _OpenStatement()
    for raw in text.split("\n"):
        indented = not raw[:margin].strip()
        line = raw[margin:] if indented else raw.lstrip()
        starts = bool(line.strip()) and (not indented or line[0] not in " \t")
        decorated = chunk is not None and chunk.lines[-1].startswith("@")
        if starts and not reader.inside and not decorated and not (indented and _CONTINUATION.match(line)):
            if chunk:
                yield chunk
            chunk = _Chunk() if indented and _FIRST_LINE.match(line) else None
            reader = _OpenStatement()
        if chunk:
            chunk.lines.append(line)
            reader.take(line)
    if chunk:
        yield chunk


def _is_code(piece: str) -> bool:
    """Whether a piece is valid Python that does something."""
    tree = parse(piece).tree
    return tree is not None and bool(tree.body) and all(acts(node) for node in tree.body)
