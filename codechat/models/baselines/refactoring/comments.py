"""Comments put in and taken out."""

import ast
import re

from codechat.models.baselines.refactoring.base import (
    Refusal,
    Source,
    first_line,
    indentation,
    insert,
    same_tree,
    top_line,
    transforms,
)
from codechat.patterns.comments import uncommented
from codechat.patterns.tree import LOOPS

_KINDS: dict[str, tuple[type[ast.stmt], ...]] = {"loop": LOOPS, "if": (ast.If,), "return": (ast.Return,)}


@transforms("cosmetic-put-comment-above-loops", statement="loop")
@transforms("cosmetic-put-comment-above-ifs", statement="if")
@transforms("cosmetic-explain-returns", statement="return", place="either")
def comment_above(source: Source, statement: str, place: str = "above") -> str:
    """A line with a comment above every statement of the kind that has none."""
    bare = {found.line for found in uncommented(source.code, statement, place)}
    made = [
        (first_line(node), f"{indentation(source.lines[first_line(node) - 1])}# {_say(node)}")
        for node in source.code.find(ast.stmt)
        if isinstance(node, _KINDS[statement]) and node.lineno in bare
    ]
    return same_tree(source, insert(source.lines, made))


def _say(node: ast.stmt) -> str:
    """A statement's head in words."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return f"Go through {_short(node.iter)}, one {_short(node.target)} at a time."
    if isinstance(node, ast.While):
        return f"Repeat as long as this holds: {_short(node.test)}."
    if isinstance(node, ast.If):
        return f"Treat the case apart in which {_short(node.test)}."
    value = getattr(node, "value", None)
    return f"The result is {_short(value)}." if value is not None else "There is no result."


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 40 else f"{text[:37]}..."


@transforms("cosmetic-insert-header-comment", text="{entry}: a solution in plain Python.")
@transforms("cosmetic-add-licence-line", text="SPDX-License-Identifier: Apache-2.0")
@transforms("cosmetic-state-python-version", text="Needs Python 3.11 or later.")
@transforms("cosmetic-add-todo", text="TODO: measure where the time goes.")
def comment_at_top(source: Source, text: str) -> str:
    """A comment at the top of the file."""
    return same_tree(source, insert(source.lines, [(top_line(source), f"# {text.format(entry=source.entry_point)}")]))


@transforms("cosmetic-add-comment")
@transforms("cosmetic-add-more-comments")
def comment_in_function(source: Source) -> str:
    """A comment above the first statement of a function."""
    for function in source.code.functions:
        body = function.body[1:] if isinstance(function.body[0], ast.Expr) else function.body
        if body and first_line(body[0]) > function.lineno:
            line = first_line(body[0])
            text = f"{indentation(source.lines[line - 1])}# Work out {function.name.replace('_', ' ')} step by step."
            return same_tree(source, insert(source.lines, [(line, text)]))
    raise Refusal("no function has a line for it")


@transforms("cosmetic-remove-comments")
@transforms("cosmetic-remove-todos", matches=r"\b(TODO|FIXME|XXX)\b")
def remove_comments(source: Source, matches: str = "") -> str:
    """The program without comments, or without those of a kind."""
    kept: dict[int, str] = dict(enumerate(source.lines, 1))
    for found in source.code.comments:
        if not re.search(matches, found.text, re.IGNORECASE):
            continue
        if found.own_line:
            del kept[found.line]
        else:
            kept[found.line] = kept[found.line][: found.column].rstrip()
    return same_tree(source, "\n".join(kept.values()))
