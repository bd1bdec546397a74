"""How functions treat their arguments: whether they change them, and whether they need them to be unhashable."""

import ast
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, at, pattern
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS, Function, own_nodes, walk

MUTATORS = {
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "add", "discard", "setdefault",
    "popitem", "popleft", "appendleft", "extendleft", "rotate", "__setitem__", "__delitem__", "__iadd__", "subtract",
    "move_to_end", "difference_update", "intersection_update", "symmetric_difference_update",
}  # fmt: skip
_MUTATING = ("heapq.heap*", "bisect.insort*", "random.shuffle", "operator.setitem", "operator.delitem", "operator.iadd",
             "setattr", "delattr")  # fmt: skip
_TYPES = {"list", "dict", "set", "collections.deque"}


@pattern("mutated_parameter", "change to an argument", "changes to an argument")
def mutated_parameter(code: Code) -> Iterable[Occurrence]:
    """Statements in a function that change an argument's object, or an object inside it.

    The object may go by another name, and the statement may stand in a nested function. Once a parameter is
    assigned another value it is no longer that argument; `items += [...]` still changes a list.
    """
    for function in code.functions:
        nodes = [*own_nodes(function)]
        until = _rebound(code, function, nodes)
        names = {parameter.arg for parameter in parameters(function)} - {"self", "cls"}
        for name, source in _other_names(code, nodes):
            if source in names and name not in names:
                names.add(name)
                until.pop(name, None)
        for inner in (node for node in nodes if isinstance(node, FUNCTIONS)):
            names -= {parameter.arg for parameter in parameters(inner)}
            nodes += [node for node in walk(inner) if node is not inner]
        for node in nodes:
            for target in _changed(code, node):
                root = _root(target)
                kept = root in names and getattr(node, "lineno", 0) < until.get(root, sys.maxsize)
                if kept:
                    yield at(node, f"'{root}'")


def _root(node: ast.AST) -> str:
    """The variable at the start of an expression: `rows` for `rows[0].cells`."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _rebound(code: Code, function: Function, nodes: list[ast.AST]) -> dict[str, int]:
    """For each name the line from which it no longer is the argument; 0 if it is reassigned in a branch or a loop."""
    found: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not _extends(code.parents[node]):
            above = code.parents[node]
            plain = isinstance(above, ast.Assign) and code.parents[above] is function
            line = (above.lineno if isinstance(above, ast.Assign) else 0) if plain else 0
            found[node.id] = min(line, found.get(node.id, line))
    return found


def _other_names(code: Code, nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Pairs of a name and the variable whose object, or part of it, it is given by assignment or as a loop's target."""
    stores: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stores[node.id] = stores.get(node.id, 0) + 1
    for node in nodes:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            if both and isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            elif isinstance(target, ast.Name):
                pairs = [(target, value)]
        elif isinstance(node, ast.For):
            held = node.iter.args[0] if isinstance(node.iter, ast.Call) and node.iter.args else node.iter
            walked = isinstance(node.iter, ast.Call) and code.origin(node.iter.func) in ("enumerate", "reversed", "zip")
            targets = node.target.elts[-1:] if isinstance(node.target, ast.Tuple) and walked else [node.target]
            pairs = [(one, held) for one in targets] if walked or not isinstance(node.iter, ast.Call) else []
        for target, value in pairs:
            cut = any(isinstance(node, ast.Slice) for node in walk(value))  # a slice is a new list
            if isinstance(target, ast.Name) and stores[target.id] == 1 and not cut:
                yield target.id, _root(value)


def _extends(statement: ast.AST) -> bool:
    """Whether it extends a collection in place, as `items += [...]` and `groups |= {...}` do."""
    displays = ast.List | ast.ListComp | ast.Set | ast.SetComp | ast.Dict | ast.DictComp
    return isinstance(statement, ast.AugAssign) and isinstance(statement.value, displays)


def _changed(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    """The expressions whose objects a node changes in place."""
    if isinstance(node, ast.Call):
        method = node.func if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS else None
        of_type = method is not None and code.origin(method.value) in _TYPES
        if method is not None and not of_type:
            yield method.value
        elif isinstance(node.func, ast.Name) and _is_mutator(code.values.get(node.func.id)):
            yield getattr(code.values[node.func.id], "value", node)
        elif of_type or any(fnmatchcase(code.called(node.func), name) for name in _MUTATING):
            yield from node.args[:1]
    elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.AugAssign) and _extends(node):
        yield node.target


def _is_mutator(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Attribute) and value.attr in MUTATORS


def _depends_on_outside(code: Code, node: ast.AST) -> bool:
    """Whether a node depends on chance, the clock, a file or the system, or prints."""
    origin = code.origin(node.func) if isinstance(node, ast.Call) else ""
    return origin.startswith(("random.", "secrets.", "uuid.", "time.", "datetime.", "os.")) or origin in _OUTSIDE


_OUTSIDE = ("open", "input", "print", ".read", ".readline", ".write")
_SIZED = {"len", "sum", "min", "max", "sorted", "list", "tuple", "set", "enumerate", "zip", "map", "filter", "reversed"}


@pattern("cacheable", "function whose arguments can be hashed", "functions whose arguments can be hashed")
def cacheable(code: Code) -> Iterable[Occurrence]:
    """Functions whose results could be cached: they give a value, change nothing outside, and take hashable arguments.

    A parameter that is iterated, indexed, matched, unpacked, measured or annotated as a list, set or dict may be
    unhashable, unless its annotation or a method called on it shows that it is a text or another hashable value.
    """
    for function in code.functions:
        names = {parameter.arg for parameter in parameters(function)} - _hashable(code, function)
        own = list(own_nodes(function))
        gives = any(isinstance(node, ast.Return) and node.value is not None for node in own)
        lasting = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.Global, ast.Nonlocal)
        if not gives or isinstance(function, ast.AsyncFunctionDef) or any(isinstance(node, lasting) for node in own):
            continue
        if any(_depends_on_outside(code, node) for node in own):
            continue
        if not _stores_outside(function) and not any(names & _containers(code, node) for node in walk(function)):
            yield at(function, function.name)


def _stores_outside(function: Function) -> bool:
    """Whether a node stores something in a variable that belongs neither to the function nor to one inside it."""
    inside = walk(function)
    own = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own -= {parameter.arg for parameter in parameters(function)}
    stores = [
        node for node in inside if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return any(not isinstance(node.value, ast.Name) or node.value.id not in own for node in stores)


def _containers(code: Code, node: ast.AST) -> set[str]:
    """The names that a node treats as a collection."""
    if isinstance(node, ast.arg):
        return {node.arg} if node.annotation is not None and _head(code, node.annotation) in _UNHASHABLE else set()
    held: list[ast.expr] = []
    if isinstance(node, ast.For | ast.comprehension):
        held = [node.iter]
    elif isinstance(node, ast.Subscript | ast.Starred):
        held = [node.value]
    elif isinstance(node, ast.Match):
        held = [node.subject]
    elif isinstance(node, ast.Call):
        mutated = isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS
        held = [node.func.value] if mutated and isinstance(node.func, ast.Attribute) else []
        held += node.args if code.origin(node.func) in _SIZED else []
    elif isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        held = [right for sign, right in pairs if isinstance(sign, ast.In | ast.NotIn)]
    return {one.id for one in held if isinstance(one, ast.Name)}


_HASHABLE = {"str", "int", "float", "bool", "bytes", "complex", "tuple", "frozenset"}
_TEXTUAL = {"split", "lower", "upper", "strip", "startswith", "endswith", "isdigit", "isalpha", "isupper", "islower"}


def _hashable(code: Code, function: Function) -> set[str]:
    """The parameters that are annotated as hashable, or used as texts."""
    hinted = {one.arg for one in parameters(function) if one.annotation and _head(code, one.annotation) in _HASHABLE}
    methods = [node for node in walk(function) if isinstance(node, ast.Attribute) and node.attr in _TEXTUAL]
    named = {node.value.id for node in methods if isinstance(node.value, ast.Name)}
    calls = [one for one in walk(function) if isinstance(one, ast.Call) and code.origin(one.func) == "ord" and one.args]
    named |= {one.args[0].id for one in calls if isinstance(one.args[0], ast.Name)}
    for loop in walk(function):  # what is gone through by characters is a text
        if isinstance(loop, ast.For | ast.comprehension) and isinstance(loop.iter, ast.Name):
            target = ast.unparse(loop.target)
            named |= {loop.iter.id} if target in named and _is_character(function, target) else set()
    return hinted | named


def _is_character(function: Function, name: str) -> bool:
    """Whether a method is called on a variable that only makes sense for a single character."""
    asked = {"isalpha", "isdigit", "islower", "isupper", "isalnum", "isspace"}
    return any(
        (isinstance(one, ast.Attribute) and one.attr in asked and ast.unparse(one.value) == name)
        or (isinstance(one, ast.Call) and ast.unparse(one) == f"ord({name})")
        for one in walk(function)
    )


def _head(code: Code, hint: ast.expr) -> str:
    """The name of an annotated type without its arguments: `list` for `list[int]` and `typing.List[int]`."""
    return code.origin(hint.value if isinstance(hint, ast.Subscript) else hint).rpartition(".")[2].lower()


_UNHASHABLE = {"list", "dict", "set", "sequence", "iterable", "mapping", "deque", "defaultdict", "counter", "bytearray"}
