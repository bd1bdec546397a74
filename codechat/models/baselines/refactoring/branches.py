"""Branches: `if` and `else` in other forms, conditional expressions, conditions and results with a name or without."""

from typing import Any

import libcst as cst

from codechat.models.baselines.refactoring.base import Refusal, Source, transforms
from codechat.models.baselines.refactoring.trees import (
    Made,
    Statement,
    assigned,
    block,
    body_of,
    expression,
    has,
    inside,
    nodes,
    reads,
    rewrite,
    several,
    small,
    statements,
    text_of,
    unjoin,
)

_SPACE = cst.SimpleWhitespace(" ")


def without_elif(module: cst.Module) -> cst.Module:
    """Every `elif` as an `if` in an `else` branch."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.If):
            return node
        return node.with_changes(orelse=cst.Else(body=block([node.orelse.with_changes(leading_lines=[])])))

    return rewrite(module, change)


@transforms("structural-avoid-elif")
def avoid_elif(source: Source) -> str:
    """No `elif`."""
    return without_elif(source.module).code


def _chosen(node: cst.If) -> tuple[cst.Return | cst.Assign, cst.BaseExpression, cst.BaseExpression] | None:
    """The kind of statement and both values of an `if`/`else` that only chooses a value."""
    if not isinstance(node.orelse, cst.Else) or len(body_of(node)) != 1 or len(body_of(node.orelse)) != 1:
        return None
    one, two = small(body_of(node)[0]), small(body_of(node.orelse)[0])
    if isinstance(one, cst.Return) and isinstance(two, cst.Return) and one.value and two.value:
        return one, one.value, two.value
    if isinstance(one, cst.Assign) and isinstance(two, cst.Assign) and len(one.targets) == len(two.targets) == 1:
        target = one.targets[0].target
        if isinstance(target, cst.Name) and text_of(target) == text_of(two.targets[0].target):
            return one, one.value, two.value
    return None


@transforms("structural-convert-if-else-to-ternary")
@transforms("structural-use-conditional-expression")
def to_ternary(source: Source) -> str:
    """`x if condition else y` for every `if`/`else` that only chooses a value."""
    module = unjoin(source.module)
    chained = {node.orelse for node in nodes(module) if isinstance(node, cst.If)}

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        found = _chosen(node) if isinstance(node, cst.If) and original not in chained else None
        if found is None or not isinstance(node, cst.If) or any(has(one, cst.StarredElement) for one in found[1:]):
            return node
        statement, one, two = found
        value = expression(f"{inside(one)} if {inside(node.test)} else {inside(two)}")
        space = {"whitespace_after_return": _SPACE} if isinstance(statement, cst.Return) else {}
        made = statement.with_changes(value=value, semicolon=cst.MaybeSentinel.DEFAULT, **space)
        return cst.SimpleStatementLine(body=[made], leading_lines=node.leading_lines)

    return rewrite(module, change).code


@transforms("structural-transform-ternaries")
@transforms("structural-avoid-conditional-expressions")
def from_ternary(source: Source) -> str:
    """`if` and `else` for every statement whose whole value is a conditional expression."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        return _spread(node) if isinstance(node, cst.SimpleStatementLine) else node

    return rewrite(unjoin(source.module), change).code


def _spread(line: cst.SimpleStatementLine) -> cst.SimpleStatementLine | cst.If:
    found = small(line)
    value = found.value if isinstance(found, cst.Return) or (isinstance(found, cst.Assign) and assigned(line)) else None
    if not isinstance(value, cst.IfExp) or found is None:
        return line
    yes, no = (line.with_changes(body=[found.with_changes(value=one)]) for one in (value.body, value.orelse))
    made: cst.If = statements(f"if {text_of(value.test)}:\n    pass\nelse:\n    pass")[0]
    orelse = cst.Else(body=block([_spread(no.with_changes(leading_lines=[]))]))
    body = block([_spread(yes.with_changes(leading_lines=[]))])
    return made.with_changes(body=body, orelse=orelse, leading_lines=line.leading_lines)


@transforms("structural-introduce-named-conditions")
def named_conditions(source: Source) -> str:
    """Every comparison that an `if` or `while` tests under a name; a `while` asks again at its end."""
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If | cst.While):
            return node
        if not isinstance(node.test, cst.Comparison | cst.BooleanOperation):
            return node
        name = namer("is_met", "holds", "applies", "is_so", "is_given", "fits")
        line = statements(f"{name} = {inside(node.test)}")[0]
        space = "whitespace_after_while" if isinstance(node, cst.While) else "whitespace_before_test"
        made: Statement = node.with_changes(test=cst.Name(name), leading_lines=[], **{space: _SPACE})
        if isinstance(made, cst.While):
            if has(node.body, cst.Continue):
                raise Refusal("a loop goes on before its end")
            made = made.with_changes(body=block([*body_of(made), line]))
        return several([line, made], node.leading_lines)

    return rewrite(without_elif(unjoin(source.module)), change).code


@transforms("structural-eliminate-passing-variables")
@transforms("structural-inline-passing-variables")
def inline_passing(source: Source) -> str:
    """`return value` for a variable assigned right before it is returned and read nowhere else."""
    source.without("nonlocal", "global", "locals", "finally")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.IndentedBlock):
            return node
        body: list[Any] = []
        lines: list[Any] = list(node.body)
        for one in lines:
            value = _passed(body[-1], one) if body else None
            if value is None:
                body.append(one)
                continue
            made = one.body[0].with_changes(value=value, whitespace_after_return=cst.SimpleWhitespace(" "))
            leading = [*body[-1].leading_lines, *one.leading_lines]
            body[-1] = one.with_changes(body=[made], leading_lines=leading)
        return node.with_changes(body=body)

    return rewrite(unjoin(source.module), change).code


def _passed(first: Any, second: Any) -> cst.BaseExpression | None:
    """The value of an assignment to a name that the next line returns."""
    found, leave = assigned(first), small(second)
    if found is None or not isinstance(leave, cst.Return) or not isinstance(leave.value, cst.Name):
        return None
    name, value = found
    if name != leave.value.value:
        return None
    if has(value, cst.Lambda, cst.GeneratorExp) and name in reads(value):
        raise Refusal("a function inside the value reads the variable, perhaps when it is called later")
    return value
