"""Expressions, literals and plain syntax: patterns that a node and its neighbours are enough to recognise."""

import ast
import re
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from typing import Any

from codechat.studies.refine.patterns.base import Finder, Occurrence, at, pattern
from codechat.studies.refine.patterns.finders.functions import is_real_read
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import COMPREHENSIONS, FUNCTIONS, LOOPS, blocks, own_nodes

_SYNTAX: dict[str, tuple[tuple[type[ast.AST], ...], str, str]] = {
    "lambda": ((ast.Lambda,), "lambda", ""),
    "list_comprehension": ((ast.ListComp,), "list comprehension", ""),
    "iteration": ((*LOOPS, *COMPREHENSIONS), "loop or comprehension", "loops and comprehensions"),
    "generator_expression": ((ast.GeneratorExp,), "generator expression", ""),
    "comprehension": (COMPREHENSIONS, "comprehension", ""),
    "ternary": ((ast.IfExp,), "conditional expression", ""),
    "walrus": ((ast.NamedExpr,), "assignment expression", ""),
    "f_string": ((ast.JoinedStr,), "f-string", ""),
    "match": ((ast.Match,), "match statement", ""),
    "try": ((ast.Try, ast.TryStar), "try statement", ""),
    "assert": ((ast.Assert,), "assert", ""),
    "loop": (LOOPS, "loop", ""),
    "while": ((ast.While,), "while loop", ""),
    "for": ((ast.For, ast.AsyncFor), "for loop", ""),
    "break": ((ast.Break,), "break", ""),
    "jump": ((ast.Break, ast.Continue), "break or continue", "breaks and continues"),
    "return": ((ast.Return,), "return statement", ""),
    "augmented_assignment": ((ast.AugAssign,), "augmented assignment", ""),
    "slice": ((ast.Slice,), "slice", ""),
    "subscript": ((ast.Subscript,), "subscript", ""),
    "with": ((ast.With, ast.AsyncWith), "with statement", ""),
    "import": ((ast.Import, ast.ImportFrom), "import", ""),
    "starred": ((ast.Starred,), "starred expression", ""),
    "assignment": ((ast.Assign, ast.AnnAssign), "assignment", ""),
    "any_call": ((ast.Call,), "call", ""),
    "operation": ((ast.BinOp, ast.AugAssign, ast.Compare), "operation", ""),
    "decision": ((ast.If, ast.IfExp, ast.Match), "decision", ""),
    "chained_comparison": ((ast.Compare,), "chained comparison", ""),
    "membership_test": ((ast.Compare,), "membership test", ""),
    "negation": ((ast.UnaryOp,), "negated condition", ""),
    "named_return": ((ast.Return,), "return of a variable", "returns of a variable"),
    "tuple_assignment": ((ast.Assign,), "tuple assignment", ""),
    "endless_loop": ((ast.While,), "while True loop", ""),
    "loop_else": (LOOPS, "loop with an else branch", "loops with an else branch"),
    "joined_import": ((ast.Import,), "import of several modules", "imports of several modules"),
    "branching": ((ast.If, ast.IfExp, ast.Match, ast.Try, ast.TryStar, *LOOPS), "branch or loop", "branches and loops"),
}


_WHEN: dict[str, Callable[[Any], bool]] = {
    "chained_comparison": lambda node: len(node.ops) > 1,
    "membership_test": lambda node: isinstance(node.ops[0], ast.In | ast.NotIn),
    "negation": lambda node: isinstance(node.op, ast.Not),
    "named_return": lambda node: isinstance(node.value, ast.Name),
    "tuple_assignment": lambda node: any(len(getattr(target, "elts", ())) > 1 for target in node.targets),
    "endless_loop": lambda node: isinstance(node.test, ast.Constant) and bool(node.test.value),
    "loop_else": lambda node: not all(isinstance(one, ast.Pass) for one in node.orelse),
    "joined_import": lambda node: len(node.names) > 1,
}


def _syntax(name: str, kinds: tuple[type[ast.AST], ...]) -> Finder:
    def find(code: Code) -> Iterable[Occurrence]:
        when = _WHEN.get(name, bool)
        return (at(node) for node in code.find(*kinds) if when(node) and not _inside_f_string(code, node))

    return find


def _inside_f_string(code: Code, node: ast.AST) -> bool:
    """A format specification is a string node of its own: it is part of the f-string around it."""
    return isinstance(node, ast.JoinedStr) and isinstance(code.parents.get(node), ast.FormattedValue)


for _name, (_kinds, _noun, _plural) in _SYNTAX.items():
    pattern(_name, _noun, _plural)(_syntax(_name, _kinds))


_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow,
}  # fmt: skip


@pattern("arithmetic", "arithmetic operation")
def arithmetic(code: Code, operators: list[str] | None = None) -> Iterable[Occurrence]:
    """Operations of the given kinds, by default all arithmetic ones; joining texts or lists is none."""
    wanted = tuple(_ARITHMETIC[sign] for sign in operators or _ARITHMETIC)
    for node in code.find(ast.BinOp, ast.AugAssign):
        left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        other = not isinstance(node.op, ast.Mod) and _is_sequence(code, right)
        if isinstance(node.op, wanted) and not other and not _is_sequence(code, left):
            yield at(node)


def _is_sequence(code: Code, node: ast.expr) -> bool:
    """Whether it surely is a text or a list: a literal, `str(...)`, or a name whose only value is one."""
    value = code.values.get(node.id, node) if isinstance(node, ast.Name) else node
    made = isinstance(value, ast.Call) and code.origin(value.func) in ("list", ".join")
    return made or isinstance(value, ast.List | ast.ListComp) or _is_text(code, node)


@pattern("magic_number", "number without a name", "numbers without a name")
def magic_number(code: Code) -> Iterable[Occurrence]:
    """Numeric literals other than 0, 1 and -1 outside assignments to upper-case names and parameter defaults.

    A text that `int` or `float` turns into a number on the spot counts too. Upper-case names inside functions are
    no constants.
    """
    for node in code.find(ast.Constant):
        number = isinstance(node.value, int | float | complex) and not isinstance(node.value, bool)
        above = code.parents.get(node)
        if isinstance(node.value, str) and isinstance(above, ast.Call) and node in above.args[:1]:
            number = (
                code.origin(above.func) in ("int", "float") and re.fullmatch(r"[-+]?\d[\d_.]*", node.value) is not None
            )
        if number and node.value not in (0, 1) and not _names_number(code, node):
            yield at(node, str(node.value)[:20])


def _names_number(code: Code, node: ast.AST) -> bool:
    for above in code.ancestors(node):
        if isinstance(above, ast.arguments):
            return True
        if isinstance(above, ast.Assign | ast.AnnAssign):
            targets = above.targets if isinstance(above, ast.Assign) else [above.target]
            names = [one for target in targets for one in getattr(target, "elts", [target])]
            constant = not isinstance(code.parents.get(above), FUNCTIONS)
            return constant and all(isinstance(one, ast.Name) and one.id.isupper() for one in names)
        if isinstance(above, ast.stmt):
            return False
    return False


@pattern("named_constant", "named constant")
def named_constant(code: Code, used: bool = False) -> Iterable[Occurrence]:
    """Assignments to upper-case names at module level; with `used` only those that a function reads."""
    read = {
        name.id for name in code.find(ast.Name)
        if is_real_read(code, name) and code.function_of(name) and not code.is_own(name, inner=True)
    }  # fmt: skip
    for node in code.tree.body if code.tree else []:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        parts = [one for target in targets for one in getattr(target, "elts", [target])]
        names = {one.id for one in parts if isinstance(one, ast.Name) and one.id.isupper()}
        if names and (not used or names & read) and isinstance(node, ast.Assign | ast.AnnAssign):
            yield at(node)


@pattern("split_comparison", "pair of comparisons that could be one", "pairs of comparisons that could be one")
def split_comparison(code: Code) -> Iterable[Occurrence]:
    """Two comparisons joined by `and` that could be chained: orderings or equalities with a common operand.

    Of two equalities the common operand must not be a literal.
    """
    ordering = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    for node in code.find(ast.BoolOp):
        if not isinstance(node.op, ast.And):
            continue
        pairs = [
            value for value in node.values if isinstance(value, ast.Compare) and isinstance(value.ops[0], ordering)
        ]
        operands = [{ast.dump(pair.left), ast.dump(pair.comparators[-1])} for pair in pairs]
        equal = [one for one in node.values if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.Eq)]
        parts = [
            {ast.dump(side) for side in (one.left, one.comparators[-1]) if not isinstance(side, ast.Constant)}
            for one in equal
        ]
        if any(one & other for found in (operands, parts) for one, other in pairwise(found)):
            yield at(node)


@pattern("emptiness_test", "comparison with an empty value", "comparisons with an empty value")
def emptiness_test(code: Code) -> Iterable[Occurrence]:
    """Tests for emptiness such as `len(x) == 0`, `len(x) > 0`, `x == []` and `"" != x`."""
    for node in code.find(ast.Compare):
        left, operator, right = node.left, node.ops[0], node.comparators[0]
        sides = ((left, right, ast.Gt), (right, left, ast.Lt)) if len(node.ops) == 1 else ()
        for one, other, more in sides:
            equal, text = isinstance(operator, ast.Eq | ast.NotEq), ast.unparse(other)
            length = isinstance(one, ast.Call) and code.origin(one.func) == "len"
            least = (ast.GtE, ast.Lt) if more is ast.Gt else (ast.LtE, ast.Gt)
            counted = length and text == "0" and (equal or isinstance(operator, more))
            counted = counted or (length and text == "1" and isinstance(operator, least))
            if counted or (equal and text in ("[]", "()", "{}", "''", "set()", "list()", "dict()", "tuple()", "str()")):
                yield at(node)
                break


@pattern(
    "comparison_with_boolean", "comparison with True, False or None by ==", "comparisons with True, False or None by =="
)
def comparison_with_boolean(code: Code) -> Iterable[Occurrence]:
    """`x == True`, `None != x` and the like."""
    for node in code.find(ast.Compare):
        sides = pairwise([node.left, *node.comparators])
        for operator, pair in zip(node.ops, sides, strict=True):
            literal = any(ast.unparse(side) in ("True", "False", "None") for side in pair)
            if isinstance(operator, ast.Eq | ast.NotEq) and literal:
                yield at(node)


@pattern("boolean_operator", "and or or", "ands and ors")
def boolean_operator(code: Code) -> Iterable[Occurrence]:
    """Every `and` and `or`."""
    return (at(value) for node in code.find(ast.BoolOp) for value in node.values[1:])


@pattern("equality_choice", "or of equalities", "ors of equalities")
def equality_choice(code: Code) -> Iterable[Occurrence]:
    """Several equalities with one side in common, joined by `or`: `x == a or x == b`. The common side is no literal."""
    for node in code.find(ast.BoolOp):
        equal = [
            {ast.dump(side) for side in (value.left, value.comparators[0]) if not isinstance(side, ast.Constant)}
            for value in node.values
            if isinstance(value, ast.Compare) and len(value.ops) == 1 and isinstance(value.ops[0], ast.Eq)
        ]
        if isinstance(node.op, ast.Or) and any(one & other for one, other in combinations(equal, 2)):
            yield at(node)


@pattern("string_concatenation", "string built with +", "strings built with +")
def string_concatenation(code: Code) -> Iterable[Occurrence]:
    """Sums with a string literal, an f-string, `str(...)`, or a name that the function gives such a value."""
    for node in code.find(ast.BinOp):
        if isinstance(node.op, ast.Add) and (_is_text(code, node.left) or _is_text(code, node.right)):
            yield at(node)


@pattern("old_formatting", "old-style string formatting", "old-style string formattings")
def old_formatting(code: Code) -> Iterable[Occurrence]:
    """Formatting as in `"…" % x`, `"…".format(x)` and `format(x, "…")`."""
    for node in code.find(ast.BinOp, ast.Call):
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mod) and _is_text(code, node.left):
                yield at(node)
        elif code.origin(node.func) == "format" and len(node.args) > 1:
            yield at(node)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "format_map"):
            by_type = code.origin(node.func.value) == "str" and bool(node.args) and _is_text(code, node.args[0])
            yield from [at(node)] if by_type or _is_text(code, node.func.value) else []


def _is_text(code: Code, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name):
        return _makes_text(code, node)
    if node.id in code.values and _makes_text(code, code.values[node.id]):
        return True
    around = code.function_of(node)
    assigned = (one for one in (own_nodes(around) if around else ()) if isinstance(one, ast.Assign))
    texts = (target for one in assigned if _makes_text(code, one.value) for target in one.targets)
    return any(isinstance(target, ast.Name) and target.id == node.id for target in texts)


def _makes_text(code: Code, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return code.origin(node.func) == "str"
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


@pattern("self_assignment", "assignment of the form x = x + …", "assignments of the form x = x + …")
def self_assignment(code: Code) -> Iterable[Occurrence]:
    """Plain assignments that could be augmented ones, `x = x + y + z` included."""
    for node in code.find(ast.Assign):
        if isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
            target, first = ast.dump(node.targets[0]).replace("Store()", "Load()"), node.value.left
            while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add) and isinstance(node.value.op, ast.Add):
                first = first.left
            if target == ast.dump(first):
                yield at(node)


@pattern("computed_return", "return of an expression", "returns of an expression")
def computed_return(code: Code) -> Iterable[Occurrence]:
    """Returns of anything but a name or a literal."""
    for node in code.find(ast.Return):
        if node.value is not None and not isinstance(node.value, ast.Name | ast.Constant):
            yield at(node)


def _without_idle(block: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block without those that surely do nothing."""
    empty = [isinstance(one, ast.Pass) or isinstance(getattr(one, "value", None), ast.Constant) for one in block]
    return [one for one, idle in zip(block, empty, strict=True) if not idle or not isinstance(one, ast.Pass | ast.Expr)]


@pattern("passing_variable", "variable that is only returned", "variables that are only returned")
def passing_variable(code: Code) -> Iterable[Occurrence]:
    """An assignment `x = …` directly followed by `return x`; a `pass` or a text between them makes no difference."""
    for first, second in (
        two for owner in code.nodes for block in blocks(owner) for two in pairwise(_without_idle(block))
    ):
        value = second.value if isinstance(second, ast.Return) else None
        targets = first.targets if isinstance(first, ast.Assign) else [getattr(first, "target", None)]
        names = [one.id if isinstance(one, ast.Name) else "" for one in targets]
        if isinstance(value, ast.Name) and isinstance(first, ast.Assign | ast.AnnAssign) and names == [value.id]:
            yield at(first, f"'{value.id}'")
