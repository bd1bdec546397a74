"""Text read as Python once, for every room that reads the same code."""

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
