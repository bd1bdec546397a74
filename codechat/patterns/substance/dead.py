"""Code that never runs, and conditions that are settled before the program starts."""

import ast
import re
from collections.abc import Iterator

from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import walk

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_MEASURED = re.compile(
    r"(?:len|abs)\([\w.]+(?:\(.*\)|\[.*\])?\) (>=|>|!=|<|==|<=|is not|is) (0|-1|None)|len\(.*\) (<) (0)"
)
_HOLDS = {">= 0": True, "> -1": True, "!= -1": True, "is not None": True, "< 0": False, "== -1": False,
          "is None": False, "<= -1": False}  # fmt: skip


def dead(code: Code) -> frozenset[ast.AST]:
    """The nodes of code that never runs: behind a jump in its block, or in the branch of a settled condition."""
    if dead not in code.found:
        code.found[dead] = frozenset(each for statement in _never_run(code) for each in walk(statement))
    found: frozenset[ast.AST] = code.found[dead]
    return found


def _never_run(code: Code) -> Iterator[ast.AST]:
    for node in code.find(*_LEAVES, ast.If, ast.While, ast.IfExp):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            holds = settled(node.test)
            branch = [] if holds is None else node.orelse if holds else node.body
            yield from branch if isinstance(branch, list) else [branch]
            continue
        above = code.parents[node]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(above, name, None)
            if isinstance(block, list) and node in block:
                yield from block[block.index(node) + 1 :]


def settled(test: ast.expr) -> bool | None:
    """What a condition gives whatever the program's names stand for; None if that depends on them."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = settled(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        parts = [settled(value) for value in test.values]
        if decisive in parts or (None in parts and _contradicts(test.values)):
            return decisive
        return None if None in parts else not decisive
    return _compared(test) if isinstance(test, ast.Compare) else None


def _contradicts(values: list[ast.expr]) -> bool:
    """Whether one of the conditions is the opposite of another: `x is None and x is not None`."""
    said = {canonical(value) for value in values}
    return any(canonical(value, negated=True) in said for value in values)


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.Eq: ast.NotEq, ast.In: ast.NotIn, ast.Is: ast.IsNot,
}  # fmt: skip
_OPPOSITES |= {other: one for one, other in _OPPOSITES.items()}
_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def canonical(test: ast.expr, *, negated: bool = False) -> str:
    """A condition or its opposite in words that are the same however it is written: `b > a` is `a < b`."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    if not isinstance(test, ast.Compare) or len(test.ops) > 1:
        return f"{'not ' if negated else ''}{ast.unparse(test)}"
    sides, kind = [ast.unparse(test.left), ast.unparse(test.comparators[0])], type(test.ops[0])
    kind = _OPPOSITES[kind] if negated else kind
    if kind in _SWAPPED:
        kind, sides = _SWAPPED[kind], sides[::-1]
    return f"{kind.__name__} of {sorted(sides) if kind in (ast.Eq, ast.NotEq) else sides}"


def _compared(test: ast.Compare) -> bool | None:
    """`len(x) < 0` and `1 > 2`."""
    if len(test.ops) > 1:
        return None
    left, right = test.left, test.comparators[0]
    if isinstance(left, ast.Call):
        found = _MEASURED.fullmatch(ast.unparse(test))
        return _HOLDS.get(f"{found[1] or found[3]} {found[2] or found[4]}") if found else None
    numbers = [one.value for one in (left, right) if isinstance(one, ast.Constant) and isinstance(one.value, int)]
    if len(numbers) < 2:
        return None
    one, other = numbers
    results = {
        ast.Lt: one < other, ast.Gt: one > other, ast.LtE: one <= other, ast.GtE: one >= other,
        ast.Eq: one == other, ast.NotEq: one != other,
    }  # fmt: skip
    return results.get(type(test.ops[0]))


def always_true(code: Code, test: ast.expr) -> bool:
    """Whether a condition holds whatever its names stand for: a true literal, `x == x`, `isinstance(x, object)`."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple | ast.List):
        return bool(test.elts)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Constant):
        return not test.operand.value
    if isinstance(test, ast.BoolOp):
        either = isinstance(test.op, ast.Or)
        opposite = either and _contradicts(test.values)
        return opposite or (any if either else all)(always_true(code, value) for value in test.values)
    if isinstance(test, ast.Call):
        return code.origin(test.func) == "isinstance" and [*map(ast.unparse, test.args[1:])] == ["object"]
    return isinstance(test, ast.Compare) and _always_compares(test)


def _always_compares(test: ast.Compare) -> bool:
    """`x == x`, `len(x) >= 0`."""
    same = isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
    measured = re.fullmatch(r"(len|abs)\([\w.]+\) (>= 0|> -1|!= -1|is not None)", ast.unparse(test)) is not None
    return measured or (same and [ast.unparse(test.left)] == [*map(ast.unparse, test.comparators)])
