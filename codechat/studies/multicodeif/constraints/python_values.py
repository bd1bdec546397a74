"""The types of the values that a Python function without annotation returns, as far as its statements show them."""

import ast
from collections.abc import Callable, Iterator

from codechat.sandbox.languages.python.syntax import parse
from codechat.studies.multicodeif.constraints.types import Types, head_of

Values = list[str]
"""The types of the values of one `return`, as they would be written; empty for one that is unknown."""

_CALLS = {
    **{name: name for name in ("int", "float", "str", "bool", "list", "dict", "set", "tuple", "frozenset", "bytes")},
    **dict.fromkeys(("len", "ord", "hash", "id"), "int"),
    **dict.fromkeys(("any", "all", "isinstance", "issubclass", "callable", "hasattr"), "bool"),
    **dict.fromkeys(
        ("sorted", "split", "rsplit", "splitlines", "readlines", "most_common", "findall", "tolist"), "list"
    ),
    **dict.fromkeys(
        ("join", "strip", "lower", "upper", "title", "replace", "format", "hexdigest", "input", "dumps"), "str"
    ),
    **dict.fromkeys(
        ("startswith", "endswith", "isdigit", "isalpha", "isalnum", "isupper", "islower", "exists"), "bool"
    ),
    **dict.fromkeys(("time", "perf_counter", "mean", "sqrt", "total_seconds"), "float"),
    **{name: name for name in ("defaultdict", "deque")},
}
# Kinds that nothing but themselves can be, unlike a graph or a tree, which may be built of anything.
_PLAIN = frozenset({
    "int", "integer", "float", "str", "string", "bool", "boolean", "list", "set", "dict", "map", "tuple",
    "collections.counter", "queue.queue",
})  # fmt: skip
_METHODS_ONLY = frozenset({"join", "strip", "lower", "upper", "title", "replace", "format", "split", "time"})
_LITERALS: dict[type[ast.expr], str] = {
    ast.List: "list",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Tuple: "tuple",
    ast.JoinedStr: "str",
    ast.Compare: "bool",
}


def returned(code: str, name: str) -> list[tuple[int, Values | None]] | None:
    """For every `return` of the first function of a name its line and the types of its values, None if unknown.

    None for the whole if the code does not parse or has no such function.
    """
    tree = parse(code)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            known = _variables(node)
            return [(each.lineno, _values(each.value, known)) for each in _own(node) if isinstance(each, ast.Return)]
    return None


def without_annotation(code: str, name: str, fits: Callable[[Values], bool | None]) -> tuple[bool | None, str]:
    """Whether everything that a function returns fits, by its statements; and the reason, in one line.

    `fits` says it of the values of one `return`, None if that is unknown.
    """
    found = returned(code, name)
    if found is None:
        return None, f"the type that {name} returns is not written, and the code does not parse"
    if not found:
        return False, f"{name} returns nothing"
    fitting = [(line, None if values is None else fits(values)) for line, values in found]
    wrong = [line for line, fit in fitting if fit is False]
    right = [line for line, fit in fitting if fit]
    if wrong:
        return False, f"line {wrong[0]}: {name} returns something else, as far as its statements tell"
    if right:
        return True, f"line {right[0]}: {name} returns what is asked for"
    return None, f"line {fitting[0][0]}: what {name} returns has no written type, and its statements do not tell it"


def fits(kind: str, wanted: str) -> bool | None:
    """Whether a type that the statements show is of the wanted kind; None if it is unknown, or may be.

    A whole number may stand for another, None for a missing value, a collection for any shape that is built of it.
    """
    types = Types()
    if not kind or types.is_kind(kind, wanted) or head_of(kind) == head_of(wanted):
        return bool(kind) or None
    simple = kind in ("int", "float", "str", "bool", "bytes")
    if kind == "None" or (kind == "int" and types.is_kind("float", wanted)):
        return None
    return False if simple or wanted.lower() in _PLAIN else None


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function except those of functions and classes within it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own(child)


def _values(value: ast.expr | None, known: dict[str, str]) -> Values | None:
    if isinstance(value, ast.Tuple):
        return [_type_of(each, known) for each in value.elts]
    if value is None:
        return []
    kind = _type_of(value, known)
    return [kind] if kind else None


def _variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """The types of a function's variables; empty for those that are unknown, or have several."""
    arguments = function.args
    known = {
        each.arg: ast.unparse(each.annotation) if each.annotation else ""
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    for node in _own(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _note(known, target, _type_of(node.value, known))
        elif isinstance(node, ast.AnnAssign):
            _note(known, node.target, ast.unparse(node.annotation))
        elif isinstance(node, ast.AugAssign):
            kind = _type_of(ast.BinOp(ast.Name(getattr(node.target, "id", "")), node.op, node.value), known)
            _note(known, node.target, kind)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            _note(known, node.target, "")
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _note(known, node.optional_vars, "")
    return known


def _note(known: dict[str, str], target: ast.expr, kind: str) -> None:
    if isinstance(target, ast.Name):
        before = known.get(target.id, kind)
        lists = before.startswith("list") and kind.startswith("list")
        known[target.id] = kind if before == kind else "list" if lists else ""
    elif isinstance(target, ast.Tuple | ast.List | ast.Starred):
        for child in ast.iter_child_nodes(target):
            if isinstance(child, ast.expr):
                _note(known, child, "")


def _type_of(node: ast.expr, known: dict[str, str]) -> str:
    """The type of an expression as it would be written; empty if it is unknown."""
    kind = _LITERALS.get(type(node), "")
    match node:
        case ast.Constant(value=value):
            kind = "None" if value is None else type(value).__name__
        case ast.Name(id=name):
            kind = known.get(name, "")
        case ast.List(elts=[first, *_]) | ast.ListComp(elt=first):
            inner = _type_of(first, known)
            kind = f"list[{inner}]" if inner else "list"
        case ast.UnaryOp(op=op, operand=operand):
            kind = "bool" if isinstance(op, ast.Not) else _type_of(operand, known)
        case ast.IfExp(body=body, orelse=other):
            kind = _common(_type_of(body, known), _type_of(other, known))
        case ast.BoolOp(values=values):
            kind = _common(*(_type_of(each, known) for each in values))
        case ast.BinOp(left=left, op=op, right=right):
            kind = _computed(_type_of(left, known), op, _type_of(right, known))
        case ast.Call(func=function):
            kind = _called(function, node, known)
    return kind


def _common(*kinds: str) -> str:
    return kinds[0] if len(set(kinds)) == 1 else ""


def _computed(left: str, op: ast.operator, right: str) -> str:
    if isinstance(op, ast.Div) or "float" in (left, right):
        return "float" if {left, right} <= {"int", "float", "", "bool"} else ""
    if left == "str" and isinstance(op, ast.Mod):
        return "str"
    return left if left == right or (left and left.startswith("list") and right.startswith("list")) else ""


def _called(function: ast.expr, call: ast.Call, known: dict[str, str]) -> str:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "round":
        return "float" if len(call.args) > 1 else "int"
    if name == "copy" and isinstance(function, ast.Attribute):
        return _type_of(function.value, known)
    if name in _METHODS_ONLY and not isinstance(function, ast.Attribute):
        return ""
    return name if name[:1].isupper() else _CALLS.get(name, "")
