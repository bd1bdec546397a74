"""The constructs of a test snippet that decide where it can run: beside the program, or in a process of its own."""

import ast
from dataclasses import dataclass

# Modules that neither reach out of the process nor see what a program does in it.
PURE = frozenset(
    (
        *("__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "codecs"),
        *("collections", "colorsys", "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib", "enum"),
        *("fractions", "functools", "hashlib", "heapq", "html", "inspect", "itertools", "json", "keyword", "math"),
        *("mccabe", "numbers", "numpy", "operator", "pycodestyle", "pytest", "radon", "re", "statistics", "string"),
        *("struct", "textwrap", "token", "tokenize", "types", "typing", "unicodedata", "unittest", "uuid"),
    )
)
HARMLESS = {"sys": {"maxsize", "float_info", "int_info", "version_info"}}
WORLD = frozenset(("open", "input", "breakpoint"))
EXECUTES = frozenset(("exec", "eval", "__import__", "compile_command", "runpy", "importlib", "pickle", "doctest"))
PATCHES = frozenset(("mock", "patch", "Mock", "MagicMock", "AsyncMock", "monkeypatch", "sentinel", "create_autospec"))
OWN_STATE = frozenset(("globals", "locals", "vars", "id", "setattr", "delattr"))
OF_THE_OBJECT = frozenset(
    (
        *("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__", "__dict__", "__wrapped__"),
        *("__cause__", "__context__", "__traceback__", "__class__", "__bases__", "__subclasses__", "__mro__"),
        *("cache_info", "cache_clear", "tb_frame", "f_locals", "f_back", "f_globals"),
    )
)
SHARING = {
    "mocks and patches": PATCHES,
    "code that is made at run time": EXECUTES,
    "the state of the interpreter": OWN_STATE,
    "the function as an object": OF_THE_OBJECT,
}
ANNOTATIONS = frozenset(("__annotations__", "get_type_hints", "get_annotations"))
SIGNATURE = frozenset(("signature", "getfullargspec", "Signature"))
DOC = frozenset(("__doc__", "getdoc"))
SINGLE = (None, True, False, ...)


@dataclass(frozen=True)
class Constructs:
    """`inside`: why a snippet must share the program's process, or None; `world`: what it uses that is not carried
    between processes, so that it must not call the program; `reads`: what it reads of the program's text."""

    inside: str | None = None
    world: str = ""
    reads: frozenset[str] = frozenset()


def find_constructs(snippet: str) -> Constructs:
    """The constructs of a snippet; one that does not parse has none."""
    try:
        tree = ast.parse(snippet)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Constructs()
    inside, world, reads = "", "", set[str]()
    for node in ast.walk(tree):
        inside = inside or _inside(node)
        world = world or _world(node)
        reads |= _reads(node)
    return Constructs(inside or None, world, frozenset(reads))


def _names(node: ast.AST) -> tuple[str, ...]:
    """The names that a node uses."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, ast.alias):
        return tuple(node.name.split("."))
    if isinstance(node, ast.ImportFrom):
        return tuple((node.module or "").split("."))
    return ()


def _inside(node: ast.AST) -> str:
    for name in _names(node):
        for construct, names in SHARING.items():
            if name in names:
                return f"{construct} ({name})"
    if isinstance(node, ast.Compare) and any(isinstance(one, ast.Is | ast.IsNot) for one in node.ops):
        sides = [node.left, *node.comparators]
        if not any(isinstance(side, ast.Constant) and side.value in SINGLE for side in sides):
            return "the identity of objects (is)"
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "type" and len(node.args) == 3:
        return "classes that are made at run time"
    return ""


def _world(node: ast.AST) -> str:
    if isinstance(node, ast.Import):
        strange = [alias.name for alias in node.names if alias.name.partition(".")[0] not in (*PURE, *HARMLESS)]
        return strange[0] if strange else ""
    if isinstance(node, ast.ImportFrom):
        root = (node.module or "").partition(".")[0]
        return "" if root in PURE else root or "a relative import"
    if isinstance(node, ast.Name) and node.id in WORLD:
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in HARMLESS:
        return "" if node.attr in HARMLESS[node.value.id] else f"{node.value.id}.{node.attr}"
    return ""


def _reads(node: ast.AST) -> set[str]:
    found = set[str]()
    for name in _names(node):
        if name in ANNOTATIONS:
            found.add("annotations")
        if name in SIGNATURE:
            found |= {"annotations", "signature"}
        if name in DOC:
            found.add("doc")
        if name == "inspect":
            found.add("source")
    return found
