"""Whether anything uses it: values that nothing reads, definitions that nothing names, collections only filled.

An added construct has to do something: a `Counter(words)` that nothing reads is no use of `Counter`. Only code without
any effect counts as unused: a call of a function that may have effects is in use even if nothing reads the result.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from fnmatch import translate

from codechat.studies.refine.patterns.reading.code import Code, is_hint
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS, Function, walk

_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_WITHOUT_EFFECT = """
    abs all any bin bool bytes chr dict divmod enumerate filter float format frozenset hash hex id int isinstance iter
    len list map max min object ord pow range repr reversed round set sorted str sum tuple type zip
    bisect.bisect* collections.* copy.* functools.partial functools.reduce heapq.merge heapq.nlargest heapq.nsmallest
    io.StringIO itertools.* math.* operator.* re.* statistics.* string.* threading.Lock threading.RLock
    .copy .count .endswith .find .format .fromkeys .get .index .isalpha .isdigit .islower .isupper .items .join .keys
    .lower .most_common .replace .split .startswith .strip .title .upper .values
"""
_is_without_effect = re.compile("|".join(map(translate, _WITHOUT_EFFECT.split()))).match
_FILLING = {"append", "appendleft", "add", "extend", "extendleft", "update", "insert", "write", "clear", "setdefault"}
_FILLERS = {"heapq.heappush", "heapq.heapify", "bisect.insort", "bisect.insort_left", "bisect.insort_right"}
_ROUNDS = 3  # of looking for values that only values which nothing reads are made from


def idle(code: Code, earlier: Code | None = None) -> frozenset[ast.AST]:
    """The nodes of values that nothing reads, and of definitions that `earlier` lacks and that no live code names."""
    if idle not in code.found:
        gone, before = frozenset[ast.AST](), -1
        for _ in range(_ROUNDS):
            if len(gone) > before:
                before = len(gone)
                gone = frozenset(node for value in _dropped(code, gone) for node in walk(value))
        code.found[idle] = gone
    found: frozenset[ast.AST] = code.found[idle]
    if earlier is None or earlier.tree is None:
        return found
    key = (idle, frozenset(node.name for node in earlier.find(*_DEFINITIONS)))
    if key not in code.found:
        code.found[key] = found.union(node for each in _unnamed(code, key[1], found) for node in walk(each))
    whole: frozenset[ast.AST] = code.found[key]
    return whole


def _dropped(code: Code, gone: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """The values without effect that nothing (or only something unused) reads."""
    for node, targets, value in assignments(code):
        names = [name for target in targets for name in names_of(target)]
        if acts(code, value):
            continue
        fills = _only_filled(code, node, names[0]) if len(names) == 1 and _is_fresh(code, value) else []
        yield from (above.value for above in map(code.parents.get, fills) if isinstance(above, ast.Expr))
        if fills or not any(name is None or is_read(code, node, name, gone) for name in names):
            yield value


def assignments(code: Code) -> Iterator[tuple[ast.stmt, list[ast.expr], ast.expr]]:
    """Assignments as (statement, targets, value); `a, b = x, y` gives x to a, then y to b."""
    for node in code.find(ast.Expr, ast.Assign, ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        sides = [targets[0], node.value] if len(targets) == 1 else []
        parts = [side.elts for side in sides if isinstance(side, ast.Tuple)]
        if len(parts) == 2 and len(parts[0]) == len(parts[1]):
            yield from ((node, [target], value) for target, value in zip(*parts, strict=True))
        elif node.value is not None:
            yield node, targets, node.value


def _is_fresh(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return re.fullmatch(r"list|dict|set|collections\..*|io\.StringIO", code.origin(value.func)) is not None
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _only_filled(code: Code, statement: ast.stmt, name: str | None) -> list[ast.AST]:
    """The nodes that fill a variable's collection, if nothing else is done with it; else none."""
    loads, shared = _reads(code, code.function_of(statement))
    if name is None or name in shared or name.startswith("__") or isinstance(code.parents.get(statement), ast.ClassDef):
        return []
    if code.function_of(statement) is None and any(code.function_of(load) is None for load in loads.get(name, [])):
        return []
    found = [_filling(code, load) for load in loads.get(name, [])]
    return [one for one in found if one is not None] if all(found) else []


def _filling(code: Code, load: ast.Name) -> ast.AST | None:
    """The call or assignment that fills the collection read here; None if the read does anything else."""
    above = code.parents[load]
    around = code.parents.get(above)
    if isinstance(above, ast.Subscript):
        stores = above.value is load and not isinstance(above.ctx, ast.Load) and not isinstance(around, ast.AugAssign)
        return above if stores else None
    method = isinstance(above, ast.Attribute) and above.attr in _FILLING
    call = around if method else above
    if not isinstance(call, ast.Call) or not isinstance(code.parents.get(call), ast.Expr):
        return None
    if any(acts(code, argument) for argument in call.args):
        return None
    return call if method or (call.args[:1] == [load] and code.origin(call.func) in _FILLERS) else None


def names_of(target: ast.expr) -> Iterator[str | None]:
    """The names that a target binds, None for each part that is no name."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from names_of(part)
    elif isinstance(target, ast.Starred):
        yield from names_of(target.value)
    else:
        yield target.id if isinstance(target, ast.Name) else None


def is_read(code: Code, statement: ast.stmt, name: str, gone: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether something in use reads a name; names of classes and double-underscore names count as read."""
    if isinstance(code.parents.get(statement), ast.ClassDef) or name.startswith("__"):
        return True
    read, shared = _reads(code, code.function_of(statement))
    loads = (_reads(code, None)[0] if name in shared else read).get(name, ())
    return any(load not in gone for load in loads)


def _reads(code: Code, function: Function | None) -> tuple[dict[str, list[ast.Name]], set[str]]:
    """The reads of every name in a function (in the whole program if None), and its global and nonlocal names."""
    key = (_reads, function)
    if key not in code.found:
        read: dict[str, list[ast.Name]] = {}
        shared: set[str] = set()
        for node in walk(function) if function is not None else code.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                shared.update(node.names)
        code.found[key] = read, shared
    found: tuple[dict[str, list[ast.Name]], set[str]] = code.found[key]
    return found


def acts(code: Code, value: ast.expr) -> bool:
    """Whether evaluating a node may do more than give a value. A lambda's body does not run until it is called."""
    if isinstance(value, ast.Lambda):
        return False
    return any(
        isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)
        or (isinstance(node, ast.Call) and not _is_without_effect(code.origin(node.func)))
        for node in walk(value)
    )


def _unnamed(code: Code, known: frozenset[str], dropped: frozenset[ast.AST]) -> Iterator[ast.AST]:
    """Functions and classes, except methods and registered ones, that are not in `known` and no live code names."""
    waiting: set[ast.AST] = set()
    for node in code.find(*_DEFINITIONS):
        if node.name not in known and not isinstance(code.parents.get(node), ast.ClassDef):
            waiting.update(() if _is_registered(code, node) else (node,))
    read: dict[ast.AST, set[str]] = {}  # by the definition of `waiting` that is innermost around the read
    for reader in code.find(ast.Name, ast.Constant) if waiting else ():
        if reader not in dropped:
            around = next((above for above in code.ancestors(reader) if above in waiting), code.nodes[0])
            read.setdefault(around, set()).update(_read_names(code, reader))
    live, named = {code.nodes[0]}, set(read.get(code.nodes[0], ()))
    while reached := {node for node in waiting - live if getattr(node, "name", "") in named}:
        live |= reached
        named.update(*(read.get(node, set()) for node in reached))
    yield from waiting - live


def _read_names(code: Code, node: ast.Name | ast.Constant) -> Iterable[str]:
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Load) else []
    return re.findall(r"\w+", node.value) if isinstance(node.value, str) and is_hint(code, node) else []


def _is_registered(code: Code, node: ast.AST) -> bool:
    heads = [one.func if isinstance(one, ast.Call) else one for one in getattr(node, "decorator_list", [])]
    return any(code.origin(head)[:1] in ("", ".") for head in heads)
