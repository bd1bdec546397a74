"""Branches: if and else in other forms, conditional expressions, match, guards."""

from typing import Any

import libcst as cst

from codechat.refactoring.base import Refusal, Source, transforms
from codechat.refactoring.trees import (
    Made,
    block,
    expression,
    has,
    inside,
    nodes,
    rewritten,
    several,
    statements,
    text_of,
    unjoined,
)

EXITS = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def without_elif(module: cst.Module, only: set[cst.CSTNode] | None = None) -> cst.Module:
    """Every `elif` (or those of `only`) as an `if` in an `else` branch."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.If):
            return node
        if only is not None and getattr(original, "orelse", None) not in only:
            return node
        return node.with_changes(orelse=cst.Else(body=block([node.orelse.with_changes(leading_lines=[])])))

    return rewritten(module, change)  # type: ignore[no-any-return]


@transforms("structural-avoid-elif")
def avoid_elif(source: Source) -> str:
    """No `elif`."""
    return without_elif(source.module).code


def body_of(branch: Any) -> list[Any]:
    """A branch's statements, one a line."""
    suite = branch.body
    assert isinstance(suite, cst.IndentedBlock)
    return list(suite.body)


def last_exits(body: list[Any]) -> bool:
    last = body[-1]
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], EXITS)


@transforms("structural-remove-else-after-exit")
def no_else_after_exit(source: Source) -> str:
    """What stood in an `else` behind a block that leaves, after it."""
    module = unjoined(source.module)
    hoisted = {
        node.orelse
        for node in nodes(module)
        if isinstance(node, cst.If)
        and isinstance(node.orelse, cst.If)
        and not last_exits(body_of(node))
        and _some_exit(node.orelse)
    }
    module = without_elif(module, {one for one in hoisted if one is not None})

    def flat(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.IndentedBlock | cst.Module):
            return node
        return node.with_changes(body=[made for one in node.body for made in _hoisted(one)])

    return rewritten(module, flat).code  # type: ignore[no-any-return]


def _hoisted(node: Any) -> list[Any]:
    """An `if` whose block leaves, with the statements of its other branches behind it."""
    if not isinstance(node, cst.If) or node.orelse is None or not last_exits(body_of(node)):
        return [node]
    after = _hoisted(node.orelse) if isinstance(node.orelse, cst.If) else body_of(node.orelse)
    return [node.with_changes(orelse=None), *after]


def _some_exit(node: cst.If) -> bool:
    return node.orelse is not None and (
        last_exits(body_of(node)) or (isinstance(node.orelse, cst.If) and _some_exit(node.orelse))
    )


@transforms("structural-ensure-else-branches")
def else_everywhere(source: Source) -> str:
    """`else: pass` for every chain that has no `else`."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.If) and node.orelse is None:
            return node.with_changes(orelse=cst.Else(body=block(statements("pass"))))
        return node

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("structural-avoid-else-branches")
def no_else(source: Source) -> str:
    """The condition kept in a variable, and a second `if` that negates it."""
    namer = source.namer()
    source.builtin("bool")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.Else):
            return node
        name = namer("holds", "applies", "is_so", "is_met")
        first = statements(f"{name} = bool({text_of(node.test)})")
        first[0] = first[0].with_changes(leading_lines=node.leading_lines)
        made = statements(f"if {name}:\n    pass\nif not {name}:\n    pass")
        made = [made[0].with_changes(body=node.body), made[1].with_changes(body=node.orelse.body)]
        return several([*first, *made])

    module = without_elif(unjoined(source.module))
    if any(isinstance(node, cst.If) and has(node.test, cst.NamedExpr) for node in nodes(module)):
        raise Refusal("a condition assigns")
    return rewritten(module, change).code  # type: ignore[no-any-return]


def _chosen(node: cst.If) -> tuple[Any, cst.BaseExpression, cst.BaseExpression] | None:
    """The kind of statement and both values of an `if`/`else` that only chooses a value."""
    if not isinstance(node.orelse, cst.Else):
        return None
    bodies = (body_of(node), body_of(node.orelse))
    if any(len(body) != 1 or not isinstance(body[0], cst.SimpleStatementLine) for body in bodies):
        return None
    one, two = (body[0].body[0] for body in bodies)
    if isinstance(one, cst.Return) and isinstance(two, cst.Return) and one.value and two.value:
        return one, one.value, two.value
    if isinstance(one, cst.Assign) and isinstance(two, cst.Assign) and len(one.targets) == len(two.targets) == 1:
        target = one.targets[0].target
        if isinstance(target, cst.Name) and text_of(target) == text_of(two.targets[0].target):
            return one, one.value, two.value
    return None


@transforms("structural-convert-if-else-to-ternary")
def to_ternary(source: Source) -> str:
    """`x if condition else y` for every `if`/`else` that only chooses a value."""
    module = unjoined(source.module)
    chained = {node.orelse for node in nodes(module) if isinstance(node, cst.If)}

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or original in chained:
            return node
        found = _chosen(node)
        if found is None or any(_unparenthesised(value) for value in found[1:]):
            return node
        statement, one, two = found
        value = expression(f"{inside(one)} if {inside(node.test)} else {inside(two)}")
        space = {"whitespace_after_return": cst.SimpleWhitespace(" ")} if isinstance(statement, cst.Return) else {}
        line = cst.SimpleStatementLine(
            body=[statement.with_changes(value=value, semicolon=cst.MaybeSentinel.DEFAULT, **space)]
        )
        return line.with_changes(leading_lines=node.leading_lines)

    return rewritten(module, change).code  # type: ignore[no-any-return]


def _unparenthesised(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Tuple) and any(isinstance(one, cst.StarredElement) for one in value.elements)


@transforms("structural-merge-nested-ifs")
def merge_ifs(source: Source) -> str:
    """`if a and b` for an `if` that holds nothing but another."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or node.orelse is not None:
            return node
        body = body_of(node)
        inner = body[0]
        if len(body) != 1 or not isinstance(inner, cst.If) or inner.orelse is not None:
            return node
        test = expression(f"{inside(node.test)} and {inside(inner.test)}")
        return node.with_changes(test=test, body=inner.body, whitespace_before_test=cst.SimpleWhitespace(" "))

    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]
