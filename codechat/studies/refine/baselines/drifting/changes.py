"""Changes of programs in other languages than Python: edits of the text by the places of the tree's nodes."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from codechat.studies.refine.patterns.reading.neutral import TreeCode
from codechat.studies.refine.patterns.trees import Place, called, placed, with_comment
from codechat.studies.refine.patterns.trees.flow import bare, branch, operator_of

WORDS = {"loop": "one round for each step", "if": "only in this case", "return": "this is the result", "function": ""}
NAMES = {
    "a": "first", "b": "second", "c": "third", "i": "index", "j": "inner", "k": "number", "n": "count", "s": "text",
    "x": "value", "y": "other",
}  # fmt: skip
UNIT = "    "


class Edit(NamedTuple):
    """What replaces the bytes from `start` up to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Program:
    """A program to be changed."""

    tree: TreeCode
    language: str
    entry_point: str

    @property
    def main(self) -> Any:
        """The function that the tests call: the entry point, else the last that is within no other; None without."""
        functions = self.tree.functions
        outer = [name for name in functions if name in self.tree.outer]
        return functions.get(self.entry_point) or (functions[outer[-1]] if outer else None)

    def free(self, *wanted: str) -> str:
        """The first of the names that the program does not use, with a number if it uses them all."""
        numbered = (f"{wanted[0]}{number}" for number in range(2, 1000))
        return next(name for name in (*wanted, *numbered) if not self.tree.uses(name))


Change = Callable[[Program], Sequence[Edit]]
AnyChange = Callable[..., Sequence[Edit]]


CHANGES: dict[str, Change] = {}
"""The change of each instruction's id."""


def serves(*ids: str, **options: Any) -> Callable[[AnyChange], AnyChange]:
    """Register a change under the ids of instructions, with options."""

    def remember(change: AnyChange) -> AnyChange:
        CHANGES.update({each: partial(change, **options) for each in ids})
        return change

    return remember


def applied(tree: TreeCode, edits: Iterable[Edit]) -> str:
    """The text with all edits made; of two that overlap the later is left out."""
    data, made, place = tree.text.encode("utf-8", "surrogatepass"), [], 0
    for edit in sorted(edits):
        if edit.start >= place:
            made += [data[place : edit.start], edit.text.encode()]
            place = edit.end
    return b"".join([*made, data[place:]]).decode("utf-8", "surrogatepass")


def line_start(tree: TreeCode, row: int) -> int:
    """The byte at which a line begins, from 0."""
    return sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in tree.lines[:row])


def above(tree: TreeCode, node: Any, text: str) -> Edit:
    """A line put above a node's line, with its margin."""
    start = line_start(tree, node.start_point[0])
    margin = tree.margin(node) if text.strip() else ""
    return Edit(start, start, f"{margin}{text}\n")


def beside(tree: TreeCode, row: int, text: str) -> Edit:
    """A text put at the end of a line."""
    end = line_start(tree, row) + len(tree.lines[row].encode("utf-8", "surrogatepass"))
    return Edit(end, end, text)


def instead(node: Any, text: str) -> Edit:
    """A text that replaces a node."""
    return Edit(node.start_byte, node.end_byte, text)


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
        row, before = tree.head(node)
        apart = before is not None and not tree.lines[row - 1].strip()
        if tree.is_a(node.parent, "block") and before is not None and not apart:
            edits.append(Edit(line_start(tree, row), line_start(tree, row), "\n"))
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
    """One unit for each block around a line. A line in two blocks that begin in one line stays unchanged."""
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
    """The edits of all uses as a variable: no properties and no fields."""
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
    """Declared functions move above or below their callers, with the comments above them."""
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
    """The bytes of a function, from the comments directly above it to the blank lines below."""
    tree, last = program.tree, node.end_point[0] + 1
    while last < len(tree.lines) - 1 and not tree.lines[last].strip():
        last += 1
    return line_start(tree, tree.head(node)[0]), min(line_start(tree, last), len(tree.text.encode()))


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
    start = line_start(tree, tree.head(first)[0] if first is not None else 0)
    return [*edits, Edit(start, start, "".join(f"{each}\n" for each in lines) + "\n")]


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
