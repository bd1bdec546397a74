"""Comparisons joined, turned into truth tests, membership and identity."""

import libcst as cst

from codechat.refactoring.base import Source, transforms
from codechat.refactoring.trees import Made, expression, inside, rewritten, text_of


@transforms("structural-simplify-emptiness-tests")
def truth_tests(source: Source) -> str:
    """`not x` for `len(x) == 0` and `bool(x)` for `len(x) > 0`; other comparisons with empty values stay."""
    source.builtin("len", "bool")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
            return node
        left, first = node.left, node.comparisons[0]
        if not isinstance(left, cst.Call) or text_of(left.func) != "len" or text_of(first.comparator) != "0":
            return node
        value = left.args[0].value
        if isinstance(first.operator, cst.Equal):
            return expression(f"(not {inside(value)})")
        return (
            expression(f"bool({text_of(value)})")
            if isinstance(first.operator, cst.NotEqual | cst.GreaterThan)
            else node
        )

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("structural-combine-equalities")
def membership(source: Source) -> str:
    """`x in (a, b)` for `x == a or x == b` with a name and literals."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.BooleanOperation) or not isinstance(node.operator, cst.Or):
            return node
        one, two = _choice(node.left), _choice(node.right)
        if one is None or two is None or one[0] != two[0]:
            return node
        return expression(f"{one[0]} in ({', '.join([*one[1], *two[1]])})")

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


def _choice(node: cst.BaseExpression) -> tuple[str, list[str]] | None:
    """The name and the literals that it is compared with."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1 or not isinstance(node.left, cst.Name):
        return None
    operator, right = node.comparisons[0].operator, node.comparisons[0].comparator
    if isinstance(operator, cst.Equal) and isinstance(right, cst.Integer | cst.SimpleString):
        return node.left.value, [text_of(right)]
    if isinstance(operator, cst.In) and isinstance(right, cst.Tuple):
        return node.left.value, [text_of(one.value) for one in right.elements]
    return None


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@transforms("structural-combine-comparisons")
def chained(source: Source) -> str:
    """`a < b < c` for `a < b and b < c` with names and literals."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.BooleanOperation) or not isinstance(node.operator, cst.And):
            return node
        one, two = _ordering(node.left), _ordering(node.right)
        if one is None or two is None:
            return node
        for first in (one, one[::-1]):
            for second in (two, two[::-1]):
                turned = (first is not one, second is not two)
                signs = [_TURNED[pair[1]] if back else pair[1] for pair, back in zip((one, two), turned, strict=True)]
                if first[2] == second[0] and signs[0][0] == signs[1][0]:
                    return expression(f"{first[0]} {signs[0]} {first[2]} {signs[1]} {second[2]}")
        return node

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


def _ordering(node: cst.BaseExpression) -> tuple[str, str, str] | None:
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return None
    left, right = node.left, node.comparisons[0].comparator
    sign = text_of(node.comparisons[0].operator).strip()
    plain = (cst.Name, cst.Integer, cst.Float, cst.SimpleString)
    if sign not in _TURNED or not isinstance(left, plain) or not isinstance(right, plain):
        return None
    return text_of(left), sign, text_of(right)


@transforms("structural-simplify-literal-comparisons")
def identity_with_none(source: Source) -> str:
    """`x is None` for `x == None`; comparisons with True and False mean something else and stay."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.ComparisonTarget) or text_of(node.comparator) != "None":
            return node
        if isinstance(node.operator, cst.Equal):
            return node.with_changes(operator=cst.Is())
        return node.with_changes(operator=cst.IsNot()) if isinstance(node.operator, cst.NotEqual) else node

    return rewritten(source.module, change).code  # type: ignore[no-any-return]
