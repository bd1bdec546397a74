"""A module's nodes with their parents and every identifier in them, within bounds that the compiler can take."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

DEEPEST = 60
"""Nodes in each other in a module that is compiled: the compiler's own limit depends on who calls it."""
MOST_NODES = 8_000
MOST_FUNCTIONS = 200
"""Scopes in a module that is compiled: the compiler's time grows with the square of their number."""
MOST_FINALLY = 3
"""`finally` in each other in a module that is compiled: the compiler's time doubles with each."""
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.comprehension)

PLAIN = frozenset({"bool", "bytearray", "bytes", "complex", "float", "int", "object", "range", "slice", "str"})
GENERIC = frozenset({"dict", "frozenset", "list", "set", "tuple", "type"})
"""Built-in types, and those that take types in brackets."""
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


class TooMuch(ValueError):
    """The module is beyond the bounds."""


class Node(NamedTuple):
    """A node of a module; its parent, and the parent of that."""

    node: ast.AST
    parent: ast.AST
    grandparent: ast.AST


@dataclass(frozen=True)
class Nodes:
    """All nodes of a module, and all its identifiers: names, attributes, keywords, parameters, imports."""

    tree: ast.Module
    nodes: tuple[Node, ...]
    identifiers: frozenset[str]

    def of(self, *kinds: type[ast.AST]) -> Iterator[Node]:
        """The nodes of some kinds."""
        return (each for each in self.nodes if isinstance(each.node, kinds))

    @cached_property
    def bound(self) -> Counter[str]:
        """How often each name is bound, in whatever scope."""
        found: Counter[str] = Counter()
        for each in self.nodes:
            node = each.node
            if isinstance(node, ast.Name):
                found[node.id] += not isinstance(node.ctx, ast.Load)
            elif isinstance(node, ast.arg):
                found[node.arg] += 1
            elif isinstance(node, ast.alias):
                found[(node.asname or node.name).split(".")[0]] += 1
            elif isinstance(node, ast.MatchMapping):
                found[node.rest or ""] += 1
            elif isinstance(node, ast.Global | ast.Nonlocal):
                found.update(node.names)
            elif isinstance(node, _NAMED):
                found[node.name or ""] += 1
        return found


def nodes_of(tree: ast.Module) -> Nodes:
    """The nodes of a module. Raises `TooMuch`."""
    found: list[Node] = []
    identifiers: set[str] = set()
    scopes = 0
    stack: list[tuple[Node, int, int]] = [(Node(tree, tree, tree), 0, 0)]
    while stack:
        here, depth, nested = stack.pop()
        node = here.node
        found.append(here)
        scopes += isinstance(node, SCOPES)
        nested += isinstance(node, ast.Try | ast.TryStar) and bool(node.finalbody)
        if depth > DEEPEST or nested > MOST_FINALLY or scopes > MOST_FUNCTIONS or len(found) > MOST_NODES:
            raise TooMuch
        if isinstance(node, ast.Constant):
            continue
        for field in node._fields:
            value = getattr(node, field, None)
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, ast.AST):
                    stack.append((Node(each, node, here.parent), depth + 1, nested))
                elif isinstance(each, str):
                    identifiers.add(each)
    return Nodes(tree, tuple(found), frozenset(identifiers))
