"""Wider patterns that stand for one that a rule names, where its text asks for no more than this."""

import ast
from collections.abc import Iterable, Iterator

from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.finders.arithmetic import arithmetic
from codechat.patterns.finders.flow import if_with_else
from codechat.patterns.finders.functions import recursion
from codechat.patterns.finders.loops import collecting_loop, index_loop
from codechat.patterns.finders.usage import traversal, use
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS, LOOPS, blocks, own_nodes, walk
from codechat.patterns.substance.idle import given

WIDER = {
    ("mergeable_if", "boolean_operator"): "joined_condition",
    ("augmented_assignment", "self_assignment"): "rewritten_assignment",
    ("ternary", "if_with_else"): "deciding_if",
    ("sorted", "loop"): "own_algorithm",
    ("recursion", "iteration"): "traversal",
    ("list_comprehension", "loop"): "loop_work",
}
"""What may take the place of a pattern, by that (or the first name it looks for) and by what a rule names."""
SUBJECTS = {("collecting_loop", "generator_function"): "filling_loop"}
"""What a rule is about in a wider sense, by the pattern it names and by what is to take its place."""
SEARCHED = {
    "heapq.*": "order_work", "io.StringIO": "text_work", "bisect.*": "sorted_work", "divmod": "division",
    "re.*": "text_search",
}  # fmt: skip
"""Wider patterns for places that a rule describes with options, by the first name that it looks for."""
PLACES = {
    ("bit_operation", "arithmetic"): "whole_arithmetic", ("generator_function", "traversal"): "yieldable",
    ("dict", "traversal"): "memorable", ("zip", "index_loop"): "parallel_walk", ("any", "searching_loop"): "flag_loop",
    ("operator.*", "arithmetic"): "operation", ("frozen_membership", "membership_test"): "membership",
    ("single_return", "several_returns"): "other_returns", ("threading.Lock", "function"): "shared_state",
    ("module_cache", "function"): "lasting_result", ("loop_else", "loop"): "leaving_loop",
    ("break", "loop"): "leaving_loop", ("collections.deque", "traversal"): "queueing",
    ("table_lookup", "if_statement"): "comparing_if", ("functools.cached_property", "function"): "steady_class",
    ("stack", "traversal"): "memorable", ("keyword_argument", "any_call"): "keyed_call",
    ("tuple_assignment", "assignment"): "joinable_assignment", ("walrus", "if_statement"): "testing",
    ("dataclasses.dataclass", "function"): "valued_function", ("typing.NamedTuple", "function"): "valued_function",
    ("typing.Protocol", "function"): "expecting_function", ("with", "function"): "managing",
    ("object", "function"): "missing_value", ("tuple", "traversal"): "fixed_values",
    ("collections.defaultdict", "traversal"): "keyed_work", ("collections.Counter", "traversal"): "item_store",
    ("set", "traversal"): "item_store", ("node_class", "traversal"): "item_store", ("map", "iteration"): "item_walk",
    ("filter", "iteration"): "selecting", ("list_comprehension", "loop"): "listable",
    ("starred", "subscript"): "spreadable",
    ("copy.copy", "function"): "changeable_argument",
}  # fmt: skip
"""Places that fit a pattern better than those a rule names for it, by the pattern or the first name it looks for."""


@pattern("joined_condition", "condition joined of several", "conditions joined of several")
def joined_condition(code: Code) -> Iterator[Occurrence]:
    """Joints of `and`, `or` and chained comparisons, and calls of `all` and `any`.

    A joint of conditions counts for two, so that a range test that is split up into two comparisons is no loss.
    """
    for node in code.find(ast.BoolOp, ast.Compare, ast.Call):
        joints = int(isinstance(node, ast.Call) and code.origin(node.func) in ("all", "any"))
        if not isinstance(node, ast.Call):
            joints = 2 * len(node.values) - 2 if isinstance(node, ast.BoolOp) else len(node.ops) - 1
        yield from [at(node)] * joints


@pattern("rewritten_assignment", "assignment of a variable by itself", "assignments of variables by themselves")
def rewritten_assignment(code: Code) -> Iterator[Occurrence]:
    """`x = x + y`, `x = y + x`, `x = [*x, y]`, `x = f"{x}y"`: plain assignments that read what they give a value.

    An assignment to several variables at once counts for each of them.
    """
    for node, targets, value in given(code):
        operands = [one for one in walk(value) if isinstance(one, ast.BinOp)]
        held: list[ast.expr] = []
        held += [one.value for one in walk(value) if isinstance(one, ast.Starred | ast.FormattedValue)]
        held += [side for one in operands for side in (one.left, one.right)]
        put = [
            one for one in walk(value) if isinstance(one, ast.Call) and code.origin(one.func) in (".join", ".format")
        ]
        held += [part for one in put for each in one.args for part in getattr(each, "elts", [each])]
        if targets and ast.unparse(targets[0]) in map(ast.unparse, held):
            yield at(node)


@pattern("loop_work", "loop or statement of one that collects", "loops and statements of them that collect")
def loop_work(code: Code) -> Iterator[Occurrence]:
    """Loops, and what their statements put into collections: a comprehension may become a part of a loop.

    A loop through what a comprehension or `map` makes is left out: it may take over that work.
    """
    for loop in code.find(*LOOPS):
        head = getattr(loop, "iter", None)
        head = code.values.get(head.id) if isinstance(head, ast.Name) else head
        inside = walk(head) if isinstance(head, (ast.Call, *COMPREHENSIONS)) else []
        heads = {code.origin(one.func) for one in inside if isinstance(one, ast.Call)}
        if not heads & {"map", "filter"} and not any(isinstance(one, COMPREHENSIONS) for one in inside):
            yield at(loop)
    for node in code.find(ast.Call):
        looped = any(isinstance(one, LOOPS) for one in code.ancestors(node))
        yield from [at(node)] if looped and code.called(node.func) in (".append", ".extend", ".insert") else []


@pattern("sorted_work", "use of {names}, or search for a place", "uses of {names}, or searches for a place")
def sorted_work(code: Code, names: list[str]) -> Iterator[Occurrence]:
    """Uses of these names, and `while` loops that look for a place in an order: they compare an item by an index."""
    yield from use(code, names)
    for node in code.find(ast.While):
        moved = {ast.unparse(one.target) for one in own_nodes(node) if isinstance(one, ast.AugAssign)}
        moved |= {ast.unparse(one.targets[0]) for one in own_nodes(node) if isinstance(one, ast.Assign)}
        ordered = [
            one for each in (node.test, *own_nodes(node)) for one in walk(each)
            if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        ]  # fmt: skip
        sides = [side for one in ordered for side in (one.left, one.comparators[0])]
        if any(isinstance(side, ast.Subscript) and ast.unparse(side.slice) in moved for side in sides):
            yield at(node)
    for loop in code.find(ast.For):
        tests = [one.test for one in own_nodes(loop) if isinstance(one, ast.If) and _leaves(one)]
        found = [one for test in tests for one in walk(test) if _is_ordering(one)]
        if _is_enumerated(code, [loop]) and any(_names(loop.target) & _names(one) for one in found):
            yield at(loop)
    yield from (at(node) for node in code.find(ast.If) if len(_thresholds(node)) > 2)


def _leaves(test: ast.If) -> bool:
    return isinstance(test.body[-1], ast.Return | ast.Break)


def _is_ordering(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)


def _thresholds(node: ast.If) -> list[str]:
    """The numbers that a chain of conditions compares one value with, by order."""
    found, value = list[str](), ""
    chain: list[ast.stmt] = [node]
    while len(chain) == 1 and isinstance(chain[0], ast.If):
        test = chain[0].test
        if not isinstance(test, ast.Compare) or not _is_ordering(test):
            break
        if value not in ("", ast.unparse(test.left)) or not isinstance(test.comparators[0], ast.Constant):
            break
        value = ast.unparse(test.left)
        found.append(ast.unparse(test.comparators[0]))
        chain = chain[0].orelse
    return found


@pattern("division", "division of whole numbers", "divisions of whole numbers")
def division(code: Code, operators: list[str]) -> Iterator[Occurrence]:
    """These operations, and loops that take a number away while there is enough: `while n >= d: n -= d`."""
    yield from arithmetic(code, operators)
    for node in code.find(ast.While):
        taken = [one for one in own_nodes(node) if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Sub)]
        tests = {f"{ast.unparse(one.target)} >= {ast.unparse(one.value)}" for one in taken}
        yield from [at(node)] if ast.unparse(node.test) in tests else []


@pattern("filling_loop", "loop that fills a collection", "loops that fill a collection")
def filling_loop(code: Code) -> Iterator[Occurrence]:
    """Loops of both kinds whose body appends or adds to a list that the function returns."""
    yield from collecting_loop(code)
    returned = {ast.unparse(one.value) for one in code.find(ast.Return, ast.YieldFrom) if one.value is not None}
    for node in code.find(ast.While):
        calls = [one.func for one in own_nodes(node) if isinstance(one, ast.Call)]
        filled = [one for one in calls if isinstance(one, ast.Attribute) and one.attr in ("append", "add")]
        inner = any(isinstance(one, ast.For) for one in own_nodes(node))
        yield from [at(node)] if not inner and any(ast.unparse(one.value) in returned for one in filled) else []
    for sum_ in code.find(ast.AugAssign):
        looped = next((one for one in code.ancestors(sum_) if isinstance(one, ast.For | ast.While)), None)
        kinds = (ast.List, ast.ListComp) if isinstance(looped, ast.While) else ast.ListComp
        joined = isinstance(sum_.value, kinds) and ast.unparse(sum_.target) in returned
        yield from [at(looped)] if looped is not None and joined else []


@pattern("deciding_if", "if statement that decides between two", "if statements that decide between two")
def deciding_if(code: Code) -> Iterator[Occurrence]:
    """`if` with `else`, and `if` that returns, with more to follow."""
    yield from (place for place, found in if_with_else(code) if found)
    for above in (one for owner in code.nodes for block in blocks(owner) for one in block[:-1]):
        if isinstance(above, ast.If) and not above.orelse and isinstance(above.body[-1], ast.Return):
            yield at(above)


@pattern("own_algorithm", "loop or recursive function", "loops and recursive functions")
def own_algorithm(code: Code) -> Iterator[Occurrence]:
    """Loops, and functions that call themselves."""
    yield from (at(node) for node in code.find(*LOOPS))
    yield from recursion(code)


@pattern("indexed_choice", "choice by index", "choices by index")
def indexed_choice(code: Code) -> Iterator[Occurrence]:
    """`(a, b)[test]`."""
    for node in code.find(ast.Subscript):
        shown = isinstance(node.value, ast.Tuple | ast.List)
        if shown and not isinstance(node.slice, ast.Constant | ast.Slice | ast.UnaryOp):
            yield at(node)


@pattern("memorable", "walk through values or recursion", "walks through values and recursions")
def memorable(code: Code) -> Iterator[Occurrence]:
    """Walks through values, and recursive functions, whose results can be kept."""
    yield from traversal(code)
    yield from recursion(code)


@pattern("operation", "operation")
def operation(code: Code) -> Iterator[Occurrence]:
    """Operators that the operator module has a function for, but for those of texts in a format."""
    for node in code.find(ast.BinOp, ast.AugAssign, ast.Compare):
        yield at(node)


@pattern("membership", "membership test or or of equalities", "membership tests and ors of equalities")
def membership(code: Code) -> Iterator[Occurrence]:
    """`x in …`, and `x == a or x == b`."""
    for node in code.find(ast.Compare, ast.BoolOp):
        if isinstance(node, ast.Compare):
            yield from [at(node)] if isinstance(node.ops[0], ast.In | ast.NotIn) else []
        elif isinstance(node.op, ast.Or):
            equal = [one for one in node.values if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.Eq)]
            lefts = [ast.unparse(one.left) for one in equal]
            yield from [at(node)] if len({*lefts}) < len(lefts) else []


@pattern("flag_loop", "loop that finds a truth value", "loops that find truth values")
def flag_loop(code: Code) -> Iterator[Occurrence]:
    """Loops that return a literal or raise, or give a variable a Boolean one: what they find is whether, not what."""
    for node in code.find(*LOOPS):
        for inner in own_nodes(node):
            value = inner.value if isinstance(inner, ast.Return | ast.Assign) else None
            told = isinstance(value, ast.Constant) and (isinstance(inner, ast.Return) or isinstance(value.value, bool))
            if told or isinstance(inner, ast.Raise):
                yield at(node)
                break


@pattern("other_returns", "function that returns elsewhere than at its end", "functions that return elsewhere")
def other_returns(code: Code) -> Iterator[Occurrence]:
    """Functions with several returns, or whose only one is not their last statement."""
    for function in code.functions:
        returns = [node for node in own_nodes(function) if isinstance(node, ast.Return)]
        last = function.body[-1]
        while isinstance(last, ast.With | ast.AsyncWith):
            last = last.body[-1]
        if len(returns) > 1 or (returns and returns[0] is not last):
            yield at(function, function.name)


@pattern("parallel_walk", "walk through several values by index", "walks through several values by index")
def parallel_walk(code: Code) -> Iterator[Occurrence]:
    """Loops over indices, and loops that count or read another sequence beside their own."""
    yield from index_loop(code)
    for node in code.find(*LOOPS, *COMPREHENSIONS):
        loops = node.generators if isinstance(node, COMPREHENSIONS) else [node]
        counted = set[str]()
        for loop in loops:
            counted |= _counted(code, loop)
        bases = [
            ast.unparse(one) for one in walk(node)
            if isinstance(one, ast.Subscript) and counted.intersection(_names(one.slice))
        ]  # fmt: skip
        raised = isinstance(node, ast.For) and _counts_beside(node)
        if len({*bases}) > 1 or (raised and counted) or (bases and _is_enumerated(code, loops)):
            yield at(node)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in walk(node) if isinstance(one, ast.Name)}


def _is_enumerated(code: Code, loops: Iterable[ast.AST]) -> bool:
    heads = [one.func for loop in loops if isinstance(one := getattr(loop, "iter", None), ast.Call)]
    return any(code.origin(head) == "enumerate" for head in heads)


def _counted(code: Code, loop: ast.AST) -> set[str]:
    """The names that count through a loop: of `range` of a length, of `enumerate`, or raised by one in it."""
    head = getattr(loop, "iter", None)
    target = getattr(loop, "target", None)
    if isinstance(head, ast.Call) and code.origin(head.func) == "range" and "len(" in ast.unparse(head):
        return _names(target) if target is not None else set()
    if isinstance(head, ast.Call) and code.origin(head.func) == "enumerate" and isinstance(target, ast.Tuple):
        return _names(target.elts[0])
    return _raised(loop)


def _raised(loop: ast.AST) -> set[str]:
    updates = [one for one in getattr(loop, "body", []) if isinstance(one, ast.AugAssign)]
    return {one.target.id for one in updates if isinstance(one.target, ast.Name) and ast.unparse(one.value) == "1"}


def _counts_beside(loop: ast.For) -> bool:
    """Whether a loop counts by hand what it walks through, and reads the count in it."""
    loads = {one.id for one in walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    return bool(_raised(loop) & loads)
