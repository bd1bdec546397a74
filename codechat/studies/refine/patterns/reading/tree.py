"""The vocabulary of syntax trees: kinds of nodes, the nodes below one, the parts of a definition."""

import ast
from collections.abc import Iterator
from typing import TypeAlias

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_MARKS = ("ctx", "op", "ops")  # shared singletons, which have no place
_TEXTS = ("arg", "asname", "attr", "conversion", "id", "kind", "level", "module", "rest", "simple", "type_comment")
_LEAVES = (ast.Constant, ast.Global, ast.Nonlocal, ast.alias)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: () if kind in _LEAVES else tuple(name for name in kind._fields if name not in (*_MARKS, *_TEXTS))
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_WITH_GAPS = ("keys", "kw_defaults", "kwd_attrs")  # lists that also hold None or texts


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's or loop's body without nested functions, lambdas and classes."""
    stack: list[ast.AST] = list(reversed(getattr(scope, "body", [])))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            stack.extend(reversed(children(node)))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements directly under a node: body, else, handlers' bodies, finally, cases."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def docstring(node: ast.AST) -> ast.Constant | None:
    """The node of the docstring of a function, class or module."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body or not isinstance(body[0], ast.Expr):
        return None
    value = body[0].value
    return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def body_without_docstring(node: ast.Module | Function | ast.ClassDef) -> list[ast.stmt]:
    return node.body[1:] if docstring(node) else node.body


def children(node: ast.AST) -> list[ast.AST]:
    """The direct children of a node in source order, operators and contexts left out; faster than `ast`'s own."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += value if name not in _WITH_GAPS else [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes below it, in the order of `ast.walk`, operators and contexts left out."""
    found = [node]
    for each in found:
        found += children(each)
    return found


def is_main_guard(node: ast.AST) -> bool:
    """Whether a statement is `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


def may_quote_hash(node: ast.AST) -> bool:
    """Whether a # in the source may belong to this literal, or to a comment inside of it, as in a long f-string."""
    if isinstance(node, ast.Constant):
        value = node.value
        return "#" in value if isinstance(value, str) else isinstance(value, bytes) and b"#" in value
    return isinstance(node, ast.JoinedStr) and node.lineno != node.end_lineno
