"""Comments and where they stand, and what prose (comments and docstrings) says."""

import ast
import builtins
import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from codechat.patterns.base import Occurrence, Regex, at, pair, pattern
from codechat.patterns.code import Code, read
from codechat.patterns.tree import FUNCTIONS, LOOPS, docstring, first_line

Statement: TypeAlias = Literal["loop", "if", "return", "assignment", "function"]
Place: TypeAlias = Literal["above", "beside", "either"]
STATEMENTS: dict[str, tuple[type[ast.AST], ...]] = {
    "loop": LOOPS,
    "if": (ast.If,),
    "return": (ast.Return,),
    "assignment": (ast.Assign, ast.AnnAssign, ast.AugAssign),
    "function": FUNCTIONS,
}


@pattern("comment", "comment", on_tokens=True)
def comment(code: Code, own_line: bool | None = None, matches: Regex = "") -> Iterable[Occurrence]:
    """Comments; `own_line` tells those on a line of their own from those after code, `matches` is searched in them."""
    for found in code.comments:
        if (own_line is None or found.own_line is own_line) and re.search(matches, found.text, re.IGNORECASE):
            yield Occurrence(found.line)


@pattern("header_comment", "comment above the first statement", "comments above the first statement")
def header_comment(code: Code, matches: Regex = "") -> Iterable[Occurrence]:
    """Comments before all code."""
    body = code.tree.body if code.tree else []
    first = min((first_line(statement) for statement in body), default=len(code.lines) + 1)
    for found in code.comments:
        if found.line < first and re.search(matches, found.text, re.IGNORECASE):
            yield Occurrence(found.line)


@pattern("code_in_comment", "commented-out statement")
def code_in_comment(code: Code) -> Iterable[Occurrence]:
    """Comments whose text is a Python statement with an effect, not a word or a sentence."""
    telling = (ast.Assign, ast.AugAssign, ast.Return, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.Delete)
    for found in code.comments:
        text = found.text.lstrip("#").strip()
        tree = read(f"{text} pass" if text.endswith(":") else text).tree
        for statement in tree.body[:1] if tree else []:
            if isinstance(statement, (*telling, *LOOPS, ast.If)) or _is_call(statement):
                yield Occurrence(found.line)


def _is_call(statement: ast.stmt) -> bool:
    """Whether it calls a built-in or a method: `O(n)` is a remark."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    return isinstance(called, ast.Attribute) or (isinstance(called, ast.Name) and hasattr(builtins, called.id))


@pattern("prose", "note")
def prose(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Comments and docstrings that `matches` is found in."""
    for found in code.comments:
        if re.search(matches, found.text, re.IGNORECASE):
            yield Occurrence(found.line)
    for node in code.find(ast.Module, ast.ClassDef, *FUNCTIONS):
        text = docstring(node)
        if text is not None and re.search(matches, str(text.value), re.IGNORECASE):
            yield at(text)


@pair(
    ("commented", "{statement} with a comment", "{statement}s with a comment"),
    ("uncommented", "{statement} without a comment", "{statement}s without a comment"),
)
def commented(code: Code, statement: Statement, place: Place = "either") -> Iterable[tuple[Occurrence, bool]]:
    """Statements of a kind; whether a comment is directly above them, or beside them on one of their lines."""
    own = {found.line for found in code.comments if found.own_line}
    trailing = {found.line for found in code.comments if not found.own_line}
    for node in code.find(*STATEMENTS[statement]):
        assert isinstance(node, ast.stmt)
        if is_elif(code, node):
            continue
        above = first_line(node) - 1 in own
        body = getattr(node, "body", None)
        end = max(node.lineno, body[0].lineno - 1) if body else (node.end_lineno or node.lineno)
        beside = any(line in trailing for line in range(node.lineno, end + 1))
        yield at(node), (above and place != "beside") or (beside and place != "above")


def is_elif(code: Code, node: ast.AST) -> bool:
    """Whether an `if` is written `elif`."""
    above = code.parents.get(node)
    if not isinstance(node, ast.If) or not isinstance(above, ast.If) or above.orelse != [node]:
        return False
    return code.lines[node.lineno - 1].encode()[node.col_offset :].startswith(b"elif")
