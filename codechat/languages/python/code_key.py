"""Whether two programs compile to the same code, by a hash of their syntax trees without line numbers and columns.

Comments and layout are no part of the tree. Everything else is, so programs of one hash have equal code objects but
for the numbers of lines and columns in them: docstrings, annotations and names of local variables are equal too, and
so are constants with their types and signs. The compiler itself is not asked: its time doubles with each nested
`finally`, and on real dialogues it finds no equal programs that the tree does not show.

Line numbers may still tell two such programs apart, and so may the source text, and the addresses of objects, which
differ with the length of a comment: a function's hash and text contain one, and a set of functions, objects or NaNs is
ordered by them. A program that names something by which a program could read any of these has no hash, and is tested on
its own. The check is coarse: it looks at names, and at places of functions and iterators, alone and refuses many
harmless programs. A program that puts such a name together at run time passes it, and gains nothing:
it shares its verdict with no code but its own.
"""

import ast
import builtins
import hashlib
import marshal
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from codechat.languages.python.syntax import tree_of

MODULES = frozenset(
    {
        *("__future__", "abc", "bisect", "cmath", "collections", "collections.abc", "copy", "dataclasses", "decimal"),
        *("enum", "fractions", "functools", "hashlib", "heapq", "itertools", "logging", "math", "numbers", "operator"),
        *("re", "statistics", "string", "textwrap", "time", "typing", "unicodedata"),
    }
)
"""Modules that a program with a hash may import."""
_OTHERS = sys.stdlib_module_names - MODULES  # that one of these modules may have imported: `dataclasses.inspect`
_REVEALING = re.compile(
    "breakpoint|dir|eval|exec|getattr|globals|hash|help|id|locals|open|setattr|vars"
    "|attrgetter|ForwardRef|format|format_map|Formatter|get_type_hints|methodcaller|singledispatch|singledispatchmethod"
    "|addFilter|addHandler|basicConfig|findCaller|lineno|setLoggerClass|setLogRecordFactory"
    r"|(?:ag|cr|gi|tb)_\w+"
    "|__(?!(?:abs|add|all|and|annotations|bool|call|class|contains|debug|delitem|doc|eq|float|floordiv|future|ge"
    "|getitem|gt|iadd|init|int|iter|le|len|lt|main|mod|mul|name|ne|neg|next|or|pos|post_init|pow|radd|repr"
    r"|reversed|rmul|round|rsub|rtruediv|setitem|slots|str|sub|truediv|xor)__)\w*__"
)
"""Names by which a program might come to its frames, code objects, tracebacks, log records or text; of the names with
two underscores, all but the listed ones."""
_SHOWING = frozenset(
    {"ascii", "frozenset", "logging", "print", "repr", "set", "str", "Template", "__repr__", "__str__"}
)
_HOLDING = frozenset({"NaN", "NewType", "TypeVar", "inf", "infinity", "namedtuple", "nan", "object", "partial"})
_SHOWN = (ast.Set, ast.SetComp, ast.JoinedStr, ast.Mod)
_HELD = (ast.ClassDef, ast.AsyncFunctionDef, ast.Await, ast.Yield, ast.YieldFrom)
_CALLING = frozenset(("accumulate", "defaultdict", "filter", "groupby", "map", "reduce", "starmap", "wraps"))
"""Functions that take a function or a class, and neither give it back nor show it."""
_ITERATORS = _CALLING | {"chain", "enumerate", "islice", "iter", "product", "reversed", "zip"}
_READING = (
    _ITERATORS
    | frozenset(("all", "any", "Counter", "deque", "dict", "extend", "frozenset", "join", "list", "max"))
    | (frozenset(("min", "next", "set", "sort", "sorted", "sum", "tuple", "update")))
)
"""Functions that read an iterator."""
_TAKEN: dict[type, tuple[str, ...]] = {
    ast.For: ("iter",),
    ast.comprehension: ("iter",),
    ast.Attribute: ("value",),
    ast.Call: ("func",),
    ast.Raise: ("exc",),
    ast.ExceptHandler: ("type",),
    ast.FunctionDef: ("decorator_list",),
    ast.Starred: ("value",),
}
"""The places at which a function or an iterator is used up."""
_PLAIN = frozenset(
    {"args", "denominator", "e", "imag", "numerator", "pi", "real", "tau", "__class__", "__doc__", "__name__"}
)
_CALLABLE = frozenset(name for name, value in vars(builtins).items() if callable(value))


def _fields_of(kind: type[ast.AST]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads the fields that are hashed: a context follows from the node above, a constant is written apart."""
    names = [] if kind is ast.Constant else [name for name in kind._fields if name != "ctx"]
    if len(names) == 1:
        names.append("_fields")  # the same for each node of a kind: a getter of one name would give no tuple
    return attrgetter(*names) if names else lambda _: ()


_KINDS = {
    kind: (number, _fields_of(kind))
    for number, kind in enumerate(vars(ast).values())
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


@lru_cache(maxsize=4096)
def code_key(program: str, also: frozenset[str] = frozenset()) -> str | None:
    """See `codechat.languages.ComparesCode`; the program may import the modules `also`."""
    try:
        tree = tree_of(program.removesuffix("\n"))  # as the text that the program was made of, whose tree is known
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None
    found: list[Any] = []  # all of the tree in one order: each node's kind, each list's length, each name
    constants: list[Any] = []
    modules: set[str] = set()
    parts: list[Any] = [tree]
    for part in parts:
        kind = type(part)
        if kind is list:
            found.append(len(part))
            parts += part
        elif kind in _KINDS:
            number, fields = _KINDS[kind]
            found.append(number)
            parts += fields(part)
            if kind is ast.Constant:
                constants += (type(part.value).__name__, part.value)
            elif kind is ast.Import or kind is ast.ImportFrom:
                modules |= _imported(part)
        else:
            found.append(part)
    names = {part for part in found if type(part) is str}
    if not modules <= MODULES | also or any(map(_REVEALING.fullmatch, names)):
        return None
    if not _OTHERS.isdisjoint({name.lstrip("_") for name in names} - also) or _shows_addresses(tree, names):
        return None
    return hashlib.sha256(marshal.dumps((found, constants), 2)).hexdigest()


def _shows_addresses(tree: ast.Module, names: set[str]) -> bool:
    """Whether a program has sets or makes texts, and functions, classes, iterators or NaNs that could be in them."""
    nodes = list(ast.walk(tree))
    if names.isdisjoint(_SHOWING) and not any(isinstance(node, _SHOWN) for node in nodes):
        return False
    known, taken, types = set(_CALLABLE), set[int](), set[int]()
    for node in nodes:
        for name in _TAKEN.get(type(node), ()):
            part = getattr(node, name)
            taken.update(map(id, part if isinstance(part, list) else [part]))
        notes = [getattr(node, "annotation", None), getattr(node, "returns", None), getattr(node, "type", None)]
        if isinstance(node, ast.FunctionDef):
            known.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            known.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) == "isinstance":
            notes += node.args[1:]
        elif isinstance(node, ast.Call) and _name(node.func) in _READING:
            plain = _name(node.func) in _CALLING
            taken.update(id(part) for part in node.args if plain or isinstance(part, ast.Call | ast.GeneratorExp))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            taken.add(id(node.value))
        taken.update(id(each.value) for each in getattr(node, "keywords", ()) if each.arg in ("key", "default_factory"))
        types.update(id(part) for note in notes if isinstance(note, ast.AST) for part in ast.walk(note))
    said = {_name(node) for node in nodes if id(node) not in types}
    sets = not said.isdisjoint(("set", "frozenset")) or any(isinstance(node, ast.Set | ast.SetComp) for node in nodes)
    if not sets and said.isdisjoint(_SHOWING) and not any(isinstance(node, _SHOWN) for node in nodes):
        return False
    texts = {str(node.value).strip("+- \n\t").lower() for node in nodes if isinstance(node, ast.Constant)}
    kept = _HELD + ((ast.ExceptHandler,) if sets else ())
    if not (said | texts).isdisjoint(_HOLDING) or any(
        isinstance(n, kept) and getattr(n, "name", 0) is not None for n in nodes
    ):
        return True
    return any(id(node) not in taken | types and _is_held(node, known) for node in nodes)


def _is_held(node: ast.AST, known: set[str]) -> bool:
    """Whether an expression is a function, a class, an iterator or an exception."""
    if isinstance(node, ast.Name):
        return node.id in known and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and _name(node.value) != "string" and node.attr not in _PLAIN
    if isinstance(node, ast.Call):
        name = _name(node.func)
        return name in _ITERATORS or name.endswith(("Error", "Exception")) or (name == "type" and len(node.args) > 1)
    return isinstance(node, ast.Lambda | ast.GeneratorExp)


def _name(node: ast.AST) -> str:
    """The last part of a name, empty if it is none."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return {"." * node.level + (node.module or "")}
