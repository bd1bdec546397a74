"""Comments put in, taken out, moved and reworded."""

import ast
import re
from typing import Literal

from codechat.patterns.comments import code_in_comment, uncommented
from codechat.patterns.tree import LOOPS
from codechat.refactoring.base import (
    Refusal,
    Source,
    first_line,
    indentation,
    same_tree,
    top_line,
    transforms,
    with_insertions,
)

_KINDS: dict[str, tuple[type[ast.AST], ...]] = {
    "loop": LOOPS,
    "if": (ast.If,),
    "return": (ast.Return,),
    "assignment": (ast.Assign, ast.AnnAssign, ast.AugAssign),
    "function": (ast.FunctionDef, ast.AsyncFunctionDef),
}
_SAYS = {
    "loop": "Go through the values.",
    "if": "Tell the cases apart.",
    "return": "Hand back the result.",
    "assignment": "keep the value",
    "function": "Do one part of the work.",
}


@transforms("cosmetic-put-comment-above-loops", statement="loop")
@transforms("cosmetic-put-comment-above-ifs", statement="if")
@transforms("cosmetic-explain-returns", statement="return", place="either")
@transforms("cosmetic-put-comment-above-functions", statement="function")
def comment_above(source: Source, statement: str, place: Literal["above", "either"] = "above") -> str:
    """A line with a comment above every statement of the kind that has none."""
    bare = {found.line for found in uncommented(source.code, statement, place)}
    lines = {first_line(node) for node in source.code.find(ast.stmt) if _is(node, statement) and node.lineno in bare}
    made = [(line, f"{indentation(source.lines[line - 1])}# {_SAYS[statement]}") for line in sorted(lines)]
    return same_tree(source, with_insertions(source.lines, made))


@transforms("cosmetic-attach-comment-to-assignments", statement="assignment")
@transforms("cosmetic-attach-comment-to-returns", statement="return")
@transforms("cosmetic-attach-comment-to-loops", statement="loop")
def comment_beside(source: Source, statement: str) -> str:
    """A comment at the end of every statement's line, or of a loop's first one."""
    bare = {found.line for found in uncommented(source.code, statement, "beside")}
    lines = list(source.lines)
    ends = {_header_end(node) for node in source.code.find(ast.stmt) if _is(node, statement) and node.lineno in bare}
    for line in ends:
        lines[line - 1] = f"{lines[line - 1].rstrip()}  # {_SAYS[statement].lower().rstrip('.')}"
    return same_tree(source, "\n".join(lines))


def _is(node: ast.AST, statement: str) -> bool:
    return isinstance(node, _KINDS[statement])


def _header_end(node: ast.stmt) -> int:
    if isinstance(node, ast.While):
        return node.test.end_lineno or node.lineno
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter.end_lineno or node.lineno
    return node.end_lineno or node.lineno


@transforms("cosmetic-insert-header-comment", text="{entry}: a solution in plain Python.")
@transforms("cosmetic-add-licence-line", text="SPDX-License-Identifier: Apache-2.0")
@transforms("cosmetic-introduce-divider", text="----- main -----")
@transforms("cosmetic-state-python-version", text="Needs Python 3.11 or later.")
@transforms("cosmetic-include-link", text="Further reading: https://docs.python.org/3/")
@transforms("cosmetic-add-example-comment", text="Example: {entry}(...)")
@transforms("cosmetic-add-todo", text="TODO: measure where the time goes.")
@transforms("cosmetic-add-note", text="NOTE: an empty input takes the same path as any other.")
@transforms("cosmetic-state-assumptions", text="Assumes that the arguments are of the documented types.")
@transforms("cosmetic-state-space-complexity", text="Uses space for its result and its variables: O(n).")
def comment_at_top(source: Source, text: str) -> str:
    """A comment at the top of the file."""
    made = with_insertions(source.lines, [(top_line(source), f"# {text.format(entry=source.entry_point)}")])
    return same_tree(source, made)


@transforms("cosmetic-add-comment")
@transforms("cosmetic-add-more-comments")
def comment_in_function(source: Source) -> str:
    """A comment above the first statement of a function."""
    for function in source.code.functions:
        body = [node for node in function.body if not (isinstance(node, ast.Expr) and node is function.body[0])]
        if body and first_line(body[0]) > function.lineno:
            line = first_line(body[0])
            text = f"{indentation(source.lines[line - 1])}# Work out the result step by step."
            return same_tree(source, with_insertions(source.lines, [(line, text)]))
    return comment_at_top(source, "{entry} works out its result step by step.")


@transforms("cosmetic-state-time-complexity")
def time_complexity(source: Source) -> str:
    """A comment at the top that estimates the running time from the deepest nesting of loops."""
    depth = max((_depth(source, node) for node in source.code.find(*LOOPS, ast.comprehension)), default=0)
    bound = {0: "O(1)", 1: "O(n)"}.get(depth, f"O(n**{depth})")
    return comment_at_top(source, f"Time, by the nesting of its loops: {bound}.")


def _depth(source: Source, node: ast.AST) -> int:
    return 1 + sum(isinstance(above, LOOPS) for above in source.code.ancestors(node))


@transforms("cosmetic-remove-comments")
@transforms("cosmetic-remove-end-of-line-comments", own_line=False)
@transforms("cosmetic-remove-todos", matches=r"\b(TODO|FIXME|XXX)\b")
def remove_comments(source: Source, own_line: bool | None = None, matches: str = "") -> str:
    """The program without the comments of a kind."""
    chosen = [
        found.line
        for found in source.code.comments
        if (own_line is None or found.own_line is own_line) and re.search(matches, found.text, re.IGNORECASE)
    ]
    return _without(source, set(chosen))


@transforms("cosmetic-delete-commented-out-code")
def remove_code_in_comments(source: Source) -> str:
    """The program without comments that hold statements."""
    return _without(source, {found.line for found in code_in_comment(source.code)})


@transforms("cosmetic-minimise-comments")
def remove_last_comment(source: Source) -> str:
    """The program without its last comment."""
    return _without(source, {max(found.line for found in source.code.comments)})


def _without(source: Source, lines: set[int]) -> str:
    kept: dict[int, str | None] = dict(enumerate(source.lines, 1))
    for found in source.code.comments:
        if found.line in lines:
            kept[found.line] = None if found.own_line else source.lines[found.line - 1][: found.column].rstrip()
    return same_tree(source, "\n".join(line for line in kept.values() if line is not None))


@transforms("cosmetic-move-comments-above")
def comments_above(source: Source) -> str:
    """Every comment beside code moved to a line of its own above it."""
    lines = list(source.lines)
    moved = []
    for found in source.code.comments:
        if not found.own_line:
            line = lines[found.line - 1]
            moved.append((found.line, f"{indentation(line)}{found.text}"))
            lines[found.line - 1] = line[: found.column].rstrip()
    return same_tree(source, with_insertions(lines, moved))


@transforms("cosmetic-change-comments-to-capitals", capital=True)
@transforms("cosmetic-change-comments-to-sentences", stop=True)
def reword_comments(source: Source, capital: bool = False, stop: bool = False) -> str:
    """Comments that begin with a capital letter, or that end with a full stop."""
    lines = list(source.lines)
    for found in source.code.comments:
        marks = re.match(r"#+\s*", found.text)
        assert marks is not None
        head, text = marks[0], found.text[marks.end() :].rstrip()
        if capital and re.match("[a-z]", text):
            text = text[0].upper() + text[1:]
        if stop and text and not text.endswith("."):
            text = (text.rstrip(":;,!?") or text) + "."
        lines[found.line - 1] = lines[found.line - 1][: found.column] + head + text
    made = same_tree(source, "\n".join(lines))
    if made == source.code.text:
        raise Refusal("no comment can be reworded")
    return made
