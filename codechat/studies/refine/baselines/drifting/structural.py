"""Structural and semantic changes: constants, passing variables, plain assignments, exits, statements around a body."""

import re
from collections.abc import Sequence
from typing import Any

from codechat.studies.refine.baselines.drifting.edits import (
    Change,
    Edit,
    Program,
    above,
    instead,
    line_start,
    registering,
)
from codechat.studies.refine.patterns.trees.flow import bare, branch, operator_of

STRUCTURAL: dict[str, Change] = {}
UNIT = "    "
serves = registering(STRUCTURAL)


@serves("structural-define-outer-constant", most=1)
@serves("structural-introduce-constants-for-numbers", most=1000)
def extract_constants(program: Program, most: int) -> Sequence[Edit]:
    """Numbers by constants: at the top in JavaScript, in the first class of Java."""
    tree = program.tree
    outer = next(tree.all("class"), None) if program.language == "java" else None
    numbers: dict[str, list[Any]] = {}
    for node in tree.all("number"):
        inside = tree.around(node, "function") is not None and not tree.is_a(node.parent, "switch")
        if inside and node.parent.type not in ("switch_label", "switch_case", "unary_expression", "dimensions_expr"):
            numbers.setdefault(tree.of(node), []).append(node)
    wanted = [text for text in numbers if (most > 1 and text not in ("0", "1")) or most == 1][:most]
    edits, lines = [], []
    for text in wanted:
        name = program.free("NUMBER_" + re.sub(r"\W", "_", text).upper())
        edits += [instead(node, name) for node in numbers[text]]
        kind = "long" if text[-1] in "lL" else "int" if re.fullmatch(r"\d+", text) else "double"
        lines.append(f"private static final {kind} {name} = {text};" if outer else f"const {name} = {text};")
    if not lines:
        return []
    if outer is not None:
        body: Any = outer.child_by_field_name("body")
        return [*edits, Edit(body.start_byte + 1, body.start_byte + 1, "".join(f"\n{UNIT}{each}" for each in lines))]
    first = next((node for node in tree.statements(tree.nodes[0]) if not tree.of(node).startswith(("'", '"'))), None)
    row = _head_row(program, first) if first is not None else 0
    start = line_start(tree, row)
    return [*edits, Edit(start, start, "".join(f"{each}\n" for each in lines) + "\n")]


def _head_row(program: Program, node: Any) -> int:
    """The line of a node with the comments directly above it."""
    row, before = node.start_point[0], node.prev_named_sibling
    while program.tree.is_a(before, "comment") and before.end_point[0] == row - 1:
        row, before = before.start_point[0], before.prev_named_sibling
    return int(row)


@serves("structural-inline-passing-variables", "structural-eliminate-passing-variables")
def inline(program: Program) -> Sequence[Edit]:
    """`const r = …; return r;` as `return …;`."""
    tree, edits = program.tree, []
    for node in tree.all("return"):
        before, value = node.prev_named_sibling, next(iter(tree.statements(node)), None)
        held: Any = before.named_children[-1] if tree.is_a(before, "declaration") else None
        if not tree.is_a(held, "declarator") or not tree.is_a(value, "name"):
            continue
        name, given = held.child_by_field_name("name"), held.child_by_field_name("value")
        if tree.of(name) == tree.of(value) and tree.uses(tree.of(name)) == 2 and given is not None:
            edits.append(Edit(before.start_byte, node.end_byte, f"return {tree.of(given)};"))
    return edits


@serves("structural-use-named-results")
def name_results(program: Program) -> Sequence[Edit]:
    """`return …;` as `const result = …; return result;`; not in Java, where the type would have to be written."""
    tree, edits = program.tree, []
    name = program.free("result", "outcome")
    for node in tree.all("return") if program.language != "java" else ():
        value = next(iter(tree.statements(node)), None)
        if value is None or tree.is_a(value, "name", "number", "string") or not value.named_children:
            continue
        if not tree.is_a(node.parent, "block") or tree.column(node) is None:
            return []
        kept = f"const {name} = {tree.of(value)};\n{tree.margin(node)}return {name};"
        edits.append(Edit(node.start_byte, node.end_byte, kept))
    return edits


@serves("structural-rewrite-augmented-assignments")
def spell_out(program: Program) -> Sequence[Edit]:
    """`x += y` as `x = x + (y)`; in Java only if y is a whole number, since the types may need a cast otherwise."""
    tree, edits = program.tree, []
    for node in tree.all("assignment", "augmented"):
        sign = operator_of(tree, node)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if sign == "=":
            continue
        typed = program.language == "java"
        if (typed and not re.fullmatch(r"\d+", tree.of(right))) or not tree.is_a(left, "name"):
            return []
        value = tree.of(right) if tree.is_a(right, "name", "number", "string", "call") else f"({tree.of(right)})"
        edits.append(instead(node, f"{tree.of(left)} = {tree.of(left)} {sign[:-1]} {value}"))
    return edits


@serves("structural-convert-if-else-to-ternary", "structural-use-conditional-operator")
def choose(program: Program) -> Sequence[Edit]:
    """`if (c) { return a; } else { return b; }` as `return c ? a : b;`."""
    tree, edits = program.tree, []
    for node in tree.all("if"):
        sides = [branch(tree, node, name) or [] for name in ("consequence", "alternative")]
        if [len(side) for side in sides] != [1, 1] or any("null" in tree.of(side[0]) for side in sides):
            continue
        values = [next(iter(tree.statements(side[0])), None) for side in sides]
        if all(tree.is_a(side[0], "return") for side in sides) and all(value is not None for value in values):
            condition = bare(tree, node.child_by_field_name("condition"))
            if tree.is_a(condition, "ternary", "assignment") or any(tree.is_a(v, "ternary") for v in values):
                continue
            edits.append(instead(node, f"return {tree.of(condition)} ? {' : '.join(map(tree.of, values))};"))
    return edits


@serves("semantic-use-infinite-loop")
def endless(program: Program) -> Sequence[Edit]:
    """`while (c) { … }` as a loop without an end that is left if c is false."""
    tree = program.tree
    for node in tree.all("while"):
        body, condition = node.child_by_field_name("body"), node.child_by_field_name("condition")
        inside = tree.statements(body) if tree.is_a(body, "block") else []
        if node.type == "do_statement" or not inside or tree.of(bare(tree, condition)) == "true":
            continue
        leave = f"if (!({tree.of(bare(tree, condition))})) {{ break; }}"
        return [instead(condition, "(true)"), above(tree, inside[0], leave)]
    return []


@serves("semantic-add-try", end="catch")
@serves("semantic-include-finally", end="finally")
def attempt(program: Program, end: str) -> Sequence[Edit]:
    """The main function's body in a try statement, whose handler passes on what it catches."""
    tree, main = program.tree, program.main
    body: Any = main.child_by_field_name("body") if main is not None else None
    if not tree.is_a(body, "block") or any(tree.within(body, "try")) or not tree.statements(body):
        return []
    name = program.free("error", "problem")
    kind = "RuntimeException " if program.language == "java" else ""
    margin = tree.margin(main)
    handler = f"catch ({kind}{name}) {{ throw {name}; }}" if end == "catch" else "finally { /* nothing to release */ }"
    begin, last = body.start_byte + 1, body.end_byte - 1
    return [Edit(begin, begin, f"\n{margin}{UNIT}try {{"), Edit(last, last, f"{UNIT}}} {handler}\n{margin}")]
