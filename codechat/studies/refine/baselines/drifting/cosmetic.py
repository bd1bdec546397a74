"""Cosmetic changes: comments, names, layout, the order of functions."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from codechat.studies.refine.baselines.drifting.edits import (
    Change,
    Edit,
    Program,
    above,
    beside,
    instead,
    line_start,
    registering,
)
from codechat.studies.refine.patterns.trees import Place, called, placed, with_comment

COSMETIC: dict[str, Change] = {}
WORDS = {"loop": "one round for each step", "if": "only in this case", "return": "this is the result", "function": ""}
NAMES = {
    "a": "first", "b": "second", "c": "third", "i": "index", "j": "inner", "k": "number", "n": "count", "s": "text",
    "x": "value", "y": "other",
}  # fmt: skip
serves = registering(COSMETIC)


@serves("cosmetic-put-comment-above-loops", statement="loop")
@serves("cosmetic-put-comment-above-ifs", statement="if")
@serves("cosmetic-put-comment-above-functions", statement="function")
@serves("cosmetic-explain-returns", statement="return")
def comment_above(program: Program, statement: Any) -> Sequence[Edit]:
    tree = program.tree
    if any(tree.column(node) is None for node in placed(tree, statement)):
        return []
    text = WORDS[statement] or f"does the work of {program.entry_point or 'the program'}"
    place: Place = "either" if statement == "return" else "above"
    return [above(tree, n, f"// {text}") for n in placed(tree, statement) if not with_comment(tree, n, place)]


@serves("cosmetic-attach-comment-to-returns", statement="return")
@serves("cosmetic-attach-comment-to-loops", statement="loop")
@serves("cosmetic-attach-comment-to-assignments", statement="assignment")
def comment_beside(program: Program, statement: Any) -> Sequence[Edit]:
    tree, edits = program.tree, {}
    for node in placed(tree, statement):
        row = node.start_point[0] if statement == "loop" else node.end_point[0]
        if not with_comment(tree, node, "beside"):
            edits[row] = beside(tree, row, f"  // {WORDS.get(statement, 'kept for later')}")
    return list(edits.values())


@serves("cosmetic-add-todo", text="TODO: see whether this can be made shorter")
@serves("cosmetic-add-note", text="NOTE: an empty input needs no case of its own")
@serves("cosmetic-state-assumptions", text="Assumes arguments of the documented types")
@serves("cosmetic-add-example-comment", text="Example: call it with the arguments of the description")
@serves("cosmetic-introduce-divider-comment", text="----- main -----")
@serves("cosmetic-add-comment", "cosmetic-add-more-comments", text="the result is worked out step by step")
def comment_in_main(program: Program, text: str) -> Sequence[Edit]:
    body = program.main.child_by_field_name("body") if program.main is not None else None
    inside = program.tree.statements(body) if program.tree.is_a(body, "block") else []
    fits = inside and program.tree.column(inside[0]) is not None
    return [above(program.tree, inside[0], f"// {text}")] if fits else []


@serves("cosmetic-insert-header-comment", text="one function and what it needs")
@serves("cosmetic-add-licence-line", text="SPDX-License-Identifier: Apache-2.0")
def header(program: Program, text: str) -> Sequence[Edit]:
    return [Edit(0, 0, f"// {text}\n")]


@serves("cosmetic-document-functions")
def document(program: Program) -> Sequence[Edit]:
    tree = program.tree
    ends = {one.last for one in tree.comments if one.documents}
    outer = [node for node in placed(tree, "function") if tree.around(node, "function") is None]
    made = [above(tree, n, "/** See the description of the task. */") for n in outer if n.start_point[0] not in ends]
    return made if all(tree.column(node) is not None for node in outer) else []


@serves("cosmetic-remove-comments")
@serves("cosmetic-remove-end-of-line-comments", own_line=False)
@serves("cosmetic-remove-todos", matches=r"\b(TODO|FIXME|XXX)\b")
@serves("cosmetic-remove-documentation", documents=True)
@serves("cosmetic-minimise-comments", most=1)
def uncomment(
    program: Program, own_line: bool | None = None, matches: str = "", documents: bool = False, most: int = 10_000
) -> Sequence[Edit]:
    tree, edits = program.tree, []
    for node, one in zip(tree.all("comment"), tree.comments, strict=True):
        wanted = own_line in (None, one.own_line) and re.search(matches, one.text, re.IGNORECASE)
        if not wanted or (documents and not one.documents):
            continue
        first, last = node.start_point[0], node.end_point[0]
        behind = tree.lines[last].encode()[node.end_point[1] :].strip()
        if one.own_line and not behind:
            edits.append(Edit(line_start(tree, first), line_start(tree, last + 1), ""))
        elif not behind:  # with the blanks before it
            before = tree.lines[first].encode()[: node.start_point[1]].rstrip()
            edits.append(Edit(line_start(tree, first) + len(before), node.end_byte, ""))
        else:
            edits.append(instead(node, " "))
    return edits[:most]


@serves("cosmetic-insert-blank-before-returns", statement="return")
@serves("cosmetic-insert-blank-before-loops", statement="loop")
@serves("cosmetic-insert-blank-before-ifs", statement="if")
def blank_before(program: Program, statement: Any) -> Sequence[Edit]:
    tree, edits = program.tree, []
    for node in placed(tree, statement):
        before, first = node.prev_named_sibling, node
        while tree.is_a(before, "comment") and before.end_point[0] == first.start_point[0] - 1:
            before, first = before.prev_named_sibling, before
        apart = before is not None and not tree.lines[first.start_point[0] - 1].strip()
        if tree.is_a(node.parent, "block") and before is not None and not apart:
            edits.append(above(tree, first, ""))
    return edits


@serves("cosmetic-remove-blank-lines")
def close_up(program: Program) -> Sequence[Edit]:
    tree = program.tree
    held = {row for node in tree.all("string", "comment") for row in range(node.start_point[0], node.end_point[0] + 1)}
    rows = {row for node in tree.all("function") for row in range(node.start_point[0], node.end_point[0])} - held
    return [Edit(line_start(tree, row), line_start(tree, row + 1), "") for row in rows if not tree.lines[row].strip()]


@serves("cosmetic-strip-trailing-spaces")
def strip(program: Program) -> Sequence[Edit]:
    tree = program.tree
    if any(node.start_point[0] != node.end_point[0] for node in tree.all("string")):
        return []
    return [
        Edit(line_start(tree, row) + len(line.rstrip().encode()), line_start(tree, row) + len(line.encode()), "")
        for row, line in enumerate(tree.lines)
        if line != line.rstrip()
    ]


@serves("cosmetic-put-returns-in-parentheses")
def wrap_returns(program: Program) -> Sequence[Edit]:
    tree = program.tree
    values = (tree.statements(node)[0] for node in tree.all("return") if tree.statements(node))
    return [instead(value, f"({tree.of(value)})") for value in values if not tree.is_a(value, "parentheses")]


@serves("cosmetic-change-indent-to-two", unit="  ")
@serves("cosmetic-convert-indent-to-four", unit="    ")
@serves("cosmetic-convert-indent-to-tabs", unit="\t")
def indent(program: Program, unit: str) -> Sequence[Edit]:
    """One unit for each block around a line. A line in two blocks that begin in one line is left as it is."""
    tree, edits = program.tree, []
    if any(node.start_point[0] != node.end_point[0] for node in tree.all("string")):
        return []
    spans = [(node.start_point[0], node.end_point[0]) for node in tree.all("block")]
    for row, line in enumerate(tree.lines):
        around = [first for first, last in spans if first < row < last]
        if line.strip() and len(set(around)) == len(around):
            start = line_start(tree, row)
            rest = " " if line.lstrip().startswith("*") else ""
            edits.append(Edit(start, start + len(line) - len(line.lstrip()), unit * len(around) + rest))
    return edits


@serves("cosmetic-rename-single-letter-locals", "cosmetic-avoid-single-letter-locals", longest=1)
@serves("cosmetic-rename-short-locals", longest=4)
def rename(program: Program, longest: int) -> Sequence[Edit]:
    tree, edits = program.tree, []
    given = {name for function in tree.all("function") for name in tree.parameter_names(function)}
    given |= {tree.of(n.child_by_field_name("name")) for n in tree.all("declarator") if not tree.around(n, "function")}
    taken: set[str] = set()
    for name in dict.fromkeys(map(tree.of, tree.locals)):
        if len(name) > longest:
            continue
        wanted = NAMES.get(name, f"{name}Value")
        new = program.free(wanted if len(wanted) > 4 or longest == 1 else f"{wanted}Value", f"{name}Item")
        if new in taken or name in given:
            return []
        taken.add(new)
        edits += list(_renamed(program, name, new))
    return edits


def _renamed(program: Program, name: str, new: str) -> Iterator[Edit]:
    """The name replaced wherever it stands for a variable: no property, and no field of something."""
    tree = program.tree
    for node in tree.all("name"):
        if tree.of(node) != name or node.type in ("property_identifier", "private_property_identifier"):
            continue
        above_it = node.parent
        field = above_it is not None and above_it.child_by_field_name("field") == node
        if field or (tree.is_a(above_it, "call") and above_it.child_by_field_name("name") == node):
            continue
        yield instead(node, f"{name}: {new}" if node.type.startswith("shorthand") else new)


@serves("cosmetic-move-helpers-below", above_it=True)
@serves("cosmetic-move-helpers-above", above_it=False)
def reorder(program: Program, above_it: bool) -> Sequence[Edit]:
    """Whole functions change places with those that call them, with the comments above them.

    Only declared ones move: what is assigned to a variable is there from then on.
    """
    tree, main = program.tree, program.main
    if main is None or not main.type.endswith("declaration"):
        return []
    calls = {called(tree, call) for call in tree.within(main, "call")}
    found = [
        node
        for name, node in tree.functions.items()
        if name in calls and node.parent == main.parent and node.type == main.type and node != main
        if (node.start_byte < main.start_byte) is above_it
    ]
    if not found:
        return []
    place = line_start(tree, main.end_point[0] + 1) if above_it else _span(program, main)[0]
    moved = [tree.text.encode()[slice(*_span(program, node))].decode().strip("\n") for node in found]
    text = "".join(f"\n{each}\n" for each in moved) if above_it else "".join(f"{each}\n\n" for each in moved)
    gone = [Edit(*_span(program, node), "") for node in found]
    return [*gone, Edit(place, place, text)]


def _span(program: Program, node: Any) -> tuple[int, int]:
    """The bytes of the lines of a function, from the comments directly above it to the blank lines below."""
    tree, first, last = program.tree, node.start_point[0], node.end_point[0] + 1
    before = node.prev_named_sibling
    while tree.is_a(before, "comment") and before.end_point[0] == first - 1:
        first, before = before.start_point[0], before.prev_named_sibling
    while last < len(tree.lines) - 1 and not tree.lines[last].strip():
        last += 1
    return line_start(tree, first), min(line_start(tree, last), len(tree.text.encode()))
