"""What stands in a program without being used: values that nothing reads, new definitions that nothing names.

Who asks for a set or an enumeration wants it to do something: a `Counter(words)` that is never looked at is no use of
`Counter`. Only what surely has no effect counts as idle: a call of a function that is not known to be free of effects
does something whatever becomes of its result.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from fnmatch import translate

from codechat.patterns.code import Code, is_hint
from codechat.patterns.tree import FUNCTIONS, Function, walk

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


def idle(code: Code, earlier: Code | None = None) -> frozenset[ast.AST]:
    """The nodes of values that nothing reads, and of definitions that `earlier` had not and no live code names."""
    found = {node for value in _dropped(code) for node in walk(value)}
    if earlier is not None and earlier.tree is not None:
        found.update(node for dead in _unnamed(code, earlier) for node in walk(dead))
    return frozenset(found)


def _dropped(code: Code) -> Iterator[ast.expr]:
    """Values of expression statements, and of assignments to names alone that are read nowhere."""
    for node in code.find(ast.Expr, ast.Assign, ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [name for target in targets if target is not None for name in _names(target)]
        if node.value is None or any(name is None or _is_read(code, node, name) for name in names):
            continue
        if not _acts(code, node.value):
            yield node.value


def _names(target: ast.expr) -> Iterator[str | None]:
    """The names that a target binds, None for what is no name."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _names(part)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)
    else:
        yield target.id if isinstance(target, ast.Name) else None


def _is_read(code: Code, statement: ast.stmt, name: str) -> bool:
    """Whether a name is read where it can be seen; names of classes and dunder names are read from outside."""
    if isinstance(code.parents.get(statement), ast.ClassDef) or name.startswith("__"):
        return True
    read, shared = _reads(code, code.function_of(statement))
    return name in (_reads(code, None)[0] if name in shared else read)


def _reads(code: Code, function: Function | None) -> tuple[set[str], set[str]]:
    """The names that are read in a function, or (None) anywhere, and those declared global or nonlocal there."""
    key = (_reads, function)
    if key not in code.found:
        nodes = walk(function) if function is not None else code.nodes
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        declared = [node.names for node in nodes if isinstance(node, ast.Global | ast.Nonlocal)]
        code.found[key] = read, {name for names in declared for name in names}
    found: tuple[set[str], set[str]] = code.found[key]
    return found


def _acts(code: Code, value: ast.expr) -> bool:
    """Whether evaluating it may do anything but give a value. A lambda's body waits for its call."""
    if isinstance(value, ast.Lambda):
        return False
    for node in walk(value):
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return True
        if isinstance(node, ast.Call) and not _is_without_effect(code.origin(node.func)):
            return True
    return False


def _unnamed(code: Code, earlier: Code) -> Iterator[ast.AST]:
    """New functions and classes, methods aside, that neither other live code nor a decorator of the program's names."""
    known = {node.name for node in earlier.find(*_DEFINITIONS)}
    waiting: set[ast.AST] = set()
    for node in code.find(*_DEFINITIONS):
        if node.name not in known and not isinstance(code.parents.get(node), ast.ClassDef):
            waiting.update(() if _is_registered(code, node) else (node,))
    read: dict[ast.AST, set[str]] = {}  # by the definition of `waiting` that is innermost around the read
    for reader in code.find(ast.Name, ast.Constant):
        around = next((above for above in code.ancestors(reader) if above in waiting), code.nodes[0])
        read.setdefault(around, set()).update(_read_names(code, reader))
    live, named = {code.nodes[0]}, set(read.get(code.nodes[0], ()))
    while reached := {node for node in waiting - live if getattr(node, "name", "") in named}:
        live |= reached
        named.update(*(read.get(node, set()) for node in reached))
    yield from waiting - live


def _read_names(code: Code, node: ast.Name | ast.Constant) -> Iterable[str]:
    """The names that a name or a hint in quotes reads."""
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Load) else []
    return re.findall(r"\w+", node.value) if isinstance(node.value, str) and is_hint(code, node) else []


def _is_registered(code: Code, node: ast.AST) -> bool:
    """Whether a decorator that is no known library's may hand the definition on."""
    heads = [one.func if isinstance(one, ast.Call) else one for one in getattr(node, "decorator_list", [])]
    return any(code.origin(head)[:1] in ("", ".") for head in heads)
