"""Docstrings written, extended, shortened and removed."""

import ast
import re
from collections.abc import Callable

from codechat.languages.python.syntax import parameters
from codechat.models.baselines.refactoring.base import Refusal, Source, insert, top_line, transforms
from codechat.models.baselines.refactoring.trees import unjoin
from codechat.patterns.tree import Function, docstring


def _write(source: Source, write: Callable[[Function, str | None], str | None]) -> str:
    """Every function's docstring set to what `write(function, text so far)` gives: None leaves it, "" takes it away.

    Texts have no common indentation. Behaviour is kept: only `__doc__` changes.
    """
    source.without("__doc__")
    one_liners = any(function.body[0].lineno == function.lineno for function in source.code.functions)
    flat = source.with_text(unjoin(source.module).code) if one_liners else source
    edits: list[tuple[int, int, list[str]]] = []
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
        made = [indent + _literal(new, indent)] if new else [f"{indent}pass"] * (len(function.body) == 1)
        if node is None:
            start = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", []))])
            edits.append((start, start - 1, made))
        else:
            end = first.end_lineno or first.lineno
            if flat.lines[end - 1].encode()[first.end_col_offset or 0 :].strip():
                raise Refusal("something stands behind a docstring")
            edits.append((first.lineno, end, made))
    lines = list(flat.lines)
    for start, end, made in sorted(edits, reverse=True):
        lines[start - 1 : end] = made
    return "\n".join(lines)


def _literal(text: str, indent: str) -> str:
    """A docstring's source for a text whose lines carry their own indentation below the first."""
    if "\\" in text or '"""' in text or text.endswith('"'):
        raise Refusal("the docstring needs escapes")
    lines = text.rstrip().split("\n")
    body = "\n".join([lines[0], *(f"{indent}{line}".rstrip() for line in lines[1:])])
    return f'"""{body}\n{indent}"""' if len(lines) > 1 else f'"""{body}"""'


def _summary(function: Function) -> str:
    words = function.name.strip("_").replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}."


@transforms("cosmetic-add-docstrings")
def add_docstrings(source: Source) -> str:
    """A one-line docstring for every function that has none."""
    return _write(source, lambda function, old: None if old else _summary(function))


def _args(function: Function) -> str:
    hints = {one.arg: one.annotation for one in parameters(function) if one.arg not in ("self", "cls")}
    lines = [f"    {name}: {ast.unparse(hint) if hint else 'see above'}." for name, hint in hints.items()]
    return "\n".join(["Args:", *lines]) if lines else ""


def _returns(function: Function) -> str:
    return f"Returns:\n    {ast.unparse(function.returns) if function.returns else 'The result'}."


@transforms("cosmetic-include-args-section", part=_args, heading=r"(?m)^\s*Args:")
@transforms("cosmetic-include-returns-section", part=_returns, heading=r"(?m)^\s*Returns:")
def add_section(source: Source, part: Callable[[Function], str], heading: str) -> str:
    """Every function's docstring with a section made from its signature, if it has none."""

    def write(function: Function, old: str | None) -> str | None:
        added = "" if old and re.search(heading, old) else part(function)
        return f"{old or _summary(function)}\n\n{added}" if added else None

    return _write(source, write)


@transforms("cosmetic-shorten-docstrings")
def shorten(source: Source) -> str:
    """Every docstring cut to its first line."""

    def write(function: Function, old: str | None) -> str | None:
        return next(line for line in old.split("\n") if line.strip()).strip().rstrip('"\\') if old else None

    return _write(source, write)


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
                kept.append(line.rstrip())
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
        return text or _summary(function)

    return _write(source, write)


@transforms("cosmetic-add-module-docstring")
def module_docstring(source: Source) -> str:
    """A docstring at the top of the module."""
    source.without("__doc__")
    return insert(source.lines, [(top_line(source), f'"""{source.entry_point} and what it needs."""\n')])


@transforms("cosmetic-delete-docstrings")
def delete_docstrings(source: Source) -> str:
    """No docstring of a function."""
    return _write(source, lambda function, old: "" if old is not None else None)
