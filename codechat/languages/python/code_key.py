"""Whether two programs compile to the same code, by a hash of their syntax trees without line numbers and columns.

Comments and layout are no part of the tree. Everything else is, so programs of one hash have equal code objects but
for the numbers of lines and columns in them: docstrings, annotations and names of local variables are equal too, and
so are constants with their types and signs. The compiler itself is not asked: its time doubles with each nested
`finally`, and on real dialogues it finds no equal programs that the tree does not show.

Line numbers may still tell two such programs apart, and so may the source text. A program that names something by
which a program could read either has no hash, and is tested on its own. The check is coarse: it looks at names alone
and refuses many harmless programs. A program that puts such a name together at run time passes it, and gains nothing:
it shares its verdict with no code but its own.
"""

import ast
import hashlib
import marshal
import re
import sys
from functools import lru_cache
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
    "breakpoint|dir|eval|exec|getattr|globals|help|locals|open|setattr|vars"
    "|attrgetter|ForwardRef|format|format_map|Formatter|get_type_hints|methodcaller|singledispatch|singledispatchmethod"
    "|addFilter|addHandler|basicConfig|findCaller|lineno|setLoggerClass|setLogRecordFactory"
    r"|(?:ag|cr|gi|tb)_\w+"
    "|__(?!(?:abs|add|all|and|annotations|bool|call|class|contains|debug|delitem|doc|eq|float|floordiv|future|ge"
    "|getitem|gt|hash|iadd|init|int|iter|le|len|lt|main|mod|mul|name|ne|neg|next|or|pos|post_init|pow|radd|repr"
    r"|reversed|rmul|round|rsub|rtruediv|setitem|slots|str|sub|truediv|xor)__)\w*__"
)
"""Names by which a program might come to its frames, code objects, tracebacks, log records or text; of the names with
two underscores, all but the listed ones."""
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: () if kind is ast.Constant else tuple(name for name in kind._fields if name != "ctx")
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields that are hashed: a context follows from the node above, a constant is written with its type."""


@lru_cache(maxsize=4096)
def code_key(program: str, also: frozenset[str] = frozenset()) -> str | None:
    """See `codechat.languages.ComparesCode`; the program may import the modules `also`."""
    try:
        tree = tree_of(program.removesuffix("\n"))  # as the text that the program was made of, whose tree is known
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None
    found: list[Any] = []  # all of the tree in one order: each node's kind and then its fields, each list's length
    names: set[str] = set()
    modules: set[str] = set()
    waiting: list[Any] = [tree]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind is list:
            found.append(len(part))
            waiting += part
        elif kind in _FIELDS:
            found.append(kind.__name__)
            for field in _FIELDS[kind]:
                waiting.append(getattr(part, field, None))  # half as fast by `extend`
            if kind is ast.Constant:
                found += (type(part.value).__name__, part.value)
            elif kind is ast.Import or kind is ast.ImportFrom:
                modules |= _imported(part)
        else:
            found.append(part)
            if kind is str:
                names.add(part)
    if not modules <= MODULES | also or any(map(_REVEALING.fullmatch, names)):
        return None
    if not _OTHERS.isdisjoint({name.lstrip("_") for name in names} - also):
        return None
    return hashlib.sha256(marshal.dumps(found, 2)).hexdigest()


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    return {"." * node.level + (node.module or "")}
