"""Control flow: branches, returns, jumps, nesting; loops: what they run over, in which direction, and what they do."""

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise

from codechat.studies.refine.patterns.base import Occurrence, at, each_of, of_functions, pair, pattern
from codechat.studies.refine.patterns.finders.layout import is_elif
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    Function,
    body_without_docstring,
    children,
    own_nodes,
    walk,
)

_NESTING = (ast.If, *LOOPS, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_WORKING = (*LOOPS, ast.Try, ast.TryStar, ast.With, ast.AsyncWith)
_PLAIN = (ast.If, ast.Match, ast.Return, *FUNCTIONS, ast.ClassDef)
_WALKING = ("sum", "min", "max", "any", "all", "sorted", "functools.reduce", ".sort", ".join", ".count", ".reverse")
_WRAPPING = ("list", "tuple", "iter", "enumerate")


@pattern("nesting", "block nested that deep", "blocks nested that deep")
def nesting(code: Code, deeper_than: int) -> Iterable[Occurrence]:
    """Control blocks with at least `deeper_than` others around them in their function; an `elif` is no deeper."""
    for node in code.find(*_NESTING):
        if not is_elif(code, node) and _depth(code, node) >= deeper_than:
            yield at(node)


def _depth(code: Code, node: ast.AST) -> int:
    depth, inner = 0, node
    for above in code.ancestors(node):
        if isinstance(above, FUNCTIONS):
            break
        depth += isinstance(above, _NESTING) and not is_elif(code, inner)
        inner = above
    return depth


each_of("if_statement", "if statement", ast.If, when=lambda code, node: not is_elif(code, node))
each_of("elif", "elif branch", ast.If, plural="elif branches", when=is_elif)
each_of("if_chain", "chain of conditions", ast.If, plural="chains of conditions",
        when=lambda code, node: any(is_elif(code, one) for one in node.orelse) and not is_elif(code, node))  # fmt: skip


@pair(
    ("if_with_else", "if statement with an else branch", "if statements with an else branch"),
    ("if_without_else", "if statement without an else branch", "if statements without an else branch"),
)
def if_with_else(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """`if` statements, divided by whether their chain ends in `else`."""
    for node in code.find(ast.If):
        last = node
        while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If) and is_elif(code, last.orelse[0]):
            last = last.orelse[0]
        if not is_elif(code, node):
            yield at(node), bool(last.orelse)


pattern("else_after_exit", "else branch after an exit", "else branches after an exit")(
    lambda code: (at(node.orelse[0]) for node in code.find(ast.If) if node.orelse and isinstance(node.body[-1], _EXITS))
)


each_of("mergeable_if", "pair of nested conditions", ast.If, plural="pairs of nested conditions",
        when=lambda _, node: [*map(type, node.body)] == [ast.If] and not node.orelse and not node.body[0].orelse
        )  # fmt: skip


@pattern("two_way_value", "if/else that chooses a value", "if/else statements that choose a value")
def two_way_value(code: Code) -> Iterable[Occurrence]:
    """`if`/`else` statements whose two branches each only return a value, or only assign to the same name."""
    for node in code.find(ast.If):
        if len(node.body) == 1 and len(node.orelse) == 1 and not is_elif(code, node):
            kinds = {_chosen(node.body[0]), _chosen(node.orelse[0])}
            if len(kinds) == 1 and kinds != {""}:
                yield at(node)


def _chosen(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Return):
        return "return" if statement.value else ""
    if isinstance(statement, ast.AugAssign):
        return f"{type(statement.op).__name__} {ast.unparse(statement.target)}"
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return f"= {ast.unparse(targets[0])}" if len(targets) == 1 else ""


def _returns(function: Function) -> list[ast.Return]:
    return [node for node in own_nodes(function) if isinstance(node, ast.Return)]


of_functions("several_returns", "function with several returns", "functions with several returns",
             when=lambda _, one: len(_returns(one)) > 1)  # fmt: skip
of_functions("single_return", "function with one return at its end", "functions with one return at their end",
             when=lambda _, one: _returns(one) == one.body[-1:])  # fmt: skip


pattern("early_return", "early return")(
    lambda code: (at(node) for one in code.functions for node in _returns(one) if node is not one.body[-1])
)


@pattern("guard", "guard clause")
def guard(code: Code) -> Iterable[Occurrence]:
    """An `if` without `else` that does nothing but leave its function, before code that is no shorter than its own."""
    for function in code.functions:
        body = body_without_docstring(function)
        for statement, after in pairwise(body):
            if not isinstance(statement, ast.If) or statement.orelse or isinstance(after, FUNCTIONS):
                continue
            last = statement.body[-1]
            empty = isinstance(last, ast.Return) and last.value is None  # no step by itself
            after_it = max(1, len(body) - 1 - body.index(statement))
            if isinstance(last, ast.Return | ast.Raise) and len(statement.body) <= after_it + empty:
                yield at(statement)


@pattern("fast_path", "fast path", "fast paths")
def fast_path(code: Code) -> Iterable[Occurrence]:
    """An `if` (or a `match`) that returns before its function has gone through anything, with more code to follow."""
    for function in code.functions:
        body = body_without_docstring(function)
        for place, statement in enumerate(body):
            last = place == len(body) - 1
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return):
                yield from [at(statement)] if statement.orelse or not last else []
            elif isinstance(statement, ast.Match) and isinstance(statement.cases[0].body[-1], ast.Return):
                yield at(statement)
            inside = () if isinstance(statement, _PLAIN) else walk(statement)
            if isinstance(statement, _WORKING) or any(
                isinstance(one, COMPREHENSIONS) or (isinstance(one, ast.Call) and code.called(one.func) in _WALKING)
                for one in inside
            ):
                break


@pattern("condition", "spelled-out condition")
def condition(code: Code) -> Iterable[Occurrence]:
    """Conditions of `if` and `while` that are comparisons or combinations of such, also inside `bool()`."""
    for node in code.find(ast.If, ast.While):
        test = _without_not(node.test)
        if isinstance(test, ast.Call) and code.origin(test.func) == "bool" and test.args:
            test = test.args[0]
        if _compares(test):
            yield at(node.test)


def _compares(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(_compares(value) for value in test.values)
    return isinstance(_without_not(test), ast.Compare | ast.BoolOp)


def _without_not(test: ast.expr) -> ast.expr:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return test


@pattern("named_condition", "named condition")
def named_condition(code: Code) -> Iterable[Occurrence]:
    """Conditions of `if` and `while` that are one local variable, possibly negated, or that name one by `:=`.

    A variable that is given a list, a dict or a set holds no truth value.
    """
    bound = {inner.id for inner in code.find(ast.Name) if isinstance(inner.ctx, ast.Store)}
    displays = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    bound -= {
        target.id for one in code.find(ast.Assign) if isinstance(one.value, displays)
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    for node in code.find(ast.If, ast.While):
        test = _without_not(node.test)
        if isinstance(test, ast.NamedExpr) or (isinstance(test, ast.Name) and test.id in bound):
            yield at(node)


pattern("finally", "finally block")(
    lambda code: (at(node.finalbody[0]) for node in code.find(ast.Try, ast.TryStar) if node.finalbody)
)


@pattern("swallowing_handler", "handler for any exception", "handlers for any exception")
def swallowing_handler(code: Code) -> Iterable[Occurrence]:
    """Handlers that catch everything: `except:`, `except Exception`, `except BaseException`, also in a tuple."""
    for node in code.find(ast.ExceptHandler):
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(kind is None or code.called(kind) in ("Exception", "BaseException") for kind in kinds):
            yield at(node)


@pattern("nested_loop", "nested loop")
def nested_loop(code: Code) -> Iterable[Occurrence]:
    """Loops inside a loop of the same function, and comprehensions with several `for` clauses or inside each other."""
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
    """Loops and comprehensions over all indices, `for i in range(len(x))`, also by a name for range or length."""
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


def _lengths(code: Code) -> set[str]:
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
    """`for` statements that run forward: the iterable is not reversed, or reversed twice."""
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
    """The expression's nodes without arguments of functions that decide the order, or have none."""
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
