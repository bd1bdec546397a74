"""Test snippets as code: tests that they only define are run as their framework would run them.

These are classes of `unittest`, functions and classes that pytest would find, `async` tests included, the function
`check(candidate)` of HumanEval, and the code under `if __name__ == "__main__"`. Comparisons are guarded: an array of
NumPy does not pass by having no items, nor a short number by its precision.
"""

import ast
import contextlib
import operator
import symtable
import unittest
from collections.abc import Callable, Collection, Iterator, Sequence
from types import CodeType
from typing import Any

CASES, CLASS, AWAIT = "(cases)", "(class)", "(await)"  # names that no text can have
HOOKS = ("setup_method", "teardown_method", "setup_class", "teardown_class")
MAINS = ("unittest.main", "main", "pytest.main")
MAIN_GUARDS = ("__name__ == '__main__'", "'__main__' == __name__")
NO_CODE = (SyntaxError, ValueError, RecursionError, MemoryError)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Kept(unittest.TestResult):
    """Results with the exceptions themselves, whose tracebacks name the failing lines of the tests."""

    def _exc_info_to_string(self, err: Any, test: Any) -> Any:
        return err[1]


class NotRun(ValueError):
    """A snippet with tests that nothing here runs; the text says which."""


def run_cases(*classes: Any) -> None:
    """Run the tests of `unittest` classes; raises `AssertionError` unless each of them passed and there is one."""
    for cases in classes:
        found = _Kept()
        unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(found)
        wrong = [*found.failures, *found.errors, *found.skipped, *found.expectedFailures]  # skipped has not passed
        if wrong:
            test, cause = wrong[0]  # why a test was skipped is a text
            trace = getattr(cause, "__traceback__", None)
            said = str(cause).strip().split("\n", 1)[0]
            said = f"{type(cause).__name__}: {said}" if trace else said
            raise AssertionError(f"{'.'.join(str(test.id()).split('.')[-2:])}: {said}").with_traceback(trace)
        if not found.testsRun or not found.wasSuccessful():
            raise AssertionError("no test ran")


def run_class(tests: Any) -> None:
    """Run the tests of a class as pytest does: one object for every test."""
    getattr(tests, "setup_class", lambda: None)()
    for test in [name for name in vars(tests) if name.startswith("test")]:
        case = tests()
        getattr(case, "setup_method", lambda: None)()
        ended = getattr(case, test)()
        if hasattr(ended, "__await__"):
            run_awaitable(ended)
        getattr(case, "teardown_method", lambda: None)()
    getattr(tests, "teardown_class", lambda: None)()


def run_awaitable(coroutine: Any) -> None:
    """Run a coroutine to its end."""
    import asyncio  # seldom needed, and slow to load

    asyncio.run(coroutine)


RUNNERS = {CASES: run_cases, CLASS: run_class, AWAIT: run_awaitable}  # names that the code of snippets uses


def compile_snippet(
    snippet: str, name: str, entry_point: str, used: Collection[str], visitor: ast.NodeTransformer | None = None
) -> CodeType | str:
    """The code of a snippet, with calls of the tests that it only defines. `used` are the names that all snippets use;
    `visitor` changes the tree. The text itself if it does not parse: running it raises the error."""
    try:
        tree = read_snippet(snippet, name)
        tree.body += find_calls(tree, entry_point, used)
        return compile(tree if visitor is None else visitor.visit(tree), name, "exec", dont_inherit=True)
    except NO_CODE:
        try:
            compile(snippet, name, "exec", dont_inherit=True)
        except NO_CODE:
            return snippet
        raise  # the text alone would only define its tests


def refuse_unrun(snippets: Sequence[str], entry_point: str) -> set[str]:
    """The names that the snippets use. Raises `NotRun` if nothing would run some of their tests."""
    trees = []
    for snippet in snippets:
        with contextlib.suppress(*NO_CODE):  # no program passes that
            trees.append(read_snippet(snippet, "<assertion>"))
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for tree in trees:
        calls = find_calls(tree, entry_point, used)
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | Function)}
        if defined and not calls and not defined & used and all(map(_only_defines, tree.body)):
            raise NotRun(f"it only defines {min(defined)}, and nothing runs that")
    return used


def imports_of(snippets: Sequence[str]) -> str:
    """The import statements at the top level of snippets, a line each."""
    lines: dict[str, None] = {}
    for snippet in snippets:
        with contextlib.suppress(*NO_CODE):
            body = ast.parse(snippet).body
            lines |= {ast.unparse(node): None for node in body if isinstance(node, ast.Import | ast.ImportFrom)}
    return "".join(f"{line}\n" for line in lines if "__future__" not in line)


def shares_names(snippets: Sequence[str]) -> bool:
    """Whether snippets name the variables of their file as such, by `global` or `globals`."""
    for snippet in snippets:
        with contextlib.suppress(*NO_CODE):
            for node in ast.walk(ast.parse(snippet)):
                if isinstance(node, ast.Global) or (isinstance(node, ast.Name) and node.id == "globals"):
                    return True
    return False


def names_read(snippets: Sequence[str]) -> tuple[set[str], list[str]]:
    """The names that snippets read from the namespace shared with the program, and the names that no snippet binds."""
    read, free, bound = set[str](), dict[str, None](), set[str]()
    for snippet in snippets:
        reads, binds = set[str](), set[str]()
        with contextlib.suppress(*NO_CODE):
            tables = [symtable.symtable(snippet, "<assertion>", "exec")]
            while tables:
                table = tables.pop()
                tables += table.get_children()
                symbols = [
                    symbol for symbol in table.get_symbols() if symbol.is_global() or table.get_type() == "module"
                ]
                reads |= {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
                binds |= {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
        read, bound = read | reads, bound | binds
        free |= dict.fromkeys(sorted(reads - bound))
    return read, list(free)


def uses_of(snippets: Sequence[str], name: str, used: Collection[str]) -> list[bool]:
    """For each snippet, whether it uses a name."""
    return [_uses(snippet, name, used) for snippet in snippets]


def _uses(snippet: str, name: str, used: Collection[str]) -> bool:
    with contextlib.suppress(*NO_CODE):
        tree = read_snippet(snippet, "<assertion>")
        tree.body += find_calls(tree, name, used)
        return any(node.id == name for node in ast.walk(tree) if isinstance(node, ast.Name))
    return False


def class_level_names(snippet: str) -> list[str]:
    """The names that a snippet with classes uses and does not bind itself."""
    try:
        nodes = list(ast.walk(ast.parse(snippet)))
    except NO_CODE:
        return []
    if not any(isinstance(node, ast.ClassDef) for node in nodes):
        return []
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ClassDef | Function)}
    bound |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return list(dict.fromkeys(node.id for node in names if node.id not in bound))


def read_snippet(snippet: str, name: str) -> ast.Module:
    """The snippet's tree, with the code under a main guard; raises what `ast.parse` raises."""
    tree = ast.parse(snippet, name)
    tree.body = list(_opened(tree.body))
    return tree


def _opened(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, main guards opened, without the calls of test runners."""
    for node in body:
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(node, ast.If) and ast.unparse(node.test) in MAIN_GUARDS:
            yield from _opened(node.body)
        elif not (isinstance(value, ast.Call) and ast.unparse(value.func) in MAINS):
            yield node


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return not any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef | ast.Pass | Function)


def find_calls(tree: ast.Module, entry_point: str, used: Collection[str]) -> list[ast.stmt]:
    """Statements that run the tests a snippet only defines. Raises `NotRun`."""
    cases, calls = _cases(tree), list[ast.expr]()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and node.name not in (*cases, *used):
            calls += _run_class(node)
        elif isinstance(node, Function) and node.name not in used:
            if node.name.startswith("test"):
                calls.append(_run_function(node))
            elif node.name == "check" and len(node.args.args) == 1:
                if not entry_point or entry_point == node.name:
                    raise NotRun("it defines check(), and there is no entry point to check")
                calls.append(_call("check", entry_point))
    if cases:
        calls.append(_call(CASES, *cases))
    last = max((node.lineno for node in tree.body), default=1)  # of a statement that defines tests, not of its runner
    place = {"lineno": last, "col_offset": 0, "end_lineno": last, "end_col_offset": 0}
    return [ast.fix_missing_locations(ast.Expr(call, **place)) for call in calls]


def _call(name: str, *arguments: str) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Name(argument, ast.Load()) for argument in arguments], [])


def _run_function(node: Function) -> ast.expr:
    if any(_required(node)):
        raise NotRun(f"{node.name}() needs arguments, such as fixtures, which only pytest gives")
    _refuse_marks(node)
    call = _call(node.name)
    return ast.Call(ast.Name(AWAIT, ast.Load()), [call], []) if isinstance(node, ast.AsyncFunctionDef) else call


def _run_class(node: ast.ClassDef) -> list[ast.expr]:
    methods = [method for method in node.body if isinstance(method, Function)]
    if not any(method.name.startswith("test") for method in methods):
        return []
    _refuse_marks(node)
    for method in methods:
        wanted = _required(method)[1:]
        if (method.name.startswith("test") or method.name in HOOKS) and wanted:
            raise NotRun(f"{node.name}.{method.name}() needs arguments, such as fixtures, which only pytest gives")
        _refuse_marks(method)
    return [_call(CLASS, node.name)]


def _required(node: Function) -> list[str]:
    given = [*node.args.posonlyargs, *node.args.args]
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    plain = given[: len(given) - len(node.args.defaults)]
    return [parameter.arg for parameter in plain] + [parameter.arg for parameter, default in named if default is None]


def _refuse_marks(node: Function | ast.ClassDef) -> None:
    for decorator in map(ast.unparse, node.decorator_list):
        if "pytest" in decorator and not decorator.startswith("pytest.mark.asyncio"):
            raise NotRun(f"{node.name} has the mark @{decorator.partition('(')[0]}, which only pytest understands")


def _cases(tree: ast.Module) -> list[str]:
    known: dict[str, tuple[bool, bool]] = {}  # whether it has tests, whether it awaits them
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [ast.unparse(base) for base in node.bases]
        if not any(base.endswith("TestCase") or base in known for base in bases):
            continue
        tests = [method for method in node.body if isinstance(method, Function) and method.name.startswith("test")]
        awaits = any(base.endswith("AsyncioTestCase") or known.get(base, (0, False))[1] for base in bases)
        if not awaits and any(isinstance(method, ast.AsyncFunctionDef) for method in tests):
            raise NotRun(f"{node.name} has async tests, which only unittest.IsolatedAsyncioTestCase runs")
        known[node.name] = bool(tests) or any(known.get(base, (False, 0))[0] for base in bases), awaits
    cases = [name for name, (tests, _) in known.items() if tests]
    if known and not cases:
        raise NotRun(f"{next(iter(known))} has no test")
    return cases


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
_KINDS_OF_TWO = "Equal NotEqual In NotIn AlmostEqual NotAlmostEqual Greater GreaterEqual Less LessEqual ListEqual"
_MORE_OF_TWO = "TupleEqual SetEqual DictEqual SequenceEqual MultiLineEqual CountEqual"
OF_TWO = frozenset(f"assert{kind}" for kind in f"{_KINDS_OF_TWO} {_MORE_OF_TWO}".split())
# Functions of NumPy that compare, by which an empty array is close to everything.
CLOSE = frozenset(("allclose", "isclose", "array_equal", "array_equiv", "assert_allclose", "assert_array_equal"))
# The names of the first two parameters of these methods.
PARAMETERS = (
    *(("first", "second"), ("member", "container"), ("a", "b"), ("list1", "list2"), ("tuple1", "tuple2")),
    *(("set1", "set2"), ("d1", "d2"), ("seq1", "seq2"), ("a1", "a2"), ("x", "y"), ("actual", "desired")),
)


class Guarded(ast.NodeTransformer):
    """Guards comparisons and the comparing methods of test cases; with `differences` also subtractions."""

    def __init__(self, differences: bool = False) -> None:
        self._differences = differences

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not (self._differences and isinstance(node.op, ast.Sub)):
            return node
        return _replaced(node, COMPARE, ast.Constant("-"), node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if any(type(operation) not in OPERATORS for operation in node.ops):
            return node
        if len(node.ops) > 1:
            return _chained(node)
        return _replaced(node, COMPARE, ast.Constant(OPERATORS[type(node.ops[0])][0]), node.left, node.comparators[0])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        compares = isinstance(node.func, ast.Attribute) and node.func.attr in OF_TWO | CLOSE
        compares = compares or (isinstance(node.func, ast.Name) and node.func.id in CLOSE)
        if compares:
            _place_named(node)
        if compares and len(node.args) >= 2 and not any(isinstance(given, ast.Starred) for given in node.args[:2]):
            node.args[:2] = [ast.Starred(_replaced(node, PAIR, *node.args[:2]), ast.Load())]
            ast.fix_missing_locations(node)
        return node


def _replaced(node: ast.AST, function: str, *arguments: ast.expr) -> ast.expr:
    """A call with the position of a node."""
    call = ast.Call(ast.Name(function, ast.Load()), list(arguments), [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def _chained(node: ast.Compare) -> ast.AST:
    """`a < b < c` as a call that gets c as a function: it may not be evaluated."""
    first, *later = node.comparators
    parts = (part for operand in later for part in ast.walk(operand))
    if any(isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr) for part in parts):
        return node
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    signs = ast.Tuple([ast.Constant(OPERATORS[type(operation)][0]) for operation in node.ops], ast.Load())
    return _replaced(node, CHAIN, signs, node.left, first, *(ast.Lambda(nothing, operand) for operand in later))


def _place_named(node: ast.Call) -> None:
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    for pair in PARAMETERS:
        wanted = pair[len(node.args) :]
        if wanted and all(name in given for name in wanted):
            node.args += [given[name] for name in wanted]
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in wanted]
            return


def guarded_names() -> dict[str, Callable[..., Any]]:
    """The functions of guarded comparisons in the program's process."""
    operators = dict(OPERATORS.values())

    def pair(one: Any, other: Any) -> tuple[Any, Any]:
        return _solid(one, other), _solid(other, one)

    return _functions(pair, lambda sign, one, other: operators[sign](*pair(one, other)))


def names_of_arrays() -> dict[str, Callable[..., Any]]:
    """The same for tests in another process that use NumPy: no result equals all items by having none."""
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

    return _functions(pair, compare)


def _functions(pair: Callable[..., Any], compare: Callable[[str, Any, Any], Any]) -> dict[str, Callable[..., Any]]:
    def chain(signs: tuple[str, ...], one: Any, other: Any, *later: Callable[[], Any]) -> Any:
        result = compare(signs[0], one, other)
        for sign, make in zip(signs[1:], later, strict=True):
            if not result:
                return result
            one, other = other, make()
            result = compare(sign, one, other)
        return result

    return {COMPARE: compare, CHAIN: chain, PAIR: pair}


def _solid(one: Any, other: Any) -> Any:
    """A value for a comparison: a short number of NumPy as a number of Python; an empty array, unless `other` is empty,
    as an object that equals nothing."""
    kind = type(one)
    if kind.__module__ != "numpy" or not hasattr(one, "itemsize"):
        return one
    if kind.__name__ != "ndarray":
        short = one.dtype.kind in "iufc" and one.itemsize < (16 if one.dtype.kind == "c" else 8)
        return one.item() if short else one
    filled = other.size if hasattr(other, "size") else len(other) if hasattr(other, "__len__") else True
    return object() if filled and not one.size else one
