"""What a program makes use of: built-ins, library functions, methods, collections."""

import ast
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.code import Code


@pattern("use", "such use", "such uses")
def use(code: Code, names: list[str]) -> Iterable[Occurrence]:
    """Reads of these names, whatever they were imported as: `sorted`, `functools.reduce`, `itertools.*`, `.append`.

    An import alone is no use; a name that the program binds itself is its own.
    """
    for node in code.find(ast.Name, ast.Attribute):
        inner = isinstance(code.parents.get(node), ast.Attribute)
        origin = code.origin(node) if isinstance(node.ctx, ast.Load) and not inner else ""
        if origin and any(fnmatchcase(origin, name) for name in names):
            yield at(node, origin.removeprefix("."))


@pattern("call", "such call")
def call(code: Code, names: list[str]) -> Iterable[Occurrence]:
    """Calls of these names, read as in `use`."""
    for node in code.find(ast.Call):
        origin = code.origin(node.func)
        if origin and any(fnmatchcase(origin, name) for name in names):
            yield at(node, origin.removeprefix("."))


@pattern("imported", "import of that module", "imports of that module")
def imported(code: Code, modules: list[str]) -> Iterable[Occurrence]:
    """Import statements that name one of these modules."""
    for node in code.find(ast.Import, ast.ImportFrom):
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if any(fnmatchcase(name, module) for name in named for module in modules):
            yield at(node, named[0])


@pattern("collection", "such collection")
def collection(code: Code, kind: Literal["list", "dict", "set", "tuple"]) -> Iterable[Occurrence]:
    """Collections that the program makes: displays, comprehensions, and calls of the type, outside annotations."""
    display: dict[str, tuple[type[ast.expr], ...]] = {
        "list": (ast.List, ast.ListComp),
        "dict": (ast.Dict, ast.DictComp),
        "set": (ast.Set, ast.SetComp),
        "tuple": (ast.Tuple,),
    }
    for node in code.find(ast.Call, *display[kind]):
        if isinstance(node, ast.Call):
            if code.origin(node.func) == kind:
                yield at(node)
        elif isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not _is_hint(code, node):
            yield at(node)


def _is_hint(code: Code, node: ast.AST) -> bool:
    inner = node
    for above in code.ancestors(node):
        if inner in (getattr(above, "annotation", None), getattr(above, "returns", None)):
            return True
        if isinstance(above, ast.stmt):
            return False
        inner = above
    return False


@pattern("backward_iteration", "backward iteration")
def backward_iteration(code: Code) -> Iterable[Occurrence]:
    """`reversed(...)`, slices and ranges with a negative step."""
    for node in code.find(ast.Call, ast.Slice):
        if isinstance(node, ast.Slice):
            backward = node.step is not None and _is_negative(node.step)
        else:
            stepped = code.origin(node.func) == "range" and len(node.args) == 3 and _is_negative(node.args[2])
            backward = stepped or code.origin(node.func) == "reversed"
        if backward:
            yield at(node)


def _is_negative(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


@pattern("bit_operation", "bitwise operation")
def bit_operation(code: Code) -> Iterable[Occurrence]:
    """`&`, `|`, `^`, `~`, `<<`, `>>` outside annotations."""
    operators = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Invert)
    for node in code.find(ast.BinOp, ast.AugAssign, ast.UnaryOp):
        if isinstance(node.op, operators) and not _is_hint(code, node):
            yield at(node)


@pattern("arithmetic", "arithmetic operation")
def arithmetic(code: Code) -> Iterable[Occurrence]:
    """`+`, `-`, `*`, `/`, `//`, `%`, `**`."""
    operators = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
    return (at(node) for node in code.find(ast.BinOp, ast.AugAssign) if isinstance(node.op, operators))


@pattern("remainder", "pair of // and %", "pairs of // and %")
def remainder(code: Code) -> Iterable[Occurrence]:
    """Remainders `%` of numbers; string formatting has a text on its left."""
    for node in code.find(ast.BinOp, ast.AugAssign):
        left = node.left if isinstance(node, ast.BinOp) else node.target
        text = isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and isinstance(left.value, str))
        if isinstance(node.op, ast.Mod) and not text:
            yield at(node)


@pattern("stack", "list used as a stack", "lists used as stacks")
def stack(code: Code) -> Iterable[Occurrence]:
    """Names of the program that both `.append(...)` and `.pop()` (without index) are called on."""
    calls: dict[str, set[str]] = {}
    for node in code.find(ast.Call):
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            if node.func.attr == "append" or (node.func.attr == "pop" and not node.args):
                calls.setdefault(node.func.value.id, set()).add(node.func.attr)
                if len(calls[node.func.value.id]) == 2:
                    calls[node.func.value.id].add("counted")
                    yield at(node, f"'{node.func.value.id}'")


@pattern("table_lookup", "lookup in a table", "lookups in a table")
def table_lookup(code: Code) -> Iterable[Occurrence]:
    """Reads by key or `.get` of a name bound to a non-empty dict literal or comprehension."""
    tables = set()
    for node in code.find(ast.Assign, ast.AnnAssign):
        full = isinstance(node.value, ast.DictComp) or (isinstance(node.value, ast.Dict) and bool(node.value.keys))
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        tables.update(target.id for target in targets if full and isinstance(target, ast.Name))
    for reader in code.find(ast.Subscript, ast.Call):
        if isinstance(reader, ast.Subscript):
            base = reader.value if isinstance(reader.ctx, ast.Load) else None
        else:
            method = reader.func
            base = method.value if isinstance(method, ast.Attribute) and method.attr == "get" else None
        if isinstance(base, ast.Name) and base.id in tables:
            yield at(reader)
