"""Places where something could sensibly be added: a lock where state is shared, a counter where anything is counted."""

import ast
from collections.abc import Iterator

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.finders.usage import traversal, use
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS, FUNCTIONS, LOOPS, Function, own_nodes, walk
from codechat.patterns.substance.effects import FILLING, asks_outside

_CHANGING = FILLING | {"pop", "popleft", "popitem", "appendleft", "__setitem__"}


@pattern("shared_state", "function that changes what outlives a call", "functions that change what outlives a call")
def shared_state(code: Code) -> Iterator[Occurrence]:
    """Functions that change a global name, an attribute, or what a parameter, a closure or the module holds."""
    for function in code.functions:
        own = {
            one.id for one in own_nodes(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }  # fmt: skip
        for node in own_nodes(function):
            base: ast.AST | None = None
            if isinstance(node, ast.Global | ast.Nonlocal):
                yield at(function, function.name)
                break
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                base = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
                base = node.func.value
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name) and base.id not in own:
                yield at(function, function.name)
                break


@pattern("lasting_result", "function with the same result each time", "functions with the same result each time")
def lasting_result(code: Code) -> Iterator[Occurrence]:
    """Functions that ask neither chance nor the clock nor a file, print nothing, and call none that does."""
    names = {
        function.name for function in code.functions
        if any(asks_outside(code, one) for one in own_nodes(function))
    }  # fmt: skip
    for function in code.functions:
        called = {getattr(one.func, "id", "") for one in own_nodes(function) if isinstance(one, ast.Call)}
        if function.name not in names and not called & names:
            yield at(function, function.name)


@pattern("leaving_loop", "loop that may end early", "loops that may end early")
def leaving_loop(code: Code) -> Iterator[Occurrence]:
    """Loops with a condition, an exit or a test of their own, and those that go through all for a part of them."""
    for node in code.find(*LOOPS):
        inner = [one for each in node.body for one in walk(each)]
        if isinstance(node, ast.While) or any(isinstance(one, _DECIDING) for one in inner):
            yield at(node)


_DECIDING = (ast.If, ast.IfExp, ast.Return, ast.Break, ast.Raise, ast.Match, ast.BoolOp, ast.Compare)


@pattern("queueing", "walk through values or queue", "walks through values and queues")
def queueing(code: Code) -> Iterator[Occurrence]:
    """Walks through values, not counted alone, and what is taken from or put at the front of a list."""
    holds = any(code.find(ast.For, ast.AsyncFor, ast.List, ast.Subscript, ast.Starred, *COMPREHENSIONS))
    yield from (one for one in traversal(code) if holds or not isinstance(one.node, ast.While))
    for node in code.find(ast.Call):
        front = isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "insert") and bool(node.args)
        yield from [at(node)] if front and ast.unparse(node.args[0]) == "0" else []


@pattern("order_work", "use of {names}, or merge in order", "uses of {names}, or merges in order")
def order_work(code: Code, names: list[str]) -> Iterator[Occurrence]:
    """Uses of these names, and loops that compare two entries by order, each taken by an index."""
    yield from use(code, names)
    for node in code.find(ast.Compare):
        sides = (node.left, node.comparators[0])
        ordered = isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        looped = any(isinstance(one, LOOPS) for one in code.ancestors(node))
        if ordered and looped and (all(isinstance(side, ast.Subscript) for side in sides) or _takes_over(code, node)):
            yield at(node)


def _takes_over(code: Code, test: ast.Compare) -> bool:
    """`if x > best: best = x`."""
    above = code.parents.get(test)
    first = above.body[0] if isinstance(above, ast.If) and above.test is test else None
    if not isinstance(first, ast.Assign):
        return False
    sides = {ast.unparse(test.left), ast.unparse(test.comparators[0])}
    return sides == {ast.unparse(first.targets[0]), ast.unparse(first.value)}


@pattern("comparing_if", "if statement that a table could replace", "if statements that a table could replace")
def comparing_if(code: Code) -> Iterator[Occurrence]:
    """`if` statements, those aside that compare a number with 0 alone to turn its sign, and those that only raise."""
    for node in code.find(ast.If):
        if isinstance(node.body[-1], ast.Raise) and not node.orelse:
            continue
        body = node.body[0] if len(node.body) == 1 and not node.orelse else None
        turned = isinstance(body, ast.Assign) and isinstance(body.value, ast.UnaryOp)
        if not (turned and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.Lt | ast.Gt)):
            yield at(node)


@pattern("steady_class", "class with a value that lasts", "classes with a value that lasts")
def steady_class(code: Code) -> Iterator[Occurrence]:
    """Functions outside classes, and methods without arguments, or with a part that needs none, that read nothing
    which another method changes.
    """
    for function in code.functions:
        if not isinstance(code.parents.get(function), ast.ClassDef):
            yield at(function, function.name)
    for node in code.find(ast.ClassDef):
        methods = [one for one in node.body if isinstance(one, FUNCTIONS)]
        changed = {name for one in methods if one.name != "__init__" for name in _changed(one)}
        for one in methods:
            read = {each.attr for each in own_nodes(one) if isinstance(each, ast.Attribute)}
            static = "staticmethod" in map(ast.unparse, one.decorator_list)
            alone = static or len(parameters(one)) < 2 or _computes_of_self(one)
            if not one.name.startswith("__") and not read & changed and alone:
                yield at(one, one.name)


def _computes_of_self(method: Function) -> bool:
    """Whether a method computes something of its object alone: `sum(self.values)`."""
    for node in own_nodes(method):
        if isinstance(node, ast.Call | ast.BinOp):
            names = {one.id for one in walk(node) if isinstance(one, ast.Name)}
            kept = [one for one in walk(node) if isinstance(one, ast.Attribute)]
            if kept and {*names} <= {"self", "sum", "len", "max", "min", "sorted", "abs", "set", "list", "math"}:
                return True
    return False


def _changed(method: ast.AST) -> Iterator[str]:
    """The attributes that a method gives a value, or changes what they hold."""
    for node in own_nodes(method):
        base: ast.AST | None = node if isinstance(node, ast.Attribute | ast.Subscript) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            base = node.func.value
        elif isinstance(base, ast.Attribute | ast.Subscript) and isinstance(base.ctx, ast.Load):
            base = None
        while isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(base, ast.Attribute):
            yield base.attr
