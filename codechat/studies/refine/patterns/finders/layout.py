"""Comments and where they stand, and the layout of code: blank lines, length, indentation, quotes, spaces."""

import ast
import builtins
import re
import tokenize
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal, TypeAlias

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, Regex, at, each_of, pair, pattern
from codechat.studies.refine.patterns.reading.code import Code, read
from codechat.studies.refine.patterns.reading.tree import (
    FUNCTIONS,
    LOOPS,
    blocks,
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
_TELLING = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.Delete,
    ast.If, *LOOPS, *FUNCTIONS, ast.ClassDef,
)  # fmt: skip
_MAY_BE_CODE = re.compile(r"[=(:]|^#\s*(return|import|from|assert|raise|del|else)\b")
_CALLED = {"def", "function", "func", "method", "helper", "the", "this", "a"}
Unit: TypeAlias = Literal["tab", "2", "4"]
_UNITS = {"tab": "\t", "2": "  ", "4": "    "}
_SPACED = {"==", "!=", "<=", ">=", "<", ">", "+=", "-=", "*=", "/=", "//=", "%=", "->", ":="}
_AFTER_VALUE = (":", ";", ")", "]", "}", "for", "async", "if")


@pattern("comment", "comment", on_tokens=True)
def comment(code: Code, own_line: bool | None = None, matches: Regex = "") -> Iterable[Occurrence]:
    """Comments that `matches` is found in; `own_line`: only whole lines, or only after code."""
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
    """Whether text follows a mark that ends in a sign (`Args:`, `O(`), on its line or the next, and no heading."""
    if mark is None or re.search(r"\w$", mark[0]):
        return mark is not None
    rest = text[mark.end() :].lstrip("\n ").partition("\n")[0] if mark[0].endswith(":") else text[mark.end() :]
    heading = re.fullmatch(r"\s*\w+:\s*", rest) or rest.lstrip().startswith((":param", ":return", ":raise", ":rtype"))
    return re.search(r"\w", rest.partition("\n")[0]) is not None and not heading


def is_placeholder(text: str) -> bool:
    """Whether a text is only a placeholder, such as `TODO`, `...` or `docstring`."""
    words = {*re.findall(r"\w+", text.lower())}
    return words <= {"todo", "fixme", "tbd", "docstring", "description", "here", "xxx", "add", "a", "none", "document"}


pattern("code_in_comment", "commented-out statement")(lambda code: map(Occurrence, spoken_code(code)))


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
    """Statements of a kind, divided by whether a comment with a word stands directly above or next to their lines."""
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
    """Whether the comments above a function only repeat its name and its parameters' names."""
    if not isinstance(node, FUNCTIONS):
        return False
    own, line, said = {one.line: one.text for one in code.comments if one.own_line}, first_line(node) - 1, set[str]()
    while line in own:
        said.update(re.findall(r"\w+", own[line]))
        line -= 1
    names = {node.name, *(one.arg for one in parameters(node))}
    return {word for word in said if word.lower() not in _CALLED} <= (names if node.name in said else set())


def is_elif(code: Code, node: ast.AST) -> bool:
    """Whether an `if` is written as `elif`."""
    above = code.parents.get(node)
    if not isinstance(node, ast.If) or not isinstance(above, ast.If) or above.orelse != [node]:
        return False
    return code.lines[node.lineno - 1].encode()[node.col_offset :].startswith(b"elif")


@pattern("blank_line", "blank line in a function", "blank lines in functions")
def blank_line(code: Code) -> Iterable[Occurrence]:
    """Blank lines inside functions; those within a string are content and do not count."""
    inside: set[int] = set()
    for function in code.functions:
        inside.update(range(function.lineno + 1, (function.end_lineno or function.lineno) + 1))
    return (Occurrence(line) for line in inside - code.string_lines if not code.lines[line - 1].strip())


@pair(
    ("blank_before", "{statement} after a blank line", "{statement}s after a blank line"),
    ("no_blank_before", "{statement} without a blank line before it", "{statement}s without a blank line before them"),
)
def blank_before(code: Code, statement: Statement) -> Iterable[tuple[Occurrence, bool]]:
    """Statements that are not first in their block, divided by whether a blank line precedes (comments are skipped)."""
    comments = {comment.line for comment in code.comments if comment.own_line}
    for owner in code.nodes:
        for block in blocks(owner):
            for above, node in pairwise(block):
                if not isinstance(node, STATEMENTS[statement]):
                    continue
                gap = range((above.end_lineno or above.lineno) + 1, node.lineno)
                yield at(node), any(line not in comments and not code.lines[line - 1].strip() for line in gap)


@pair(
    ("blank_after_docstring", "docstring followed by a blank line", "docstrings followed by a blank line"),
    ("no_blank_after_docstring", "docstring directly followed by code", "docstrings directly followed by code"),
)
def blank_after_docstring(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Function docstrings with code below them, divided by whether a blank line follows."""
    for function in code.functions:
        if docstring(function) and len(function.body) > 1:
            first = function.body[0]
            end = first.end_lineno or first.lineno
            yield at(first), end < len(code.lines) and not code.lines[end].strip()


@pattern("long_line", "overlong line", on_tokens=True)
def long_line(code: Code, limit: int = 79) -> Iterable[Occurrence]:
    """Lines of more than `limit` characters."""
    return (Occurrence(number) for number, line in enumerate(code.lines, 1) if len(line) > limit)


@pattern("trailing_space", "line ending in spaces", "lines ending in spaces", on_tokens=True)
def trailing_space(code: Code) -> Iterable[Occurrence]:
    """Lines that end in spaces or tabs; inside strings only docstrings count."""
    texts = [docstring(one) for one in code.find(ast.Module, ast.ClassDef, *FUNCTIONS)]
    prose = {line for one in texts if one for line in range(one.lineno, one.end_lineno or one.lineno)}
    for number, line in enumerate(code.lines, 1):
        if line != line.rstrip() and (number in prose or number + 1 not in code.string_lines):
            yield Occurrence(number)


each_of("joined_statements", "line with several statements", ast.stmt, plural="lines with several statements",
        when=lambda code, node: bool(code.lines[node.lineno - 1].encode()[: node.col_offset].strip()))  # fmt: skip


@pattern("backslash", "backslash continuation")
def backslash(code: Code) -> Iterable[Occurrence]:
    """Lines continued by a backslash outside strings and comments."""
    commented = {comment.line for comment in code.comments}
    for number, line in enumerate(code.lines, 1):
        if line.endswith("\\") and number not in commented and number + 1 not in code.string_lines:
            yield Occurrence(number)


@pair(
    ("indented", "block indented by {unit}", "blocks indented by {unit}"),
    ("otherwise_indented", "block not indented by {unit}", "blocks not indented by {unit}"),
    on_tokens=True,
)
def indented(code: Code, unit: Unit) -> Iterable[tuple[Occurrence, bool]]:
    """Blocks, divided by whether they are indented by exactly one unit."""
    levels = [""]
    for token in code.tokens:
        if token.type == tokenize.INDENT:
            yield Occurrence(token.start[0]), token.string.removeprefix(levels[-1]) == _UNITS[unit]
            levels.append(token.string)
        elif token.type == tokenize.DEDENT:
            levels.pop()


@pattern("quoted", "string in {quote} quotes", "strings in {quote} quotes", on_tokens=True)
def quoted(code: Code, quote: Literal["single", "double", "triple_single", "triple_double"]) -> Iterable[Occurrence]:
    """Strings in one kind of quotes; short ones that contain a quote are left out, because they would need escapes."""
    wanted = {"single": "'", "double": '"', "triple_single": "'''", "triple_double": '"""'}[quote]
    for token in code.tokens:
        text = token.string.lstrip("rRfFbBuUtT") if token.type == tokenize.STRING else ""
        used = text[:3] if text[:3] in ('"""', "'''") else text[:1]
        if used == wanted and (len(wanted) == 3 or not set("'\"") & set(text[1:-1])):
            yield Occurrence(token.start[0])


@pair(
    ("signature_over_lines", "signature with one parameter per line", "signatures with one parameter per line"),
    ("signature_on_line", "signature with parameters sharing a line", "signatures with parameters sharing a line"),
)
def signature_over_lines(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Functions, divided by whether each parameter has its own line; single ones count if no function has more."""
    several = any(len(parameters(function)) > 1 for function in code.functions)
    for function in code.functions:
        lines = [parameter.lineno for parameter in parameters(function)]
        if lines and (len(lines) > 1 or not several):
            alone = len(set(lines)) == len(lines) and (len(lines) > 1 or min(lines) > function.lineno)
            yield at(function), alone


@pair(
    ("wrapped_return", "returned value in parentheses", "returned values in parentheses"),
    ("bare_return", "returned value without parentheses", "returned values without parentheses"),
    on_tokens=True,
)
def wrapped_return(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Returns of a value, divided by whether parentheses enclose all of it."""
    return ((Occurrence(line), wrapped) for word, line, wrapped, _ in _keyword_values(code) if word == "return")


pattern("redundant_parentheses", "redundant pair of parentheses", "redundant pairs of parentheses", on_tokens=True)(
    lambda code: (Occurrence(line) for _, line, wrapped, needed in _keyword_values(code) if wrapped and not needed)
)


def _keyword_values(code: Code) -> Iterator[tuple[str, int, bool, bool]]:
    """After `return`, `if`, `elif`, `while`: word, line, whether parentheses enclose all, whether they must."""
    tokens = [token for token in code.tokens if token.type not in (tokenize.COMMENT, tokenize.NL)]
    for index, token in enumerate(tokens[:-1]):
        if token.type != tokenize.NAME or token.string not in ("return", "if", "elif", "while"):
            continue
        if tokens[index + 1].type == tokenize.NEWLINE or tokens[index + 1].string == ";":
            continue
        if tokens[index + 1].string != "(":
            yield token.string, token.start[0], False, False
            continue
        depth, end, needed = 0, index + 1, False
        for end in range(index + 1, len(tokens)):
            text = tokens[end].string if tokens[end].type == tokenize.OP else ""
            depth += (text in "([{") - (text in ")]}") if text else 0
            needed = needed or (depth == 1 and (text in (",", ":=") or tokens[end].string in ("for", "yield")))
            if depth == 0:
                break
        after = tokens[end + 1] if end + 1 < len(tokens) else None
        closing = after is not None and (after.type == tokenize.NEWLINE or after.string in _AFTER_VALUE)
        several = tokens[end].start[0] != token.start[0] or end == index + 2
        yield token.string, token.start[0], closing, needed or several


@pattern("tight_comma", "comma without a space after it", "commas without a space after them", on_tokens=True)
def tight_comma(code: Code) -> Iterable[Occurrence]:
    """Commas that touch the token after them, closing brackets excepted."""
    for token, after in pairwise(code.tokens):
        last = after.string in (")", "]", "}") or after.type in (tokenize.NEWLINE, tokenize.NL)
        if token.type == tokenize.OP and token.string == "," and token.end == after.start and not last:
            yield Occurrence(token.start[0])


@pattern("tight_operator", "operator without spaces around it", "operators without spaces around them", on_tokens=True)
def tight_operator(code: Code) -> Iterable[Occurrence]:
    """Comparison and assignment operators that touch an operand; `=` of keyword arguments excepted."""
    depth = 0
    for before, token, after in zip(code.tokens, code.tokens[1:], code.tokens[2:], strict=False):
        if before.type == tokenize.OP:
            depth += (before.string in tuple("([{")) - (before.string in tuple(")]}"))
        spaced = token.string in _SPACED or (token.string == "=" and depth == 0 and token.end[0] == before.end[0])
        if token.type == tokenize.OP and spaced and (before.end == token.start or token.end == after.start):
            yield Occurrence(token.start[0])
