"""Comments and where they stand, and what prose (comments and docstrings) says."""

import ast
import builtins
import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, Regex, at, pair, pattern
from codechat.patterns.reading.code import Code, read
from codechat.patterns.reading.tree import FUNCTIONS, LOOPS, docstring, first_line

Statement: TypeAlias = Literal["loop", "if", "return", "assignment", "function"]
Place: TypeAlias = Literal["above", "beside", "either"]
STATEMENTS: dict[str, tuple[type[ast.AST], ...]] = {
    "loop": LOOPS,
    "if": (ast.If,),
    "return": (ast.Return,),
    "assignment": (ast.Assign, ast.AnnAssign, ast.AugAssign),
    "function": FUNCTIONS,
}


_WIDER = {
    r"\bpython\s*(>=\s*)?3": r"\bc?py(?:thon)?\W*(?:versions?\W*|v)?(?:from\W*)?(?:>=|>|==|~=)?\s*[23]"
    r"|>=\s*3\.\d|\b(?:works|runs|requires?|needs?)\b.*\b3\.\d"
    r"|\b3\.\d+\s*(?:\+|(?:or|and) (?:later|newer|above|higher|greater|up))"
}
"""Ways to say what a rule's expression is for that it does not have."""


@pattern("comment", "comment", on_tokens=True)
def comment(code: Code, own_line: bool | None = None, matches: Regex = "") -> Iterable[Occurrence]:
    """Comments; `own_line` tells those on a line of their own from those after code, `matches` is searched in them."""
    matches = _WIDER.get(matches, matches)
    for found in code.comments:
        if matches.startswith("[^.") and _goes_on(code, found.line):
            continue  # what asks for an end looks at the last line of a sentence
        if (own_line is None or found.own_line is own_line) and re.search(matches, found.text, re.IGNORECASE):
            yield Occurrence(found.line)


def _goes_on(code: Code, line: int) -> bool:
    """Whether a comment that stands alone goes on in the next line, with a small letter."""
    found = {one.line: one for one in code.comments if one.own_line}
    here, below = found.get(line), found.get(line + 1)
    if here is None or below is None or here.column != below.column:
        return False
    return below.text.lstrip("# ")[:1].islower()


@pattern("header_comment", "comment above the first statement", "comments above the first statement")
def header_comment(code: Code, matches: Regex = "") -> Iterable[Occurrence]:
    """Comments before all code; a licence's may stand right below the module's docstring."""
    body = code.tree.body if code.tree else []
    if "SPDX" in matches and code.tree is not None and docstring(code.tree) is not None:
        body = body[1:]
    first = min((first_line(statement) for statement in body), default=len(code.lines) + 1)
    for found in code.comments:
        if found.line < first and re.search(matches, found.text, re.IGNORECASE):
            yield Occurrence(found.line)


def shows_call(code: Code, line: int, rest: str) -> bool:
    """Whether an example, with the comments right under it, holds a call."""
    below = {one.line: one.text for one in code.comments if one.own_line}
    while not (found := re.search(r"\w\(", rest)) and line + 1 in below:
        line, rest = line + 1, below[line + 1]
    return found is not None


def followed(text: str, mark: re.Match[str] | None) -> bool:
    """Whether anything comes after a mark that ends in a sign, as `Args:`, `O(` and `>>>` do.

    What follows stands on the mark's line or on the next one that is not blank, and is no further heading.
    """
    if mark is None or re.search(r"\w$", mark[0]):
        return mark is not None
    rest = text[mark.end() :].lstrip("\n ").partition("\n")[0] if mark[0].endswith(":") else text[mark.end() :]
    heading = re.fullmatch(r"\s*\w+:\s*", rest) or rest.lstrip().startswith((":param", ":return", ":raise", ":rtype"))
    return re.search(r"\w", rest.partition("\n")[0]) is not None and not heading


def is_placeholder(text: str) -> bool:
    """Whether a text only keeps a place: `TODO`, `...`, `docstring`."""
    words = {*re.findall(r"\w+", text.lower())}
    return words <= {"todo", "fixme", "tbd", "docstring", "description", "here", "xxx", "add", "a", "none", "document"}


@pattern("code_in_comment", "commented-out statement")
def code_in_comment(code: Code) -> Iterable[Occurrence]:
    """Comments whose text is a Python statement with an effect, not a word or a sentence."""
    return (Occurrence(line) for line in sorted(spoken_code(code)))


_TELLING = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.Delete,
    ast.If, *LOOPS, *FUNCTIONS, ast.ClassDef,
)  # fmt: skip
_MAY_BE_CODE = re.compile(r"[=(:]|^#\s*(return|import|from|assert|raise|del|else)\b")


def spoken_code(code: Code) -> frozenset[int]:
    """The lines of comments whose text is a Python statement with an effect."""
    if spoken_code not in code.found:
        found = set()
        for one in code.comments:
            text = one.text.lstrip("#").strip() if _MAY_BE_CODE.search(one.text) else ""
            text = re.sub(r"^(else|try|finally):\s*(?=\S)|^el(?=if\b)", "", text)
            tree = read(f"{text} pass" if text.endswith(":") else text).tree if text else None
            statements = tree.body[:1] if tree else []
            if any((isinstance(each, _TELLING) and not _is_remark(each)) or _is_call(each) for each in statements):
                found.add(one.line)
        code.found[spoken_code] = frozenset(found)
    lines: frozenset[int] = code.found[spoken_code]
    return lines


def _is_remark(statement: ast.stmt) -> bool:
    """`result: word`, which says what a name is."""
    return isinstance(statement, ast.AnnAssign) and statement.value is None


def _is_call(statement: ast.stmt) -> bool:
    """Whether it calls a built-in or a method: `O(n)` is a remark."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    return isinstance(called, ast.Attribute) or (isinstance(called, ast.Name) and hasattr(builtins, called.id))


@pattern("prose", "note")
def prose(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Comments and docstrings that `matches` is found in, with more to it if that ends in a sign, as `O(` does."""
    for found in code.comments:
        if _notes(found.text, matches):
            yield Occurrence(found.line)
    for node in code.find(ast.Module, ast.ClassDef, *FUNCTIONS):
        text = docstring(node)
        if text is not None and _notes(str(text.value), matches):
            yield at(text)


def _notes(text: str, matches: str) -> bool:
    """Whether a text has a mark with more to it.

    The O of a complexity is a capital one, of space stands with that word, and of time not with it alone.
    """
    if matches == "https?://":
        matches = r"https?://|\bwww\.(?=\w)|\b([\w-]+\.)+(org|com|net|edu|gov|io|dev)/(?=\w)"
    if r"\bO\(" not in matches:
        return followed(text, re.search(matches, text, re.IGNORECASE))
    space = "space" in matches
    for line in text.split("\n"):
        sized, timed = (re.search(word, line, re.IGNORECASE) for word in (r"\bspace|\bmemory", r"\btime|\bsteps"))
        for mark in re.finditer(r"\bO\(", line):
            said = re.search(r"\bspace", line, re.IGNORECASE) if space else timed or not sized
            if said and followed(line, mark) and _measured(line, mark) != (r"time" if space else "space"):
                return True
    return False


def _measured(line: str, mark: re.Match[str]) -> str:
    """What the word right behind a complexity says that it is of: `time` or `space`; nothing if that is left open."""
    after = re.match(
        r"(?:[^()]|\([^()]*\))*\)`{0,2}\s+(?:\w+\s)?(time|space|steps|memory)\b(\s+(?:and|or)\b)?", line[mark.end() :]
    )
    if after is None or after[2]:
        return ""
    return "time" if after[1] in ("time", "steps") else "space"


@pair(
    ("commented", "{statement} with a comment", "{statement}s with a comment"),
    ("uncommented", "{statement} without a comment", "{statement}s without a comment"),
)
def commented(code: Code, statement: Statement, place: Place = "either") -> Iterable[tuple[Occurrence, bool]]:
    """Statements of a kind; whether a comment, with a word, is directly above them, or beside one of their lines."""
    disabled = spoken_code(code) if statement == "function" else ()
    telling = [found for found in code.comments if re.search(r"\w", found.text) and found.line not in disabled]
    own = {found.line for found in telling if found.own_line}
    trailing = {found.line for found in telling if not found.own_line}
    for node in code.find(*STATEMENTS[statement]):
        assert isinstance(node, ast.stmt)
        if is_elif(code, node):
            continue
        above = first_line(node) - 1 in own and not _repeats_name(code, node)
        body = getattr(node, "body", None)
        end = max(node.lineno, body[0].lineno - 1) if body else (node.end_lineno or node.lineno)
        beside = any(line in trailing for line in range(node.lineno, end + 1))
        yield at(node), (above and place != "beside") or (beside and place != "above")


def _repeats_name(code: Code, node: ast.stmt) -> bool:
    """Whether all that the comments above a function say is that it is one, its name and its parameters' names."""
    if not isinstance(node, FUNCTIONS):
        return False
    own, line, said = {one.line: one.text for one in code.comments if one.own_line}, first_line(node) - 1, set[str]()
    while line in own:
        said.update(re.findall(r"\w+", own[line]))
        line -= 1
    names = {node.name, *(one.arg for one in parameters(node))}
    return {word for word in said if word.lower() not in _CALLED} <= (names if node.name in said else set())


_CALLED = {"def", "function", "func", "method", "helper", "the", "this", "a"}


def is_elif(code: Code, node: ast.AST) -> bool:
    """Whether an `if` is written `elif`."""
    above = code.parents.get(node)
    if not isinstance(node, ast.If) or not isinstance(above, ast.If) or above.orelse != [node]:
        return False
    return code.lines[node.lineno - 1].encode()[node.col_offset :].startswith(b"elif")
