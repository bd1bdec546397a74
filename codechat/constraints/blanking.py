"""Code without the texts of its comments and strings."""

from collections.abc import Iterable
from functools import lru_cache

from codechat.languages.grammar import Found, Tree


@lru_cache(maxsize=8)
def code_of(tree: Tree) -> bytes:
    """The code's bytes with spaces for those of its comments; lines and places stay."""
    return _without(tree, tree.comments)


@lru_cache(maxsize=8)
def blanked(tree: Tree) -> str:
    """The code with spaces for the bytes of its comments and strings; lines stay."""
    return _without(tree, (*tree.comments, *tree.strings)).decode("utf-8", "replace")


def _without(tree: Tree, left_out: Iterable[Found]) -> bytes:
    data = bytearray(tree.data)
    for found in left_out:
        kept = data[found.start : found.end].split(b"\n")
        data[found.start : found.end] = b"\n".join(b" " * len(line) for line in kept)
    return bytes(data)
