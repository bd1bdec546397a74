"""What a program calculates with: arithmetic operations, and those on whole numbers."""

import ast
from collections.abc import Iterable

from codechat.patterns.base import Occurrence, at, pattern
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS, LOOPS

_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow,
}  # fmt: skip


@pattern("arithmetic", "arithmetic operation")
def arithmetic(code: Code, operators: list[str] | None = None) -> Iterable[Occurrence]:
    """These operations, all arithmetic ones where none are named; one of texts or lists is none."""
    wanted = tuple(_ARITHMETIC[sign] for sign in operators or _ARITHMETIC)
    for node in code.find(ast.BinOp, ast.AugAssign):
        left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        other = not isinstance(node.op, ast.Mod) and _is_sequence(code, right)
        if isinstance(node.op, wanted) and not other and not _is_sequence(code, left):
            yield at(node)


def _is_sequence(code: Code, node: ast.expr) -> bool:
    """Whether it is surely a text or a list: a literal, `str(...)`, or the one value of a name."""
    if isinstance(node, ast.Name):
        if node.id in _texts(code):
            return True
        node = code.values.get(node.id, node)
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    made = isinstance(node, ast.Call) and code.origin(node.func) in ("str", "list", ".join")
    return text or made or isinstance(node, ast.JoinedStr | ast.List | ast.ListComp)


def _texts(code: Code) -> frozenset[str]:
    """The names that are given a text literal anywhere."""
    if _texts not in code.found:
        code.found[_texts] = frozenset(
            target.id for node in code.find(ast.Assign) if _is_text(node.value)
            for target in node.targets if isinstance(target, ast.Name)
        )  # fmt: skip
    names: frozenset[str] = code.found[_texts]
    return names


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


@pattern("whole_arithmetic", "arithmetic operation on whole numbers", "arithmetic operations on whole numbers")
def whole_arithmetic(code: Code) -> Iterable[Occurrence]:
    """Arithmetic operations but for divisions by `/` and those whose operands are surely fractions.

    In nested loops `chosen + [item]` is one too: it goes through choices, which the bits of a number can stand for.
    """
    names = _fractions(code)
    for place in arithmetic(code):
        node = place.node
        if isinstance(node, ast.BinOp | ast.AugAssign) and not isinstance(node.op, ast.Div):
            parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            rooted = any(isinstance(one, ast.BinOp) and _is_root(one) for one in code.ancestors(node))
            if not rooted and not any(_is_fraction(code, part, names) for part in parts):
                yield place
    for node in code.find(ast.BinOp):  # a choice of items, which the bits of a number can stand for
        nested = [one for one in code.ancestors(node) if isinstance(one, (*LOOPS, *COMPREHENSIONS))]
        chosen = isinstance(node.op, ast.Add) and isinstance(node.right, ast.List) and len(node.right.elts) == 1
        yield from [at(node)] if chosen and len(nested) > 1 else []


def _is_root(node: ast.BinOp) -> bool:
    """`… ** 0.5`."""
    return isinstance(node.op, ast.Pow) and isinstance(getattr(node.right, "value", None), float)


_STEPS = 3  # from a fraction through variables that are computed from it
_FRACTIONS = {
    "float",
    "fractions.Fraction",
    "decimal.Decimal",
    "math.sqrt",
    "math.exp",
    "math.log",
    "math.sin",
    "math.cos",
}


def _is_fraction(code: Code, node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is surely no whole number: `a / b`, `0.5`, `float(x)`, what is computed from one."""
    if isinstance(node, ast.BinOp):
        divided = isinstance(node.op, ast.Div)
        return divided or _is_fraction(code, node.left, names) or _is_fraction(code, node.right, names)
    if isinstance(node, ast.Call):
        rounded = code.origin(node.func) == "round" and len(node.args) == 2
        return rounded or code.origin(node.func) in _FRACTIONS
    if isinstance(node, ast.UnaryOp):
        return _is_fraction(code, node.operand, names)
    return isinstance(getattr(node, "value", None), float) or (isinstance(node, ast.Name) and node.id in names)


def _fractions(code: Code) -> set[str]:
    """The names that are given fractions anywhere, or hinted as such."""
    names = {arg.arg for arg in code.find(ast.arg) if arg.annotation and code.origin(arg.annotation) in _FRACTIONS}
    given: list[tuple[str, ast.expr]] = []
    for node in code.find(ast.Assign, ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        given += [(target.id, node.value) for target in targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    for _ in range(_STEPS):
        names.update(name for name, value in given if name not in names and _is_fraction(code, value, names))
    return names
