"""A module's tree without what only a reader sees: places in the text, docstrings, annotations of functions.

An annotation is evaluated where a function is defined, so it is taken out only if that surely does nothing and cannot
fail: if it is made of built-in types and of names of `typing` that the module imports before, as they are meant to be
used. Annotations of a class's fields stay, because a class may look at them.
"""

import ast

from codechat.languages.python.nodes import GENERIC, PLAIN, Nodes
from codechat.languages.python.syntax import parameters

TYPING = {
    **dict.fromkeys(("Any", "Hashable", "Sized", "Text"), 0),
    **dict.fromkeys(("Collection", "Container", "Deque", "FrozenSet", "Iterable", "Iterator", "List"), 1),
    **dict.fromkeys(("MutableSequence", "MutableSet", "Optional", "Reversible", "Sequence", "Set"), 1),
    **dict.fromkeys(("DefaultDict", "Dict", "Mapping", "MutableMapping"), 2),
    **dict.fromkeys(("Tuple", "Union"), -1),
}
"""How many types the names of `typing` take in brackets; -1: one or more."""
NOT_ALONE = frozenset({"Optional", "Union"})
"""Names of `typing` that are no type without brackets."""


def to_plain_form(code: Nodes) -> None:
    """Change the tree, in place. Raises `SyntaxError` if it cannot be compiled as it is, `ValueError` if what is taken
    out could be told."""
    _check_beginning(code.tree)
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
    if "dataclass" not in code.identifiers:  # which asks for a class's docstring
        documented = (*documented, ast.ClassDef)  # type: ignore[assignment]
    names = _Names(code)
    for each in code.nodes:
        node = each.node
        if node._attributes:
            node.lineno = node.end_lineno = 1  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _strip_annotations(node, names)
        if isinstance(node, documented):
            _strip_docstring(node)
    code.tree.body = [_without_annotation(statement, names) for statement in code.tree.body]
    if names.merged and _uses_typing(code):
        raise ValueError("what an annotation made may come back from the cache of typing")


def _check_beginning(tree: ast.Module) -> None:
    """One text may stand before an import of the future; a second one makes the module invalid."""
    if len(tree.body) < 2 or not all(map(_is_text, tree.body[:2])):
        return
    if any(isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in tree.body):
        raise SyntaxError("an import of the future after a statement")


def _strip_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) -> None:
    """Texts behind the docstring go too: one of them would take its place."""
    while node.body and _is_text(node.body[0]):
        del node.body[0]
    if not node.body and not isinstance(node, ast.Module):
        node.body.append(ast.Pass(lineno=1, end_lineno=1, col_offset=0, end_col_offset=0))


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


class _Names:
    """What the names in annotations stand for, wherever they are read."""

    def __init__(self, code: Nodes) -> None:
        self._bound = code.bound
        self.merged = False
        """Whether an annotation that was taken out has a union within brackets: `typing` keeps `List[Union[int, str]]`
        and gives it back for `List[Union[str, int]]`, which has another text."""
        self._typing: dict[str, str] = {}
        for statement in code.tree.body:  # imports at the top, before anything that may hold an annotation
            if not isinstance(statement, ast.Import | ast.ImportFrom | ast.Expr | ast.Assign):
                break
            if isinstance(statement, ast.ImportFrom) and statement.module == "typing" and not statement.level:
                given = [(alias.asname or alias.name, alias.name) for alias in statement.names]
                self._typing |= {name: meant for name, meant in given if self._bound[name] == 1}

    def take_out(self, annotation: ast.expr) -> bool:
        """Whether an annotation may be taken out."""
        if not _does_nothing(annotation, self):
            return False
        if isinstance(annotation, ast.Subscript):
            inner = ast.walk(annotation.slice)
            self.merged |= any(isinstance(n, ast.BinOp) or self._typing.get(_name(n)) in NOT_ALONE for n in inner)
        return True

    def typing(self, node: ast.expr) -> str | None:
        """The name of `typing` that is meant; None for anything else."""
        name = self._typing.get(node.id) if isinstance(node, ast.Name) else None
        return name if name in TYPING else None

    def builtin(self, node: ast.expr) -> bool:
        """Whether a built-in type is meant."""
        return isinstance(node, ast.Name) and node.id in PLAIN | GENERIC and not self._bound[node.id]

    def generic(self, node: ast.expr) -> bool:
        """Whether a built-in type is meant that takes types in brackets."""
        return self.builtin(node) and isinstance(node, ast.Name) and node.id in GENERIC


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _uses_typing(code: Nodes) -> bool:
    """Whether the tree, as it is now, reads anything that comes from `typing`."""
    given: set[str] = set()
    for each in code.of(ast.Import, ast.ImportFrom):
        node = each.node
        whole = getattr(node, "module", "typing") == "typing"
        aliases: list[ast.alias] = node.names  # type: ignore[attr-defined]
        given |= {one.asname or one.name for one in aliases if whole}
    return any(_name(node) in given for node in ast.walk(code.tree))


def _strip_annotations(node: ast.FunctionDef | ast.AsyncFunctionDef, names: _Names) -> None:
    for parameter in parameters(node):
        if parameter.annotation is not None and names.take_out(parameter.annotation):
            parameter.annotation = None
    if node.returns is not None and names.take_out(node.returns):
        node.returns = None


def _without_annotation(statement: ast.stmt, names: _Names) -> ast.stmt:
    """A variable of the module with its value alone."""
    if not isinstance(statement, ast.AnnAssign) or statement.value is None or not statement.simple:
        return statement
    if not names.take_out(statement.annotation):
        return statement
    place = {"lineno": 1, "end_lineno": 1, "col_offset": 0, "end_col_offset": 0}
    return ast.Assign(targets=[statement.target], value=statement.value, type_comment=None, **place)


def _does_nothing(annotation: ast.expr, names: _Names) -> bool:
    """Whether evaluating an annotation surely has no effect and cannot fail."""
    if isinstance(annotation, ast.Constant):
        return True
    return names.typing(annotation) is not None or _is_type(annotation, names)


def _is_type(node: ast.expr, names: _Names) -> bool:
    """Whether an expression is a type as `typing` wants it between its brackets."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Name):
        named = names.typing(node)
        return names.builtin(node) or (named is not None and named not in NOT_ALONE)
    if isinstance(node, ast.BinOp):
        both = (node.left, node.right)
        empty = all(isinstance(side, ast.Constant) for side in both)
        return isinstance(node.op, ast.BitOr) and not empty and all(_is_type(side, names) for side in both)
    return isinstance(node, ast.Subscript) and _is_parametrised(node, names)


def _is_parametrised(node: ast.Subscript, names: _Names) -> bool:
    given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    named = names.typing(node.value)
    pairs = named == "Tuple" or (names.generic(node.value) and isinstance(node.value, ast.Name))
    if pairs and len(given) == 2 and isinstance(given[1], ast.Constant) and given[1].value is ...:
        given = given[:1]
    if not given or not all(_is_type(one, names) for one in given):
        return False
    if names.generic(node.value):
        return True
    return named is not None and (TYPING[named] == len(given) or TYPING[named] == -1)
