"""Comparisons in assertions that a program cannot forge: `f(1) == 2` does not call an `__eq__` of the program.

If the class of one side compares by the program's code and the other's does not, the first counts by the plain value
that it holds (a subclass of int as that int), or equals nothing. Values of the standard library and of installed
packages compare as usual, and so do two objects of the program.
"""

import ast
import operator
import weakref
from collections.abc import Callable
from types import FunctionType, MappingProxyType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from codechat.sandbox.inside.encode import BASES, SCALARS
from codechat.sandbox.inside.snapshot import HEAP_TYPE

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
PROXIES = frozenset((weakref.ProxyType, weakref.CallableProxyType))
MOCK = "unittest/mock.py"  # has an object that equals everything: for tests, not for results
ASKED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__iter__", "__getitem__")
DEEPEST = 50


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


def names(path: str, mocks: bool) -> dict[str, Callable[..., Any]]:
    """The functions of guarded comparisons, made before the program's code runs. `path` is the program's file;
    `mocks`: the assertions use `unittest.mock` themselves."""
    plain, operators, solid = _plainly(path, mocks), dict(OPERATORS.values()), _solid()

    def pair(one: Any, other: Any) -> tuple[Any, Any]:
        one, other = solid(one, other), solid(other, one)
        (first, own), (second, others) = plain(one, 0), plain(other, 0)
        return (first, second) if own != others else (one, other)

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
    zip_ = zip

    def chain(signs: tuple[str, ...], one: Any, other: Any, *later: Callable[[], Any]) -> Any:
        result = compare(signs[0], one, other)
        for sign, make in zip_(signs[1:], later):
            if not result:
                return result
            one, other = other, make()
            result = compare(sign, one, other)
        return result

    return chain


def _solid() -> Callable[[Any, Any], Any]:
    """A function of a value and what it is compared with: the value, but a number of NumPy shorter than Python's
    as one of Python's, and an empty array as something that equals nothing but what is empty, too."""
    kind_of, blank, length, has = type, object, len, hasattr

    def solid(one: Any, other: Any) -> Any:
        kind = kind_of(one)
        if kind.__module__ != "numpy" or not has(one, "itemsize"):
            return one
        if kind.__name__ != "ndarray":
            short = one.dtype.kind in "iufc" and one.itemsize < (16 if one.dtype.kind == "c" else 8)
            return one.item() if short else one
        filled = other.size if has(other, "size") else length(other) if has(other, "__len__") else True
        return blank() if filled and not one.size else one

    return solid


def _plainly(path: str, mocks: bool) -> Callable[[Any, int], tuple[Any, bool]]:
    """A function of a value: its plain value, and whether anything in it compares by the program's code."""
    kind_of, is_kind, scalars, bases, own_of = (
        type,
        issubclass,
        SCALARS,
        tuple(BASES.items()),
        _of_the_program(path, mocks),
    )
    series, mapping, items, any_of, blank = (list, tuple, set, frozenset), dict, dict.items, any, object
    iterators, unhashable = {kind: kind.__iter__ for kind in series}, TypeError
    proxies, view = PROXIES, MappingProxyType

    def plain(value: Any, depth: int) -> tuple[Any, bool]:
        kind = kind_of(value)
        if kind in scalars or depth > DEEPEST:
            return value, False
        own = kind in proxies or own_of(kind)
        if kind is view:  # of any mapping
            value, kind, own = mapping(value), mapping, True
        try:
            for base in series:
                if is_kind(kind, base):
                    parts = [plain(part, depth + 1) for part in iterators[base](value)]
                    inner = own or any_of([part[1] for part in parts])
                    return (base([part[0] for part in parts]), True) if inner else (value, False)
            if is_kind(kind, mapping):
                pairs = [(plain(key, depth + 1), plain(part, depth + 1)) for key, part in items(value)]
                inner = own or any_of([key[1] or part[1] for key, part in pairs])
                return ({key[0]: part[0] for key, part in pairs}, True) if inner else (value, False)
        except unhashable:
            return blank(), True
        for number, convert in bases if own else ():
            if is_kind(kind, number):
                return convert(value), True
        return (blank(), True) if own else (value, False)

    return plain


def _of_the_program(path: str, mocks: bool) -> Callable[[type], bool]:
    """Whether objects of a class are compared by the program's code, a mock or an odd method."""
    kind_of, function, slots, asked = type, FunctionType, (WrapperDescriptorType, MethodDescriptorType), ASKED
    line, space = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
    flags = type.__dict__["__flags__"].__get__
    mock, ends, made = MOCK, str.endswith, (path, "<string>")
    called = {slot: slot.__dict__["__name__"].__get__ for slot in slots}

    def own(kind: type) -> bool:
        if not flags(kind) & HEAP_TYPE:
            return False
        for name in asked:
            for base in line(kind):
                method = space(base).get(name)
                if method is None:
                    continue
                if kind_of(method) is function:
                    file = method.__code__.co_filename
                    if file in made or (ends(file, mock) and not mocks):
                        return True
                elif kind_of(method) not in slots or called[kind_of(method)](method) != name:
                    return True
                break
        return False

    return own
