"""Loops in other forms: `for` loops over an explicit iterator, comprehensions as loops."""

import libcst as cst

from codechat.models.baselines.refactoring.base import Namer, Refusal, Source, transforms
from codechat.models.baselines.refactoring.trees import (
    EFFECTS,
    Made,
    block,
    body_of,
    has,
    inside,
    nodes,
    reads,
    replace,
    rewrite,
    several,
    small,
    statements,
    text_of,
    unjoin,
    variables,
)


@transforms("structural-convert-for-to-while")
@transforms("semantic-convert-for-to-iterator")
@transforms("structural-convert-one-for-to-while", only_first=True)
@transforms("semantic-use-explicit-iterator", only_first=True)
@transforms("semantic-use-endless-loop", only_first=True)
@transforms("semantic-use-break", only_first=True)
@transforms("semantic-use-sentinel", only_first=True)
def for_to_while(source: Source, only_first: bool = False) -> str:
    """`while True` over an explicit iterator, left by `break` as soon as `next` gives a sentinel."""
    module = unjoin(source.module)
    loops = [node for node in nodes(module) if isinstance(node, cst.For)]
    chosen = set(loops[:1] if only_first else loops)
    source.builtin("iter", "next", "object")
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if original not in chosen or not isinstance(node, cst.For):
            return node
        if node.orelse is not None or node.asynchronous is not None or has(node.target, cst.StarredElement):
            raise Refusal("a loop has an else branch")
        walker, end, item = namer("walker", "steps"), namer("finished", "end"), namer("following", "upcoming")
        before = statements(f"{walker} = iter({text_of(node.iter)})\n{end} = object()")
        head = f"{item} = next({walker}, {end})\nif {item} is {end}:\n    break\n{text_of(node.target)} = {item}"
        made = statements("while True:\n    pass")[0].with_changes(body=block([*statements(head), *body_of(node)]))
        return several([*before, made], node.leading_lines)

    return rewrite(module, change).code


@transforms("structural-replace-list-comprehensions-by-loops")
@transforms("structural-avoid-list-comprehensions")
def comprehensions_to_loops(source: Source) -> str:
    """A list filled by a loop in front of every statement whose whole value is a list comprehension."""
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        found = small(node)
        value = found.value if isinstance(found, cst.Return | cst.Assign) else None
        if not isinstance(value, cst.ListComp) or not isinstance(node, cst.SimpleStatementLine) or found is None:
            return node
        if has(value, cst.Lambda, cst.Asynchronous, *EFFECTS):
            raise Refusal("a function inside keeps the variable")
        name = namer("collected", "gathered", "filled")
        last = node.with_changes(body=[found.with_changes(value=cst.Name(name))], leading_lines=[])
        return several([*statements(f"{name} = []"), _loop(value, name, namer), last], node.leading_lines)

    return rewrite(unjoin(source.module), change).code


def _loop(value: cst.ListComp, name: str, namer: Namer) -> cst.CSTNode:
    """The loop that appends what a comprehension holds; its variables get names of their own."""
    targets = {one for node in nodes(value) if isinstance(node, cst.CompFor) for one in reads(node.target)}
    fresh = {one: namer(f"one_{one}", f"each_{one}") for one in sorted(targets)}
    swaps: dict[cst.CSTNode, Made] = {
        one: one.with_changes(value=fresh[one.value]) for one in variables(value) if one.value in fresh
    }
    renamed = replace(value, swaps)
    parts = [renamed.for_in]
    while parts[-1].inner_for_in is not None:
        parts.append(parts[-1].inner_for_in)
    made: list[cst.CSTNode] = statements(f"{name}.append({text_of(renamed.elt)})")
    for one in reversed(parts):
        for test in reversed(one.ifs):
            made = [statements(f"if {text_of(test.test)}:\n    pass")[0].with_changes(body=block(made))]
        values = inside(one.iter) if isinstance(one.iter, cst.Tuple) else text_of(one.iter)
        loop = statements(f"for {text_of(one.target)} in {values}:\n    pass")[0]
        made = [loop.with_changes(body=block(made))]
    return made[0]
