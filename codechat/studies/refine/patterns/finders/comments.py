"""Comments and where they stand, and the texts of comments and docstrings."""

import ast
import builtins
import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, Regex, at, pair, pattern
from codechat.studies.refine.patterns.reading.code import Code, read
from codechat.studies.refine.patterns.reading.tree import (
    FUNCTIONS,
    LOOPS,
    body_without_docstring,
    docstring,
    first_line,
)

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
    """Comments that `matches` is found in; `own_line` restricts them to those on a line of their own or after code."""
    for found in code.comments:
        if (own_line is None or found.own_line is own_line) and re.search(matches, found.text, re.IGNORECASE):
            yield Occurrence(found.line)


@pattern("header_comment", "comment above the first statement", "comments above the first statement")
def header_comment(code: Code, matches: Regex = "", below_docstring: bool = False) -> Iterable[Occurrence]:
    """Comments before all code; with `below_docstring` also those right below the module's docstring."""
    body = code.tree.body if code.tree else []
    if below_docstring and code.tree is not None:
        body = body_without_docstring(code.tree)
    first = min((first_line(statement) for statement in body), default=len(code.lines) + 1)
    for found in code.comments:
        if found.line < first and re.search(matches, found.text, re.IGNORECASE):
            yield Occurrence(found.line)


def followed(text: str, mark: re.Match[str] | None) -> bool:
    """Whether a phrase that ends in a sign, such as `Args:`, `O(` or `>>>`, is followed by anything.

    The rest may be on the same line or on the next one that is not blank, and must not be a further heading.
    """
    if mark is None or re.search(r"\w$", mark[0]):
        return mark is not None
    rest = text[mark.end() :].lstrip("\n ").partition("\n")[0] if mark[0].endswith(":") else text[mark.end() :]
    heading = re.fullmatch(r"\s*\w+:\s*", rest) or rest.lstrip().startswith((":param", ":return", ":raise", ":rtype"))
    return re.search(r"\w", rest.partition("\n")[0]) is not None and not heading


def is_placeholder(text: str) -> bool:
    """Whether a text is only a placeholder, such as `TODO`, `...` or `docstring`."""
    words = {*re.findall(r"\w+", text.lower())}
    return words <= {"todo", "fixme", "tbd", "docstring", "description", "here", "xxx", "add", "a", "none", "document"}


@pattern("code_in_comment", "commented-out statement")
def code_in_comment(code: Code) -> Iterable[Occurrence]:
    """Comments whose text is a Python statement with an effect rather than a word or a sentence."""
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
            if any(
                (isinstance(each, _TELLING) and not (isinstance(each, ast.AnnAssign) and each.value is None))
                or _is_call(each)
                for each in statements
            ):
                found.add(one.line)
        code.found[spoken_code] = frozenset(found)
    lines: frozenset[int] = code.found[spoken_code]
    return lines


def _is_call(statement: ast.stmt) -> bool:
    """Whether a call is of a built-in or a method: `O(n)` is a remark, not code."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    return isinstance(called, ast.Attribute) or (isinstance(called, ast.Name) and hasattr(builtins, called.id))


@pattern("prose", "note")
def prose(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Comments and docstrings that `matches` is found in; if that ends in a sign such as `O(`, more must follow."""
    for found in code.comments:
        if followed(found.text, re.search(matches, found.text, re.IGNORECASE)):
            yield Occurrence(found.line)
    for node in code.find(ast.Module, ast.ClassDef, *FUNCTIONS):
        text = docstring(node)
        if text is not None and followed(str(text.value), re.search(matches, str(text.value), re.IGNORECASE)):
            yield at(text)


@pair(
    ("commented", "{statement} with a comment", "{statement}s with a comment"),
    ("uncommented", "{statement} without a comment", "{statement}s without a comment"),
)
def commented(code: Code, statement: Statement, place: Place = "either") -> Iterable[tuple[Occurrence, bool]]:
    """Statements of a kind, divided by whether a comment with a word stands right above or beside their lines."""
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
    """Whether the comments above a function only repeat that it is a function, its name and its parameters' names."""
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
    """Whether an `if` is written as `elif`."""
    above = code.parents.get(node)
    if not isinstance(node, ast.If) or not isinstance(above, ast.If) or above.orelse != [node]:
        return False
    return code.lines[node.lineno - 1].encode()[node.col_offset :].startswith(b"elif")
