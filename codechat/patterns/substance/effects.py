"""What evaluating an expression may do besides giving a value, as far as that can be told by reading."""

import ast
import re
from collections.abc import Iterable
from fnmatch import translate

from codechat.languages.python.syntax import parameters
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import FUNCTIONS, Function, walk

_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_WITHOUT_EFFECT = """
    abs all any bin bool bytes chr dict divmod enumerate filter float format frozenset hash hex id int isinstance iter
    len list map max min object ord pow range repr reversed round set sorted str sum tuple type zip
    bisect.bisect* collections.* copy.* functools.partial functools.reduce heapq.merge heapq.nlargest heapq.nsmallest
    io.StringIO itertools.* math.* operator.* re.* statistics.* string.* threading.Lock threading.RLock
    .copy .count .endswith .find .format .fromkeys .get .index .isalpha .isdigit .islower .isupper .items .join .keys
    .lower .most_common .replace .split .startswith .strip .title .upper .values
"""
_EFFECTS = (ast.Global, ast.Nonlocal, ast.Raise, ast.Assert, ast.Delete, ast.Import, ast.ImportFrom)
_PLAIN = {"object", "dataclasses.dataclass", "typing.NamedTuple", "typing.Protocol", "abc.ABC", "typing.Generic"}
_MAKING = ("__init__", "__new__", "__post_init__")
FILLING = {
    "append", "appendleft", "add", "extend", "extendleft", "update", "insert", "write", "writelines",
    "clear", "sort", "reverse", "remove", "discard", "rotate", "subtract", "setdefault",
}  # fmt: skip
_is_without_effect = re.compile("|".join(map(translate, _WITHOUT_EFFECT.split()))).match


def acts(code: Code, value: ast.expr) -> bool:
    """Whether evaluating it may do anything but give a value. A lambda's body waits for its call."""
    if isinstance(value, ast.Lambda):
        return False
    for node in walk(value):
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return True
        if isinstance(node, ast.Call) and not _only_computes(code, node.func):
            return True
    return False


def _only_computes(code: Code, called: ast.expr) -> bool:
    """Whether a call does nothing but give a value: of what is known to, or of a function or class of the program."""
    if _is_without_effect(code.origin(called)):
        return True
    value = code.values.get(called.id) if isinstance(called, ast.Name) else None
    if isinstance(value, ast.Lambda):
        return _is_quiet(code, value, [value.body])
    own = [one for one in code.find(*_DEFINITIONS) if one.name == called.id] if isinstance(called, ast.Name) else []
    return len(own) == 1 and _is_pure(code, own[0])


def _is_quiet(code: Code, key: ast.AST, parts: Iterable[ast.expr]) -> bool:
    """Whether none of the parts acts; while they are looked at, they are taken for such that do not."""
    found = (_is_quiet, key)
    if found not in code.found:
        code.found[found] = True
        code.found[found] = not any(acts(code, one) for one in parts)
    return bool(code.found[found])


def _is_pure(code: Code, definition: Function | ast.ClassDef) -> bool:
    """Whether a call of the definition changes nothing outside and raises nothing on purpose, as far as it is read.

    While a definition is looked at, it is taken for one that does, so that recursion ends.
    """
    key = (_is_pure, definition)
    if key not in code.found:
        code.found[key] = True
        own, taken = "", list[str]()
        plain = not definition.decorator_list
        if isinstance(definition, ast.ClassDef):
            own = "self"
            heads = [getattr(one, "func", one) for one in definition.decorator_list]
            plain = {code.origin(one) for one in [*heads, *definition.bases]} <= _PLAIN and not definition.keywords
            made = [one for one in definition.body if getattr(one, "name", "") in _MAKING]
            nodes = [node for one in made for node in walk(one)]
        else:
            nodes = [node for one in definition.body for node in walk(one)]
            taken = [one.arg for one in parameters(definition)]
        stores = ast.Subscript | ast.Attribute
        effects = [
            node for node in nodes
            if isinstance(node, _EFFECTS)
            or (isinstance(node, ast.Call) and not _only_computes(code, node.func))
            or (isinstance(node, stores) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != own)
            or (isinstance(node, ast.AugAssign) and ast.unparse(node.target) in taken)
        ]  # fmt: skip
        code.found[key] = plain and not effects
    return bool(code.found[key])


def keeps_to_itself(code: Code, definition: ast.ClassDef) -> bool:
    """Whether no method of a class does anything but change its own objects and give values."""
    key = (keeps_to_itself, definition)
    if key not in code.found:
        methods = {one.name for one in definition.body if isinstance(one, FUNCTIONS)} | {definition.name}
        code.found[key] = {code.origin(one) for one in definition.bases} <= _PLAIN and not any(
            isinstance(node, (ast.Global, ast.Nonlocal, ast.Import, ast.Yield))
            or (isinstance(node, ast.Call) and not _is_own(code, node.func, methods) and not _is_on_self(node))
            for node in walk(definition)
        )
    return bool(code.found[key])


def _is_on_self(call: ast.Call) -> bool:
    """`setattr(self, …)` and `getattr(self, …)`."""
    head = getattr(call.func, "id", "")
    return head in ("setattr", "getattr") and bool(call.args) and ast.unparse(call.args[0]) == "self"


def _is_own(code: Code, called: ast.expr, methods: set[str]) -> bool:
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in methods or name in FILLING or bool(_is_without_effect(code.origin(called)))


def asks_outside(code: Code, node: ast.AST) -> bool:
    """Whether a node asks chance, the clock, a file or the system, or prints."""
    origin = code.origin(node.func) if isinstance(node, ast.Call) else ""
    return origin.startswith(_CHANGEFUL) or origin in _OUTSIDE


_CHANGEFUL = ("random.", "secrets.", "uuid.", "time.", "datetime.", "os.")
_OUTSIDE = ("open", "input", "print", ".read", ".readline", ".write")
