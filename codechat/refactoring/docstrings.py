"""Docstrings written, extended, shortened and removed."""

import ast
import re
from collections.abc import Callable
from typing import Any

import libcst as cst

from codechat.languages.python.syntax import parameters
from codechat.patterns.tree import FUNCTIONS, Function, docstring
from codechat.refactoring.base import Refusal, Source, same_tree, top_line, transforms, with_insertions
from codechat.refactoring.trees import Made, docstring_split, rewritten, statements, unjoined

_SUMMARY = "Work out the result of {name}."


def _literal(text: str, indent: str) -> str:
    """A docstring's source for a text whose lines carry their own indentation below the first."""
    if "\\" in text or '"""' in text or text.endswith('"'):
        raise Refusal("the docstring needs escapes")
    lines = text.rstrip().split("\n")
    body = "\n".join([lines[0], *(f"{indent}{line}".rstrip() for line in lines[1:])])
    return f'"""{body}\n{indent}"""' if len(lines) > 1 else f'"""{body}"""'


def _with_docstrings(source: Source, write: Callable[[Function, str | None], str | None]) -> str:
    """Every function's docstring set to what `write(function, text so far)` gives; None leaves it as it is.

    Texts have no common indentation. Behaviour is kept: only `__doc__` changes.
    """
    source.without("__doc__")
    flat = source.with_text(unjoined(source.module).code) if _one_liners(source) else source
    edits: list[tuple[int, int, str]] = []
    for function in flat.code.functions:
        node = docstring(function)
        old = ast.get_docstring(function) if node is not None else None
        new = write(function, old)
        if new is None or new == old:
            continue
        first = function.body[0]
        indent = flat.lines[first.lineno - 1][: first.col_offset]
        if indent.strip():
            raise Refusal("a function's body shares its line")
        made = indent + _literal(new, indent)
        if node is None:
            start = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", []))])
            edits.append((start, start - 1, made))
        else:
            _alone(flat, first)
            edits.append((first.lineno, first.end_lineno or first.lineno, made))
    lines: list[str] = list(flat.lines)
    for start, end, made in sorted(edits, reverse=True):
        lines[start - 1 : end] = [made]
    return "\n".join(lines)


def _one_liners(source: Source) -> bool:
    return any(function.body[0].lineno == function.lineno for function in source.code.functions)


def _alone(source: Source, node: ast.stmt) -> None:
    end = source.lines[(node.end_lineno or 1) - 1].encode()[node.end_col_offset or 0 :]
    if end.strip():
        raise Refusal("something stands behind a docstring")


def _summary(function: Function) -> str:
    return _SUMMARY.format(name=function.name)


@transforms("cosmetic-add-docstrings")
def add_docstrings(source: Source) -> str:
    """A one-line docstring for every function that has none."""
    return _with_docstrings(source, lambda function, old: None if old else _summary(function))


def _parameters(function: Function) -> list[str]:
    return [one.arg for one in parameters(function) if one.arg not in ("self", "cls")]


def _args(function: Function) -> str:
    return "\n".join(["Args:", *(f"    {name}: a value of the call." for name in _parameters(function))])


def _fields(function: Function) -> str:
    return "\n".join(f":param {name}: a value of the call." for name in _parameters(function))


def _returns(function: Function) -> str:
    return "Returns:\n    The result."


def _usage(function: Function) -> str:
    return f">>> {function.name}({', '.join(['...'] * len(_parameters(function)))})  # doctest: +SKIP"


def _examples(function: Function) -> str:
    return f"Examples:\n    {function.name}({', '.join(_parameters(function))})"


def _missing(function: Function, old: str | None) -> str:
    names = [name for name in _parameters(function) if not re.search(rf"\b{name}\b", old or "")]
    return f"Works on {', '.join(names)}." if names else ""


@transforms("cosmetic-document-parameters", part=_missing)
@transforms("cosmetic-include-args-section", part=_args, needs=r"(?m)^\s*Args:")
@transforms("cosmetic-use-param-fields", part=_fields, needs=None)
@transforms("cosmetic-include-returns-section", part=_returns, needs=r"(?m)^\s*Returns:")
@transforms("cosmetic-include-doctest", part=_usage, needs=">>>")
@transforms("cosmetic-include-examples-section", part=_examples, needs=r"(?m)^\s*Examples?:")
def extend(source: Source, part: Callable[..., str], needs: str | None = "") -> str:
    """Every function's docstring with a further paragraph, where `needs` is not found in it."""

    def write(function: Function, old: str | None) -> str | None:
        if needs and old and re.search(needs, old):
            return None
        added = part(function, old) if part is _missing else part(function)
        if not added or (part is _args and not _parameters(function)):
            return None
        return f"{old or _summary(function)}\n\n{added}"

    return _with_docstrings(source, write)


@transforms("cosmetic-shorten-docstrings")
def shorten(source: Source) -> str:
    """Every docstring cut to its first line."""

    def write(function: Function, old: str | None) -> str | None:
        return next(line for line in old.split("\n") if line.strip()).strip().rstrip('"\\') if old else None

    return _with_docstrings(source, write)


@transforms("cosmetic-reformat-docstrings")
def stretch(source: Source) -> str:
    """Every one-line docstring broken into two lines in its middle, or given a second line where it is one word."""

    def write(function: Function, old: str | None) -> str | None:
        if not old or "\n" in old.strip():
            return None
        words = old.split()
        half = len(words) // 2
        return "\n".join([" ".join(words[:half]), " ".join(words[half:])]) if half else f"{old}\n\nA single function."

    return _with_docstrings(source, write)


@transforms("cosmetic-drop-doctests")
def drop_doctests(source: Source) -> str:
    """Docstrings without >>> examples and the output that follows them."""

    def write(function: Function, old: str | None) -> str | None:
        if not old or ">>>" not in old:
            return None
        kept: list[str] = []
        example = False
        for line in old.split("\n"):
            example = line.strip() != "" and (example or line.lstrip().startswith(">>>"))
            if not example:
                kept.append(line.replace(">>>", "").rstrip())
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
        return text or _summary(function)

    return _with_docstrings(source, write)


@transforms("cosmetic-add-module-docstring")
def module_docstring(source: Source) -> str:
    """A docstring at the top of the module."""
    source.without("__doc__")
    return with_insertions(source.lines, [(top_line(source), f'"""{source.entry_point} and what it needs."""\n')])


def _without_docstring(body: list[Any]) -> list[Any] | None:
    held, rest = docstring_split(body)
    if not held:
        return None
    again, _ = docstring_split(rest)
    if again:
        raise Refusal("a second string would become the docstring")
    return rest or statements("pass")


@transforms("cosmetic-delete-docstrings")
@transforms("cosmetic-remove-module-docstring", everywhere=False)
def delete_docstrings(source: Source, everywhere: bool = True) -> str:
    """No docstrings, or none of the module's."""
    source.without("__doc__")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.Module):
            rest = _without_docstring(list(node.body))
            return node if rest is None else node.with_changes(body=rest)
        held = isinstance(node, cst.FunctionDef | cst.ClassDef) and isinstance(node.body, cst.IndentedBlock)
        if held and everywhere:
            rest = _without_docstring(list(node.body.body))  # type: ignore[attr-defined]
            return node if rest is None else node.with_deep_changes(node.body, body=rest)  # type: ignore[attr-defined]
        return node

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("cosmetic-convert-docstrings-to-comments")
def docstrings_to_comments(source: Source) -> str:
    """Every docstring as comments in its place."""
    bare = source.with_text(delete_docstrings(source))
    lines = list(source.lines)
    for node in sorted(source.code.find(ast.Module, ast.ClassDef, *FUNCTIONS), key=lambda n: -getattr(n, "lineno", 0)):
        text = docstring(node)
        body: list[ast.stmt] = getattr(node, "body", [])
        if text is None:
            continue
        first = body[0]
        _alone(source, first)
        indent = source.lines[first.lineno - 1][: first.col_offset]
        if indent.strip():
            raise Refusal("a docstring shares its line")
        made = [f"{indent}# {line.strip()}".rstrip() for line in str(text.value).strip().split("\n")]
        tail = [f"{indent}pass"] if len(body) == 1 and not isinstance(node, ast.Module) else []
        lines[first.lineno - 1 : first.end_lineno] = [*(made or [f"{indent}#"]), *tail]
    return same_tree(bare, "\n".join(lines))
