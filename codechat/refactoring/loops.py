"""Loops in other forms: `for` and `while`, iterators, comprehensions, generators."""

import re
from typing import Any

import libcst as cst

from codechat.refactoring.base import Refusal, Source, transforms, with_definitions
from codechat.refactoring.detours import detour
from codechat.refactoring.trees import (
    Made,
    block,
    entry,
    expression,
    has,
    inside,
    nodes,
    replaced,
    rewritten,
    several,
    statements,
    text_of,
    unjoined,
)


@transforms("structural-convert-for-to-while")
@transforms("structural-convert-one-for-to-while", only_first=True)
@transforms("semantic-convert-for-to-iterator")
def for_to_while(source: Source, only_first: bool = False) -> str:
    """`while True` over an explicit iterator, left by `break` where `next` gives a sentinel."""
    module = unjoined(source.module)
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
        before[0] = before[0].with_changes(leading_lines=node.leading_lines)
        head = f"{item} = next({walker}, {end})\nif {item} is {end}:\n    break\n{text_of(node.target)} = {item}"
        made = statements("while True:\n    pass")[0]
        return several([*before, made.with_changes(body=block([*statements(head), *_body(node)]))])

    return rewritten(module, change).code  # type: ignore[no-any-return]


def _body(node: Any) -> list[Any]:
    assert isinstance(node.body, cst.IndentedBlock)
    return list(node.body.body)


@transforms("semantic-use-explicit-iterator")
def explicit_iterator(source: Source) -> str:
    """The first `for` loop with `iter` and `next`, or a value read from an iterator where there is none."""
    source.builtin("iter", "next")
    made = for_to_while(source, only_first=True)
    return made if made != unjoined(source.module).code else detour(source, value="next(iter([$value]))")


@transforms("semantic-use-endless-loop")
@transforms("semantic-use-break")
def endless_loop(source: Source) -> str:
    """The first `for` loop, or every `while` loop where there is none, as an endless one that is left by `break`."""
    made = for_to_while(source, only_first=True)
    return made if made != unjoined(source.module).code else while_true(source)


def while_true(source: Source) -> str:
    """Every `while` condition asked inside an endless loop."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.While) or node.orelse is not None or text_of(node.test) == "True":
            return node
        first = statements(f"if not {inside(node.test)}:\n    break")
        made = statements("while True:\n    pass")[0]
        return made.with_changes(body=block([*first, *_body(node)]), leading_lines=node.leading_lines)

    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]


@transforms("structural-convert-while-to-for")
def while_to_for(source: Source) -> str:
    """`for` over an endless iterator, the condition asked first."""
    namer = source.namer()
    source = source.with_text(with_definitions(source, imports=["itertools"]))

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.While):
            return node
        if node.orelse is not None:
            raise Refusal("a loop has an else branch")
        first = [] if text_of(node.test) == "True" else statements(f"if not {inside(node.test)}:\n    break")
        made = statements(f"for {namer('_round', '_step')} in itertools.repeat(None):\n    pass")[0]
        return made.with_changes(body=block([*first, *_body(node)]), leading_lines=node.leading_lines)

    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]


@transforms("semantic-use-itertools", template="itertools.chain({})", imports=["itertools"])
@transforms("structural-use-map", template="map(lambda $: $, {})", needs=["map"])
@transforms("structural-use-filter", template="filter(lambda $: True, {})", needs=["filter"])
@transforms("structural-use-generator-expression", template="($ for $ in {})")
@transforms("semantic-use-generator-function", template="$({})", module="def $(values):\n    yield from values")
def walk_through(
    source: Source, template: str, module: str = "", imports: list[str] | None = None, needs: list[str] | None = None
) -> str:
    """A loop's or comprehension's iterable behind an iterator that hands on what it is asked for, and no more."""
    source.builtin(*(needs or []))
    name = source.namer()("each", "entry", "one")
    if module or imports:
        definition = [module.replace("$", name)] if module else []
        source = source.with_text(with_definitions(source, *definition, imports=imports or []))
    for node in nodes(entry(source.module, source.entry_point).body):
        if isinstance(node, cst.For | cst.CompFor) and node.asynchronous is None:
            values = inside(node.iter) if isinstance(node.iter, cst.Tuple) else text_of(node.iter)
            made = expression(template.replace("$", name).format(values))
            return replaced(source.module, {node.iter: made}).code  # type: ignore[no-any-return]
    return detour(source, value=f"next({template.replace('$', name).format('[$value]')})")


@transforms("structural-use-enumerate")
def use_enumerate(source: Source) -> str:
    """The first `for` loop numbered."""
    source.builtin("enumerate")
    number = source.namer()("_number", "_position")
    for node in nodes(source.module):
        if isinstance(node, cst.For) and node.asynchronous is None:
            target = inside(node.target) if isinstance(node.target, cst.Tuple) else text_of(node.target)
            swaps: dict[cst.CSTNode, Made] = {
                node.target: expression(f"{number}, {target}"),
                node.iter: expression(f"enumerate({inside(node.iter)})"),
            }
            return replaced(source.module, swaps).code  # type: ignore[no-any-return]
    raise Refusal("no for loop")


@transforms("structural-use-loop-else")
def loop_else(source: Source) -> str:
    """An `else` branch on the first loop that has none; it does nothing."""
    for node in nodes(source.module):
        if isinstance(node, cst.For | cst.While) and node.orelse is None:
            made = node.with_changes(orelse=cst.Else(body=block(statements("pass"))))
            return replaced(source.module, {node: made}).code  # type: ignore[no-any-return]
    raise Refusal("no loop without an else branch")


_GROWING = {"append", "extend", "insert", "remove", "pop", "clear", "popleft", "appendleft", "update", "add"}


def _index_loops(source: Source) -> list[tuple[Any, str]]:
    """`for … in range(len(…))` statements and comprehension parts, with what the length is taken of."""
    found: list[tuple[Any, str]] = []
    for node in nodes(source.module):
        if not isinstance(node, cst.For | cst.CompFor) or not isinstance(node.iter, cst.Call):
            continue
        whole = re.fullmatch(r"range\((?:0, )?len\((\w+)\)\)", text_of(node.iter))
        if whole:
            found.append((node, whole[1]))
    return found


@transforms("structural-avoid-index-loops", call="enumerate({0})")
@transforms("structural-replace-index-loops", call="enumerate({0})")
@transforms("structural-use-zip", call="zip(range(len({0})), {0})")
def index_loop_with_values(source: Source, call: str) -> str:
    """Index and value together, where the loop surely leaves the length of what it goes through as it is."""
    source.builtin("len", "range", "enumerate", "zip")
    name = source.namer()("_value", "_element", "_entry")
    swaps: dict[cst.CSTNode, Made] = {}
    found = _index_loops(source)
    for node, values in found if call.startswith("enumerate") else found[:1]:
        if not isinstance(node.target, cst.Name):
            raise Refusal("a loop's target is no name")
        _keeps_length(_repeated(node, source), values, source.text)
        swaps[node.target] = expression(f"{text_of(node.target)}, {name}")
        swaps[node.iter] = expression(call.format(values))
    return replaced(source.module, swaps).code  # type: ignore[no-any-return]


def _repeated(node: Any, source: Source) -> Any:
    """What a loop repeats: the body of a statement, the whole of a comprehension."""
    if isinstance(node, cst.For):
        return node.body
    kinds = cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp
    return next(one for one in nodes(source.module) if isinstance(one, kinds) and node in nodes(one))


def _keeps_length(scope: Any, values: str, program: str) -> None:
    """Refuse a loop that touches the sequence by more than reading its elements, or changes any collection in place."""
    read = sum(isinstance(one, cst.Name) and one.value == values for one in nodes(scope))
    by_index = sum(
        isinstance(one, cst.Subscript) and text_of(one.value) == values and isinstance(one.slice[0].slice, cst.Index)
        for one in nodes(scope)
    )
    lengths = text_of(scope).count(f"len({values})") if read else 0
    if read > by_index + lengths or has(scope, cst.Del):
        raise Refusal(f"the loop may change '{values}'")
    for one in nodes(scope):
        if isinstance(one, cst.Attribute) and one.attr.value in _GROWING:
            made = rf"\b{re.escape(text_of(one.value))}(: [^=\n]+)? = (\[|\{{|list\(|dict\(|set\()"
            if not re.search(made, program):
                raise Refusal("the loop changes a collection that may be the same")
