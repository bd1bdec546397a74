"""Text read as Python once, and what every room that reads code asks of its tree."""

import ast
import warnings
from functools import lru_cache


@lru_cache(maxsize=128)
def tree_of(text: str) -> ast.Module:
    """The syntax tree, shared by all who ask: nobody changes it.

    Raises what the parser does: `SyntaxError`, `ValueError`, `RecursionError`, `MemoryError` or `OverflowError`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """Every parameter in order of the signature, `*args` and `**kwargs` included."""
    a = function.args
    return [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
