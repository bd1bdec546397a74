"""What stands in a program without being used: values that nothing reads, new definitions that nothing names.

Who asks for a set or an enumeration wants it to do something: a `Counter(words)` that is never looked at is no use of
`Counter`. Only what surely has no effect counts as idle: a call of a function that is not known to be free of effects
does something whatever becomes of its result. A collection that is only ever filled is read by nothing either.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from codechat.patterns.reading.code import Code, is_hint
from codechat.patterns.reading.tree import FUNCTIONS, Function, blocks, walk
from codechat.patterns.substance.dead import dead
from codechat.patterns.substance.effects import FILLING, acts, keeps_to_itself

_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_FRESH = "list|dict|set|collections\\..*|io\\.StringIO"
_FILLERS = {
    "heapq.heappush", "heapq.heappop", "heapq.heapify", "bisect.insort", "bisect.insort_left", "bisect.insort_right",
}  # fmt: skip
_ROUNDS = 3  # of looking for values that only values which nothing reads are made from


def idle(code: Code, earlier: Code | None = None) -> frozenset[ast.AST]:
    """The nodes of values that nothing reads, and of definitions that `earlier` had not and no live code names."""
    if idle not in code.found:
        gone, before = frozenset[ast.AST](), -1
        for _ in range(_ROUNDS):
            if len(gone) > before:
                before = len(gone)
                gone = frozenset(node for value in _dropped(code, gone | dead(code)) for node in walk(value))
        code.found[idle] = gone
    found: frozenset[ast.AST] = code.found[idle]
    if earlier is None or earlier.tree is None:
        return found
    key = (idle, _defined(earlier))
    if key not in code.found:
        unread = _unnamed(code, key[1], found | dead(code))
        kept = {node for value in _still_offered(code, key[1]) for node in walk(value)}
        code.found[key] = (found - kept).union(node for definition in unread for node in walk(definition))
    whole: frozenset[ast.AST] = code.found[key]
    return whole


def _defined(code: Code) -> frozenset[str]:
    """The names of the functions and classes of a program."""
    if _defined not in code.found:
        code.found[_defined] = frozenset(node.name for node in code.find(*_DEFINITIONS))
    names: frozenset[str] = code.found[_defined]
    return names


def _still_offered(code: Code, known: frozenset[str]) -> Iterator[ast.expr]:
    """What a module gives the name of a function or class that there was before: whoever called it still does."""
    for node in code.tree.body if code.tree else []:
        if isinstance(node, ast.Assign) and known.intersection(*[names_of(one) for one in node.targets[:1]]):
            yield node.value


def _dropped(code: Code, gone: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """Values of expression statements, and of assignments to names alone that are read nowhere but in what is gone."""
    filled: set[ast.Name] = set()
    for node, targets, value in given(code):
        names = [name for target in targets for name in names_of(target)]
        if acts(code, value):
            continue
        fills = _only_filled(code, node, names[0], gone) if len(names) == 1 and _is_fresh(code, value) else []
        filled.update(fills)
        if fills or not any(name is None or _reaches(code, node, name, gone) for name in names):
            yield value
    for load in filled:
        above = next(one for one in code.ancestors(load) if isinstance(one, ast.stmt))
        call = above.value if isinstance(above, ast.Expr) else None
        if isinstance(call, ast.Call) and not any(acts(code, argument) for argument in call.args):
            yield call


def _reaches(code: Code, statement: ast.stmt, name: str, gone: frozenset[ast.AST]) -> bool:
    """Whether a name is read, and not given another value first."""
    return is_read(code, statement, name, gone) and not is_overwritten(code, statement, name)


def is_overwritten(code: Code, statement: ast.stmt, name: str) -> bool:
    """Whether a later statement of its block surely gives a function's name another value before any may read it."""
    function = code.function_of(statement)
    if function is None or name in _reads(code, function)[1] or _stores(code, function).get(name, 0) < 2:
        return False
    if any(isinstance(one, ast.Try | ast.TryStar) for one in code.ancestors(statement)):
        return False
    block = next((one for one in blocks(code.parents[statement]) if statement in one), [])
    for later in block[block.index(statement) + 1 :] if block else ():
        inside = walk(later)
        if any(isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Store) for one in inside):
            return False
        if isinstance(later, ast.Assign) and any(name in names_of(target) for target in later.targets):
            return True
        if isinstance(later, _DEFINITIONS) or any(isinstance(one, _LEAVING) for one in inside):
            return False
    return False


_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)


def _stores(code: Code, function: Function) -> dict[str, int]:
    """How often a function gives each name a value."""
    key = (_stores, function)
    if key not in code.found:
        found: dict[str, int] = {}
        for node in walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = found.get(node.id, 0) + 1
        code.found[key] = found
    counts: dict[str, int] = code.found[key]
    return counts


def given(code: Code) -> Iterator[tuple[ast.stmt, list[ast.expr], ast.expr]]:
    """Statements of a value with what gets it; `a, b = x, y` gives x to a, then y to b."""
    for node in code.find(ast.Expr, ast.Assign, ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        sides = [targets[0], node.value] if len(targets) == 1 else []
        parts = [side.elts for side in sides if isinstance(side, ast.Tuple)]
        starred = any(isinstance(one, ast.Starred) for part in parts for one in part)
        if len(parts) == 2 and len(parts[0]) == len(parts[1]) and not starred:
            yield from ((node, [target], value) for target, value in zip(*parts, strict=True))
        elif node.value is not None:
            yield node, targets, node.value


def _is_fresh(code: Code, value: ast.expr) -> bool:
    """Whether it makes a collection, or an object of a class of the program, that nothing else knows."""
    made = isinstance(value, ast.Call) and re.fullmatch(_FRESH, code.origin(value.func))
    return (
        bool(made)
        or _own_class(code, value) is not None
        or isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
    )


def _own_class(code: Code, value: ast.expr | None) -> ast.ClassDef | None:
    """The class of the program that a call makes an object of, if its objects keep to themselves."""
    name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None
    found = [one for one in code.find(ast.ClassDef) if one.name == name] if name else []
    return found[0] if len(found) == 1 and keeps_to_itself(code, found[0]) else None


def _only_filled(code: Code, statement: ast.stmt, name: str | None, gone: frozenset[ast.AST]) -> list[ast.Name]:
    """The reads of a function's variable, if each only puts something into what it holds."""
    function = code.function_of(statement)
    loads, shared = _reads(code, function)
    if function is None or name is None or name in shared:
        return []
    found = [load for load in loads.get(name, []) if load not in gone or _fills(code, load)]
    return found if all(_fills(code, load) for load in found) else []


def _fills(code: Code, load: ast.Name) -> bool:
    above = code.parents[load]
    around = code.parents.get(above)
    if isinstance(above, ast.Subscript):
        return above.value is load and not isinstance(above.ctx, ast.Load) and not isinstance(around, ast.AugAssign)
    if isinstance(above, ast.Call) and isinstance(around, ast.Expr):
        return above.args[:1] == [load] and code.origin(above.func) in _FILLERS
    filling = isinstance(above, ast.Attribute) and (
        above.attr in FILLING or _own_class(code, code.values.get(load.id)) is not None
    )
    return filling and isinstance(around, ast.Call) and around.func is above and _is_dropped(code, around)


def _is_dropped(code: Code, call: ast.Call) -> bool:
    return isinstance(code.parents.get(call), ast.Expr)


def names_of(target: ast.expr) -> Iterator[str | None]:
    """The names that a target binds, None for what is no name."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from names_of(part)
    elif isinstance(target, ast.Starred):
        yield from names_of(target.value)
    else:
        yield target.id if isinstance(target, ast.Name) else None


def is_read(code: Code, statement: ast.stmt, name: str, gone: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a name is read where it can be seen, and not just in what is gone.

    Names of classes and dunder names are read from outside.
    """
    if isinstance(code.parents.get(statement), ast.ClassDef) or name.startswith("__"):
        return True
    read, shared = _reads(code, code.function_of(statement))
    loads = (_reads(code, None)[0] if name in shared else read).get(name, ())
    return any(load not in gone for load in loads)


def _reads(code: Code, function: Function | None) -> tuple[dict[str, list[ast.Name]], set[str]]:
    """The reads of every name in a function, or (None) anywhere, and the names declared global or nonlocal there."""
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


def _unnamed(code: Code, known: frozenset[str], dropped: frozenset[ast.AST]) -> Iterator[ast.AST]:
    """Functions and classes, methods aside, that are not `known` and that no other live code names.

    What a decorator of the program's names is left out.

    `dropped` are the nodes of values that nothing reads and of code that never runs: what is named there alone is used
    by nothing.
    """
    waiting: set[ast.AST] = set()
    for node in code.find(*_DEFINITIONS):
        if node.name not in known and not isinstance(code.parents.get(node), ast.ClassDef):
            waiting.update(() if _is_registered(code, node) else (node,))
    names = {getattr(one, "name", "") for one in waiting if isinstance(code.parents.get(one), ast.Module)}
    read: dict[ast.AST, set[str]] = {}  # by the definition of `waiting` that is innermost around the read
    for reader in code.find(ast.Name, ast.Constant) if waiting else ():
        local = isinstance(reader, ast.Name) and reader.id in names and code.is_own(reader, inner=True)
        if reader in dropped or (local and not _is_bound_by_definition(code, reader)):
            continue
        around = next((above for above in code.ancestors(reader) if above in waiting), code.nodes[0])
        read.setdefault(around, set()).update(_read_names(code, reader))
    live, named = {code.nodes[0]}, set(read.get(code.nodes[0], ()))
    while reached := {node for node in waiting - live if getattr(node, "name", "") in named}:
        live |= reached
        named.update(*(read.get(node, set()) for node in reached))
    yield from waiting - live


def _is_bound_by_definition(code: Code, name: ast.AST) -> bool:
    """Whether a function inside another has that name too: which of both is meant is left open."""
    inner = (one for one in code.find(*_DEFINITIONS) if one.name == getattr(name, "id", ""))
    return any(not isinstance(code.parents.get(one), ast.Module) for one in inner)


def _read_names(code: Code, node: ast.Name | ast.Constant) -> Iterable[str]:
    """The names that a name or a hint in quotes reads."""
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Load) else []
    return re.findall(r"\w+", node.value) if isinstance(node.value, str) and is_hint(code, node) else []


def _is_registered(code: Code, node: ast.AST) -> bool:
    """Whether a decorator that is no known library's may hand the definition on."""
    heads = [one.func if isinstance(one, ast.Call) else one for one in getattr(node, "decorator_list", [])]
    return any(code.origin(head)[:1] in ("", ".") for head in heads)
