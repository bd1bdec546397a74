"""Whether a code parses; and what is too much to be parsed in a short time."""

import re

from codechat.languages import language_of
from codechat.languages.grammar import Parsed

LONGEST_CODE = 200_000
"""Characters of code that is checked: a rule may take seconds for more."""
DEEPEST_CODE = 500
"""Brackets in each other in code that is checked: a grammar's time grows with the square of their number."""
_BRACKETS = re.compile(r"[()\[\]{}<>]")


def too_much(code: str) -> str:
    """Why a code is not parsed at all: it is too long, or too deep. Empty if it is neither."""
    if len(code) > LONGEST_CODE:
        return f"the code is longer than {LONGEST_CODE:,} characters"
    if _depth(code) > DEEPEST_CODE:
        return f"more than {DEEPEST_CODE} brackets are open within each other"
    return ""


def parses(language: str, code: str) -> bool | None:
    """Whether a code in a language, by any of its names, parses by its grammar; nothing but blanks does not.

    None if that is unknown: the language has no grammar, or the code is too much. Grammars are milder than compilers.
    For broken code a grammar may take half a minute: ask in a process that can be ended. Raises `UserError` if the
    language's grammar is not installed.
    """
    known = language_of(language)
    if not isinstance(known, Parsed) or too_much(code):
        return None
    return bool(code.strip()) and not known.grammar.parse(known.grammar.within(code)).broken


def _depth(code: str) -> int:
    """The most brackets that are open at once, wherever they stand, if that may be too many; pointed ones in a line."""
    if sum(map(code.count, "([{<")) <= DEEPEST_CODE:  # the count is much faster, and enough for nearly every code
        return 0
    depth = deepest = 0
    for line in code.split("\n"):
        pointed = 0
        for bracket in _BRACKETS.findall(line):
            if bracket in "<>":
                pointed = max(0, pointed + (1 if bracket == "<" else -1))
            else:
                depth = max(0, depth + (1 if bracket in "([{" else -1))
            deepest = max(deepest, depth + pointed)
    return deepest
