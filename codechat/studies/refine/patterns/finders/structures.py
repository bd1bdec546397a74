"""Data structures that a program uses: stacks, tables, membership tests, linked nodes, caches."""

import ast
import builtins
from collections.abc import Iterable, Iterator

from codechat.studies.refine.patterns.base import Occurrence, at, pattern
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import walk
from codechat.studies.refine.patterns.reading.use import assignments

_DICTS = ("dict", "collections.defaultdict", "collections.Counter", "collections.OrderedDict")


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
    """Whether a function stores values under keys that it is given."""
    stores = (one for one in code.find(ast.Subscript) if isinstance(one.ctx, ast.Store))
    return any(
        ast.unparse(one.value) == name and isinstance(code.parents[one], ast.Assign)
        and not isinstance(one.slice, ast.Constant) and code.function_of(one) is not None
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
    """Names and attributes, deques excepted, on which `.append(...)` and `.pop()` or `.pop(-1)` are called.

    The two calls may use different names for the same object.
    """
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
    """Dicts with a value that is a function: a lambda, one of the program's, a built-in, or one of `operator`.

    The dict may be made of pairs, of a `zip` with functions, or of a comprehension over them; an entry may be
    stored later if the program calls an entry somewhere.
    """
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
    """Comparisons by `in` and `not in`, each with the collection that is searched."""
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
    """Whether a value is a frozenset: `frozenset(...)`, or the result of such a set's methods and operators."""
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
        if held.issuperset(links) and not _counts(code, links):
            yield at(node, node.name)
    for call in code.find(ast.Call):  # `Node = namedtuple("Node", "value next")`
        if code.origin(call.func) in _CLASS_MAKERS:
            texts = [str(one.value) for one in walk(call) if isinstance(one, ast.Constant)]
            words = {word for text in texts for word in text.replace(",", " ").split()}
            words.update(one.arg or "" for one in call.keywords)
            yield from [at(call)] if words.issuperset(links) else []


def _counts(code: Code, links: list[str]) -> bool:
    """Whether an attribute of such a name is a number that is raised, and not another node."""
    targets = [node.target for node in code.find(ast.AugAssign)]
    return any(isinstance(one, ast.Attribute) and one.attr in links for one in targets)


_CLASS_MAKERS = (
    "collections.namedtuple", "typing.NamedTuple", "dataclasses.make_dataclass", "types.SimpleNamespace", "type",
)  # fmt: skip
