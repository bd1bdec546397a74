"""Operators and calls in other words."""

import libcst as cst

from codechat.refactoring.base import Refusal, Source, transforms, with_definitions
from codechat.refactoring.trees import Made, expression, has, inside, nodes, reads, replaced, rewritten, text_of

_FUNCTIONS: dict[type[cst.CSTNode], str] = {
    cst.Add: "add", cst.Subtract: "sub", cst.Multiply: "mul", cst.Divide: "truediv", cst.FloorDivide: "floordiv",
    cst.Modulo: "mod", cst.Power: "pow",
}  # fmt: skip
_AUGMENTED: dict[type[cst.CSTNode], str] = {
    cst.AddAssign: "+", cst.SubtractAssign: "-", cst.MultiplyAssign: "*", cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//", cst.ModuloAssign: "%", cst.PowerAssign: "**", cst.BitAndAssign: "&",
    cst.BitOrAssign: "|", cst.BitXorAssign: "^", cst.LeftShiftAssign: "<<", cst.RightShiftAssign: ">>",
}  # fmt: skip
_IN_PLACE: dict[type[cst.CSTNode], str] = {
    cst.AddAssign: "iadd", cst.SubtractAssign: "isub", cst.MultiplyAssign: "imul", cst.DivideAssign: "itruediv",
    cst.FloorDivideAssign: "ifloordiv", cst.ModuloAssign: "imod", cst.PowerAssign: "ipow",
}  # fmt: skip


def _in_functions(source: Source) -> set[cst.CSTNode]:
    functions = [node for node in source.module.body if isinstance(node, cst.FunctionDef)]
    return {node for function in functions for node in nodes(function.body)}


def _assign(target: cst.BaseExpression, value: str) -> cst.Assign:
    return cst.Assign(targets=[cst.AssignTarget(target=target)], value=expression(value))  # type: ignore[arg-type]


@transforms("structural-use-operator-module")
def use_operator(source: Source) -> str:
    """The first arithmetic operator as a function of the operator module."""
    source = source.with_text(with_definitions(source, imports=["operator"]))
    inner = _in_functions(source)
    for node in nodes(source.module):
        if node not in inner:
            continue
        if isinstance(node, cst.BinaryOperation) and type(node.operator) in _FUNCTIONS:
            made = f"operator.{_FUNCTIONS[type(node.operator)]}({text_of(node.left)}, {text_of(node.right)})"
            return replaced(source.module, {node: expression(made)}).code  # type: ignore[no-any-return]
        if isinstance(node, cst.AugAssign) and type(node.operator) in _IN_PLACE and isinstance(node.target, cst.Name):
            made = f"operator.{_IN_PLACE[type(node.operator)]}({node.target.value}, {inside(node.value)})"
            return replaced(source.module, {node: _assign(node.target, made)}).code  # type: ignore[no-any-return]
    raise Refusal("no arithmetic in a function")


def _is_number(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer | cst.Float) or (
        isinstance(node, cst.Call) and text_of(node.func) in ("len", "int", "abs", "ord", "float", "sum")
    )


def _divides(node: cst.CSTNode) -> bool:
    """Whether it is `//`, or a `%` that surely is no formatting: beside a number or between results of arithmetic."""
    if isinstance(node, cst.BinaryOperation):
        left, right = node.left, node.right
        if isinstance(node.operator, cst.FloorDivide):
            return True
        numeric = _is_number(left) or isinstance(left, cst.BinaryOperation | cst.UnaryOperation)
        return isinstance(node.operator, cst.Modulo) and (numeric or _is_number(right)) and not _is_text(left)
    return isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.FloorDivideAssign | cst.ModuloAssign)


def _is_text(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.SimpleString | cst.FormattedString | cst.ConcatenatedString)


@transforms("semantic-use-divmod", only_first=True)
@transforms("semantic-replace-remainder-by-divmod")
def use_divmod(source: Source, only_first: bool = False) -> str:
    """`divmod(a, b)[0]` for `a // b` and `divmod(a, b)[1]` for `a % b`."""
    source.builtin("divmod")
    found = [node for node in nodes(source.module) if _divides(node)]
    chosen = set(found[:1] if only_first else found)

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if original not in chosen:
            return node
        if isinstance(node, cst.BinaryOperation):
            part = 0 if isinstance(node.operator, cst.FloorDivide) else 1
            return expression(f"divmod({text_of(node.left)}, {text_of(node.right)})[{part}]")
        assert isinstance(node, cst.AugAssign)
        if not isinstance(node.target, cst.Name):
            raise Refusal("the target would be computed twice")
        part = 0 if isinstance(node.operator, cst.FloorDivideAssign) else 1
        value = f"divmod({node.target.value}, {inside(node.value)})[{part}]"
        return _assign(node.target, value).with_changes(semicolon=node.semicolon)

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("semantic-avoid-slices")
def no_slices(source: Source) -> str:
    """`x[slice(a, b)]` for `x[a:b]`."""
    source.builtin("slice")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.Slice):
            return node
        parts = [text_of(one) if one else "None" for one in (node.lower, node.upper)]
        step = [text_of(node.step)] if node.step else []
        return cst.Index(expression(f"slice({', '.join([*parts, *step])})"))

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("semantic-avoid-append")
def no_append(source: Source) -> str:
    """`x.extend([value])` for `x.append(value)`; the method taken without a call is refused."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        named = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "append"
        if not named or not isinstance(node, cst.Call) or len(node.args) != 1:
            return node
        assert isinstance(node.func, cst.Attribute)
        func = node.func.with_changes(attr=cst.Name("extend"))
        value = node.args[0].value
        text = inside(value) if isinstance(value, cst.Tuple | cst.GeneratorExp) else text_of(value)
        return node.with_changes(func=func, args=[cst.Arg(expression(f"[{text}]"))])

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


def _immutable(source: Source, name: str, value: cst.BaseExpression) -> bool:
    """Whether `name` surely holds a number or text: what is added is one, or all it is set to are."""
    if isinstance(value, cst.Integer | cst.Float | cst.SimpleString | cst.FormattedString) or _is_number(value):
        return True
    given = [
        one.value
        for one in nodes(source.module)
        if isinstance(one, cst.Assign) and any(text_of(target.target) == name for target in one.targets)
    ]
    plain = (cst.Integer, cst.Float, cst.SimpleString, cst.FormattedString)
    starts = [one for one in given if not (isinstance(one, cst.BinaryOperation) and text_of(one.left) == name)]
    params = {one.name.value for one in nodes(source.module) if isinstance(one, cst.Param)}
    return bool(starts) and all(isinstance(one, plain) for one in starts) and name not in params


@transforms("structural-rewrite-augmented-assignments")
def plain_assignments(source: Source) -> str:
    """`x = x + y` for `x += y` where `x` is surely no collection, which `+=` would change in place."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.AugAssign):
            return node
        target = node.target
        simple = isinstance(target, cst.Name) or (
            isinstance(target, cst.Subscript) and not has(target, cst.Call) and _is_number(node.value)
        )
        if not simple or type(node.operator) not in _AUGMENTED or not _immutable(source, text_of(target), node.value):
            raise Refusal(f"'{text_of(target)}' may be changed in place")
        value = f"{text_of(target)} {_AUGMENTED[type(node.operator)]} {inside(node.value)}"
        return _assign(target, value).with_changes(semicolon=node.semicolon)

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("structural-simplify-self-assignments")
def augmented_assignments(source: Source) -> str:
    """`x += y` for `x = x + y`, under the same condition."""
    signs = {sign: kind for kind, sign in _AUGMENTED.items()}

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.BinaryOperation):
            return node
        target, value = node.targets[0].target, node.value
        if len(node.targets) != 1 or text_of(target) != text_of(value.left) or value.lpar:
            return node
        if has(target, cst.Call) or not _immutable(source, text_of(target), value.right):
            raise Refusal(f"'{text_of(target)}' may be changed in place")
        kind = signs.get(text_of(value.operator).strip())
        if kind is None or not isinstance(target, cst.Name | cst.Subscript):
            raise Refusal("no augmented assignment does that")
        return cst.AugAssign(target, kind(), value.right, semicolon=node.semicolon)  # type: ignore[arg-type]

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("structural-avoid-negations")
def no_negations(source: Source) -> str:
    """`False if x else True` for `not x`."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            return expression(f"(False if {inside(node.expression)} else True)")
        return node

    spaced = source.text.replace("not(", "not (")
    tree = source.with_text(spaced).module if spaced != source.text else source.module
    return rewritten(tree, change).code  # type: ignore[no-any-return]


@transforms("structural-avoid-list-comprehensions")
def no_list_comprehensions(source: Source) -> str:
    """`list(… for …)` for `[… for …]`; a StopIteration inside would end it otherwise, so `next` is refused."""
    source.builtin("list")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.ListComp):
            return node
        if "next" in reads(node) or has(node, cst.Await, cst.NamedExpr, cst.Asynchronous):
            raise Refusal("the comprehension reads an iterator by itself")
        return expression(f"list({text_of(node.elt)}{text_of(node.for_in)})")

    return rewritten(source.module, change).code  # type: ignore[no-any-return]
