"""Names that a program binds: locals by shape, shadowed built-ins, unused names and imports."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, Regex, at, pattern
from codechat.patterns.code import Code
from codechat.patterns.tree import Function, own_nodes, walk

_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))


class Binding(NamedTuple):
    """A name's first binding in a function, its parameters left out."""

    name: str
    node: ast.AST
    function: Function


def local_bindings(code: Code) -> Iterator[Binding]:
    """Every local variable once: targets, loop and comprehension variables, `as` names, captures; `_` is none."""
    for function in code.functions:
        taken = {parameter.arg for parameter in parameters(function)} | {"_"}
        for node in own_nodes(function):
            if isinstance(node, ast.Global | ast.Nonlocal):
                taken.update(node.names)
        for node in own_nodes(function):
            name = bound_name(node)
            if name and name not in taken:
                taken.add(name)
                yield Binding(name, node, function)


def bound_name(node: ast.AST) -> str | None:
    """The variable that a node binds, if it does."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name
    if isinstance(node, ast.MatchMapping):
        return node.rest
    return None


@pattern("local_name", "local variable with such a name", "local variables with such names")
def local_name(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Local variables whose whole name matches."""
    for name, node, _ in local_bindings(code):
        if re.fullmatch(matches, name):
            yield at(node, f"'{name}'")


@pattern("shadowing_local", "local variable that hides a built-in", "local variables that hide built-ins")
def shadowing_local(code: Code) -> Iterable[Occurrence]:
    """Local variables named as a built-in."""
    return (at(node, f"'{name}'") for name, node, _ in local_bindings(code) if name in _BUILTINS)


@pattern("unused_local", "unused local variable")
def unused_local(code: Code) -> Iterable[Occurrence]:
    """Local variables that are assigned by a plain assignment and read nowhere in their function."""
    for name, node, function in local_bindings(code):
        assigned = isinstance(code.parents.get(node), ast.Assign | ast.AnnAssign | ast.NamedExpr)
        others = [one for one in walk(function) if isinstance(one, ast.Name) and one.id == name] if assigned else []
        if assigned and all(isinstance(one.ctx, ast.Store) for one in others):
            yield at(node, f"'{name}'")


@pattern("unused_import", "unused import")
def unused_import(code: Code) -> Iterable[Occurrence]:
    """Imported names that are read nowhere; `from __future__` and `*` aside."""
    read = {node.id for node in code.find(ast.Name) if isinstance(node.ctx, ast.Load)}
    exported = {node.value for node in code.find(ast.Constant) if isinstance(node.value, str)}
    for node in code.find(ast.Import, ast.ImportFrom):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if name != "*" and name not in read | exported:
                yield at(node, f"'{name}'")


@pattern("assignment_to", "assignment to {matches}", "assignments to {matches}")
def assignment_to(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Module-level variables whose whole name matches."""
    body = code.tree.body if code.tree else []
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and re.fullmatch(matches, target.id):
                yield at(statement, f"'{target.id}'")
