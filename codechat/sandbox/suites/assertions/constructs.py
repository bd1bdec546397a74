"""The constructs of a test snippet that decide where it can run: in the program's process, or in another."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Modules that neither reach out of the process nor see what a program does in it.
PURE = _words("""
    __future__ abc array ast base64 binascii bisect calendar cmath codecs collections colorsys contextlib copy
    dataclasses datetime decimal difflib enum fractions functools hashlib heapq html inspect itertools json keyword math
    mccabe numbers numpy operator pycodestyle pytest radon re statistics string struct textwrap token tokenize types
    typing unicodedata unittest uuid
""")
HARMLESS = {"sys": {"maxsize", "float_info", "int_info", "version_info"}}
WORLD = _words("open input breakpoint")
EXECUTES = _words("exec eval __import__ compile_command runpy importlib pickle doctest")
PATCHES = _words("mock patch Mock MagicMock AsyncMock monkeypatch sentinel create_autospec")
OWN_STATE = _words("globals locals vars id setattr delattr")
OF_THE_OBJECT = _words("""
    __code__ __defaults__ __kwdefaults__ __closure__ __globals__ __dict__ __wrapped__ __cause__ __context__
    __traceback__ __class__ __bases__ __subclasses__ __mro__ cache_info cache_clear tb_frame f_locals f_back f_globals
""")
SHARING = {
    "mocks and patches": PATCHES,
    "code that is made at run time": EXECUTES,
    "the state of the interpreter": OWN_STATE,
    "the function as an object": OF_THE_OBJECT,
}
# The same for modules and their members, by names that a snippet may well give its own variables.
MEMBERS = {
    "processes that it starts": _words("popen system posix_spawn execv fork"),
    "the compiled function": _words("getcallargs getclosurevars"),
    "warnings, logs and what is printed": _words("""
        assertWarns assertWarnsRegex assertLogs assertNoLogs warns deprecated_call redirect_stdout redirect_stderr
    """),
    "settings of the interpreter": _words("""
        getcontext setcontext localcontext seterr errstate set_printoptions printoptions seed environ putenv chdir umask
        setlocale tzset setrecursionlimit set_int_max_str_digits simplefilter filterwarnings basicConfig settrace
        setprofile meta_path path_hooks modules
    """),
    "a generator that is driven": _words("send throw gi_frame gi_running getgeneratorstate"),
    "the identity of objects": _words("is_ is_not"),
    "the program as a module": _words("getmodule getmembers"),
}
# And for modules alone, by their names in imports.
MODULES = {
    "the program as a module": _words("candidate program"),
    "code that is made at run time": _words("""
        marshal shelve code codeop pkgutil zipimport timeit cProfile profile pdb trace
    """),
    "processes that it starts": _words("subprocess multiprocessing pty"),
    "the compiled function": _words("dis opcode pydoc"),
    "settings of the interpreter": _words("builtins"),
}
KINDS_OF_FUNCTION = _words("""
    iscoroutinefunction isgeneratorfunction isasyncgenfunction isfunction ismethod isroutine isbuiltin callable
    FunctionType LambdaType MethodType BuiltinFunctionType
""")
SAME = _words("assertIs assertIsNot")
ANNOTATIONS = _words("__annotations__ get_type_hints get_annotations")
SIGNATURE = _words("signature getfullargspec Signature")
DOC = _words("__doc__ getdoc")
READS = {
    "annotations": ANNOTATIONS | SIGNATURE,
    "signature": SIGNATURE,
    "doc": DOC,
    "definition": KINDS_OF_FUNCTION,
    "source": {"inspect"},
}
STOPS = _words("StopIteration StopAsyncIteration")
ITERATES = _words("map filter iter itertools __next__ __anext__")  # what ends if a call raises those
ARRAYS = ("none", "values", "types")
TYPES_OF_NUMBERS = _words("""
    dtype itemsize nbytes view tobytes result_type can_cast issubdtype finfo iinfo half single longdouble byte ubyte
    short ushort intc uintc uint csingle
""") | {f"{kind}{bits}" for kind in ("int", "uint", "float", "complex") for bits in (8, 16, 32, 64, 128)}
SINGLE = (None, True, False, ...)
# Attributes that a stub has as the program's function has them.
KNOWN = _words("__name__ __qualname__ __module__ __doc__ __annotations__ __call__ __signature__ __get__")


@dataclass(frozen=True)
class Constructs:
    """The constructs of a snippet by their consequence.

    `inside`: why the snippet must share the program's process, or None. `world`: things that are not carried between
    processes; such a snippet must not call the program. `reads`: the parts of the program's text that it reads.
    `attributes`: names with looked-up attributes that a stub lacks. `stops`: whether it names the exception that ends
    iterators. `arrays`: how it reads arrays, see `carry.Reads`.
    """

    inside: str | None = None
    world: str = ""
    reads: frozenset[str] = frozenset()
    attributes: frozenset[tuple[str, str]] = frozenset()
    stops: bool = False
    arrays: str = "none"


def find_all(snippets: Sequence[str]) -> tuple[Constructs, ...]:
    """The constructs of consecutive snippets. A snippet that uses a name of an earlier one which reaches out of the
    process does so, too."""
    found, reaching = [], dict[str, str]()
    for snippet in snippets:
        constructs = find_constructs(snippet)
        tree = _parse(snippet)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        world = constructs.world or next((reaching[name] for name in sorted(used) if name in reaching), "")
        if world:
            reaching |= dict.fromkeys(_bound(tree), world)
        found.append(replace(constructs, world=world))
    return tuple(found)


def describe_all(constructs: Sequence[Constructs]) -> dict[str, Any]:
    """The data about all snippets that the tester in the sandbox needs, as plain values."""
    attributes: dict[str, list[str]] = {}
    for name, attribute in sorted(set[tuple[str, str]]().union(*(snippet.attributes for snippet in constructs))):
        attributes.setdefault(name, []).append(attribute)
    return {
        "reads": tuple(sorted(set[str]().union(*(snippet.reads for snippet in constructs)))),
        "world": [snippet.world for snippet in constructs],
        "attributes": attributes,
        "stops": any(snippet.stops for snippet in constructs),
        "arrays": max((snippet.arrays for snippet in constructs), key=ARRAYS.index),
    }


def find_constructs(snippet: str) -> Constructs:
    """The constructs of a snippet; one that does not parse has none."""
    inside, world, reads, attributes = "", "", set[str](), set[tuple[str, str]]()
    names = set[str]()
    for node in ast.walk(_parse(snippet)):
        inside = inside or _inside(node)
        world = world or _world(node)
        reads |= _reads(node)
        attributes |= set(_attributes(node))
        names.update(_names(node), [node.name] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else [])
    stops = not names.isdisjoint(STOPS)
    if stops and not names.isdisjoint(ITERATES):
        inside = inside or "the end of iterators that call functions"
    arrays = "values" if names.isdisjoint(TYPES_OF_NUMBERS) else "types"
    arrays = "none" if names.isdisjoint(("numpy", "np")) else arrays
    return Constructs(inside or None, world, frozenset(reads), frozenset(attributes), stops, arrays)


def _parse(snippet: str) -> ast.Module:
    try:
        return ast.parse(snippet)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names by which later snippets would reach out, too: definitions, and imports of modules not listed here."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            yield from (name.id for name in names if isinstance(name.ctx, ast.Store))
        elif isinstance(node, ast.Import | ast.ImportFrom) and _world(node):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)


def _attributes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names with the attributes that are looked up on them, if a stub lacks these."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr not in KNOWN:
        yield node.value.id, node.attr
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("hasattr", "getattr") and len(node.args) > 1:
        one, attribute = node.args[:2]
        if isinstance(one, ast.Name):
            name = attribute.value if isinstance(attribute, ast.Constant) else ast.unparse(attribute)
            if name not in KNOWN:
                yield one.id, str(name)


def _names(node: ast.AST) -> tuple[str, ...]:
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
    names = _names(node)
    members = () if isinstance(node, ast.Name) else names  # names of modules and of members
    for sets, used in ((SHARING, names), (MEMBERS, members)):
        for construct, known in sets.items():
            for name in used:
                if name in known:
                    return f"{construct} ({name})"
    return _identity(node) or _made(node)


def _identity(node: ast.AST) -> str:
    """The construct, if a node compares the identity of objects other than `None`, `True` and the like."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare) and any(isinstance(operation, ast.Is | ast.IsNot) for operation in node.ops):
        sides = [node.left, *node.comparators]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME:
        sides = node.args[:2] or [node.func]
    if not sides or any(isinstance(side, ast.Constant) and side.value in SINGLE for side in sides):
        return ""
    return "the identity of objects (is)"


def _made(node: ast.AST) -> str:
    """The construct, if a node makes code or classes, or has the interpreter find modules."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        roots = {name.partition(".")[0] for name in names}
        found = (f"{construct} ({min(roots & known)})" for construct, known in MODULES.items() if roots & known)
        return next(found, "")
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "type" and len(node.args) == 3:
        return "classes that are made at run time"
    if isinstance(node, ast.Name) and node.id == "compile":
        return "code that is made at run time (compile)"
    if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path":
        return "settings of the interpreter (sys.path)"
    return ""


def _world(node: ast.AST) -> str:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] not in PURE and not (alias.name in HARMLESS and alias.asname is None):
                return alias.name
        return ""
    if isinstance(node, ast.ImportFrom):
        root = (node.module or "").partition(".")[0]
        return "" if root in PURE else root or "a relative import"
    if isinstance(node, ast.Name) and node.id in WORLD:
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in HARMLESS:
        return "" if node.attr in HARMLESS[node.value.id] else f"{node.value.id}.{node.attr}"
    return ""


def _reads(node: ast.AST) -> set[str]:
    names = set(_names(node))
    found = {part for part, known in READS.items() if names & known}
    if isinstance(node, ast.Attribute) and node.attr in ("__name__", "__qualname__"):
        found.add("definition")
    return found
