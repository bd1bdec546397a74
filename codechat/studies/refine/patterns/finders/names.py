"""Names that a program binds: local variables by their form, shadowed built-ins, unused names and imports."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, Regex, at, pattern
from codechat.studies.refine.patterns.reading.code import Code, is_hint
from codechat.studies.refine.patterns.reading.tree import Function, own_nodes, walk
from codechat.studies.refine.patterns.reading.use import idle

_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))


class Binding(NamedTuple):
    """A name's first binding in a function, parameters excepted."""

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
    """The variable that a node binds; None if it binds none."""
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
    """Local variables named like a built-in."""
    return (at(node, f"'{name}'") for name, node, _ in local_bindings(code) if name in _BUILTINS)


@pattern("unused_local", "unused local variable")
def unused_local(code: Code) -> Iterable[Occurrence]:
    """Local variables that are assigned, alone or by unpacking, and read nowhere in their function.

    A statement that consists of the name alone reads nothing, nor do `_ = name` and `name = name`.
    """
    for name, node, function in local_bindings(code):
        above = code.parents.get(node)
        assigned = isinstance(above, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        if isinstance(above, ast.Tuple | ast.List | ast.Starred) and not name.startswith("_"):
            assigned = any(isinstance(one, ast.Assign | ast.For) for one in code.ancestors(node))
        others = [one for one in walk(function) if isinstance(one, ast.Name) and one.id == name] if assigned else []
        if assigned and not any(isinstance(one.ctx, ast.Del) or is_real_read(code, one) for one in others):
            yield at(node, f"'{name}'")


def is_real_read(code: Code, name: ast.Name) -> bool:
    """Whether a name is read by more than a statement of the name alone, `_ = name` or `name = name`."""
    if name in idle(code):
        return False
    above = code.parents.get(name)
    targets = [getattr(target, "id", "") for target in above.targets] if isinstance(above, ast.Assign) else []
    return isinstance(name.ctx, ast.Load) and not isinstance(above, ast.Expr) and targets not in ([name.id], ["_"])


def _is_sham(code: Code, name: ast.Name) -> bool:
    """Whether it is an `assert os and re`, which names variables and uses none."""
    above = next((one for one in code.ancestors(name) if not isinstance(one, ast.BoolOp | ast.Tuple)), None)
    return isinstance(above, ast.Assert)


@pattern("unused_import", "unused import")
def unused_import(code: Code) -> Iterable[Occurrence]:
    """Imported names that are never read, or only by a statement of the name alone; `__future__` and `*` excepted."""
    whole = code.whole
    read = {
        node.id for node in whole.find(ast.Name)
        if is_real_read(code, node) and not _is_sham(code, node) and not whole.is_own(node, inner=True)
    }  # fmt: skip
    exported = set[str]()
    for text in code.find(ast.Constant):
        if isinstance(text.value, str):
            around = next((one for one in code.ancestors(text) if isinstance(one, ast.stmt)), None)
            listed = around is not None and "__all__" in ast.unparse(around).partition("[")[0]
            exported.update(re.findall(r"\w+", text.value) if listed or is_hint(code, text) else ())
    for node in code.find(ast.Import, ast.ImportFrom):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if name != "*" and name not in read | exported:
                yield at(node, f"'{name}'")


@pattern("assignment_to", "assignment to {matches}", "assignments to {matches}")
def assignment_to(code: Code, matches: Regex) -> Iterable[Occurrence]:
    """Module-level variables whose whole name matches and that are given a value."""
    body = code.tree.body if code.tree else []
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        given = getattr(statement, "value", None) is not None
        for target in (each for one in targets for each in (one.elts if isinstance(one, ast.Tuple) else [one])):
            if given and isinstance(target, ast.Name) and re.fullmatch(matches, target.id):
                yield at(statement, f"'{target.id}'")
