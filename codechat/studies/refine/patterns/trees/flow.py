"""Patterns of the neutral tree: conditions, exits, nesting, assignments; doubts about changes of trees."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from codechat.studies.refine.patterns.base import Occurrence
from codechat.studies.refine.patterns.reading.neutral import CONTROL, LOOPS, TreeCode
from codechat.studies.refine.patterns.trees import LEAVING, at, called, each_of, is_else_if, tree_pair, tree_pattern

_BITS = {"&", "|", "^", "~", "<<", ">>", ">>>", "&=", "|=", "^=", "<<=", ">>=", ">>>="}
_ARITHMETIC = {"+", "-", "*", "/", "%", "**", "++", "--"}
_ASSIGNS = ("assignment", "augmented", "declarator")
_AS_WRITTEN = re.compile(r"Infinity|NaN|[\w.]+\.[A-Z][A-Z0-9_]*|new \w*(?:List|Map|Set|Deque)\b(?: ?<[\w<>, ]*>)?\(\)")
_WRITTEN = {
    "array", "array_creation_expression", "array_initializer", "boolean_type", "dimensions", "dimensions_expr",
    "escape_sequence", "false", "floating_point_type", "integral_type", "null", "null_literal", "object", "pair",
    "property_identifier", "string_fragment", "true", "type_identifier", "undefined",
}  # fmt: skip
"""Types of the nodes of a value that is written out, in addition to numbers, strings, signs and parentheses."""
_COMPARISONS = {"<", ">", "<=", ">=", "==", "!=", "===", "!=="}
_WALKS = (".map", ".filter", ".reduce", ".forEach", ".some", ".every", ".stream", ".sort", ".sorted", ".indexOf",
          ".join", ".split", ".includes", ".contains")  # fmt: skip


def operator_of(code: TreeCode, node: Any) -> str:
    """The operator of an operation."""
    return code.of(node.child_by_field_name("operator")) or next((c.type for c in node.children if not c.is_named), "")


def bare(code: TreeCode, node: Any) -> Any:
    """An expression without the parentheses around it."""
    while code.is_a(node, "parentheses") and node.named_children:
        node = code.statements(node)[0]
    return node


def branch(code: TreeCode, statement: Any, name: str) -> list[Any] | None:
    """The statements of a branch, `consequence` or `alternative`; None if there is none."""
    body = statement.child_by_field_name(name)
    if body is not None and body.type == "else_clause":
        body = next(iter(code.statements(body)), None)
    if body is None:
        return None
    return code.statements(body) if code.is_a(body, "block") else [body]


def ends_in_else(code: TreeCode, statement: Any) -> bool:
    """Whether a chain ends in an else branch."""
    inside = branch(code, statement, "alternative")
    if inside is None:
        return False
    last = statement.child_by_field_name("alternative")
    bare_if = len(inside) == 1 and code.is_a(inside[0], "if") and not code.is_a(last.named_children[-1], "block")
    return ends_in_else(code, inside[0]) if bare_if and is_else_if(code, inside[0]) else True


@tree_pair(
    ("if_with_else", "if statement with an else branch", "if statements with else branches"),
    ("if_without_else", "if statement without an else branch", "if statements without else branches"),
)
def if_with_else(code: TreeCode) -> Iterator[tuple[Occurrence, bool]]:
    return ((at(node), ends_in_else(code, node)) for node in code.all("if") if not is_else_if(code, node))


each_of("elif", "else-if branch", "if", plural="else-if branches", when=is_else_if)
each_of("boolean_operator", "&& or ||", "binary", plural="&& or ||",
        when=lambda code, node: operator_of(code, node) in ("&&", "||"))  # fmt: skip
each_of("negation", "negated condition", "unary", when=lambda code, node: operator_of(code, node) == "!")
each_of("nested_loop", "nested loop", *LOOPS,
        when=lambda code, node: code.is_a(code.around(node, *LOOPS, "function"), *LOOPS))  # fmt: skip
each_of("leaving_loop", "loop that may end early", *LOOPS, plural="loops that may end early",
        when=lambda code, n: code.is_a(n, "while") or any(code.within(n, "if", "return", "ternary")))  # fmt: skip
each_of("assignment", "assignment", *_ASSIGNS,
        when=lambda code, node: _is_plain(code, node) and not code.is_function(node))  # fmt: skip
each_of("augmented_assignment", "augmented assignment", *_ASSIGNS, when=lambda code, node: not _is_plain(code, node))
each_of("arithmetic", "arithmetic operation", "binary", "augmented", "assignment", "update",
        when=lambda code, node: operator_of(code, node).rstrip("=") in _ARITHMETIC)  # fmt: skip
each_of("bit_operation", "bitwise operation", "binary", "unary", "augmented", "assignment",
        when=lambda code, node: operator_of(code, node) in _BITS)  # fmt: skip


each_of("else_after_exit", "else after a block that leaves", "if", plural="elses after blocks that leave",
        when=lambda code, node: code.is_a((branch(code, node, "consequence") or [None])[-1], *LEAVING)
        and branch(code, node, "alternative") is not None)  # fmt: skip


@tree_pattern("guard", "guard clause")
def guard(code: TreeCode) -> Iterator[Occurrence]:
    for node in code.all("if"):
        inside, after = branch(code, node, "consequence"), node.next_named_sibling
        leaves = inside and len(inside) == 1 and code.is_a(inside[0], "return", "throw")
        if leaves and branch(code, node, "alternative") is None and after is not None and not is_else_if(code, node):
            yield at(node)


@tree_pattern("mergeable_if", "pair of nested conditions", "pairs of nested conditions")
def mergeable_if(code: TreeCode) -> Iterator[Occurrence]:
    for node in code.all("if"):
        inside = branch(code, node, "consequence")
        one = inside[0] if inside and len(inside) == 1 and code.is_a(inside[0], "if") else None
        if one is not None and not any(branch(code, each, "alternative") for each in (node, one)):
            yield at(node)


def _values(code: TreeCode, statements: list[Any] | None) -> str | None:
    """The name that the only statement of a branch assigns to, or `return`."""
    if not statements or len(statements) != 1:
        return None
    (only,) = statements
    if code.is_a(only, "return") and only.named_children:
        return "return"
    inner: Any = only.named_children[0] if code.is_a(only, "expression") and only.named_children else None
    if code.is_a(inner, "assignment") and operator_of(code, inner) == "=":
        return code.of(inner.child_by_field_name("left"))
    return None


@tree_pattern("two_way_value", "if/else that chooses a value", "ifs and elses that choose a value")
def two_way_value(code: TreeCode) -> Iterator[Occurrence]:
    for node in code.all("if"):
        yes, no = (_values(code, branch(code, node, name)) for name in ("consequence", "alternative"))
        if yes is not None and yes == no:
            yield at(node)


def _exits(code: TreeCode, function: Any) -> tuple[list[Any], Any]:
    """The returns of a function without returns of inner functions, and the last statement."""
    body = function.child_by_field_name("body")
    inside = code.statements(body) if code.is_a(body, "block") else []
    returns = [node for node in code.within(function, "return") if code.around(node, "function") == function]
    return returns, inside[-1] if inside else None


tree_pattern("single_return", "function with one return at its end", "functions with one return at their ends")(
    lambda code: (
        at(node) for node in code.functions.values() for found, last in [_exits(code, node)] if found == [last]
    )
)


tree_pattern("several_returns", "function with several returns", "functions with several returns")(
    lambda code: (at(node) for node in code.functions.values() if len(_exits(code, node)[0]) > 1)
)


tree_pattern("early_return", "early return")(lambda code: (
    at(node) for function in code.all("function") for found, last in [_exits(code, function)]
    for node in found if node != last
))  # fmt: skip


def _returned(code: TreeCode) -> Iterator[tuple[Any, Any]]:
    for node in code.all("return"):
        inside = code.statements(node)
        if inside:
            yield node, inside[0]


@tree_pair(
    ("literal_return", "return of a literal", "returns of literals"),
    ("computed_return", "return of an expression", "returns of expressions"),
)
def literal_return(code: TreeCode) -> Iterator[tuple[Occurrence, bool]]:
    returned = ((node, bare(code, value)) for node, value in _returned(code))
    return ((at(node), _is_literal(code, value)) for node, value in returned if not code.is_a(value, "name"))


def _is_literal(code: TreeCode, node: Any) -> bool:
    """Whether an expression is a value that is written out: `-1`, `{}`, `new ArrayList<>()`, `Integer.MAX_VALUE`."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if not code.is_a(one, "number", "string", "unary", "parentheses", "comment") and one.type not in _WRITTEN:
            if _AS_WRITTEN.fullmatch(code.of(one)) is None:
                return False
            continue
        waiting += one.named_children
    return True


tree_pattern("named_return", "return of a variable", "returns of variables")(
    lambda code: (at(node) for node, value in _returned(code) if code.is_a(bare(code, value), "name"))
)


@tree_pair(
    ("wrapped_return", "returned value in parentheses", "returned values in parentheses"),
    ("bare_return", "returned value without parentheses", "returned values without parentheses"),
)
def wrapped_return(code: TreeCode) -> Iterator[tuple[Occurrence, bool]]:
    return ((at(node), code.is_a(value, "parentheses")) for node, value in _returned(code))


@tree_pattern("passing_variable", "variable that is only returned", "variables that are only returned")
def passing_variable(code: TreeCode) -> Iterator[Occurrence]:
    for node, value in _returned(code):
        before = node.prev_named_sibling
        inner = before.named_children[-1] if before is not None and before.named_children else None
        if inner is None:
            continue
        target = inner.child_by_field_name("name") or inner.child_by_field_name("left")
        assigns = code.is_a(inner, "declarator") or (code.is_a(inner, "assignment") and operator_of(code, inner) == "=")
        if assigns and code.is_a(before, "declaration", "expression") and code.of(target) == code.of(bare(code, value)):
            yield at(node, code.of(target))


def _conditions(code: TreeCode) -> Iterator[Any]:
    for node in code.all("if", "while"):
        condition = node.child_by_field_name("condition")
        if condition is not None:
            yield bare(code, condition)


tree_pattern("condition", "spelled-out condition")(lambda code: (
    at(node) for node in _conditions(code)
    if code.is_a(node, "binary") and operator_of(code, node) in {*_COMPARISONS, "&&", "||"}
))  # fmt: skip


@tree_pattern("named_condition", "named condition")
def named_condition(code: TreeCode) -> Iterator[Occurrence]:
    for node in _conditions(code):
        inner = bare(code, node.named_children[-1]) if code.is_a(node, "unary") else node
        if code.is_a(inner, "name"):
            yield at(node)


def _leaves_loop(code: TreeCode, node: Any) -> bool:
    """Whether a jump leaves a loop or a round of one; a `break` that ends a case of a switch does not."""
    around = code.around(node, *LOOPS, "switch", "function")
    return code.is_a(around, *LOOPS) or (code.is_a(node, "continue") and code.is_a(around, "switch"))


each_of("jump", "break or continue", "break", "continue", plural="breaks or continues", when=_leaves_loop)
each_of("break", "break", "break", when=_leaves_loop)


@tree_pattern("endless_loop", "loop without an end of its own", "loops without an end of their own")
def endless_loop(code: TreeCode) -> Iterator[Occurrence]:
    for node in code.all(*LOOPS):
        condition = node.child_by_field_name("condition")
        endless = code.of(bare(code, condition)) == "true" if condition is not None else False
        empty = code.is_a(node, "for") and not code.is_a(node, "each") and code.of(condition) in ("", ";")
        if (endless or empty) and any(code.within(node, "break", "return", "throw")):
            yield at(node)


@tree_pattern("nesting", "block nested that deep", "blocks nested that deep")
def nesting(code: TreeCode, *, deeper_than: int) -> Iterator[Occurrence]:
    for node in code.all(*CONTROL):
        depth, above = 0, node
        while (above := code.around(above, *CONTROL, "function")) is not None and not code.is_a(above, "function"):
            depth += not is_else_if(code, above)
        if depth >= deeper_than and not is_else_if(code, node):
            yield at(node)


@tree_pattern("item_walk", "walk through items", "walks through items")
@tree_pattern("traversal", "walk through values", "walks through values")
def traversal(code: TreeCode) -> Iterator[Occurrence]:
    yield from map(at, code.all(*LOOPS))
    yield from (at(node) for node in code.all("call") if f".{called(code, node)}" in _WALKS)


def _is_plain(code: TreeCode, node: Any) -> bool:
    return code.is_a(node, "declarator") or operator_of(code, node) == "="


@tree_pattern("self_assignment", "assignment of the form x = x + …", "assignments of the form x = x + …")
def self_assignment(code: TreeCode) -> Iterator[Occurrence]:
    for node in filter(partial(_is_plain, code), code.all(*_ASSIGNS)):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and code.is_a(right, "binary") and operator_of(code, right) not in _COMPARISONS:
            first = right.child_by_field_name("left")
            while code.is_a(first, "binary"):
                first = first.child_by_field_name("left")
            if code.of(first) == code.of(left):
                yield at(node)


each_of("string_concatenation", "string built with +", "binary", plural="strings built with +",
        when=lambda code, node: operator_of(code, node) == "+" and any(
            code.is_a(bare(code, node.child_by_field_name(side)), "string") for side in ("left", "right")))  # fmt: skip


@tree_pattern("assert", "assertion")
def assert_(code: TreeCode) -> Iterator[Occurrence]:
    yield from map(at, code.all("assert"))
    yield from (at(node) for node in code.all("call") if code.of(node).startswith(("console.assert(", "assert(")))


@tree_pattern("subclass", "class derived from {of}", "classes derived from {of}")
def subclass(code: TreeCode, *, of: list[str], raised: bool = False) -> Iterator[Occurrence]:
    """Classes that extend one of `of` (by the end of the name); with `raised` only classes that are thrown."""
    thrown = " ".join(code.of(node) for node in code.all("throw"))
    for node in code.all("class"):
        name, head = code.of(node.child_by_field_name("name")), code.of(node).partition("{")[0]
        above = re.search(r"\bextends\s+(\w+)", head)
        fits = above is not None and above[1].endswith(tuple(each.lstrip("*") for each in of))
        if fits and (not raised or f"new {name}(" in thrown):
            yield at(node, name)


def doubt_in(old: TreeCode, new: TreeCode) -> str:
    """The reason why reading cannot decide a change: the addition may never run, or may be hidden in a text."""

    def dead(code: TreeCode) -> int:
        return sum(code.of(node) in ("false", "0", "!true", "null") for node in _conditions(code))

    def texts(code: TreeCode) -> int:
        made = [code.of(node.child_by_field_name("constructor")) for node in code.all("new")].count("Function")
        return made + sum(called(code, node) in ("eval", "Function") for node in code.all("call"))

    for why, count in (("code in a condition that never holds", dead), ("code in a text that is run", texts)):
        if count(new) > count(old):
            return f"there is {why}"
    return ""
