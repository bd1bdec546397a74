"""Walks through values that something could sensibly be added to, and what else a collection or a text is made of."""

import ast
from collections.abc import Iterator

from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.finders.usage import call, traversal, use
from codechat.patterns.reading.code import Code, is_hint
from codechat.patterns.reading.tree import COMPREHENSIONS, LOOPS, own_nodes, walk


@pattern("keyed_work", "values kept by a key", "values kept by a key")
def keyed_work(code: Code) -> Iterator[Occurrence]:
    """Dictionaries, what is counted or kept by an index, `for` loops that fill, and several counters side by side."""
    for node in code.find(ast.Dict, ast.DictComp, ast.Call, ast.AugAssign):
        if isinstance(node, ast.Call):
            yield from [at(node)] if code.called(node.func) in _KEYED else []
        elif not isinstance(node, ast.AugAssign) or isinstance(node.target, ast.Subscript):
            yield at(node)
    for loop in code.find(*LOOPS):
        inside = [*own_nodes(loop)]
        raised = {ast.unparse(one.target) for one in inside if isinstance(one, ast.AugAssign)}
        filled = {
            ast.unparse(one.func.value) for one in inside
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("append", "add")
        }  # fmt: skip
        chosen = any(isinstance(one, ast.If) for one in inside)
        yield from [at(loop)] if _is_for(loop) and (filled or (chosen and len(raised) > 1)) else []


def _is_for(loop: ast.AST) -> bool:
    return isinstance(loop, ast.For | ast.AsyncFor)


_KEYED = {"dict", ".get", ".items", ".keys", ".setdefault", ".count", "collections.Counter", "collections.OrderedDict"}


@pattern("item_walk", "walk through items", "walks through items")
def item_walk(code: Code) -> Iterator[Occurrence]:
    """Walks through values that the program reads: no rounds that are only counted, no `while` on numbers alone."""
    for place in traversal(code):
        node = place.node
        if isinstance(node, ast.For):
            names = {one.id for one in walk(node.target) if isinstance(one, ast.Name)}
            inside = [one for each in node.body for one in walk(each)]
            read = any(isinstance(one, ast.Name) and one.id in names for one in inside)
            yield from [place] if read else []
        elif isinstance(node, ast.While):
            inside = walk(node)
            taken = any(isinstance(one, ast.Subscript) or _takes(code, one) for one in inside)
            yield from [place] if taken else []
        elif not isinstance(node, ast.Call) or code.called(node.func) != "range":
            yield place


@pattern("item_store", "walk through items that can be kept", "walks through items that can be kept")
def item_store(code: Code) -> Iterator[Occurrence]:
    """Walks through items, no rounds in which nothing is indexed or put anywhere, and loops that keep by a key."""
    for loop in code.find(ast.For, ast.AsyncFor):
        yield from [at(loop)] if any(_keeps_by_key(one) for one in own_nodes(loop)) else []
    for place in item_walk(code):
        node = place.node
        head = node.iter if isinstance(node, ast.For) else None
        counted = isinstance(head, ast.Call) and code.origin(head.func) == "range"
        inside = walk(node) if node is not None else []
        if not counted or any(isinstance(one, ast.Subscript) or _takes(code, one) for one in inside):
            yield place


def _keeps_by_key(node: ast.AST) -> bool:
    """`seen[value] = …`, `seen[value] += 1`."""
    return (
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and not isinstance(node.slice, ast.Constant)
    )


def _takes(code: Code, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and code.called(node.func) in (".pop", ".popleft", "next", ".append", ".readline")


@pattern("selecting", "walk that selects", "walks that select")
def selecting(code: Code) -> Iterator[Occurrence]:
    """Walks through items in which a condition decides."""
    for node in code.find(*LOOPS, *COMPREHENSIONS):
        inside = walk(node)
        tested = any(isinstance(one, ast.If | ast.IfExp | ast.Compare | ast.BoolOp) for one in inside)
        items = not isinstance(node, ast.While) or any(isinstance(one, ast.Subscript) for one in inside)
        chosen = any(isinstance(one, ast.comprehension) and one.ifs for one in inside)
        yield from [at(node)] if (tested or chosen) and items else []
    yield from call(code, ["filter", "itertools.filterfalse"])


@pattern("listable", "loop or call that could be a list comprehension", "loops or calls that could be comprehensions")
def listable(code: Code) -> Iterator[Occurrence]:
    """Loops, `map` and `filter`, and comprehensions of other kinds."""
    yield from (at(node) for node in code.find(*LOOPS, ast.GeneratorExp, ast.SetComp, ast.DictComp))
    yield from call(code, ["map", "filter"])


@pattern("spreadable", "collection that could be unpacked", "collections that could be unpacked")
def spreadable(code: Code) -> Iterator[Occurrence]:
    """Subscripts, assignments to several variables, sums and copies of lists, and what is joined to be printed."""
    yield from (at(node) for node in code.find(ast.Subscript) if not is_hint(code, node))
    shown = [one for node in code.find(ast.Assign) for one in node.targets]
    shown += [one for node in code.find(ast.BinOp) for one in (node.left, node.right)]
    shown += [node.value for node in code.find(ast.AugAssign)]
    yield from (at(one) for one in shown if isinstance(one, ast.List | ast.Tuple))
    for call_ in code.find(ast.Call):
        yield from [at(call_)] if code.called(call_.func) in _SPREAD and call_.args else []


_SPREAD = {"list", "tuple", "set", "print", "zip", ".extend", ".update", "itertools.chain", ".format"}


@pattern("text_search", "use of {names}, or test of characters", "uses of {names}, or tests of characters")
def text_search(code: Code, names: list[str]) -> Iterator[Occurrence]:
    """Uses of these names and of like methods of texts, and characters that are looked for in a literal text."""
    yield from use(code, [*names, *_OF_CHARACTERS])
    for node in code.find(ast.Compare):
        place = node.comparators[0]
        known = code.values.get(place.id, place) if isinstance(place, ast.Name) else place
        text = known.value if isinstance(known, ast.Constant) else None
        if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(text, str) and len(text) > 1:
            yield at(node)


_OF_CHARACTERS = (".isalnum", ".isspace", ".isnumeric", ".partition", ".rsplit", ".rstrip", ".lstrip", ".splitlines",
                  ".title", ".translate", ".rfind", ".removeprefix", ".removesuffix")  # fmt: skip
