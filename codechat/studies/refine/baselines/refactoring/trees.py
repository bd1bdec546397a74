"""Work on concrete syntax trees: rewriting by a plain function, templates, and blocks of statements."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import libcst as cst

from codechat.studies.refine.baselines.refactoring.base import Refusal

Made: TypeAlias = cst.CSTNode | cst.FlattenSentinel[Any] | cst.RemovalSentinel
"""A node, several in its place, or none."""
Change: TypeAlias = Callable[[cst.CSTNode, cst.CSTNode], Made]
"""Called with an original node and the same with changed children; gives the node for its place."""
T = TypeVar("T", bound=cst.CSTNode)

EFFECTS = (cst.Await, cst.Yield, cst.NamedExpr)
LOOKERS = ("locals", "vars", "eval", "exec", "globals", "dir", "super")
"""Functions that look at the scope they are called in."""
SPACE = cst.SimpleWhitespace(" ")


class _Rewrite(cst.CSTTransformer):
    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        return self.change(original_node, updated_node)


def rewrite(tree: T, change: Change) -> T:
    """The tree with every node below its root, innermost first, and the root replaced by a node of its kind."""
    made = tree.visit(_Rewrite(change))
    assert isinstance(made, type(tree))
    return made


def replace(tree: T, swaps: Mapping[cst.CSTNode, Made]) -> T:
    """The tree with some of its nodes replaced."""
    return rewrite(tree, lambda original, updated: swaps.get(original, updated))  # noqa: PLW0108


def text_of(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def whole(node: cst.BaseExpression) -> str:
    """An expression's text that can stand alone on a line."""
    text = text_of(node)
    return text if node.lpar or "\n" not in text else f"({text})"


def statements(text: str) -> list[Any]:
    """The statements of a text that is put together from parts; refuses if their layout does not allow it."""
    try:
        return list(cst.parse_module(text).body)
    except cst.ParserSyntaxError as error:
        raise Refusal("the layout of a statement is in the way") from error


def several(made: Sequence[cst.CSTNode], leading: Sequence[cst.EmptyLine] = ()) -> Made:
    """Statements in the place of one, the first of them below its comments and blank lines."""
    return cst.FlattenSentinel([made[0].with_changes(leading_lines=leading), *made[1:]])


def block(body: Sequence[Any]) -> cst.IndentedBlock:
    return cst.IndentedBlock(body=list(body) or statements("pass"))


def body_of(node: Any) -> list[Any]:
    """The statements of a compound statement, one a line."""
    assert isinstance(node.body, cst.IndentedBlock)
    return list(node.body.body)


def small(line: object) -> cst.BaseSmallStatement | None:
    """The statement of a line that holds one."""
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def assigned(line: object) -> tuple[str, cst.BaseExpression] | None:
    """Name and value of a line that assigns to one name."""
    found = small(line)
    target = found.targets[0].target if isinstance(found, cst.Assign) and len(found.targets) == 1 else None
    return (target.value, found.value) if isinstance(found, cst.Assign) and isinstance(target, cst.Name) else None


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
    if not found or found[-1].asynchronous is not None:
        raise Refusal(f"'{name}' is no plain function of the module")
    return found[-1]


def unjoin(module: cst.Module) -> cst.Module:
    """Every statement on a line of its own: no semicolons, no statement behind the colon of a header."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.SimpleStatementSuite):
            return cst.IndentedBlock(body=_apart(node))
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) > 1:
            return several(_apart(node), node.leading_lines)
        return node

    return rewrite(module, change)


def _apart(joined: cst.SimpleStatementSuite | cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    lines = [
        cst.SimpleStatementLine(body=[one.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]) for one in joined.body
    ]
    return [*lines[:-1], lines[-1].with_changes(trailing_whitespace=joined.trailing_whitespace)]


def docstring_split(body: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """A function's statements: the docstring (or nothing), and the others."""
    first = small(body[0]) if body else None
    text = isinstance(first, cst.Expr) and isinstance(first.value, cst.SimpleString | cst.ConcatenatedString)
    return list(body[:text]), list(body[text:])
