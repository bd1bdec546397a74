"""Patterns of the neutral tree, under the names of Python's patterns; comments match by their words behind a `#`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

from codechat.base.errors import UserError, nearest
from codechat.studies.refine.patterns.base import Clause, Occurrence, Pattern, Sorter, pair
from codechat.studies.refine.patterns.reading.neutral import CONTROL, LOOPS, TreeCode

TREE_PATTERNS: dict[str, Pattern] = {}
Finder = Callable[..., Iterable[Occurrence]]
LEAVING = ("return", "throw", "break", "continue")
Place = Literal["above", "beside", "either"]
Unit = Literal["2", "4", "tab"]
Quote = Literal["single", "double"]
Statement = Literal["loop", "if", "return", "assignment", "function"]
STATEMENTS: Mapping[Statement, tuple[str, ...]] = {
    "loop": LOOPS, "if": ("if",), "return": ("return",), "function": ("function",),
    "assignment": ("declaration", "expression"),
}  # fmt: skip
_COLLECTIONS = {
    "set": ("Set", "HashSet", "TreeSet", "LinkedHashSet"),
    "dict": ("Map", "HashMap", "TreeMap", "LinkedHashMap"),
}


def tree_pattern(name: str, noun: str, plural: str = "") -> Callable[[Finder], Finder]:
    """Register a finder under a name that rules use in languages other than Python."""

    def remember(finder: Finder) -> Finder:
        if name in TREE_PATTERNS:
            raise ValueError(f"the pattern '{name}' is registered twice")
        TREE_PATTERNS[name] = Pattern(name, finder, noun, plural or f"{noun}s", on_tokens=False)
        return finder

    return remember


def tree_clause(value: Any) -> Clause:
    """The clause that a rule's value means in languages other than Python, as `clause_of` reads it for Python."""
    parts = []
    for each in value if isinstance(value, list) and value else [value]:
        options = {"pattern": each} if isinstance(each, str) else dict(each)
        name = str(options.pop("pattern", None))
        if name not in TREE_PATTERNS:
            names = (other if isinstance(other, str) else str(other.get("pattern")) for other in value)
            if isinstance(value, list) and any(other in TREE_PATTERNS for other in names):
                continue  # any pattern of a list counts: the language has the others
            raise UserError(f"no pattern of other languages is called '{name}'", nearest(name, TREE_PATTERNS))
        TREE_PATTERNS[name].check_options(options)
        parts.append((TREE_PATTERNS[name], options))
    return Clause(tuple(parts))


def at(node: Any, what: str = "") -> Occurrence:
    """The occurrence at a node's first line."""
    return Occurrence(node.start_point[0] + 1, what)


def each_of(
    name: str, noun: str, *kinds: str, plural: str = "", when: Callable[[TreeCode, Any], bool] | None = None
) -> None:
    """Register the pattern of all nodes of some kinds that fulfil `when`."""

    def find(code: TreeCode) -> Iterator[Occurrence]:
        return (at(node) for node in code.all(*kinds) if when is None or when(code, node))

    tree_pattern(name, noun, plural)(find)


tree_pair: Callable[..., Callable[[Sorter], Sorter]] = partial(pair, register=tree_pattern)

each_of("loop", "loop", *LOOPS)
each_of("iteration", "loop", *LOOPS)
each_of("for", "for loop", "for")
each_of("while", "while loop", "while")
each_of("ternary", "conditional expression", "ternary")
each_of("return", "return statement", "return")
each_of("if_statement", "if statement", "if")
each_of("match", "switch", "switch", plural="switches")
each_of("try", "try statement", "try")
each_of("finally", "finally block", "finally")
each_of("lambda", "anonymous function", "lambda")
each_of("walk_each", "loop over elements", "each", plural="loops over elements")
each_of("template", "template literal", "template")
each_of("regex", "regular expression", "regex")
each_of("destructuring", "destructuring", "pattern")
each_of("class", "class", "class", plural="classes")
each_of("branching", "branch or loop", "if", "ternary", "switch", *LOOPS, plural="branches and loops")
each_of("decision", "decision", "if", "ternary", "switch")
each_of("inferred_type", "local variable declared by var", "declaration", plural="local variables declared by var",
        when=lambda code, node: re.match(r"(final\s+)?var\s", code.of(node)) is not None)  # fmt: skip


@tree_pattern("comment", "comment")
def comment(code: TreeCode, *, own_line: bool | None = None, matches: str | None = None) -> Iterator[Occurrence]:
    for one in code.comments:
        if (own_line is None or one.own_line is own_line) and (matches is None or _searched(matches, one.form)):
            yield Occurrence(one.line)


def _searched(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


@tree_pattern("header_comment", "comment above all code", "comments above all code")
def header_comment(
    code: TreeCode, *, matches: str | None = None, below_docstring: bool = False
) -> Iterator[Occurrence]:
    first = next((node.start_point[0] + 1 for node in code.nodes[1:] if not code.is_a(node, "comment")), 0)
    for one in code.comments:
        if one.last < first and (matches is None or _searched(matches, one.form)) and re.search(r"\w", one.words):
            yield Occurrence(one.line)


def placed(code: TreeCode, statement: Statement) -> Iterator[Any]:
    """The statements of a kind, each as a whole: a function with what it is assigned to."""
    for node in code.all(*STATEMENTS[statement]):
        if statement == "function":
            if not code.name_of(node):
                continue
            holder = code.around(node, "declaration") if code.is_a(node.parent, "declarator") else None
            yield holder or node
        elif statement == "assignment":
            inner = node.named_children[0] if code.is_a(node, "expression") and node.named_children else None
            within = code.is_a(inner, "assignment", "augmented") or code.is_a(node, "declaration")
            if within and not code.is_a(node.parent, "for") and not any(map(code.is_function, node.named_children)):
                yield node
        elif not (statement == "if" and is_else_if(code, node)):
            yield node


def is_else_if(code: TreeCode, node: Any) -> bool:
    above = node.parent
    if above is not None and above.type == "else_clause":
        return True
    return code.is_a(above, "if") and above.child_by_field_name("alternative") == node


def with_comment(code: TreeCode, node: Any, place: Place) -> bool:
    first = node.start_point[0] + 1
    body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
    last = first if body is not None else node.end_point[0] + 1
    above = any(one.own_line and one.last == first - 1 and re.search(r"\w", one.words) for one in code.comments)
    beside = any(not one.own_line and one.line in (first, last) for one in code.comments)
    return (above and place != "beside") or (beside and place != "above")


@tree_pair(
    ("commented", "{statement} with a comment", "{statement}s with a comment"),
    ("uncommented", "{statement} without a comment", "{statement}s without a comment"),
)
def commented(code: TreeCode, *, statement: Statement, place: Place = "either") -> Iterator[tuple[Occurrence, bool]]:
    return ((at(node), with_comment(code, node, place)) for node in placed(code, statement))


@tree_pair(
    ("blank_before", "{statement} after a blank line", "{statement}s after a blank line"),
    ("no_blank_before", "{statement} without a blank line before it", "{statement}s without blank lines"),
)
def blank_before(code: TreeCode, *, statement: Statement) -> Iterator[tuple[Occurrence, bool]]:
    for node in placed(code, statement):
        row, before = code.head(node)
        if code.is_a(node.parent, "block") and before is not None:
            yield at(node), not code.lines[row - 1].strip()


def _inside(code: TreeCode, *kinds: str) -> set[int]:
    """The lines, from 0, within a node of a kind, without its first line."""
    return {row for node in code.all(*kinds) for row in range(node.start_point[0] + 1, node.end_point[0] + 1)}


@tree_pattern("blank_line", "blank line in a function", "blank lines in functions")
def blank_line(code: TreeCode) -> Iterator[Occurrence]:
    for row in sorted(_inside(code, "function") - _inside(code, "string", "comment")):
        if not code.lines[row].strip():
            yield Occurrence(row + 1)


@tree_pattern("trailing_space", "line ending in spaces", "lines ending in spaces")
def trailing_space(code: TreeCode) -> Iterator[Occurrence]:
    strings = {row - 1 for row in _inside(code, "string")}  # the text continues behind the end of such a line
    for row, line in enumerate(code.lines):
        if line != line.rstrip() and row not in strings:
            yield Occurrence(row + 1)


@tree_pattern("long_line", "overlong line")
def long_line(code: TreeCode, *, limit: int = 79) -> Iterator[Occurrence]:
    return (Occurrence(row) for row, line in enumerate(code.lines, 1) if len(line) > limit)


@tree_pattern("joined_statements", "line with several statements", "lines with several statements")
def joined_statements(code: TreeCode) -> Iterator[Occurrence]:
    for block in (code.nodes[0], *code.all("block")) if code.nodes else ():
        rows = [block.start_point[0] if code.is_a(block, "block") else -1]
        for node in code.statements(block):
            if node.start_point[0] == rows[-1] and node.type != ";":
                yield at(node)
            rows.append(node.end_point[0])


@tree_pair(
    ("indented", "block indented by {unit}", "blocks indented by {unit}"),
    ("otherwise_indented", "block not indented by {unit}", "blocks not indented by {unit}"),
)
def indented(code: TreeCode, *, unit: Unit) -> Iterator[tuple[Occurrence, bool]]:
    step = "\t" if unit == "tab" else " " * int(unit)
    for block in code.all("block"):
        inside = [node for node in code.statements(block) if code.column(node) is not None]
        if inside and inside[0].start_point[0] > block.start_point[0]:
            yield at(inside[0]), all(code.margin(node) == code.margin(block) + step for node in inside)


@tree_pair(
    ("signature_over_lines", "signature with one parameter per line", "signatures over lines"),
    ("signature_on_line", "signature with parameters sharing a line", "signatures sharing a line"),
)
def signature_over_lines(code: TreeCode) -> Iterator[tuple[Occurrence, bool]]:
    for function in code.functions.values():
        given = code.parameters(function)
        rows = [function.child_by_field_name("name") or function, *given]
        if given:
            yield at(function), len({node.start_point[0] for node in rows}) == len(rows)


@tree_pattern("tight_comma", "comma without a space after it", "commas without a space after them")
def tight_comma(code: TreeCode) -> Iterator[Occurrence]:
    for node in code.nodes:
        follows = node.next_sibling
        if node.type == "," and follows is not None and follows.start_byte == node.end_byte and follows.is_named:
            yield at(node)


@tree_pattern("tight_operator", "operator without spaces around it", "operators without spaces around them")
def tight_operator(code: TreeCode) -> Iterator[Occurrence]:
    for node in code.all("binary", "assignment", "augmented", "declarator"):
        for sign in (each for each in node.children if not each.is_named and re.fullmatch(r"\W+", each.type)):
            before, after = sign.prev_sibling, sign.next_sibling
            asked = "=" in sign.type or sign.type in ("<", ">")
            if asked and before and after and (before.end_byte == sign.start_byte or after.start_byte == sign.end_byte):
                yield at(sign)


@tree_pattern("quoted", "string in {quote} quotes", "strings in {quote} quotes")
def quoted(code: TreeCode, *, quote: Quote) -> Iterator[Occurrence]:
    """The strings in one kind of quotes, except strings that contain the other kind."""
    mark, other = ("'", '"') if quote == "single" else ('"', "'")
    return (at(node) for node in code.all("string") if code.of(node)[:1] == mark and other not in code.of(node))


@tree_pair(
    ("documented", "documentation comment of a function", "documentation comments of functions"),
    ("undocumented", "function without such a documentation comment", "functions without such comments"),
)
def documented(code: TreeCode, *, matches: str | None = None) -> Iterator[tuple[Occurrence, bool]]:
    ends = {one.last: one for one in code.comments if one.documents and one.own_line}
    for function in placed(code, "function"):
        above = ends.get(function.start_point[0])
        if code.around(function, "function") is None:
            yield at(function), above is not None and (matches is None or _searched(matches, above.words))


@tree_pattern("local_name", "local variable with such a name", "local variables with such names")
def local_name(code: TreeCode, *, matches: str) -> Iterator[Occurrence]:
    return (at(name, code.of(name)) for name in code.locals if re.fullmatch(matches, code.of(name)))


tree_pattern("local", "local variable")(lambda code: (at(name, code.of(name)) for name in code.locals))
tree_pattern("unused_local", "unused local variable")(
    lambda code: (at(name, code.of(name)) for name in code.locals if code.uses(code.of(name)) == 1)
)
tree_pattern("function", "function")(lambda code: map(at, code.functions.values()))
tree_pattern("nested_function", "nested function")(
    lambda code: (at(node, name) for name, node in code.functions.items() if code.around(node, "function") is not None)
)


each_of("written_type", "local variable with a written type", "declaration",
        plural="local variables with written types",
        when=lambda code, node: code.of(node.child_by_field_name("type")) not in ("", "var")
        and code.around(node, "function") is not None)  # fmt: skip


@tree_pattern("declared_by", "variable declared by {word}", "variables declared by {word}")
def declared_by(code: TreeCode, *, word: str) -> Iterator[Occurrence]:
    return (at(node) for node in code.all("declaration") if code.of(node).split(None, 1)[0] == word)


tree_pattern("helper", "helper that another function calls", "helpers that other functions call")(
    lambda code: (at(node, name) for name, node, _ in _helpers(code))
)


@tree_pair(
    ("helper_above", "helper above the function that calls it", "helpers above the functions that call them"),
    ("helper_below", "helper below the function that calls it", "helpers below the functions that call them"),
)
def helper_above(code: TreeCode) -> Iterator[tuple[Occurrence, bool]]:
    return ((at(node, name), node.start_byte < call.start_byte) for name, node, call in _helpers(code))


def _helpers(code: TreeCode) -> Iterator[tuple[str, Any, Any]]:
    """Outer functions that are called from elsewhere: the name, the function and the first such call."""
    for name, node in code.functions.items():
        calls = (
            call for call in code.all("call")
            if called(code, call) == name and not node.start_byte <= call.start_byte < node.end_byte
        )  # fmt: skip
        if code.around(node, "function") is None and (first := next(calls, None)) is not None:
            yield name, node, first


def called(code: TreeCode, call: Any) -> str:
    """The name that a call names, without what precedes it."""
    named = call.child_by_field_name("name") or call.child_by_field_name("function")
    inner = named.child_by_field_name("property") if named is not None else None
    return code.of(inner or named)


@tree_pattern("call", "call of {names}", "calls of {names}")
def call(code: TreeCode, *, names: list[str]) -> Iterator[Occurrence]:
    for node in code.all("call"):
        whole = re.sub(r"\s+", "", code.of(node.child_by_field_name("function") or node).partition("(")[0])
        if any(whole == name or whole.startswith(f"{name}.") or f".{called(code, node)}" == name for name in names):
            yield at(node, called(code, node))


tree_pattern("use", "use of {names}", "uses of {names}")(call)


@tree_pattern("collection", "{kind}")
def collection(code: TreeCode, *, kind: Literal["set", "dict"]) -> Iterator[Occurrence]:
    """Sets and maps that the program makes."""
    yield from made(code, names=list(_COLLECTIONS[kind]))
    for node in code.all("call"):
        whole = re.sub(r"\s+", "", code.of(node))
        if whole.startswith(("Set.of(", "Set.copyOf(", "Collectors.toSet(") if kind == "set" else ("Map.of(",)):
            yield at(node)


@tree_pattern("made", "object of {names}", "objects of {names}")
def made(code: TreeCode, *, names: list[str]) -> Iterator[Occurrence]:
    for node in code.all("new"):
        kind = code.of(node.child_by_field_name("constructor") or node.child_by_field_name("type"))
        if kind.partition("<")[0] in names and not code.is_a(node.parent, "expression"):
            yield at(node, kind)


@tree_pattern("long_function", "long function")
def long_function(code: TreeCode, *, statements: int) -> Iterator[Occurrence]:
    kinds = (*CONTROL, *LEAVING, "declaration", "expression")
    return (at(n, name) for name, n in code.functions.items() if len(list(code.within(n, *kinds))) > statements)


tree_pattern("recursion", "recursive function")(lambda code: (
    at(node, name) for name, node in code.functions.items()
    if any(called(code, each) == name for each in code.within(node, "call"))
))  # fmt: skip


@tree_pattern("magic_number", "number without a name", "numbers without names")
def magic_number(code: TreeCode) -> Iterator[Occurrence]:
    for node in code.all("number"):
        holder = code.around(node, "declarator")
        named = holder is not None and code.of(holder.child_by_field_name("name")) in code.constants
        if code.of(node) not in ("0", "1") and not named and node.parent.type != "enum_constant":
            yield at(node, code.of(node))


@tree_pattern("named_constant", "named constant")
def named_constant(code: TreeCode, *, used: bool = False) -> Iterator[Occurrence]:
    return (at(node, name) for name, node in code.constants.items() if not used or code.uses(name) > 1)
