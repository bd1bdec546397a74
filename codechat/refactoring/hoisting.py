"""Expressions taken out of their statement: lambdas as functions, comprehensions as loops, conditional ones as ifs."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import libcst as cst

from codechat.refactoring.base import Namer, Refusal, Source, transforms
from codechat.refactoring.trees import (
    EFFECTS,
    Made,
    block,
    has,
    inside,
    nodes,
    reads,
    replaced,
    rewritten,
    several,
    statements,
    text_of,
    unjoined,
    variables,
)

PASSES = 8
Take = Callable[[Any, Namer], tuple[str, list[Any]]]
"""Gives the name that stands for an expression, and the statements that make it."""


def _hoisted(source: Source, kind: type[cst.CSTNode], take: Take, check: Callable[[Any, Any], None]) -> str:
    """Every expression of the kind replaced by a name that statements in front of its own one make."""
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.ClassDef) and any(has(one, kind) for one in _heads(node.body)):
            raise Refusal("a class body would keep the helper")
        if not isinstance(node, cst.IndentedBlock | cst.Module):
            return node
        body: list[Any] = []
        for one in node.body:
            found = _outermost(one, kind)
            before: list[Any] = []
            swaps: dict[cst.CSTNode, Made] = {}
            for expression in found:
                check(one, expression)
                name, made = take(expression, namer)
                swaps[expression] = cst.Name(name)
                before.extend(made)
            body.extend([*before, replaced(one, swaps) if swaps else one])
        return node.with_changes(body=body)

    module = unjoined(source.module)
    for _ in range(PASSES):
        if not has(module, kind):
            break
        module = rewritten(module, change)
    return module.code


def _heads(suite: Any) -> Iterator[cst.CSTNode]:
    """The statements of a class's body that are no definitions."""
    yield from (one for one in suite.body if not isinstance(one, cst.FunctionDef | cst.ClassDef))


def _outermost(statement: cst.CSTNode, kind: type[cst.CSTNode]) -> list[Any]:
    """The expressions of the kind in a statement's own part, blocks below it and what is inside one left out."""
    found = []
    stack = list(reversed(statement.children))
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            found.append(node)
        elif not isinstance(node, cst.BaseSuite):
            stack.extend(reversed(node.children))
    return found


def _free_of_comprehensions(statement: Any, expression: Any) -> None:
    """Refuse a function that reads what a comprehension around it binds, or that computes defaults."""
    bound = {name for node in nodes(statement) if isinstance(node, cst.CompFor) for name in reads(node.target)}
    if bound & reads(expression) or has(expression, *EFFECTS):
        raise Refusal("a lambda reads the variable of a comprehension around it")
    if any(isinstance(node, cst.Param) and node.default is not None for node in nodes(expression.params)):
        raise Refusal("a lambda has defaults")


@transforms("structural-avoid-lambda")
@transforms("structural-convert-lambdas")
def named_functions(source: Source) -> str:
    """A named function in front of the statement for every lambda."""

    def take(expression: Any, namer: Namer) -> tuple[str, list[Any]]:
        name = namer("chosen", "by_value", "measured", "compared")
        return name, statements(f"def {name}({text_of(expression.params)}):\n    return {inside(expression.body)}")

    return _hoisted(source, cst.Lambda, take, _free_of_comprehensions)


def _evaluated_first(statement: Any, expression: Any) -> None:
    """Refuse an expression that is not surely computed, once, before anything else in its statement has an effect."""
    if isinstance(statement, cst.While | cst.FunctionDef | cst.ClassDef | cst.Try | cst.Match):
        raise Refusal("the expression is computed in a header that may run again")
    heads = (
        [statement.test]
        if isinstance(statement, cst.If)
        else [statement.iter]
        if isinstance(statement, cst.For)
        else None
    )
    if heads is not None and not any(expression is node for head in heads for node in nodes(head)):
        raise Refusal("the expression is computed in a later branch")
    for node in _own(statement):
        around = any(expression is inner for inner in nodes(node))
        if isinstance(node, cst.Call | cst.Await | cst.Yield | cst.NamedExpr | cst.AugAssign) and not around:
            raise Refusal("something else happens in the statement")
        later = isinstance(node, cst.BooleanOperation) and any(expression is inner for inner in nodes(node.right))
        branch = isinstance(node, cst.IfExp) and node is not expression
        if around and node is not expression and (later or branch or isinstance(node, _DEFERRED)):
            raise Refusal("the expression is not always computed")
    if has(expression, *EFFECTS) or has(statement, cst.Del, cst.Asynchronous):
        raise Refusal("the expression has effects")


_DEFERRED = (cst.Lambda, cst.BaseComp, cst.Assert, cst.Comparison)


def _own(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    stack = list(statement.children)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, cst.BaseSuite | cst.ListComp):
            stack.extend(node.children)


@transforms("structural-replace-list-comprehensions-by-loops")
def comprehensions_to_loops(source: Source) -> str:
    """A list filled by a loop in front of the statement for every list comprehension."""

    def take(expression: Any, namer: Namer) -> tuple[str, list[Any]]:
        name = namer("collected", "gathered", "filled")
        if has(expression.elt, cst.Lambda) or any(has(node, cst.Lambda) for node in expression.for_in.children):
            raise Refusal("a function inside keeps the variable")
        targets = {one for node in nodes(expression) if isinstance(node, cst.CompFor) for one in reads(node.target)}
        fresh = {one: namer(f"one_{one}", f"each_{one}") for one in sorted(targets)}
        renamed = replaced(
            expression,
            {node: node.with_changes(value=fresh[node.value]) for node in variables(expression) if node.value in fresh},
        )
        body = statements(f"{name}.append({text_of(renamed.elt)})")
        part: Any = renamed.for_in
        parts = []
        while part is not None:
            parts.append(part)
            part = part.inner_for_in
        for one in reversed(parts):
            for test in reversed(one.ifs):
                body = [statements(f"if {text_of(test.test)}:\n    pass")[0].with_changes(body=block(body))]
            values = inside(one.iter) if isinstance(one.iter, cst.Tuple) else text_of(one.iter)
            loop = statements(f"for {text_of(one.target)} in {values}:\n    pass")[0]
            body = [loop.with_changes(body=block(body))]
        return name, [*statements(f"{name} = []"), *body]

    return _hoisted(source, cst.ListComp, take, _evaluated_first)


@transforms("structural-avoid-conditional-expressions")
@transforms("structural-transform-ternaries")
def ternaries_to_ifs(source: Source) -> str:
    """An `if`/`else` in front of the statement for every conditional expression."""

    def take(expression: Any, namer: Namer) -> tuple[str, list[Any]]:
        name = namer("choice", "chosen_value", "selected")
        text = f"if {inside(expression.test)}:\n    {name} = {inside(expression.body)}\n"
        return name, statements(f"{text}else:\n    {name} = {inside(expression.orelse)}")

    return _hoisted(source, cst.IfExp, take, _evaluated_first)


@transforms("structural-use-tuple-unpacking")
def join_assignments(source: Source) -> str:
    """Two plain assignments in a row as one, where the second value does not look at the first name."""
    source.without("nonlocal", "global", "lambda", "class")
    module = unjoined(source.module)
    if sum(isinstance(node, cst.FunctionDef) for node in nodes(module)) > 1:
        raise Refusal("an inner function may read a name in between")
    for node in nodes(module):
        body: list[Any] = list(node.body) if isinstance(node, cst.IndentedBlock) else []
        for one, two in pairwise(body):
            first, second = _plain(one), _plain(two)
            if first and second and first[0] != second[0] and first[0] not in reads(second[1]):
                line = statements(f"{first[0]}, {second[0]} = {inside(first[1])}, {inside(second[1])}")[0]
                swaps = {one: line.with_changes(leading_lines=one.leading_lines), two: cst.RemoveFromParent()}
                return replaced(module, swaps).code  # type: ignore[no-any-return]
    raise Refusal("no two assignments that can be joined")


def _plain(line: Any) -> tuple[str, cst.BaseExpression] | None:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or has(small.value, *EFFECTS):
        return None
    target = small.targets[0].target
    return (target.value, small.value) if isinstance(target, cst.Name) else None


@transforms("structural-avoid-tuple-assignment")
def split_assignments(source: Source) -> str:
    """All values under names of their own first, then one assignment a target; other values than tuples stay."""
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return node
        target, value = small.targets[0].target, small.value
        if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
            return node
        starred = any(isinstance(one, cst.StarredElement) for one in (*target.elements, *value.elements))
        nested = any(isinstance(one.value, cst.Tuple | cst.List) for one in target.elements)
        if starred or nested or len(target.elements) != len(value.elements):
            return node
        names = [namer("given", "kept", "next_value", "moved") for _ in value.elements]
        first = [f"{name} = {inside(one.value)}" for name, one in zip(names, value.elements, strict=True)]
        then = [f"{text_of(one.value)} = {name}" for name, one in zip(names, target.elements, strict=True)]
        made = statements("\n".join([*first, *then]))
        assert isinstance(node, cst.SimpleStatementLine)
        made[0] = made[0].with_changes(leading_lines=node.leading_lines)
        return several(made)

    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]
