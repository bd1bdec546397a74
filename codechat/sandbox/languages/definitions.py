"""Whether code in a language other than Python defines a name: a heuristic on the text, since a grammar may take long.

Of a reply's blocks the one that defines the entry point is the answer; the others show how it is used, or its output.
"""

import re
from itertools import islice
from typing import NamedTuple

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
_COMMENT = re.compile(r"[ \t]*(?://|#(?!\[|define\b)|\*|--|/\*)|.*(?<!:)//")
_HEAD_END = re.compile(r"[^;{}]{0,300}?(?:(?P<body>\{)|(?P<arrow>=>)|(?=[;}])|\Z)", re.DOTALL)
_SAYS_NOTHING = re.compile(r"(?>//[^\n]*|/\*.*?\*/|\.\.\.|…|\bpass\b|;|\s)*+\Z", re.DOTALL)
_OPENED = re.compile(r"[ \t]*+(?:<[^<>(){};]{0,200}>)?[ \t]*+\(")
_DEFINES = re.compile(r"(?<![=!<>])=(?![=>])|:-|->|\.[ \t]*\Z")  # equations, rules and facts
_HEAD = re.compile(r"[ \t]*\([^()]{0,1000}\)[^;=(){}]{0,100}\{")
_BRACKET = re.compile(r"[()\[\]{}]")


def definition(code: str, name: str) -> int:
    """How well the code defines the name: the best of its places."""
    best, ends = NONE, _ends(code) if name in code else {}
    for found in islice(re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", code), MOST_PLACES):
        line = code.rfind("\n", 0, found.start()) + 1
        before = code[max(line, found.start() - MOST_BEFORE) : found.start()]
        best = max(best, _Place(before, code[found.end() : found.end() + MOST_AFTER], found.end(), ends).strength())
        if best == FULL:
            break
    return best


def _ends(code: str) -> dict[int, int]:
    """By the place of each bracket that is closed, the place behind the one that closes it."""
    ends, opened = dict[int, int](), list[int]()
    for bracket in _BRACKET.finditer(code):
        if bracket[0] in "([{":
            opened.append(bracket.start())
        elif opened:
            ends[opened.pop()] = bracket.end()
    return ends


def may_define(code: str, name: str) -> bool:
    """Whether the name stands in the code otherwise than in a comment, a text or a call: languages have more forms of
    definitions than `definition` knows."""
    for found in islice(re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", code), MOST_PLACES):
        line, end = code.rfind("\n", 0, found.start()) + 1, code.find("\n", found.end())
        before = code[max(line, found.start() - MOST_BEFORE) : found.start()]
        after = code[found.end() : end if 0 <= end < found.end() + MOST_AFTER else found.end() + MOST_AFTER]
        if _COMMENT.match(before) or any(before.count(quote) % 2 for quote in "\"'`"):
            continue
        last = re.search(r"(?:(?<![\w.])(\w+)|[>\]*&]|::)[ \t]*+\Z", before)
        is_head = last is not None and not _CALLING.fullmatch(last[1] or "")
        begins = not before.strip() or before.rstrip()[-1] in "{};"
        if is_head or not _OPENED.match(after) or (begins and (")" not in after or _HEAD.match(after))):
            return True
        if not before.strip() and _DEFINES.search(after):
            return True
    return False


class _Place(NamedTuple):
    """A place of the name: what is before it in its line and after it, where that begins, and the code's brackets."""

    before: str
    after: str
    start: int
    ends: dict[int, int]

    def strength(self) -> int:
        before, after = self.before, self.after
        if _COMMENT.match(before):
            return NONE
        if _KEYWORD.search(before):
            return self._with_body(FULL)
        if _BOUND.search(before) and (value := _VALUE.match(after)):
            return WEAK if re.match(r"(?:await\s+)?(?:require|import)\b", value["value"]) else FULL
        is_value = _PROPERTY.match(after) or (not before and _EQUATION.match(after))
        return FULL if is_value else self._without_keyword()

    def _without_keyword(self) -> int:
        """How well a head such as `int name(int x) {` defines its name."""
        before, after = self.before, self.after
        opened = _OPENED.match(after)
        last = re.search(r"(?:(?<!\w)(\w+)|([\w>\]*&]|::))[ \t]*+\Z", before)
        if opened is None or (before.strip() and last is None) or (last and _CALLING.fullmatch(last[1] or "")):
            return NONE
        head = _HEAD_END.match(after, self._closed(opened.end() - 1))
        if head is None or not (head["body"] or head["arrow"]):
            return NONE
        is_typed = bool(before.strip()) and not re.search(r"[=(,.!?&|]", re.sub(r"<[^<>]*>|\([^()]*\)", "", before))
        if head["arrow"]:
            return FULL if is_typed else NONE
        return self._with_body(FULL if is_typed else METHOD)

    def _with_body(self, strength: int) -> int:
        """The strength, unless what follows the name has no body, or one that says nothing."""
        after = self.after
        opened = _OPENED.match(after)
        head = _HEAD_END.match(after, self._closed(opened.end() - 1) if opened else 0)
        if head is None or not head["body"]:
            return WEAK if head is not None and after[head.end() : head.end() + 1] == ";" else strength
        body = after[head.end() : self._closed(head.end() - 1) - 1]
        return WEAK if _SAYS_NOTHING.match(body) else strength

    def _closed(self, opening: int) -> int:
        """The place behind the bracket that closes the one at a place of what is after; its end if none there does."""
        end = self.ends.get(self.start + opening, 0) - self.start
        return end if 0 < end <= len(self.after) else len(self.after) + 1
