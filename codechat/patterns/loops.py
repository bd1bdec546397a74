"""Loops: over what they run, in which direction, and what they do."""

import ast
from collections.abc import Iterable, Iterator

from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.code import Code
from codechat.patterns.tree import FUNCTIONS, LOOPS, children, own_nodes, walk


@pattern("searching_loop", "loop that returns True or False", "loops that return True or False")
def searching_loop(code: Code) -> Iterable[Occurrence]:
    """Loops that leave their function with a Boolean literal."""
    for node in code.find(*LOOPS):
        values = [inner.value for inner in own_nodes(node) if isinstance(inner, ast.Return)]
        if any(isinstance(value, ast.Constant) and isinstance(value.value, bool) for value in values):
            yield at(node)


@pattern("nested_loop", "nested loop")
def nested_loop(code: Code) -> Iterable[Occurrence]:
    """Loops inside a loop of the same function."""
    for node in code.find(*LOOPS):
        around = next((one for one in code.ancestors(node) if isinstance(one, (*LOOPS, *FUNCTIONS))), None)
        if isinstance(around, LOOPS):
            yield at(node)


@pattern("index_loop", "loop over range(len(...))", "loops over range(len(...))")
def index_loop(code: Code) -> Iterable[Occurrence]:
    """`for` loops and comprehensions over `range(len(x))`, every index of x.

    `range(0, len(x))` is the same, and so is `range(n)` for a name that only ever holds a length.
    """
    lengths = _lengths(code)
    for node in code.find(ast.For, ast.AsyncFor, ast.comprehension):
        call = node.iter
        if not isinstance(call, ast.Call) or code.origin(call.func) != "range":
            continue
        numbers = [part.value if isinstance(part, ast.Constant) else None for part in call.args]
        stop = call.args[1 if len(numbers) > 1 else 0] if numbers else None
        whole = numbers[:-1] in ([], [0]) or (numbers[0], numbers[2:]) == (0, [1])
        if whole and (_calls_len(code, stop) or (isinstance(stop, ast.Name) and stop.id in lengths)):
            yield at(call)


def _lengths(code: Code) -> set[str]:
    """Names that `name = len(...)` binds and nothing else does."""
    found: set[str] = set()
    others = {parameter.arg for parameter in code.find(ast.arg)}
    for name in code.find(ast.Name):
        if isinstance(name.ctx, ast.Store):
            assignment = code.parents.get(name)
            measured = isinstance(assignment, ast.Assign | ast.AnnAssign) and _calls_len(code, assignment.value)
            (found if measured else others).add(name.id)
    return found - others


def _calls_len(code: Code, node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and code.origin(node.func) == "len"


@pattern("forward_loop", "loop that runs forward", "loops that run forward")
def forward_loop(code: Code) -> Iterable[Occurrence]:
    """`for` statements over what no `reversed` or negative step turns around, there or where the iterable is named."""
    turned: set[str] = set()
    for assignment in code.find(ast.Assign):
        if any(turns_around(code, part) for part in _in_order(code, assignment.value)):
            turned.update(target.id for target in assignment.targets if isinstance(target, ast.Name))
    for node in code.find(ast.For):
        named = isinstance(node.iter, ast.Name) and node.iter.id in turned
        if not named and not any(turns_around(code, part) for part in _in_order(code, node.iter)):
            yield at(node)


def _in_order(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    """The expression's nodes without the arguments of what puts values into an order of its own, or in none."""
    yield node
    if isinstance(node, ast.Call) and code.origin(node.func) in ("sorted", "set", "frozenset"):
        return
    for child in children(node):
        yield from _in_order(code, child)


def turns_around(code: Code, node: ast.AST) -> bool:
    """Whether an expression runs backward: `reversed(...)`, or a slice or range with a negative step."""
    if isinstance(node, ast.Slice):
        return node.step is not None and _is_negative(node.step)
    if not isinstance(node, ast.Call):
        return False
    stepped = code.origin(node.func) == "range" and len(node.args) == 3 and _is_negative(node.args[2])
    return stepped or code.origin(node.func) == "reversed"


def _is_negative(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


@pattern("backward_iteration", "backward iteration")
def backward_iteration(code: Code) -> Iterable[Occurrence]:
    """Expressions that run backward."""
    return (at(node) for node in code.find(ast.Call, ast.Slice) if turns_around(code, node))


@pattern("collecting_loop", "loop that fills a collection", "loops that fill a collection")
def collecting_loop(code: Code) -> Iterable[Occurrence]:
    """`for` loops whose body appends or adds to a collection."""
    for node in code.find(ast.For):
        if any(_collects(inner) for inner in walk(node)):
            yield at(node)


def _collects(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "add")
