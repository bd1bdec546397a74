"""Loops: what they run over, in which direction, and what they do."""

import ast
from collections.abc import Iterable, Iterator

from codechat.studies.refine.patterns.base import Occurrence, at, pattern
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import COMPREHENSIONS, FUNCTIONS, LOOPS, children, own_nodes, walk


@pattern("nested_loop", "nested loop")
def nested_loop(code: Code) -> Iterable[Occurrence]:
    """Loops inside a loop of the same function, and nested comprehensions.

    A comprehension is nested if it has several `for` clauses, or is run for each item of another.
    """
    for node in code.find(*LOOPS, *COMPREHENSIONS):
        if isinstance(node, COMPREHENSIONS):
            values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            inner = [one for value in values for one in walk(value) if isinstance(one, COMPREHENSIONS)]
            yield from [at(node)] * (len(node.generators) - 1 + bool(inner) + _is_in_loop(code, node))
            continue
        around = next((one for one in code.ancestors(node) if isinstance(one, (*LOOPS, *FUNCTIONS))), None)
        if isinstance(around, LOOPS):
            yield at(node)


def _is_in_loop(code: Code, node: ast.AST) -> bool:
    """Whether a comprehension is run anew in each round of a loop."""
    inner = node
    for above in code.ancestors(node):
        if isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, LOOPS):
            return inner is not getattr(above, "iter", None)
        inner = above
    return False


@pattern("index_loop", "loop over range(len(...))", "loops over range(len(...))")
def index_loop(code: Code) -> Iterable[Occurrence]:
    """Loops and comprehensions over all indices of something: `for i in range(len(x))`.

    `range(0, len(x))` is the same, and so are `list(range(len(x)))`, a name that only ever holds such a range, and
    `range(n)` for a name that only ever holds a length.
    """
    lengths = _lengths(code)
    for node in code.find(ast.For, ast.AsyncFor, ast.comprehension):
        call: ast.AST = node.iter
        if isinstance(call, ast.Name):
            call = code.values.get(call.id, call)
        while isinstance(call, ast.Call) and code.origin(call.func) in _WRAPPING and call.args:
            call = call.args[0]
        if not isinstance(call, ast.Call) or code.origin(call.func) != "range":
            continue
        numbers = [part.value if isinstance(part, ast.Constant) else None for part in call.args]
        stop = call.args[1 if len(numbers) > 1 else 0] if numbers else None
        whole = numbers[:-1] in ([], [0]) or (numbers[0], numbers[2:]) == (0, [1])
        if whole and (_calls_len(code, stop) or (isinstance(stop, ast.Name) and stop.id in lengths)):
            yield at(node.iter)


_WRAPPING = ("list", "tuple", "iter", "enumerate")


def _lengths(code: Code) -> set[str]:
    """The names that `name = len(...)` binds and nothing else does."""
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
    """`for` statements that run forward: nothing reverses the iterable, neither here nor where it gets its name.

    An iterable that is reversed twice runs forward.
    """
    turned: set[str] = set()
    for assignment in code.find(ast.Assign):
        if _runs_backward(code, assignment.value):
            turned.update(target.id for target in assignment.targets if isinstance(target, ast.Name))
    for node in code.find(ast.For):
        named = isinstance(node.iter, ast.Name) and node.iter.id in turned
        if _runs_backward(code, node.iter) is named or turns_back(node):
            yield at(node)


def turns_back(loop: ast.For) -> bool:
    """Whether a loop's index is only ever subtracted: `for i in range(n, 0, -1): x[n - i]`."""
    name = loop.target.id if isinstance(loop.target, ast.Name) else ""
    inside = walk(loop)
    loads = {one for one in inside if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)}
    stepped = isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 3 and _is_negative(loop.iter.args[2])
    taken = {
        one.slice.right for one in inside
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.BinOp) and isinstance(one.slice.op, ast.Sub)
    }  # fmt: skip
    return stepped and bool(loads) and loads <= taken


def _runs_backward(code: Code, node: ast.AST) -> bool:
    return sum(turns_around(code, part) for part in _in_order(code, node)) % 2 == 1


def _in_order(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    """The expression's nodes without the arguments of functions that decide the order themselves, or have none."""
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
    """Expressions that run backward, and `while` loops that count an index down."""
    undone = {one.iter for one in code.find(ast.For) if turns_back(one)}
    for node in code.find(ast.Call, ast.Slice, ast.While):
        if node not in undone and (_counts_down(node) if isinstance(node, ast.While) else turns_around(code, node)):
            yield at(node)


def _counts_down(loop: ast.While) -> bool:
    """Whether a variable that the loop tests is lowered in it and used as an index."""
    inside = [*own_nodes(loop)]
    lowered = {
        ast.unparse(one.target) for one in inside if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Sub)
    }
    for one in inside:
        value = one.value if isinstance(one, ast.Assign) and isinstance(one.value, ast.BinOp) else None
        if value is not None and isinstance(value.op, ast.Sub) and isinstance(value.right, ast.Constant):
            lowered.add(ast.unparse(value.left))
    places = {ast.unparse(one.slice) for one in inside if isinstance(one, ast.Subscript)}
    return any(isinstance(one, ast.Name) and one.id in lowered & places for one in walk(loop.test))


@pattern("collecting_loop", "loop that fills a collection", "loops that fill a collection")
def collecting_loop(code: Code) -> Iterable[Occurrence]:
    """`for` loops whose body appends or adds to a collection, also by `+= [...]`."""
    for node in code.find(ast.For):
        if any(_collects(code, inner) for inner in walk(node)) or _fills_dict(code, node):
            yield at(node)


def _fills_dict(code: Code, loop: ast.For) -> bool:
    """Whether a loop does nothing but fill a new dict whose entries do not depend on each other."""
    body = loop.body[0].body if len(loop.body) == 1 and isinstance(loop.body[0], ast.If) else loop.body
    target = body[0].targets[0] if len(body) == 1 and isinstance(body[0], ast.Assign) else None
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return False
    made = code.values.get(target.value.id)
    empty = made is not None and ast.unparse(made) in ("{}", "dict()")
    reads = [one for one in walk(loop) if isinstance(one, ast.Name) and one.id == target.value.id]
    return empty and len(reads) == 1


def _collects(code: Code, node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and isinstance(node.value, ast.List)
    return isinstance(node, ast.Call) and code.called(node.func) in (".append", ".add")
