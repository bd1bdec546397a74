"""Definitions that compute nothing: functions that give back what they get, classes that keep what they are given."""

import ast
from collections.abc import Iterable, Iterator

from codechat.languages.python.syntax import parameters
from codechat.patterns.code import Code
from codechat.patterns.tree import FUNCTIONS, Function, body_without_docstring

_PLAIN_BASES = {"object", "typing.NamedTuple", "typing.Generic"}
_FIELDS = {"dataclasses.dataclass", "attr.s", "attrs.define"}


def is_identity(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension hands on every value as it is."""
    first = node.generators[0]
    if len(node.generators) > 1 or first.ifs or first.is_async or isinstance(node, ast.DictComp):
        return False
    return isinstance(first.target, ast.Name) and _is_name(node.elt, first.target.id)


def computes_nothing(code: Code, function: Function) -> bool:
    """Whether a function gives back one and the same name or literal, whatever it is asked.

    `yield from values`, and a loop that yields what it goes through, give back `values`; a call of the function by
    itself that hands this parameter on adds nothing.
    """
    if not all(code.origin(one).startswith("functools.") for one in _heads(function)):
        return False
    leaves = list(_leaves(body_without_docstring(function)))
    calls = [one for one in leaves if isinstance(one, ast.Call) and _is_name(one.func, function.name)]
    plain = {ast.unparse(one) if isinstance(one, ast.Name | ast.Constant) else "" for one in leaves if one not in calls}
    if len(plain) != 1 or "" in plain:
        return False
    name, names = plain.pop(), [one.arg for one in parameters(function)]
    place = names.index(name) if name in names else len(names)
    return all(len(call.args) > place and _is_name(call.args[place], name) for call in calls)


def _heads(node: Function | ast.ClassDef) -> list[ast.expr]:
    """The decorators without their arguments."""
    return [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]


def _is_name(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _leaves(body: Iterable[ast.stmt]) -> Iterator[ast.expr | None]:
    """What the ways through a function give back; None for a way that does anything else."""
    for statement in body:
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Return):
            yield from _choices(statement.value)
        elif isinstance(statement, ast.If):
            yield from _leaves([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Expr) and isinstance(value, ast.YieldFrom):
            yield value.value
        elif isinstance(statement, ast.For) and isinstance(statement.target, ast.Name) and len(statement.body) == 1:
            only = getattr(statement.body[0], "value", None)
            same = isinstance(only, ast.Yield) and _is_name(only.value, statement.target.id)
            yield statement.iter if same and not statement.orelse else None
        elif not isinstance(statement, ast.Pass):
            yield None


def _choices(value: ast.expr | None) -> Iterator[ast.expr | None]:
    if isinstance(value, ast.IfExp):
        yield from _choices(value.body)
        yield from _choices(value.orelse)
    else:
        yield value


def keeps_only(code: Code, node: ast.ClassDef) -> bool:
    """Whether a class does nothing but keep what its instances are given, and give it back.

    It has fields of its own or an `__init__` that assigns parameters and literals; every other method returns an
    attribute, or what it gives when it is called.
    """
    fields = any(code.origin(one) in _FIELDS for one in _heads(node))
    for base in node.bases:
        origin = code.origin(base.value if isinstance(base, ast.Subscript) else base)
        if origin not in _PLAIN_BASES:
            return False
        fields = fields or origin == "typing.NamedTuple"
    for statement in body_without_docstring(node):
        if isinstance(statement, FUNCTIONS):
            if not (_assigns_only(statement) if statement.name == "__init__" else _returns_attribute(statement)):
                return False
            fields = fields or statement.name == "__init__"
        elif not isinstance(statement, ast.AnnAssign | ast.Assign | ast.Pass):
            return False
    return fields


def _assigns_only(function: Function) -> bool:
    for statement in body_without_docstring(function):
        value = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Pass) or not isinstance(
            value, ast.Name | ast.Constant | None
        ):
            return False
    return True


def _returns_attribute(function: Function) -> bool:
    body = body_without_docstring(function)
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    value = value.func if isinstance(value, ast.Call) and not value.args and not value.keywords else value
    return isinstance(value, ast.Attribute) and _is_name(value.value, "self")
