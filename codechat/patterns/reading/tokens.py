"""Tokens of a program, the same on every version of Python."""

import tokenize
from collections.abc import Iterable, Iterator, Sequence


def with_whole_strings(tokens: Iterable[tokenize.TokenInfo], lines: Sequence[str]) -> Iterator[tokenize.TokenInfo]:
    """The tokens with each f-string as one STRING, as Python 3.11 gives them: later versions give its parts."""
    opened: list[tokenize.TokenInfo] = []
    for token in tokens:
        name = tokenize.tok_name[token.type]
        if name in ("FSTRING_START", "TSTRING_START"):
            opened.append(token)
        elif name in ("FSTRING_END", "TSTRING_END"):
            start = opened.pop()
            if not opened:
                text = _between(lines, start.start, token.end)
                yield tokenize.TokenInfo(tokenize.STRING, text, start.start, token.end, start.line)
        elif not opened:
            yield token


def _between(lines: Sequence[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]]
    return "\n".join([lines[start[0] - 1][start[1] :], *lines[start[0] : end[0] - 1], lines[end[0] - 1][: end[1]]])
