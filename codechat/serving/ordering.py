"""The order of a sweep's cells: those that need the same servers follow each other, so that weights load once."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from codechat.serving.server import Server

T = TypeVar("T")


def by_servers(cells: Sequence[T], needs: Callable[[T], Iterable[Server]]) -> list[list[T]]:
    """The cells in groups that need the same servers; each group keeps the cells' order.

    The first cell's group is first; then always the one that shares the most servers with the one before, of several
    the earliest.
    """
    groups: dict[frozenset[Server], list[T]] = {}
    for cell in cells:
        groups.setdefault(frozenset(needs(cell)), []).append(cell)
    ordered: list[list[T]] = []
    last: frozenset[Server] = next(iter(groups), frozenset())
    while groups:
        last = max(groups, key=lambda servers: len(servers & last))
        ordered.append(groups.pop(last))
    return ordered
