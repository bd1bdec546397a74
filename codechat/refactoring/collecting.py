"""Loops that only collect, as comprehensions."""

from typing import Any

import libcst as cst

from codechat.refactoring.base import Source, transforms
from codechat.refactoring.detours import detour
from codechat.refactoring.trees import Made, expression, has, inside, nodes, reads, rewritten, text_of, unjoined


def body_of(node: Any) -> list[Any]:
    assert isinstance(node.body, cst.IndentedBlock)
    return list(node.body.body)


@transforms("structural-use-list-comprehension")
def list_comprehension(source: Source) -> str:
    """A loop that only collects as a comprehension, or a value taken from one."""
    made = collect(source)
    name = source.namer()("entry", "one")
    return made if made != unjoined(source.module).code else detour(source, value=f"[{name} for {name} in [$value]][0]")


@transforms("structural-turn-collecting-loops-into-comprehensions")
@transforms("semantic-reduce-loops")
@transforms("semantic-avoid-loops")
def collect(source: Source) -> str:
    """`name = [value for … if …]` for an empty list that only the loop right below it fills."""
    module = unjoined(source.module)

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.IndentedBlock):
            return node
        body: list[Any] = []
        for one in node.body:
            made = _collected(body[-1], one, module) if body else None
            body = [*body[:-1], made] if made is not None else [*body, one]
        return node.with_changes(body=body)

    return rewritten(module, change).code  # type: ignore[no-any-return]


def _collected(first: Any, loop: Any, module: cst.Module) -> Any:
    if not isinstance(first, cst.SimpleStatementLine) or not isinstance(loop, cst.For) or loop.orelse is not None:
        return None
    assign = first.body[0]
    if isinstance(assign, cst.Assign) and len(assign.targets) == 1:
        target: Any = assign.targets[0].target
    elif isinstance(assign, cst.AnnAssign):
        target = assign.target
    else:
        return None
    if not isinstance(target, cst.Name) or assign.value is None or text_of(assign.value) != "[]":
        return None
    conditions, value = _only_appends(loop, target.value)
    if value is None or loop.asynchronous is not None:
        return None
    parts = [loop.iter, value, *conditions]
    targets = reads(loop.target)
    outside = sum(isinstance(one, cst.Name) and one.value in targets for one in nodes(module))
    within = sum(isinstance(one, cst.Name) and one.value in targets for one in nodes(loop))
    effects = any(has(part, cst.Await, cst.Yield, cst.NamedExpr) for part in parts)
    if effects or outside > within or any(target.value in reads(part) for part in parts):
        return None
    tests = "".join(f" if {inside(test)}" for test in conditions)
    values = inside(loop.iter) if isinstance(loop.iter, cst.Tuple | cst.IfExp) else text_of(loop.iter)
    made = expression(f"[{inside(value)} for {text_of(loop.target)} in {values}{tests}]")
    return first.with_changes(body=[assign.with_changes(value=made)])


def _only_appends(loop: cst.For, name: str) -> tuple[list[Any], Any]:
    """The conditions and the value, where a loop does nothing but append."""
    conditions: list[Any] = []
    node: Any = loop
    while True:
        body = body_of(node)
        if len(body) != 1:
            return [], None
        node = body[0]
        if not isinstance(node, cst.If) or node.orelse is not None:
            break
        conditions.append(node.test)
    call = (
        node.body[0].value if isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Expr) else None
    )
    if not isinstance(call, cst.Call) or text_of(call.func) != f"{name}.append" or len(call.args) != 1:
        return [], None
    return conditions, None if call.args[0].star or call.args[0].keyword else call.args[0].value
