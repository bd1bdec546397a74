"""What prose has to say to be what was asked for, where its mark alone does not tell.

A comment that says nothing, that is code, or that repeats what another comment says explains nothing; a note about an
edge case names one.
"""

import ast
import re
from collections.abc import Mapping
from typing import Any

from codechat.patterns.base import Occurrence
from codechat.patterns.finders.comments import shows_call, spoken_code
from codechat.patterns.purpose.definitions import Check, has_value
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import FUNCTIONS, LOOPS, first_line

_EMPTY = {
    "", "none", "nothing", "na", "n", "a", "tbd", "todo", "note", "code", "comment", "function", "end", "start", "of",
    "file", "here", "below", "above", "the", "for", "if", "return", "while", "else", "def", "this", "is",
}  # fmt: skip
"""Words that say nothing by themselves."""
_EDGE = re.compile(
    r"\b(empty|zero|negative|none|null|nan|no|not|non\w*|never|nothing|cannot|\w+n't|without|missing|absent|ties?|tied|"
    r"equal\w*|single|only|one|duplicate\w*|repeat\w*|same|if|when|unless|even|odd|edge|corner|cases?|in?valid|blank\w*|"
    r"overflow\w*|bound\w*|limits?|exceed\w*|larger|greater|less|shorter|smaller|fewer|longer|beyond|out of|ignor\w*|"
    r"skip\w*|unknown|unicode|whitespace|spaces?|rais\w+|errors?|exceptions?|default\w*|infinite|huge|at least|at most|"
    r"at all|also|still|wrap\w*|divi\w+ by|fall\w* back|upper|lower|mixed|trailing|leading|unsorted|unequal|odd|true|"
    r"false|extra|too|instead|handles?|\d+)\b|\[\]|''|\"\"|\(\)|\{\}|[<>]=?|!=|==",
    re.IGNORECASE,
)


def telling(name: str, code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether an occurrence of a pattern of texts says what such a text is for."""
    check = _CHECKS.get(name)
    return check is None or check(code, one, options)


_GENERIC = _EMPTY | {
    "helper", "helpers", "section", "module", "script", "main", "program", "python", "py", "utility", "utilities",
    "utils", "functions", "methods", "class", "classes", "header", "top", "start", "begin", "begins", "my", "some",
    "stuff", "new", "solution", "source", "tools", "library", "definitions",
}  # fmt: skip
"""Words that do not say what a program is for."""
_ABOUT_TEXT = re.compile(
    r"#+\s*(@?(author|date|created|modified|updated|version|revision|copyright|licen[cs]e\w*|maintainer|file(name)?)\b"
    r"|spdx-|todo\b|fixme\b|xxx\b|hack\b|(written|created|made|added|edited|reviewed) (by|on|in)\b|\(c\)|©)",
    re.IGNORECASE,
)
"""What speaks of the text, its author or its licence, not of what the code does."""


def _header(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether a comment at the top says what the code is for: more than a file's name or general words."""
    comment = next(each for each in code.comments if each.line == one.line)
    text = re.sub(r"\b\w+\.py\b", "", _with_next(code, comment.line, comment.text))
    general = {*re.findall(r"[^\W\d_]+", text.lower())} <= _GENERIC
    return _comment(code, one, options) and (bool(options.get("matches")) or not general)


def _comment(code: Code, one: Occurrence, options: Mapping[str, Any]) -> bool:
    """Whether a comment says more than the mark that was asked for.

    The mark says something by itself if it is a divider or holds a number (`# -----`, `# Python 3`).
    """
    matches = options.get("matches", "")
    comment = next(each for each in code.comments if each.line == one.line)
    mark = re.search(matches, comment.text, re.IGNORECASE)
    if matches and mark and (not re.search(r"\w", mark[0]) or re.search(r"\d", mark[0])):
        return True
    rest = comment.text.replace(mark[0], "", 1) if mark else comment.text
    aside = mark is not None and mark[0].lower() == "todo" and not re.match(r"#+\W*todo|.*\bTODO\b", comment.text)
    if aside or (not matches and _ABOUT_TEXT.match(comment.text)):
        return False
    if mark is not None and mark[0].endswith("Example:"):
        return shows_call(code, comment.line, rest)
    if mark is not None and mark[0].endswith("NOTE:"):
        return _EDGE.search(_with_next(code, comment.line, rest)) is not None
    words = {*re.findall(r"[^\W\d_]+|\d+", _with_next(code, comment.line, rest).lower())}
    named = _named_there(code, comment.line, own_line=comment.own_line) if not matches else set[str]()
    return not words <= _EMPTY | named and (bool(matches) or comment.line not in spoken_code(code))


def _named_there(code: Code, line: int, *, own_line: bool) -> set[str]:
    """The words of the names in the statement that a comment stands above or beside, and of what that is called."""
    own = {one.line for one in code.comments if one.own_line}
    while own_line and line in own:
        line += 1
    found = [one for one in code.find(ast.stmt) if first_line(one) == line]
    if not found:
        return set()
    kinds = {"loop", "loops"} if isinstance(found[0], LOOPS) else set[str]()
    if isinstance(found[0], (*FUNCTIONS, ast.ClassDef)):
        names = [found[0].name]
    else:
        targets = getattr(found[0], "targets", None) or [getattr(found[0], "target", None)]
        names = [one.id for one in targets if isinstance(one, ast.Name)]
    return kinds | {word for name in names for word in _words_in(name)}


def _words_in(name: str) -> list[str]:
    """The words of an identifier, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def _with_next(code: Code, line: int, rest: str) -> str:
    """A comment's text with that of the comments right under it."""
    below = {one.line: one.text for one in code.comments if one.own_line}
    while line + 1 in below:
        line, rest = line + 1, f"{rest} {below[line + 1]}"
    return rest


def _docstring(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    return re.search(r"\w", str(getattr(one.node, "value", ""))) is not None


def _spans_lines(code: Code, one: Occurrence, _: Mapping[str, Any]) -> bool:
    node = one.node
    return node is None or getattr(node, "end_lineno", 0) != getattr(node, "lineno", 0)


def says_no_more(name: str, old: Code, new: Code) -> bool:
    """Whether the comments after hold no word more than those before: one was only cut in two, or said again."""
    words = [{*re.findall(r"\w+", " ".join(one.text for one in code.comments).lower())} for code in (old, new)]
    return name == "comment" and bool(words[0]) and words[1] <= words[0]


_CHECKS: dict[str, Check] = {
    "comment": _comment, "header_comment": _header, "module_docstring": _docstring, "tall_docstring": _spans_lines,
    "assignment_to": has_value,
}  # fmt: skip
