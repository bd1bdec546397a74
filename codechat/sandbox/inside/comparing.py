"""Comparisons in assertions by which an array of NumPy does not pass by having no items, nor a short number by its
precision. All others are Python's own.
"""

import ast
import operator
from collections.abc import Callable
from typing import Any

COMPARE, CHAIN, PAIR = "(compare)", "(chain)", "(pair)"  # names that no program can write
OPERATORS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda one, other: one in other),
    ast.NotIn: ("not in", lambda one, other: one not in other),
}
OF_TWO = frozenset(
    (
        *("assertEqual", "assertNotEqual", "assertIn", "assertNotIn", "assertAlmostEqual", "assertNotAlmostEqual"),
        *(
            "assertGreater",
            "assertGreaterEqual",
            "assertLess",
            "assertLessEqual",
            "assertListEqual",
            "assertTupleEqual",
        ),
        *("assertSetEqual", "assertDictEqual", "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"),
    )
)
# Functions of NumPy that compare, by which an empty array is close to everything.
CLOSE = frozenset(("allclose", "isclose", "array_equal", "array_equiv", "assert_allclose", "assert_array_equal"))
# The names of the first two parameters of these methods.
PARAMETERS = (
    *(("first", "second"), ("member", "container"), ("a", "b"), ("list1", "list2"), ("tuple1", "tuple2")),
    *(("set1", "set2"), ("d1", "d2"), ("seq1", "seq2"), ("a1", "a2"), ("x", "y"), ("actual", "desired")),
)


class Guarded(ast.NodeTransformer):
    """Replaces comparisons, and the comparing methods of test cases, by guarded ones; `differences`: those by a minus,
    too."""

    def __init__(self, differences: bool = False) -> None:
        self._differences = differences

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not (self._differences and isinstance(node.op, ast.Sub)):
            return node
        call = ast.Call(ast.Name(COMPARE, ast.Load()), [ast.Constant("-"), node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if any(type(one) not in OPERATORS for one in node.ops):
            return node
        if len(node.ops) > 1:
            return _chained(node)
        sign = ast.Constant(OPERATORS[type(node.ops[0])][0])
        call = ast.Call(ast.Name(COMPARE, ast.Load()), [sign, node.left, node.comparators[0]], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        compares = isinstance(node.func, ast.Attribute) and node.func.attr in OF_TWO | CLOSE
        compares = compares or (isinstance(node.func, ast.Name) and node.func.id in CLOSE)
        if compares:
            _place_named(node)
        if compares and len(node.args) >= 2 and not any(isinstance(one, ast.Starred) for one in node.args[:2]):
            pair = ast.Call(ast.Name(PAIR, ast.Load()), node.args[:2], [])
            node.args[:2] = [ast.Starred(pair, ast.Load())]
            ast.fix_missing_locations(ast.copy_location(pair, node))
            ast.fix_missing_locations(node)
        return node


def _chained(node: ast.Compare) -> ast.AST:
    """`a < b < c` as a call that gets c as a function: it may not be evaluated."""
    later = node.comparators[1:]
    if any(
        isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)
        for one in later
        for part in ast.walk(one)
    ):
        return node
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    signs = ast.Tuple([ast.Constant(OPERATORS[type(one)][0]) for one in node.ops], ast.Load())
    functions = [ast.Lambda(nothing, one) for one in later]
    call = ast.Call(ast.Name(CHAIN, ast.Load()), [signs, node.left, node.comparators[0], *functions], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def _place_named(node: ast.Call) -> None:
    """Put the first two arguments, if they are given by name, in their places."""
    given = {one.arg: one.value for one in node.keywords}
    for pair in PARAMETERS:
        wanted = pair[len(node.args) :]
        if wanted and all(name in given for name in wanted):
            node.args += [given[name] for name in wanted]
            node.keywords = [one for one in node.keywords if one.arg not in wanted]
            return


def names() -> dict[str, Callable[..., Any]]:
    """The functions of guarded comparisons in the program's own process."""
    operators = dict(OPERATORS.values())

    def pair(one: Any, other: Any) -> tuple[Any, Any]:
        return _solid(one, other), _solid(other, one)

    def compare(sign: str, one: Any, other: Any) -> Any:
        return operators[sign](*pair(one, other))

    return {COMPARE: compare, CHAIN: _chain(compare), PAIR: pair}


def names_of_arrays() -> dict[str, Callable[..., Any]]:
    """The same for tests in a process of their own that use NumPy: no result equals all items by having none."""
    import numpy

    operators: dict[str, Any] = {**dict(OPERATORS.values()), "-": operator.sub}
    array, size, dimensions = numpy.ndarray, numpy.size, numpy.ndim

    def pair(one: Any, other: Any) -> tuple[Any, Any]:
        arrays = (isinstance(one, array) or isinstance(other, array)) and dimensions(one) and dimensions(other)
        if arrays and (size(one) == 0) != (size(other) == 0):
            raise AssertionError("an empty array is compared with another one")
        return one, other

    def compare(sign: str, one: Any, other: Any) -> Any:
        return operators[sign](*(pair(one, other) if "in" not in sign else (one, other)))

    return {COMPARE: compare, CHAIN: _chain(compare), PAIR: pair}


def _chain(compare: Callable[[str, Any, Any], Any]) -> Callable[..., Any]:
    def chain(signs: tuple[str, ...], one: Any, other: Any, *later: Callable[[], Any]) -> Any:
        result = compare(signs[0], one, other)
        for sign, make in zip(signs[1:], later, strict=True):
            if not result:
                return result
            one, other = other, make()
            result = compare(sign, one, other)
        return result

    return chain


def _solid(one: Any, other: Any) -> Any:
    """A value that is compared with another: a number of NumPy shorter than Python's as one of Python's, and an empty
    array as something that equals nothing but what is empty, too."""
    kind = type(one)
    if kind.__module__ != "numpy" or not hasattr(one, "itemsize"):
        return one
    if kind.__name__ != "ndarray":
        short = one.dtype.kind in "iufc" and one.itemsize < (16 if one.dtype.kind == "c" else 8)
        return one.item() if short else one
    filled = other.size if hasattr(other, "size") else len(other) if hasattr(other, "__len__") else True
    return object() if filled and not one.size else one
