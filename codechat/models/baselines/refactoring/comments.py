"""Comments and docstrings: written, extended, shortened and removed."""

import ast
import re
from collections.abc import Callable

from codechat.languages.python.syntax import parameters
from codechat.models.baselines.refactoring.base import Refusal, Source, insert, same_tree, top_line, transforms
from codechat.patterns.finders.comments import Place, Statement, commented
from codechat.patterns.reading.tree import Function, docstring, first_line


def _above(source: Source, node: ast.stmt, text: str) -> tuple[int, str]:
    """The insertion of a comment above a statement."""
    line = first_line(node)
    return line, re.sub(r"\S.*", "", source.code.lines[line - 1]) + f"# {text}"


@transforms("cosmetic-put-comment-above-loops", statement="loop")
@transforms("cosmetic-put-comment-above-ifs", statement="if")
@transforms("cosmetic-explain-returns", statement="return", place="either")
def comment_above(source: Source, statement: Statement, place: Place = "above") -> str:
    """A line with a comment above every statement of the kind that has none."""
    bare = [one.node for one, has in commented(source.code, statement, place) if not has]
    made = [_above(source, node, _say(node)) for node in bare if isinstance(node, ast.stmt)]
    return same_tree(source, insert(source.code.lines, made))


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


@transforms("cosmetic-insert-header-comment", text="# {entry}: a solution in plain Python.")
@transforms("cosmetic-add-licence-line", text="# SPDX-License-Identifier: Apache-2.0")
@transforms("cosmetic-state-python-version", text="# Needs Python 3.11 or later.")
@transforms("cosmetic-add-todo", text="# TODO: measure where the time goes.")
@transforms("cosmetic-add-module-docstring", text='"""{entry} and what it needs."""\n')
def text_at_top(source: Source, text: str) -> str:
    """A comment or docstring at the top of the file."""
    if not text.startswith("#"):
        source.without("__doc__")
    return insert(source.code.lines, [(top_line(source), text.format(entry=source.entry_point))])


@transforms("cosmetic-add-comment")
@transforms("cosmetic-add-more-comments")
def comment_in_function(source: Source) -> str:
    """A comment above the first statement of a function."""
    for function in source.code.functions:
        body = function.body[1:] if isinstance(function.body[0], ast.Expr) else function.body
        if body and first_line(body[0]) > function.lineno:
            text = f"Work out {function.name.replace('_', ' ')} step by step."
            return same_tree(source, insert(source.code.lines, [_above(source, body[0], text)]))
    raise Refusal("no function has a line for it")


@transforms("cosmetic-remove-comments")
def remove_comments(source: Source) -> str:
    """The program without comments."""
    kept: dict[int, str] = dict(enumerate(source.code.lines, 1))
    for found in source.code.comments:
        kept[found.line] = kept[found.line][: found.column].rstrip()
        if found.own_line:
            del kept[found.line]
    return same_tree(source, "\n".join(kept.values()))


def _begun(function: Function, old: str) -> str:
    """The text so far, or the function's name as a sentence."""
    words = function.name.strip("_").replace("_", " ")
    return old or f"{words[:1].upper()}{words[1:]}."


def _args(function: Function, old: str) -> str:
    hints = {one.arg: one.annotation for one in parameters(function) if one.arg not in ("self", "cls")}
    lines = [f"    {name}: {ast.unparse(hint) if hint else 'see above'}." for name, hint in hints.items()]
    return "\n".join([_begun(function, old), "\nArgs:", *lines]) if lines and "Args:" not in old else old


def _returns(function: Function, old: str) -> str:
    result = ast.unparse(function.returns) if function.returns else "The result"
    return old if "Returns:" in old else f"{_begun(function, old)}\n\nReturns:\n    {result}."


def _no_examples(function: Function, old: str) -> str:
    """Without >>> examples and the output that follows them."""
    text = re.sub(r"(?m)^[ \t]*>>>.*\n?(?:[ \t]*\S.*(?:\n|$))*", "", old)
    return _begun(function, re.sub(r"\n{3,}", "\n\n", text).strip()) if ">>>" in old else old


@transforms("cosmetic-add-docstrings", write=_begun)
@transforms("cosmetic-include-args-section", write=_args)
@transforms("cosmetic-include-returns-section", write=_returns)
@transforms("cosmetic-shorten-docstrings", write=lambda function, old: old.strip().split("\n")[0].strip().rstrip('"\\'))
@transforms("cosmetic-drop-doctests", write=_no_examples)
@transforms("cosmetic-delete-docstrings", write=lambda function, old: "")
def write_docstrings(source: Source, write: Callable[[Function, str], str]) -> str:
    """Every function's docstring set to what `write(function, text so far)` gives; an empty text is none.

    Texts have no common indentation. Behaviour is kept: only `__doc__` changes.
    """
    source.without("__doc__")
    lines = list(source.code.lines)
    for function in sorted(source.code.functions, key=lambda one: -one.body[0].lineno):
        node, first = docstring(function), function.body[0]
        old = (ast.get_docstring(function) or "") if node else ""
        new = write(function, old)
        if new == old:
            continue
        start = first_line(first)
        indent, end = lines[start - 1][: first.col_offset], (first.end_lineno or start) if node else start - 1
        behind = lines[end - 1].encode()[first.end_col_offset or 0 :] if node else b""
        if indent.strip() or behind.strip():
            raise Refusal("a docstring would share its line")
        body = [indent + _literal(new, indent)] if new else [f"{indent}pass"] * (len(function.body) == 1)
        lines[start - 1 : end] = body
    return "\n".join(lines)


def _literal(text: str, indent: str) -> str:
    """A docstring's source for a text whose lines carry their own indentation below the first."""
    if "\\" in text or '"""' in text or text.endswith('"'):
        raise Refusal("the docstring needs escapes")
    first, *others = text.rstrip().split("\n")
    body = "\n".join([first, *(f"{indent}{line}".rstrip() for line in others)])
    return f'"""{body}\n{indent}"""' if others else f'"""{body}"""'
