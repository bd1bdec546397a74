"""Whether code could tell how a program is written, and not only what it does. Strict: what is not known to be blind
is taken to see.

A program may be written with other comments, lines, docstrings, annotations of functions and local names. What tells
these is reached by way of modules, of names with two underscores, of frames and code objects, or of a name that is put
together at run time. So only modules and special names that are listed here are let through, none of them as a value
that could be passed on, and nothing that takes the name of an attribute as a text. docs/sandbox.md lists it all.
"""

import ast
import re
import sys
import types
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from codechat.languages.python.bases import bases_that_tell, renamed_field
from codechat.languages.python.nodes import GENERIC, PLAIN, Node, Nodes

MODULES = frozenset(
    {
        *("__future__", "abc", "bisect", "cmath", "collections", "collections.abc", "copy", "dataclasses", "decimal"),
        *("fractions", "functools", "hashlib", "heapq", "itertools", "logging", "math", "numbers", "operator", "re"),
        *("statistics", "string", "sys", "textwrap", "threading", "time", "typing", "unicodedata"),
    }
)
"""Modules that a program may import: nothing in them tells how it is written, but for `REVEALING`."""
LOGGED = frozenset({"critical", "debug", "error", "exception", "info", "log", "warning"})
"""Methods of a logger that may be called, where it is asked for: what they write is never read."""
OF_MODULES = {
    "sys": frozenset({"float_info", "maxsize", "maxunicode", "setrecursionlimit"}),
    "logging": LOGGED | {"CRITICAL", "DEBUG", "ERROR", "INFO", "WARNING", "getLogger"},
    "threading": frozenset({"Lock", "RLock"}),
    "time": frozenset({"monotonic", "perf_counter", "process_time", "time"}),
    "unittest": frozenset({"TestCase", "main"}),  # of tests alone
}
"""All that may be used of these modules."""

BUILTINS = frozenset(
    {"breakpoint", "compile", "dir", "eval", "exec", "globals", "help", "id", "input", "locals", "open", "vars"}
)
"""Built-in functions that must not be named; an attribute may have such a name (`re.compile`)."""
REVEALING = frozenset(
    {
        *("ABCMeta", "ForwardRef", "Formatter", "_eval_type", "_evaluate", "assertLogs", "attrgetter"),
        *("dispatch_table", "format_map", "lineno"),
        *(
            "get_args",
            "get_origin",
            "get_overloads",
            "get_type_hints",
            "make_dataclass",
            "methodcaller",
            "mock",
            "mro",
            "patch",
        ),
        *("singledispatch", "singledispatchmethod", "update_wrapper"),
    }
)
"""Names that must not occur at all: they read documentation or annotations, run a text as code, read attributes by a
text, set attributes by a text, make classes that are told what others read, or tell lines."""
_INNER = (
    *(types.CodeType, types.FrameType, types.TracebackType),
    *(types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType),
)
FRAMES = frozenset(name for kind in _INNER for name in dir(kind) if re.match(r"(co|f|tb|gi|cr|ag)_", name))
"""Attributes of code objects, frames, tracebacks and generators."""

_OPERATORS = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "xor"),
    "or",
)
SPECIAL = frozenset(
    f"__{name}__"
    for name in (
        *("abs", "all", "bool", "bytes", "call", "ceil", "complex", "contains", "debug", "delitem", "eq", "float"),
        *("floor", "format", "future", "ge", "getitem", "gt", "hash", "index", "init", "int", "invert", "iter", "le"),
        *("len", "lt", "main", "missing", "name", "ne", "neg", "next", "pos", "post_init", "repr", "reversed", "round"),
        *("setitem", "str", "trunc"),
        *(f"{prefix}{name}" for name in _OPERATORS for prefix in ("", "r", "i")),
    )
)
"""Names with two underscores that may occur, beside `__class__` where only its name is asked for."""

TYPES = PLAIN | GENERIC
_SAME_NAME = frozenset({"bisect.bisect", "copy.copy", "time.time"})
_BY_NAME = frozenset({"delattr", "getattr", "hasattr", "setattr"})
_NAMED_FIELD = re.compile(r"\{\w*(?:![rsa])?(?::[^{}\[\].]*(?:\.\d*[a-zA-Z%]?)?)?\}")
_OBJECTS = ("self", "cls")


def observes(code: Nodes, modules: frozenset[str] = frozenset()) -> str:
    """What in some code might tell how a program is written; empty if nothing might. It may import further modules."""
    for name in sorted(code.identifiers):
        if _tells(name):
            return name
    imported: dict[str, str] = {}
    for each in code.of(ast.Import, ast.ImportFrom):
        if problem := _import(each, MODULES | modules, imported):
            return problem
    look = _Look(imported, code.bound)
    return next(filter(None, map(look.at, code.nodes)), "") or bases_that_tell(code, imported) or renamed_field(code)


def _tells(name: str) -> bool:
    """Whether an identifier must not occur."""
    if name in REVEALING or name in FRAMES:
        return True
    return name.startswith("__") and name.endswith("__") and name not in SPECIAL and name != "__class__"


def _import(each: Node, allowed: frozenset[str], modules: dict[str, str]) -> str:
    """What is imported that must not be; otherwise the modules are added by the names that they have in the code."""
    node = each.node
    if not isinstance(each.parent, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
        return "import within a class or a statement"
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name not in allowed or "." in alias.name or modules.get(name, alias.name) != alias.name:
                return f"import {alias.name}"
            modules[name] = alias.name
    elif isinstance(node, ast.ImportFrom):
        if node.level or node.module not in allowed - {"logging"}:
            return f"from {'.' * node.level}{node.module or ''} import"
        for alias in node.names:
            if not _may_take(node.module or "", alias.name) or (alias.name == "wraps" and alias.asname):
                return f"from {node.module} import {alias.name}"
    return ""


def _may_take(module: str, name: str) -> bool:
    """Whether a module's name may be used: nothing private, no module within a module."""
    if module in OF_MODULES:
        return name in OF_MODULES[module]
    if module == "__future__":
        return True
    return not name.startswith(("_", "*")) and (name not in sys.stdlib_module_names or f"{module}.{name}" in _SAME_NAME)


def _is_hidden(name: str) -> bool:
    """Whether an attribute that is named by a text or in a pattern is one of those that are looked at elsewhere."""
    return _tells(name) or name in ("format", "wraps", "__class__") or (name[:1] == "_" and name not in SPECIAL)


def _is_module(name: str) -> bool:
    """Whether an attribute might be a module that is not let through."""
    bare = name.lstrip("_")
    return bare in sys.stdlib_module_names and bare not in MODULES


def _is_called(node: ast.AST, parent: ast.AST) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node


@dataclass(frozen=True, slots=True)
class _Look:
    """Looks at nodes: `modules` by the names that they have in the code, which binds the names `bound`."""

    modules: Mapping[str, str]
    bound: Counter[str]

    def at(self, each: Node) -> str:
        """What a node might tell; empty for nothing."""
        node = each.node
        if isinstance(node, ast.Name):
            return "" if self._name(node, each) else node.id
        if isinstance(node, ast.Attribute):
            return "" if self._attribute(node, each) else f".{node.attr}"
        if isinstance(node, ast.Call):
            return "" if self._call(node, each) else "type(…), getLogger(…) or wraps(…)"
        if isinstance(node, ast.ClassDef) and node.keywords:
            return "class …(metaclass=…)"
        if isinstance(node, ast.MatchClass) and any(_is_hidden(name) or _is_module(name) for name in node.kwd_attrs):
            return "case …(…=…)"
        generic = getattr(node, "type_params", None) or type(node).__name__ == "TypeAlias"
        return "type parameters" if generic else ""

    def _name(self, node: ast.Name, each: Node) -> bool:
        """Whether a name is used in a way that tells nothing: a module only to take something from it, and so on."""
        parent = each.parent
        if node.id in self.modules:
            taken = isinstance(parent, ast.Attribute) and isinstance(node.ctx, ast.Load)
            return taken and _may_take(self.modules[node.id], getattr(parent, "attr", ""))
        if node.id in _BY_NAME:
            return isinstance(parent, ast.Call) and parent.func is node and _constant_attribute(parent)
        if node.id in ("type", "wraps"):
            return _is_called(node, parent)
        return node.id != "__class__" and node.id not in BUILTINS

    def _attribute(self, node: ast.Attribute, each: Node) -> bool:
        if node.attr == "__class__":
            return self._only_told(each)
        if node.attr == "format":
            return _plain_format(node, each.parent)
        if node.attr in ("getLogger", "wraps"):
            return _is_called(node, each.parent)
        base = node.value
        if isinstance(base, ast.Name) and base.id in self.modules:
            return isinstance(node.ctx, ast.Load)  # its name was looked at
        own = isinstance(base, ast.Name) and base.id in _OBJECTS
        return not _is_module(node.attr) and (node.attr[:1] != "_" or node.attr in SPECIAL or own)

    def _call(self, call: ast.Call, each: Node) -> bool:
        named = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        plain = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
        if named == "type" and isinstance(call.func, ast.Name):
            return plain and self._only_told(each)
        if named == "getLogger":
            return getattr(each.parent, "attr", "") in LOGGED and _is_called(each.parent, each.grandparent)
        if named == "wraps":
            decorated = each.parent if isinstance(each.parent, ast.FunctionDef | ast.AsyncFunctionDef) else None
            return plain and decorated is not None and decorated.decorator_list[-1:] == [call]
        return True

    def _only_told(self, each: Node) -> bool:
        """Whether a class is only named, or compared with a built-in one: elsewhere it might make further classes."""
        parent = each.parent
        if isinstance(parent, ast.Attribute):
            return parent.attr == "__name__"
        if not isinstance(parent, ast.Compare):
            return False
        if all(isinstance(one, ast.Is | ast.IsNot) for one in parent.ops):
            return True
        others = [one for one in (parent.left, *parent.comparators) if one is not each.node]
        return all(isinstance(one, ast.Name) and one.id in TYPES and not self.bound[one.id] for one in others)


def _constant_attribute(call: ast.Call) -> bool:
    """Whether `getattr` and the like get the attribute as a plain text that tells nothing."""
    if call.keywords or len(call.args) < 2 or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    name = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
    return isinstance(name, str) and not _is_hidden(name) and not _is_module(name)


def _plain_format(node: ast.Attribute, parent: ast.AST) -> bool:
    """Whether it is the method of a written text whose fields name no attribute and no item."""
    text = node.value.value if isinstance(node.value, ast.Constant) else None
    if not isinstance(text, str) or not _is_called(node, parent):
        return False
    if "{{" in text or "}}" in text:
        return "." not in text and "[" not in text
    left = _NAMED_FIELD.sub("", text)
    return "{" not in left and "}" not in left
