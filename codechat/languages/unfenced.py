"""Replies without a fence: code, perhaps with prose before and after it."""

import re
from collections.abc import Iterator

_SENTENCE = re.compile(r"\s*(?:[#*>-]+\s+)?[*_]*[A-Z]\S*(?:(?:\s+\S+)+|(?<=[.!?:]))\s*")
_CODE_MARKS = re.compile(r"[;{}=]|\(\)|->|::|^\s*(?://|/\*|#include|--)", re.MULTILINE)


def without_prose(reply: str) -> str:
    """The reply without the paragraphs of prose before and after its code; empty if it is nothing but prose."""
    found = [(start, end) for start, end in _paragraphs(reply) if not _is_prose(reply[start:end])]
    return reply[found[0][0] : found[-1][1]].rstrip() if found else ""


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Where each run of lines that are not blank begins and ends."""
    begun, place = -1, 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            begun = place if begun < 0 else begun
        elif begun >= 0:
            yield begun, place
            begun = -1
        place += len(line)
    if begun >= 0:
        yield begun, place


def _is_prose(paragraph: str) -> bool:
    """Whether every line of a paragraph begins like a sentence and has no mark of code."""
    lines = [line for line in paragraph.splitlines() if line.strip()]
    return all(not _CODE_MARKS.search(line) and bool(_SENTENCE.fullmatch(line)) for line in lines)
