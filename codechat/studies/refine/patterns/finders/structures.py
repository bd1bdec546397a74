"""How functions treat their arguments, and the data structures of a program."""

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from codechat.sandbox.languages.python.syntax import parameters
from codechat.studies.refine.patterns.base import Occurrence, at, pattern
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS, Function, own_nodes, walk
from codechat.studies.refine.patterns.reading.use import assignments

MUTATORS = {
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "add", "discard", "setdefault",
    "popitem", "popleft", "appendleft", "extendleft", "rotate", "__setitem__", "__delitem__", "__iadd__", "subtract",
    "move_to_end", "difference_update", "intersection_update", "symmetric_difference_update",
}  # fmt: skip
_MUTATING = ("heapq.heap*", "bisect.insort*", "random.shuffle", "operator.setitem", "operator.delitem", "operator.iadd",
             "setattr", "delattr")  # fmt: skip
_TYPES = {"list", "dict", "set", "collections.deque"}
_OUTSIDE_MODULES = ("random.", "secrets.", "uuid.", "time.", "datetime.", "os.")
_OUTSIDE = ("open", "input", "print", ".read", ".readline", ".write")
_SIZED = {"len", "sum", "min", "max", "sorted", "list", "tuple", "set", "enumerate", "zip", "map", "filter", "reversed"}
_HASHABLE = {"str", "int", "float", "bool", "bytes", "complex", "tuple", "frozenset"}
_TEXTUAL = {"split", "lower", "upper", "strip", "startswith", "endswith", "isdigit", "isalpha", "isupper", "islower"}
_UNHASHABLE = {"list", "dict", "set", "sequence", "iterable", "mapping", "deque", "defaultdict", "counter", "bytearray"}
_DICTS = ("dict", "collections.defaultdict", "collections.Counter", "collections.OrderedDict")
_CLASS_MAKERS = (
    "collections.namedtuple", "typing.NamedTuple", "dataclasses.make_dataclass", "types.SimpleNamespace", "type",
)  # fmt: skip


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
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _rebound(code: Code, function: Function, nodes: list[ast.AST]) -> dict[str, int]:
    """The line from which each name is no longer the argument; 0 if a branch or loop rebinds it."""
    found: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not _extends(code.parents[node]):
            above = code.parents[node]
            plain = isinstance(above, ast.Assign) and code.parents[above] is function
            line = (above.lineno if isinstance(above, ast.Assign) else 0) if plain else 0
            found[node.id] = min(line, found.get(node.id, line))
    return found


def _other_names(code: Code, nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Pairs of a name and the variable whose object (or part of it) the name gets by assignment or as a loop target."""
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
    displays = ast.List | ast.ListComp | ast.Set | ast.SetComp | ast.Dict | ast.DictComp
    return isinstance(statement, ast.AugAssign) and isinstance(statement.value, displays)


def _changed(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        method = node.func if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS else None
        of_type = method is not None and code.origin(method.value) in _TYPES
        if method is not None and not of_type:
            yield method.value
        elif (
            isinstance(bound := code.values.get(getattr(node.func, "id", "")), ast.Attribute) and bound.attr in MUTATORS
        ):
            yield bound.value
        elif of_type or any(fnmatchcase(code.called(node.func), name) for name in _MUTATING):
            yield from node.args[:1]
    elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.AugAssign) and _extends(node):
        yield node.target


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
        origins = [code.origin(node.func) for node in own if isinstance(node, ast.Call)]
        if any(origin in _OUTSIDE or origin.startswith(_OUTSIDE_MODULES) for origin in origins):
            continue
        if not _stores_outside(function) and not any(names & _containers(code, node) for node in walk(function)):
            yield at(function, function.name)


def _stores_outside(function: Function) -> bool:
    inside = walk(function)
    own = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own -= {parameter.arg for parameter in parameters(function)}
    stores = [
        node for node in inside if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return any(not isinstance(node.value, ast.Name) or node.value.id not in own for node in stores)


def _containers(code: Code, node: ast.AST) -> set[str]:
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


def _hashable(code: Code, function: Function) -> set[str]:
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
    asked = {"isalpha", "isdigit", "islower", "isupper", "isalnum", "isspace"}
    return any(
        (isinstance(one, ast.Attribute) and one.attr in asked and ast.unparse(one.value) == name)
        or (isinstance(one, ast.Call) and ast.unparse(one) == f"ord({name})")
        for one in walk(function)
    )


def _head(code: Code, hint: ast.expr) -> str:
    """The name of an annotated type without its arguments: `list` for `list[int]` and `typing.List[int]`."""
    return code.origin(hint.value if isinstance(hint, ast.Subscript) else hint).rpartition(".")[2].lower()


@pattern("module_cache", "cache at module level", "caches at module level")
def module_cache(code: Code) -> Iterable[Occurrence]:
    """Module-level names bound to a dict, empty or not, that a function stores values in."""
    stored = {name.id for name, how in _uses_in_functions(code) if how in ("[]=", "setdefault", "update")}
    for statement in code.tree.body if code.tree else []:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        empty = isinstance(value, ast.Dict) and not value.keys
        made = isinstance(value, ast.Call) and code.origin(value.func) in _DICTS and not value.args
        filled = isinstance(value, ast.Dict) and not empty
        names = {target.id for target in targets if isinstance(target, ast.Name) and (empty or made or filled)}
        names = {name for name in names if not filled or _is_kept_by_key(code, name)}
        for name in names.intersection(stored):
            yield at(statement, f"'{name}'")


def _is_kept_by_key(code: Code, name: str) -> bool:
    stores = (one for one in code.find(ast.Subscript) if isinstance(one.ctx, ast.Store))
    return any(
        ast.unparse(one.value) == name and isinstance(code.parents[one], ast.Assign)
        and not code.is_literal(one.slice) and code.function_of(one) is not None
        for one in stores
    )  # fmt: skip


def _uses_in_functions(code: Code) -> Iterator[tuple[ast.Name, str]]:
    """Every read of a name in a function, with its purpose: a method's name, `[]`, `[]=`, `in`, or another."""
    for name in code.find(ast.Name):
        if isinstance(name.ctx, ast.Load) and code.function_of(name) is not None:
            above = code.parents[name]
            how = above.attr if isinstance(above, ast.Attribute) else "in" if isinstance(above, ast.Compare) else ""
            if isinstance(above, ast.Subscript) and above.value is name:
                how = "[]" if isinstance(above.ctx, ast.Load) else "[]="
            yield name, how


@pattern("stack", "list used as a stack", "lists used as stacks")
def stack(code: Code) -> Iterable[Occurrence]:
    """Names and attributes, deques excepted, with calls of `.append(...)` and of `.pop()` or `.pop(-1)`."""
    pushed: dict[str, ast.Call] = {}
    popped: set[str] = set()
    bound = {
        target.id: value for _, targets, value in assignments(code) if isinstance(value, ast.Attribute)
        for target in targets if isinstance(target, ast.Name)
    }  # fmt: skip
    for node in code.find(ast.Call):
        called = bound.get(node.func.id, node.func) if isinstance(node.func, ast.Name) else node.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name | ast.Attribute):
            name = ast.unparse(called.value)
            made = code.values.get(name)
            if isinstance(made, ast.Call) and code.origin(made.func) == "collections.deque":
                continue
            if called.attr == "append":
                pushed.setdefault(name, node)
            elif called.attr == "pop" and [*map(ast.unparse, node.args)] in ([], ["-1"]):
                popped.add(name)
    return (at(node, f"'{name}'") for name, node in pushed.items() if name in popped)


@pattern("table_lookup", "lookup in a table", "lookups in a table")
def table_lookup(code: Code) -> Iterable[Occurrence]:
    """Reads by key or `.get` of a name or attribute that is bound to a dict with entries from the start."""
    tables: set[str] = set()
    for node in code.find(ast.Assign, ast.AnnAssign):
        full = isinstance(node.value, ast.DictComp) or (isinstance(node.value, ast.Dict) and bool(node.value.keys))
        if isinstance(node.value, ast.Call) and code.origin(node.value.func) in ("dict", "types.MappingProxyType"):
            full = bool(node.value.args or node.value.keywords)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        tables.update(target.id for target in targets if full and isinstance(target, ast.Name))
    for reader in code.find(ast.Subscript, ast.Call):
        base = reader.value if isinstance(reader, ast.Subscript) and isinstance(reader.ctx, ast.Load) else None
        if isinstance(reader, ast.Call) and isinstance(reader.func, ast.Attribute) and reader.func.attr == "get":
            base = reader.func.value
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        made = isinstance(base, ast.Call) and code.origin(base.func) == "dict" and bool(base.args or base.keywords)
        if made or isinstance(base, ast.Dict | ast.DictComp) or name in tables:
            yield at(reader)


@pattern("dispatch_table", "table of functions", "tables of functions")
def dispatch_table(code: Code) -> Iterable[Occurrence]:
    """Dicts with a function as value: made by a display, pairs, `zip` or a comprehension, or stored later."""
    own = {function.name for function in code.functions}
    for node in code.find(ast.Dict, ast.Call, ast.DictComp):
        if isinstance(node, ast.Dict):
            values = node.values
        elif isinstance(node, ast.DictComp):
            values = [one for part in node.generators for one in walk(part.iter) if isinstance(one, ast.expr)]
            values = values if isinstance(node.value, ast.Name) else []
        else:
            made = code.origin(node.func) == "dict"
            values = [one.value for one in node.keywords] if made else []
            values += [one for part in node.args for one in walk(part) if isinstance(one, ast.expr)] if made else []
        if any(_is_function(code, value, own) for value in values):
            yield at(node)
    called = [node.func.value for node in code.find(ast.Call) if isinstance(node.func, ast.Subscript | ast.Attribute)]
    tables = {ast.unparse(one) for one in called}
    for store in code.find(ast.Assign):
        target = store.targets[0]
        if not isinstance(target, ast.Subscript) or ast.unparse(target.value) not in tables:
            continue
        if _is_function(code, store.value, own):
            yield at(store.value)


def _is_function(code: Code, value: ast.expr, own: set[str]) -> bool:
    if isinstance(value, ast.Name):
        return value.id in own or (code.origin(value) == value.id and callable(getattr(builtins, value.id, None)))
    if isinstance(value, ast.Attribute):
        known = isinstance(value.value, ast.Name) and isinstance(getattr(builtins, value.value.id, None), type)
        return known or value.attr in own or code.origin(value).startswith(("operator.", "math."))
    return isinstance(value, ast.Lambda)


@pattern("listed_membership", "membership test against a list", "membership tests against lists")
def listed_membership(code: Code) -> Iterable[Occurrence]:
    """Tests `x in [...]`, also with a variable that only ever holds lists written out in the program."""
    lists: dict[str, bool] = {}
    for assignment in code.find(ast.Assign, ast.AnnAssign):
        for target in assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]:
            if isinstance(target, ast.Name | ast.Attribute):
                made = isinstance(assignment.value, ast.List | ast.ListComp) or _makes_list(code, assignment.value)
                lists[ast.unparse(target)] = lists.get(ast.unparse(target), True) and made
    for node, right in _memberships(code):
        listed = isinstance(right, ast.List | ast.ListComp) or _makes_list(code, right)
        if listed or lists.get(ast.unparse(right) if isinstance(right, ast.Name | ast.Attribute) else "", False):
            yield at(node)


def _makes_list(code: Code, value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and code.origin(value.func) in ("list", "sorted", ".split", ".splitlines")


def _memberships(code: Code) -> Iterator[tuple[ast.Compare, ast.expr]]:
    for node in code.find(ast.Compare):
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                yield node, right


@pattern("frozen_membership", "membership test against a frozenset", "membership tests against frozensets")
def frozen_membership(code: Code) -> Iterable[Occurrence]:
    """Tests `x in frozenset(...)`, also with a variable that is bound to one, and by one of its methods."""
    frozen = {one.target.id for one in code.find(ast.NamedExpr) if _is_frozen(code, one.value)}
    for _, targets, value in assignments(code):
        if _is_frozen(code, value):
            frozen.update(target.id for target in targets if isinstance(target, ast.Name))
    for node, right in _memberships(code):
        name = right.attr if isinstance(right, ast.Attribute) else getattr(right, "id", "")
        if _is_frozen(code, right) or name in frozen:
            yield at(node)
    for asked in code.find(ast.Attribute):
        known = getattr(asked.value, "id", getattr(asked.value, "attr", "")) in frozen
        if asked.attr in ("__contains__", "issuperset", "isdisjoint") and (known or _is_frozen(code, asked.value)):
            yield at(asked)


def _is_frozen(code: Code, node: ast.AST | None) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_frozen(code, node.left)
    if not isinstance(node, ast.Call):
        return False
    method = isinstance(node.func, ast.Attribute) and node.func.attr in ("union", "intersection", "difference")
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return code.origin(node.func) == "frozenset" or (method and _is_frozen(code, inner))


@pattern("node_class", "class of linked nodes", "classes of linked nodes")
def node_class(code: Code, links: list[str]) -> Iterable[Occurrence]:
    """Classes whose instances have all of these attributes, as nodes of a list (`next`) or tree (`left`, `right`)."""
    for node in code.find(ast.ClassDef):
        held: set[str] = set()
        for inner in walk(node):
            if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                held.add(inner.attr)
            elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                held.add(inner.target.id)
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value in links:
                held.add(inner.value)  # an entry of __slots__
            elif isinstance(inner, ast.Assign):
                held.update(target.id for target in inner.targets if isinstance(target, ast.Name))
        raised = [one.target.attr for one in code.find(ast.AugAssign) if isinstance(one.target, ast.Attribute)]
        if held.issuperset(links) and not set(links) & {*raised}:  # a number that is raised is no other node
            yield at(node, node.name)
    for call in code.find(ast.Call):  # `Node = namedtuple("Node", "value next")`
        if code.origin(call.func) in _CLASS_MAKERS:
            texts = [str(one.value) for one in walk(call) if isinstance(one, ast.Constant)]
            words = {word for text in texts for word in text.replace(",", " ").split()}
            words.update(one.arg or "" for one in call.keywords)
            yield from [at(call)] if words.issuperset(links) else []
