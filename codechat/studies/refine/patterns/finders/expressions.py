"""Expressions, literals and plain syntax: patterns that a node and its neighbours are enough to recognise."""

import ast
import re
from collections.abc import Iterable
from itertools import combinations, pairwise

from codechat.studies.refine.patterns.base import Occurrence, at, each_of, pair, pattern
from codechat.studies.refine.patterns.finders.functions import is_real_read
from codechat.studies.refine.patterns.reading.code import Code
from codechat.studies.refine.patterns.reading.tree import COMPREHENSIONS, FUNCTIONS, LOOPS, blocks, own_nodes

each_of("lambda", "lambda", ast.Lambda)
each_of("list_comprehension", "list comprehension", ast.ListComp)
each_of("iteration", "loop or comprehension", *LOOPS, *COMPREHENSIONS, plural="loops and comprehensions")
each_of("generator_expression", "generator expression", ast.GeneratorExp)
each_of("comprehension", "comprehension", *COMPREHENSIONS)
each_of("ternary", "conditional expression", ast.IfExp)
each_of("walrus", "assignment expression", ast.NamedExpr)
each_of("f_string", "f-string", ast.JoinedStr,  # a format specification is a node too, within the f-string
        when=lambda code, node: not isinstance(code.parents.get(node), ast.FormattedValue))  # fmt: skip
each_of("match", "match statement", ast.Match)
each_of("try", "try statement", ast.Try, ast.TryStar)
each_of("assert", "assert", ast.Assert)
each_of("loop", "loop", *LOOPS)
each_of("while", "while loop", ast.While)
each_of("for", "for loop", ast.For, ast.AsyncFor)
each_of("break", "break", ast.Break)
each_of("jump", "break or continue", ast.Break, ast.Continue, plural="breaks and continues")
each_of("return", "return statement", ast.Return)
each_of("augmented_assignment", "augmented assignment", ast.AugAssign)
each_of("slice", "slice", ast.Slice)
each_of("subscript", "subscript", ast.Subscript)
each_of("with", "with statement", ast.With, ast.AsyncWith)
each_of("import", "import", ast.Import, ast.ImportFrom)
each_of("starred", "starred expression", ast.Starred)
each_of("assignment", "assignment", ast.Assign, ast.AnnAssign)
each_of("any_call", "call", ast.Call)
each_of("operation", "operation", ast.BinOp, ast.AugAssign, ast.Compare)
each_of("decision", "decision", ast.If, ast.IfExp, ast.Match)
each_of("chained_comparison", "chained comparison", ast.Compare, when=lambda _, node: len(node.ops) > 1)
each_of("membership_test", "membership test", ast.Compare,
        when=lambda _, node: isinstance(node.ops[0], ast.In | ast.NotIn))  # fmt: skip
each_of("negation", "negated condition", ast.UnaryOp, when=lambda _, node: isinstance(node.op, ast.Not))
each_of("named_return", "return of a variable", ast.Return, plural="returns of a variable",
        when=lambda _, node: isinstance(node.value, ast.Name))  # fmt: skip
each_of("tuple_assignment", "tuple assignment", ast.Assign,
        when=lambda _, node: any(len(getattr(target, "elts", ())) > 1 for target in node.targets))  # fmt: skip
each_of("endless_loop", "while True loop", ast.While,
        when=lambda _, node: isinstance(node.test, ast.Constant) and bool(node.test.value))  # fmt: skip
each_of("loop_else", "loop with an else branch", *LOOPS, plural="loops with an else branch",
        when=lambda _, node: not all(isinstance(one, ast.Pass) for one in node.orelse))  # fmt: skip
each_of("joined_import", "import of several modules", ast.Import, plural="imports of several modules",
        when=lambda _, node: len(node.names) > 1)  # fmt: skip
each_of("branching", "branch or loop", ast.If, ast.IfExp, ast.Match, ast.Try, ast.TryStar, *LOOPS,
        plural="branches and loops")  # fmt: skip


@pair(
    ("literal_return", "return of a literal", "returns of a literal"),
    ("computed_return", "return of an expression", "returns of an expression"),
)
def literal_return(code: Code) -> Iterable[tuple[Occurrence, bool]]:
    """Returns of values that are written out, `-1`, `[]` and `True, False` among them, and returns of other values.

    Returns of a variable, and of nothing, are neither.
    """
    for node in code.find(ast.Return):
        if not isinstance(node.value, ast.Name | None):
            yield at(node), code.is_literal(node.value)


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
    """Whether it surely is a text, list or tuple: a literal, `str(...)`, or a name whose only value is one."""
    value = code.values.get(node.id, node) if isinstance(node, ast.Name) else node
    made = isinstance(value, ast.Call) and code.origin(value.func) in ("list", ".join")
    return made or isinstance(value, ast.List | ast.ListComp | ast.Tuple) or _is_text(code, node)


@pattern("magic_number", "number without a name", "numbers without a name")
def magic_number(code: Code) -> Iterable[Occurrence]:
    """Numeric literals (also as texts in `int("8")`) other than 0, 1 and -1 outside constants and defaults."""
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
    """Assignments to upper-case names at module level; with `used` only names that a function reads."""
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
    """Two comparisons joined by `and` that could be chained: a common operand (of equalities no literal)."""
    ordering = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    for node in (node for node in code.find(ast.BoolOp) if isinstance(node.op, ast.And)):
        compared = [one for one in node.values if isinstance(one, ast.Compare)]
        sides = [((one.left, one.comparators[-1]), one.ops[0]) for one in compared]
        operands = [set(map(ast.dump, two)) for two, sign in sides if isinstance(sign, ordering)]
        parts = [
            {ast.dump(side) for side in two if not code.is_literal(side)}
            for two, sign in sides if isinstance(sign, ast.Eq)
        ]  # fmt: skip
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
        for operator, both in zip(node.ops, sides, strict=True):
            literal = any(ast.unparse(side) in ("True", "False", "None") for side in both)
            if isinstance(operator, ast.Eq | ast.NotEq) and literal:
                yield at(node)


pattern("boolean_operator", "and or or", "ands and ors")(
    lambda code: (at(value) for node in code.find(ast.BoolOp) for value in node.values[1:])
)


@pattern("equality_choice", "or of equalities", "ors of equalities")
def equality_choice(code: Code) -> Iterable[Occurrence]:
    """Several equalities with one side in common, joined by `or`: `x == a or x == b`. The common side is no literal."""
    for node in code.find(ast.BoolOp):
        equal = [
            {ast.dump(side) for side in (value.left, value.comparators[0]) if not code.is_literal(side)}
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


@pattern("passing_variable", "variable that is only returned", "variables that are only returned")
def passing_variable(code: Code) -> Iterable[Occurrence]:
    """An assignment `x = …` directly followed by `return x`; a `pass` or a text between them makes no difference."""
    acting = (
        [one for one in block if not (isinstance(one, ast.Pass) or (isinstance(getattr(one, "value", one), ast.Constant)
                                      and isinstance(one, ast.Expr)))]
        for owner in code.nodes for block in blocks(owner)
    )  # fmt: skip
    for first, second in (two for block in acting for two in pairwise(block)):
        value = second.value if isinstance(second, ast.Return) else None
        targets = first.targets if isinstance(first, ast.Assign) else [getattr(first, "target", None)]
        names = [one.id if isinstance(one, ast.Name) else "" for one in targets]
        if isinstance(value, ast.Name) and isinstance(first, ast.Assign | ast.AnnAssign) and names == [value.id]:
            yield at(first, f"'{value.id}'")
