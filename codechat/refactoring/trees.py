"""Work on concrete syntax trees: rewriting by a plain function, templates, and blocks of statements."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import libcst as cst

from codechat.refactoring.base import Refusal

Made: TypeAlias = Any
"""A node, several in its place (`cst.FlattenSentinel`), or none (`cst.RemovalSentinel`)."""

COMPOUND = (cst.If, cst.For, cst.While, cst.With, cst.Try, cst.TryStar, cst.Match, cst.FunctionDef, cst.ClassDef)
EFFECTS = (cst.Await, cst.Yield, cst.NamedExpr)


class _Rewrite(cst.CSTTransformer):
    def __init__(self, change: Callable[[cst.CSTNode, cst.CSTNode], Made]) -> None:
        super().__init__()
        self.change = change

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Made:
        return self.change(original_node, updated_node)


def rewritten(tree: Any, change: Callable[[cst.CSTNode, cst.CSTNode], Made]) -> Any:
    """The tree with every node, innermost first, replaced by `change(original, node with changed children)`."""
    return tree.visit(_Rewrite(change))


def replaced(tree: Any, swaps: dict[cst.CSTNode, Made]) -> Any:
    """The tree with some of its nodes replaced."""
    return rewritten(tree, lambda original, updated: swaps.get(original, updated))  # noqa: PLW0108


def text_of(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def inside(node: cst.BaseExpression) -> str:
    """An expression's text that can stand in any larger expression."""
    text = text_of(node)
    atomic = isinstance(node, cst.Name | cst.Integer | cst.Float | cst.SimpleString | cst.Call | cst.Subscript)
    return text if node.lpar or (atomic and "\n" not in text) else f"({text})"


def expression(text: str) -> cst.BaseExpression:
    """An expression put together from parts; refuses where an unusual layout of the parts does not allow it."""
    try:
        return cst.parse_expression(text)
    except cst.ParserSyntaxError as error:
        raise Refusal("the layout of an expression is in the way") from error


def statements(text: str) -> list[Any]:
    """The statements of a text with four-space indentation, put together in the same way."""
    try:
        return list(cst.parse_module(text).body)
    except cst.ParserSyntaxError as error:
        raise Refusal("the layout of a statement is in the way") from error


def several(made: Sequence[Any]) -> Made:
    return cst.FlattenSentinel(list(made))


def block(body: Sequence[Any]) -> cst.IndentedBlock:
    return cst.IndentedBlock(body=list(body) or statements("pass"))


def nodes(tree: cst.CSTNode, *, into_functions: bool = True) -> Iterator[cst.CSTNode]:
    """The node and all below it in source order; if asked, without what belongs to inner functions and classes."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if into_functions or node is tree or not isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            stack.extend(reversed(node.children))


def has(tree: cst.CSTNode, *kinds: type[cst.CSTNode], into_functions: bool = True) -> bool:
    return any(isinstance(node, kinds) for node in nodes(tree, into_functions=into_functions))


def reads(tree: cst.CSTNode) -> set[str]:
    """Every identifier in a tree, attribute and keyword names included."""
    return {node.value for node in nodes(tree) if isinstance(node, cst.Name)}


def variables(tree: cst.CSTNode) -> list[cst.Name]:
    """The names that stand for variables: no attributes, keywords, parameters or names of definitions and imports."""
    other: set[cst.CSTNode] = set()
    found: list[cst.Name] = []
    for node in nodes(tree):
        if isinstance(node, cst.Attribute):
            other.add(node.attr)
        elif isinstance(node, cst.Arg) and node.keyword is not None:
            other.add(node.keyword)
        elif isinstance(node, cst.Param | cst.FunctionDef | cst.ClassDef):
            other.add(node.name)
        elif isinstance(node, cst.ImportAlias):
            other.update(nodes(node))
        elif isinstance(node, cst.Name) and node not in other:
            found.append(node)
    return found


def entry(module: cst.Module, name: str) -> cst.FunctionDef:
    """The module-level function of that name, or a refusal."""
    found = [node for node in module.body if isinstance(node, cst.FunctionDef) and node.name.value == name]
    if not found:
        raise Refusal(f"'{name}' is no function of the module")
    if found[-1].asynchronous is not None:
        raise Refusal("the function is a coroutine")
    return found[-1]


def is_generator(function: cst.FunctionDef) -> bool:
    return any(isinstance(node, cst.Yield) for node in nodes(function.body, into_functions=False))


def unjoined(module: cst.Module) -> cst.Module:
    """Every statement on a line of its own: no semicolons, no statement behind the colon of a header."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.SimpleStatementSuite):
            return cst.IndentedBlock(body=_apart(node.body, node.trailing_whitespace, []))
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) > 1:
            return several(_apart(node.body, node.trailing_whitespace, node.leading_lines))
        return node

    return rewritten(module, change)  # type: ignore[no-any-return]


def _apart(body: Sequence[Any], trailing: cst.TrailingWhitespace, leading: Sequence[cst.EmptyLine]) -> list[Any]:
    lines = [
        cst.SimpleStatementLine(body=[one.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)], leading_lines=[])
        for one in body
    ]
    lines[0] = lines[0].with_changes(leading_lines=leading)
    lines[-1] = lines[-1].with_changes(trailing_whitespace=trailing)
    return lines


def docstring_split(body: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """A function's statements: the docstring (or nothing), and the others."""
    first = body[0] if body else None
    if isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Expr):
        value = first.body[0].value
        if isinstance(value, cst.SimpleString | cst.ConcatenatedString) and len(first.body) == 1:
            return [first], list(body[1:])
    return [], list(body)
