"""What a program makes use of: built-ins, library functions, methods, collections."""

import ast
import builtins
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Literal

from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.code import Code, is_hint
from codechat.patterns.tree import COMPREHENSIONS, LOOPS, own_nodes, walk


@pattern("use", "use of {names}", "uses of {names}")
def use(code: Code, names: list[str], in_hint: bool = False) -> Iterable[Occurrence]:
    """Reads of these names, whatever they were imported as: `sorted`, `functools.reduce`, `itertools.*`, `.append`.

    An import alone is no use, nor is an annotation, unless the use is to stand `in_hint`; a name that the program binds
    itself is its own.
    """
    for node in code.find(ast.Name, ast.Attribute):
        inner = isinstance(code.parents.get(node), ast.Attribute)
        origin = code.origin(node) if isinstance(node.ctx, ast.Load) and not inner else ""
        if origin and any(fnmatchcase(origin, name) for name in names) and is_hint(code, node) is in_hint:
            yield at(node, origin.removeprefix("."))


@pattern("call", "call of {names}", "calls of {names}")
def call(code: Code, names: list[str]) -> Iterable[Occurrence]:
    """Calls of these names, read as in `use`."""
    for node in code.find(ast.Call):
        origin = code.origin(node.func)
        if origin and any(fnmatchcase(origin, name) for name in names):
            yield at(node, origin.removeprefix("."))


@pattern("imported", "import of {modules}", "imports of {modules}")
def imported(code: Code, modules: list[str]) -> Iterable[Occurrence]:
    """Import statements that name one of these modules, or one of these names as `module.name`."""
    for node in code.find(ast.Import, ast.ImportFrom):
        named = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            named = [node.module or "", *(f"{node.module}.{name}" for name in named)]
        if any(fnmatchcase(name, module) for name in named for module in modules):
            yield at(node, named[0])


_MAKERS: dict[str, tuple[tuple[type[ast.expr], ...], tuple[str, ...]]] = {
    "list": ((ast.List, ast.ListComp), ("list",)),
    "dict": (
        (ast.Dict, ast.DictComp),
        ("dict", "collections.defaultdict", "collections.Counter", "collections.OrderedDict"),
    ),
    "set": ((ast.Set, ast.SetComp), ("set", "frozenset")),
    "tuple": ((ast.Tuple,), ("tuple",)),
}


@pattern("collection", "{kind}")
def collection(code: Code, kind: Literal["list", "dict", "set", "tuple"]) -> Iterable[Occurrence]:
    """Collections that the program makes by display, comprehension or call; annotations and indices are none."""
    displays, makers = _MAKERS[kind]
    for node in code.find(ast.Call, *displays):
        if isinstance(node, ast.Call):
            made = code.origin(node.func) in makers
        else:
            index = getattr(code.parents.get(node), "slice", None) is node
            made = isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not index and not is_hint(code, node)
        if made:
            yield at(node)


@pattern("bit_operation", "bitwise operation")
def bit_operation(code: Code) -> Iterable[Occurrence]:
    """`&`, `|`, `^`, `~`, `<<`, `>>` outside annotations."""
    operators = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Invert)
    for node in code.find(ast.BinOp, ast.AugAssign, ast.UnaryOp):
        if isinstance(node.op, operators) and not is_hint(code, node):
            yield at(node)


_TRAVERSING = [
    "sum", "min", "max", "any", "all", "map", "filter", "sorted", "reversed", "zip", "enumerate", "range", "list",
    "set", "tuple", "functools.reduce", ".join", ".sort", ".count", ".index", ".reverse",
]  # fmt: skip


@pattern("traversal", "walk through values", "walks through values")
def traversal(code: Code) -> Iterable[Occurrence]:
    """Loops, comprehensions, and calls that go through all elements."""
    yield from (at(node) for node in code.find(*LOOPS, *COMPREHENSIONS))
    yield from call(code, _TRAVERSING)


@pattern("module_cache", "cache at module level", "caches at module level")
def module_cache(code: Code) -> Iterable[Occurrence]:
    """Module-level names bound to an empty dict that a function stores into."""
    changed = [node.value for node in code.find(ast.Subscript) if isinstance(node.ctx, ast.Store)]
    stored = {one.id for one in changed if isinstance(one, ast.Name) and code.function_of(one) is not None}
    for statement in code.tree.body if code.tree else []:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        empty = isinstance(value, ast.Dict) and not value.keys
        made = isinstance(value, ast.Call) and code.origin(value.func) in _MAKERS["dict"][1] and not value.args
        names = {target.id for target in targets if isinstance(target, ast.Name) and (empty or made)}
        for name in names.intersection(stored):
            yield at(statement, f"'{name}'")


@pattern("global_counter", "global counter")
def global_counter(code: Code) -> Iterable[Occurrence]:
    """Updates of a name that their function declares global: `n += 1` or `n = n + 1`."""
    for function in code.functions:
        declared = {name for node in own_nodes(function) if isinstance(node, ast.Global) for name in node.names}
        for node in own_nodes(function):
            target: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
                target = node.targets[0]
            if isinstance(target, ast.Name) and target.id in declared:
                yield at(node, f"'{target.id}'")


_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow,
}  # fmt: skip


@pattern("arithmetic", "arithmetic operation")
def arithmetic(code: Code, operators: list[str] | None = None) -> Iterable[Occurrence]:
    """These operations, all arithmetic ones where none are named; a text on the left makes it none."""
    wanted = tuple(_ARITHMETIC[sign] for sign in operators or _ARITHMETIC)
    for node in code.find(ast.BinOp, ast.AugAssign):
        left = node.left if isinstance(node, ast.BinOp) else node.target
        text = isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and isinstance(left.value, str))
        if isinstance(node.op, wanted) and not text:
            yield at(node)


@pattern("stack", "list used as a stack", "lists used as stacks")
def stack(code: Code) -> Iterable[Occurrence]:
    """Names of the program that both `.append(...)` and `.pop()` (without index) are called on."""
    pushed: dict[str, ast.Call] = {}
    popped: set[str] = set()
    for node in code.find(ast.Call):
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = node.func.value.id
            if node.func.attr == "append":
                pushed.setdefault(name, node)
            elif node.func.attr == "pop" and not node.args:
                popped.add(name)
    return (at(node, f"'{name}'") for name, node in pushed.items() if name in popped)


@pattern("table_lookup", "lookup in a table", "lookups in a table")
def table_lookup(code: Code) -> Iterable[Occurrence]:
    """Reads by key or `.get` of a name bound to a non-empty dict literal or comprehension."""
    tables: set[str] = set()
    for node in code.find(ast.Assign, ast.AnnAssign):
        full = isinstance(node.value, ast.DictComp) or (isinstance(node.value, ast.Dict) and bool(node.value.keys))
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        tables.update(target.id for target in targets if full and isinstance(target, ast.Name))
    for reader in code.find(ast.Subscript, ast.Call):
        base = reader.value if isinstance(reader, ast.Subscript) and isinstance(reader.ctx, ast.Load) else None
        if isinstance(reader, ast.Call) and isinstance(reader.func, ast.Attribute) and reader.func.attr == "get":
            base = reader.func.value
        if isinstance(base, ast.Dict | ast.DictComp) or (isinstance(base, ast.Name) and base.id in tables):
            yield at(reader)


@pattern("dispatch_table", "table of functions", "tables of functions")
def dispatch_table(code: Code) -> Iterable[Occurrence]:
    """Dict displays with a value that is a lambda, a function of the program, or a built-in one."""
    own = {function.name for function in code.functions}
    for node in code.find(ast.Dict):
        names = [(value, value.id) for value in node.values if isinstance(value, ast.Name)]
        built_in = any(code.origin(value) == name and callable(getattr(builtins, name, None)) for value, name in names)
        if built_in or any(name in own for _, name in names) or any(isinstance(one, ast.Lambda) for one in node.values):
            yield at(node)


@pattern("listed_membership", "membership test against a list", "membership tests against lists")
def listed_membership(code: Code) -> Iterable[Occurrence]:
    """`x in [...]`, also by the name of a variable that only holds lists the program displays."""
    lists: dict[str, bool] = {}
    for assignment in code.find(ast.Assign):
        for target in assignment.targets:
            if isinstance(target, ast.Name):
                made = isinstance(assignment.value, ast.List | ast.ListComp)
                lists[target.id] = lists.get(target.id, True) and made
    for node, right in _memberships(code):
        if isinstance(right, ast.List | ast.ListComp) or (isinstance(right, ast.Name) and lists.get(right.id, False)):
            yield at(node)


def _memberships(code: Code) -> Iterator[tuple[ast.Compare, ast.expr]]:
    """Comparisons by `in` and `not in`, each with what it looks in."""
    for node in code.find(ast.Compare):
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                yield node, right


@pattern("frozen_membership", "membership test against a frozenset", "membership tests against frozensets")
def frozen_membership(code: Code) -> Iterable[Occurrence]:
    """`x in frozenset(...)`, also by the name of a variable that is bound to one."""
    frozen: set[str] = set()
    for assignment in code.find(ast.Assign, ast.AnnAssign, ast.NamedExpr):
        if _is_frozen(code, assignment.value):
            targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
            frozen.update(target.id for target in targets if isinstance(target, ast.Name))
    for node, right in _memberships(code):
        if _is_frozen(code, right) or (isinstance(right, ast.Name) and right.id in frozen):
            yield at(node)


def _is_frozen(code: Code, node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and code.origin(node.func) == "frozenset"


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
        if held.issuperset(links):
            yield at(node, node.name)
