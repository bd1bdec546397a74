"""Names in prose: which words of a statement mean a function or a parameter, and which are plain English."""

import io
import re
import tokenize
from collections.abc import Iterator
from itertools import accumulate

SHORT_WORDS = frozenset((
    "add", "age", "all", "am", "an", "and", "any", "are", "as", "at", "bag", "be", "bit", "box", "bus", "but",
    "by", "car", "cat", "cut", "day", "do", "dog", "due", "eat", "end", "far", "few", "fit", "for", "gap", "get",
    "go", "he", "hit", "how", "if", "in", "is", "it", "its", "key", "lap", "law", "leg", "lot", "low", "map",
    "max", "may", "me", "men", "mid", "min", "mix", "my", "net", "new", "no", "not", "now", "odd", "of", "off",
    "old", "on", "one", "or", "our", "out", "own", "pad", "pay", "per", "pin", "pot", "put", "raw", "red", "row",
    "run", "say", "see", "set", "she", "sit", "six", "so", "sum", "sun", "tag", "tax", "ten", "the", "tie", "tip",
    "to", "too", "top", "two", "up", "us", "use", "via", "war", "was", "way", "we", "win", "yes", "you",
))  # fmt: skip
"""English words of two or three letters; other names so short are code."""
CODE_WORDS = frozenset((
    "dlist", "fibfib", "iscube", "modp", "newch", "nums", "skjkasdkd", "strlen", "strs", "tuplex", "vals",
))  # fmt: skip
"""Longer names in published tasks that are no words of English, though nothing in them marks code."""
LAYOUT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_TEXTS = re.compile(r"(?<!\w)'[^'\n]*'|\"[^\"\n]*\"")
_NO_NOUN = re.compile(r"[ \t]*(?:[,.;)]|$|(?:and|or|is|to|from|with|than|be|by|in|has)\b)")
_NAMED = re.compile(r"\b(?:function|method|named|called)[ \t]+$", re.IGNORECASE)


def places(prompt: str, *, is_program: bool) -> Iterator[slice]:
    """The prose of a prompt: docstrings and comments of the beginning of a program, else all of it."""
    if not is_program:
        yield slice(0, len(prompt))
        return
    begins = [0, *accumulate(len(line) for line in io.StringIO(prompt, newline=""))]
    before = tokenize.NEWLINE
    try:
        for token in tokenize.generate_tokens(io.StringIO(prompt, newline="").readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and before in LAYOUT):
                (row, column), (last, end) = token.start, token.end
                yield slice(begins[row - 1] + column, begins[last - 1] + end)
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                before = token.type
    except tokenize.TokenError:  # it ends within a function
        return


def with_name(text: str, old: str, new: str, *, is_function: bool) -> str:
    """The text with every mention of a name changed."""

    def named(match: re.Match[str]) -> str:
        begin, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        line = text[begin : len(text) if end < 0 else end]
        return new if _meant(line, match.start() - begin, old, is_function=is_function) else old

    return re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", named, text)


def _meant(line: str, start: int, name: str, *, is_function: bool) -> bool:
    """Whether the word at a place of a line is the name. Within a text of code it is not; a word that could be English
    is a name in a code span, alone in quotes, before a bracket of a call or an index, or next to an operator."""
    before, after = line[:start], line[start + len(name) :]
    if before.count("`") % 2:
        return True
    if after[:3] in ("-th", "'th"):
        return False
    is_code = ">>>" in line or "(" in line or line.lstrip()[:1] in tuple("'\"[({")
    for match in _TEXTS.finditer(line):
        if match.start() < start < match.end():
            return not is_code and len(name) > 1 and match.group()[1:-1] == name
    if re.search(r"[_\d]|(?<=.)[A-Z]", name) or name in CODE_WORDS or (1 < len(name) < 4 and name not in SHORT_WORDS):
        return True
    if is_function:
        return after[:1] == "(" or bool(_NAMED.search(before))
    operator = re.search(r"(?:[<>=!]=|[<>+*/%^=])[ \t]*$", before) or re.match(r"[ \t]*[<>+*/%^=]|\[|[ \t]+:", after)
    return bool(operator) or (len(name) == 1 and (name not in "aAI" or bool(_NO_NOUN.match(after))))
