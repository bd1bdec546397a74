"""Whether code in a language other than Python defines a name: a heuristic on the text, since a grammar may take long.

Of a reply's blocks the one that defines the entry point is the answer; the others show how it is used, or its output.
"""

import re
from itertools import islice

NONE, WEAK, METHOD, FULL = range(4)
"""How well a code defines a name: not at all; by an import or without a body; by what may also be a call with a block
(`name(x) {`); by a definition."""
MOST_PLACES, MOST_BEFORE, MOST_AFTER = 200, 300, 5000  # places of a name, and characters around each, that are read

_KEYWORD = re.compile(
    r"(?:^|[^\w.$])(?:function|def|fn|func|fun|sub|proc|procedure|class|struct|interface|record|object|trait|enum|type"
    r"|module)\b[ \t]*\*?[ \t]*(?:<[^<>]{0,200}>[ \t]*|\([^()]{0,200}\)[ \t]*)?(?:[\w<>?]{1,100}[.:]{1,2})*\Z"
)
_BOUND = re.compile(
    r"(?:^|[;{}])[ \t]*"
    r"(?:(?:export|default|pub|public|private|static|final|const|let|var|val|mut|auto|constexpr)[ \t]+){0,5}"
    r"(?:(?:module|exports|window|globalThis|this|self|local)[ \t.]{1,3}){0,3}\Z"
)
_VALUE = re.compile(r"[ \t]*(?::[^=\n]{0,300})?=(?![=>])[ \t]*(?:\n[ \t]*)?(?P<value>\S.{0,30})")
_PROPERTY = re.compile(r"[ \t]*:[ \t]*(?:async[ \t]*)?(?:function\b|\([^()\n]{0,200}\)[ \t]*=>|\w{1,50}[ \t]*=>)")
_EQUATION = re.compile(r"[ \t]+(?:::|[^=\n;(.]{0,200}=(?![=>]))")
_CALLING = re.compile(
    r"return|new|await|throw|else|yield|in|of|typeof|delete|assert|if|while|for|match|switch|case|until|unless|guard"
    r"|when|go|defer|do|and|or|not|print|echo|import|from"
)
_COMMENT = re.compile(r"[ \t]*(?://|#(?!\[)|\*|--|/\*)|.*(?<!:)//")
_HEAD_END = re.compile(r"[^;{}]{0,300}?(?:(?P<body>\{)|(?P<arrow>=>)|(?=[;}])|\Z)", re.DOTALL)
_SAYS_NOTHING = re.compile(r"(?>//[^\n]*|/\*.*?\*/|\.\.\.|…|\bpass\b|;|\s)*+\Z", re.DOTALL)
_OPENED = re.compile(r"[ \t]*+(?:<[^<>(){};]{0,200}>)?[ \t]*+\(")
_BRACKET = re.compile(r"[()\[\]{}]")


def definition(code: str, name: str) -> int:
    """How well the code defines the name: the best of its places."""
    best = NONE
    for found in islice(re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", code), MOST_PLACES):
        line = code.rfind("\n", 0, found.start()) + 1
        before = code[max(line, found.start() - MOST_BEFORE) : found.start()]
        best = max(best, _at(before, code[found.end() : found.end() + MOST_AFTER]))
        if best == FULL:
            break
    return best


def _at(before: str, after: str) -> int:
    if _COMMENT.match(before):
        return NONE
    if _KEYWORD.search(before):
        return _with_body(after, FULL)
    if _BOUND.search(before) and (value := _VALUE.match(after)):
        return WEAK if re.match(r"(?:await\s+)?(?:require|import)\b", value["value"]) else FULL
    is_value = _PROPERTY.match(after) or (not before and _EQUATION.match(after))
    return FULL if is_value else _without_keyword(before, after)


def _without_keyword(before: str, after: str) -> int:
    """How well a head such as `int name(int x) {` defines its name."""
    opened = _OPENED.match(after)
    last = re.search(r"(?:(?<!\w)(\w+)|([\w>\]*&]|::))[ \t]*+\Z", before)
    if opened is None or (before.strip() and last is None) or (last and _CALLING.fullmatch(last[1] or "")):
        return NONE
    head = _HEAD_END.match(after, _closed(after, opened.end() - 1))
    if head is None or not (head["body"] or head["arrow"]):
        return NONE
    is_typed = bool(before.strip()) and not re.search(r"[=(,.!?&|]", re.sub(r"<[^<>]*>|\([^()]*\)", "", before))
    if head["arrow"]:
        return FULL if is_typed else NONE
    return _with_body(after, FULL if is_typed else METHOD)


def _with_body(after: str, strength: int) -> int:
    """The strength, unless what follows the name has no body, or one that says nothing."""
    opened = _OPENED.match(after)
    start = _closed(after, opened.end() - 1) if opened else 0
    head = _HEAD_END.match(after, start)
    if head is None or not head["body"]:
        return WEAK if head is not None and after[head.end() : head.end() + 1] == ";" else strength
    body = after[head.end() : _closed(after, head.end() - 1) - 1]
    return WEAK if _SAYS_NOTHING.match(body) else strength


def _closed(text: str, opening: int) -> int:
    """The place behind the bracket that closes the one at a place; the text's end if none does."""
    depth = 0
    for bracket in _BRACKET.finditer(text, opening):
        depth += 1 if bracket[0] in "([{" else -1
        if depth == 0:
            return bracket.end()
    return len(text) + 1
