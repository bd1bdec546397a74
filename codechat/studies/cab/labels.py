"""Labelled lines of a reply, read strictly: `VERDICT: PARTIALLY CORRECT` stands alone on its line, and once.

Markdown around a label or its word is allowed, as in `codechat.judges.deciding`. Unlike there, a labelled line with
anything but one of the words makes the whole reply unreadable, since it may contradict another.
"""

import re
from collections.abc import Sequence

from codechat.judges.deciding import MAX_LINE, MAX_REASON

_MARKS = r"[\s>*_`#-]*"


def lines_of(text: str) -> list[str]:
    """The lines of a reply that say something: no blank ones, no fences."""
    return [line.strip() for line in text.splitlines() if line.strip(" \t`~")]


def after_label(label: str, line: str) -> str | None:
    """What stands behind a label on its line; None if the line does not begin with the label and a colon."""
    name = "[ _]+".join(re.escape(part) for part in label.split())
    match = re.match(rf"{_MARKS}{name}[\s*_`]*:(.*)$", line, re.IGNORECASE)
    return match.group(1) if match else None


def word_of(said: str, words: Sequence[str]) -> str | None:
    """The word that alone stands behind a label, in capitals with `_` for a blank; None if it is none of the words."""
    if len(said) > MAX_LINE:
        return None
    word = re.sub(r"[ -]+", "_", said.strip(" \t*_`.")).upper()
    return word if word in words else None


def only_word(label: str, words: Sequence[str], lines: Sequence[str]) -> str | None:
    """The word of a label, if one line alone has the label and nothing but one of the words behind it."""
    found = [said for line in lines if (said := after_label(label, line)) is not None]
    return word_of(found[0], words) if len(found) == 1 else None


def bounded(text: str) -> str:
    """A reason for the record: one line of at most 300 characters."""
    line = " ".join(text.strip(" \t*_`").split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"
