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
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

from codechat.sandbox.languages.python.syntax import tree_of

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
    "(?m)^(?:breakpoint|dir|eval|exec|getattr|globals|hash|help|id|locals|open|setattr|vars"
    "|attrgetter|ForwardRef|format|format_map|Formatter|get_type_hints|methodcaller|singledispatch|singledispatchmethod"
    "|addFilter|addHandler|basicConfig|findCaller|lineno|setLoggerClass|setLogRecordFactory"
    r"|(?:ag|cr|gi|tb)_\w+"
    "|__(?!(?:abs|add|all|and|annotations|bool|call|class|contains|debug|delitem|doc|eq|float|floordiv|future|ge"
    "|getitem|gt|iadd|init|int|iter|le|len|lt|main|mod|mul|name|ne|neg|next|or|pos|post_init|pow|radd|repr"
    r"|reversed|rmul|round|rsub|rtruediv|setitem|slots|str|sub|truediv|xor)__)\w*__)$"
)
"""Names by which a program might come to its frames, code objects, tracebacks, log records or text; of the names with
two underscores, all but the listed ones."""
_SHOWING = frozenset(
    {"ascii", "frozenset", "logging", "print", "repr", "set", "str", "Template", "__repr__", "__str__"}
)
_HOLDING = frozenset({"NaN", "NewType", "TypeVar", "inf", "infj", "namedtuple", "nan", "nanj", "object", "partial"})
_NO_NUMBER = re.compile(r"(?i)[\s\d.ej+()_-]*(?:s?nan|inf|infinity)[\s\d.ej+()_-]*")
_SHOWN = (ast.Set, ast.SetComp, ast.JoinedStr, ast.Mod)
_IMPORTS = (ast.Import, ast.ImportFrom)
_HELD_IF = (ast.Name, ast.Attribute, ast.Call, ast.Lambda, ast.GeneratorExp)
_HELD = (ast.ClassDef, ast.AsyncFunctionDef, ast.Await, ast.Yield, ast.YieldFrom)
_CALLING = frozenset(("accumulate", "defaultdict", "filter", "groupby", "map", "reduce", "starmap", "wraps"))
"""Functions that take a function or a class, and neither give it back nor show it."""
_ITERATORS = _CALLING | {"chain", "enumerate", "islice", "iter", "product", "reversed", "zip"}
_OBJECTS = frozenset(
    (
        *("batched", "combinations", "combinations_with_replacement", "compress", "count", "cycle", "dropwhile"),
        *("filterfalse", "pairwise", "permutations", "repeat", "takewhile", "tee", "zip_longest"),
        *("finditer", "fullmatch", "match", "search", "itemgetter", "merge", "field", "getLogger", "TextWrapper"),
        *hashlib.algorithms_guaranteed,
        "new",
    )
)
"""Names of modules that may be imported, and of compiled patterns, that make objects known by their address alone."""
_PATTERNS = frozenset(("finditer", "fullmatch", "match", "search"))
_TESTING = (ast.If, ast.While, ast.IfExp, ast.Assert)
_READING = (
    _ITERATORS
    | frozenset(("all", "any", "Counter", "deque", "dict", "extend", "frozenset", "join", "list", "max"))
    | (frozenset(("min", "next", "set", "sort", "sorted", "sum", "tuple", "update")))
)
"""Functions that read an iterator."""
_TAKEN: dict[type, str] = {
    ast.For: "iter",
    ast.comprehension: "iter",
    ast.Attribute: "value",
    ast.Call: "func",
    ast.Raise: "exc",
    ast.ExceptHandler: "type",
    ast.Starred: "value",
}
"""The places at which a function or an iterator is used up."""
_PLAIN = frozenset({"args", "denominator", "e", "imag", "numerator", "pi", "real", "tau", "__doc__", "__name__"})
_CALLABLE = frozenset(name for name, value in vars(builtins).items() if callable(value))

Nodes: TypeAlias = dict[type, list[Any]]
"""The nodes of a tree by their kind."""


_FOUND, _PART, _PARTS = range(3)


def _fields_of(kind: type[ast.AST]) -> tuple[Callable[[Any], Any] | None, int]:
    """Reads the fields that are hashed, and what they are: a text, a single part, or several parts.

    A context follows from the node above, a constant is written apart, and no comment on types is read.
    """
    names = [] if kind is ast.Constant else [name for name in kind._fields if name not in ("ctx", "type_comment")]
    read = attrgetter(*names) if names else None
    return read, _FOUND if kind is ast.Name else _PART if len(names) == 1 else _PARTS


_KINDS = {
    kind: (number, *_fields_of(kind))
    for number, kind in enumerate(vars(ast).values())
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


@lru_cache(maxsize=4096)
def code_key(program: str, also: frozenset[str] = frozenset()) -> str | None:
    """See `codechat.sandbox.languages.ComparesCode`; the program may import the modules `also`."""
    try:
        tree = tree_of(program.removesuffix("\n"))  # as the text that the program was made of, whose tree is known
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None
    found, nodes = _flat([tree])
    names = {part for part in set(found) if type(part) is str}
    modules = {module for kind in _IMPORTS for node in nodes.get(kind, ()) for module in _imported(node)}
    if not modules <= MODULES | also or _REVEALING.search("\n".join(names)):
        return None
    bare = {name.lstrip("_") if name[:1] == "_" else name for name in names}
    if not _OTHERS.isdisjoint(bare - also) or _shows_addresses(nodes, names):
        return None
    constants = [(type(node.value).__name__, node.value) for node in nodes.get(ast.Constant, ())]
    return hashlib.sha256(marshal.dumps((found, constants), 2)).hexdigest()


def _flat(parts: list[Any]) -> tuple[list[Any], Nodes]:
    """All of some trees in one order: each node's kind, each list's length, each name; and the nodes."""
    found: list[Any] = []
    nodes: Nodes = defaultdict(list)
    write, known = found.append, _KINDS.get
    put = (write, parts.append, parts.extend)
    for part in parts:
        kind = type(part)
        if read := known(kind):
            number, fields, where = read
            write(number)
            nodes[kind].append(part)
            if fields:
                put[where](fields(part))
        elif kind is list:
            write(len(part))
            parts += part
        else:
            write(part)
    return found, nodes


def _shows_addresses(nodes: Nodes, names: set[str]) -> bool:
    """Whether a program has sets or makes texts, and functions, classes, iterators or NaNs that could be in them."""
    if names.isdisjoint(_SHOWING) and nodes.keys().isdisjoint(_SHOWN):
        return False
    imported = {alias.asname or alias.name: alias.name for alias in nodes.get(ast.alias, ())}
    types = {*map(id, chain.from_iterable(_flat([*_annotations(nodes)])[1].values()))}
    said = {node.id for node in nodes.get(ast.Name, ()) if id(node) not in types}
    said.update(node.attr for node in nodes.get(ast.Attribute, ()) if id(node) not in types)
    sets = not said.isdisjoint(("set", "frozenset")) or ast.Set in nodes or ast.SetComp in nodes
    if not sets and said.isdisjoint(_SHOWING) and nodes.keys().isdisjoint(_SHOWN):
        return False
    kept = [node for kind in (*_HELD, *((ast.ExceptHandler,) if sets else ())) for node in nodes.get(kind, ())]
    if not said.isdisjoint(_HOLDING) or any(getattr(node, "name", "") is not None for node in kept):
        return True
    if any(_NO_NUMBER.fullmatch(_text(node.value)) for node in nodes.get(ast.Constant, ())):
        return True
    taken = types | {id(node.value) for node in nodes.get(ast.Assign, ()) if isinstance(node.targets[0], ast.Tuple)}
    for kind, field in _TAKEN.items():
        taken.update(id(getattr(node, field)) for node in nodes.get(kind, ()))
    taken.update(id(each) for node in nodes.get(ast.FunctionDef, ()) for each in node.decorator_list)
    for call in nodes.get(ast.Call, ()):
        if (name := _name(call.func)) in _READING:
            read = name in _CALLING
            taken.update(id(part) for part in call.args if read or type(part) in (ast.Call, ast.GeneratorExp))
    taken.update(id(node.test) for kind in _TESTING for node in nodes.get(kind, ()))
    for compared in nodes.get(ast.Compare, ()):  # of what a class is compared with, nothing is kept
        taken.update(id(side) for side in (compared.left, *compared.comparators))
    taken.update(id(each.value) for each in nodes.get(ast.keyword, ()) if each.arg in ("key", "default_factory"))
    if "type" in {
        _name(part) for call in nodes.get(ast.Call, ()) if _name(call.func) != "isinstance" for part in call.args
    }:
        return True  # by which `map` makes classes
    known = _CALLABLE.union((node.name for node in nodes.get(ast.FunctionDef, ())), imported)
    left = [node for kind in _HELD_IF for node in nodes.get(kind, ()) if id(node) not in taken]
    return any(_is_held(node, known, imported) for node in left)


def _annotations(nodes: Nodes) -> Iterator[ast.AST]:
    """Where types are named: annotations, handlers of exceptions, and what `isinstance` is given."""
    kinds = ((ast.arg, "annotation"), (ast.AnnAssign, "annotation"), (ast.ExceptHandler, "type"))
    for kind, field in (*kinds, (ast.FunctionDef, "returns"), (ast.AsyncFunctionDef, "returns")):
        yield from filter(None, (getattr(node, field) for node in nodes.get(kind, ())))
    yield from (part for call in nodes.get(ast.Call, ()) if _name(call.func) == "isinstance" for part in call.args[1:])


def _is_held(node: ast.AST, known: frozenset[str], imported: dict[str, str]) -> bool:
    """Whether an expression is a function, a class, an iterator, an exception, or another object with an address."""
    if isinstance(node, ast.Name):
        return node.id in known and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and _name(node.value) != "string" and node.attr not in _PLAIN
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if isinstance(node.func, ast.Attribute):
            made = name in _PATTERNS or (name in _OBJECTS and _name(node.func.value) in imported)
        else:
            made = imported.get(name) in _OBJECTS
        return made or name in _ITERATORS or name == "type" or name.endswith(("Error", "Exception"))
    return True


def _text(value: Any) -> str:
    """A constant as `float` would read it; empty for numbers without a point, which it may not write."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if isinstance(value, int) else str(value)


def _name(node: ast.AST) -> str:
    """The last part of a name, empty if it is none."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return {"." * node.level + (node.module or "")}
