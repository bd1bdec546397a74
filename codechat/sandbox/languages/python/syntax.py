"""Text parsed as Python once, and questions about its tree."""

import ast
import re
import warnings
from functools import lru_cache

LONGEST_SOURCE = 50_000
"""Characters of a text that is parsed. Parsing takes up to half a second for so many; no answer to a task has them."""

_MANY_PARTS = 1000
_PART = r"\w\x80-\U0010ffff"
_LONG_IMPORT = rf"(?:(?<![{_PART}])(?:import|from)\.*|,)(?:[{_PART}]+\.){{{_MANY_PARTS}}}"  # compiled at first need
_IN_A_LINE = re.compile(r"[ \t\f]+|\\\r?\n")


@lru_cache(maxsize=320)  # 64 sessions at once read up to five texts each between two turns
def tree_of(text: str) -> ast.Module:
    """The syntax tree, shared by all callers: do not change it.

    Raises the parser's errors: `SyntaxError`, `ValueError`, `RecursionError`, `MemoryError` or `OverflowError`. An
    import of more than 1,000 dotted parts is refused with `ValueError`: the parser's time grows with its square. So is
    a text of more than `LONGEST_SOURCE` characters.
    """
    return fresh_tree_of(text)


def fresh_tree_of(text: str) -> ast.Module:
    """As `tree_of`, for a caller who changes the tree."""
    if len(text) > LONGEST_SOURCE:
        raise ValueError(f"longer than the {LONGEST_SOURCE:,} characters that are read as Python")
    if text.count(".") >= _MANY_PARTS and re.search(_LONG_IMPORT, _IN_A_LINE.sub("", text)):
        raise ValueError(f"an import of more than {_MANY_PARTS} dotted parts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def parse(text: str) -> ast.Module | None:
    """The syntax tree of `tree_of`, or None if the text is not Python."""
    try:
        return tree_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """Every parameter in order of the signature, `*args` and `**kwargs` included."""
    a = function.args
    return [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
