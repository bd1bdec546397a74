"""Built-ins written out: sorting, sums, extremes; and what is taken out of a program."""

import libcst as cst

from codechat.refactoring.base import Refusal, Source, transforms, with_definitions
from codechat.refactoring.hints import drop_unused_imports, modern_generics
from codechat.refactoring.trees import Made, has, nodes, replaced, rewritten, text_of, unjoined, variables

_SORT = """
def {name}(values, *, key=None, reverse=False):
    pairs = [(value if key is None else key(value), value) for value in values]
    if reverse:
        pairs.reverse()
    width = 1
    while width < len(pairs):
        merged = []
        for start in range(0, len(pairs), 2 * width):
            left, right = pairs[start : start + width], pairs[start + width : start + 2 * width]
            first = second = 0
            while first < len(left) and second < len(right):
                if right[second][0] < left[first][0]:
                    merged.append(right[second])
                    second += 1
                else:
                    merged.append(left[first])
                    first += 1
            merged += left[first:] + right[second:]
        pairs = merged
        width *= 2
    if reverse:
        pairs.reverse()
    return [value for _, value in pairs]
"""

_EXTREME = """
def {name}(*values, key=None, **options):
    if len(values) == 1:
        values = values[0]
    found = False
    for value in values:
        measure = value if key is None else key(value)
        if not found or measure {sign} best_measure:
            found, best, best_measure = True, value, measure
    if not found and "default" not in options:
        raise ValueError("there is no value")
    return best if found else options["default"]
"""

_QUANTIFIER = """
def {name}(values):
    for value in values:
        if {test}:
            return {found}
    return {other}
"""

_AGGREGATES = {
    "sum": "def {name}(values, start=0):\n    for value in values:\n        start = start + value\n    return start",
    "any": _QUANTIFIER.format(name="{name}", test="value", found=True, other=False),
    "all": _QUANTIFIER.format(name="{name}", test="not value", found=False, other=True),
    "min": _EXTREME.replace("{sign}", "<"),
    "max": _EXTREME.replace("{sign}", ">"),
}
_NAMES = {
    "sum": "total_of",
    "any": "any_of",
    "all": "all_of",
    "min": "smallest",
    "max": "largest",
    "sorted": "in_order",
}


@transforms("semantic-avoid-sorting")
@transforms("semantic-replace-builtin-sort")
def own_sort(source: Source) -> str:
    """A merge sort, stable as the built-in one and comparing by `<` alone, for `sorted` and `list.sort`."""
    source.builtin("sorted", "len", "range")
    name = source.namer()("in_order", "merge_sorted")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        call = node.value if isinstance(node, cst.Expr) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "sort":
            return node
        if has(call.func.value, cst.Call):
            raise Refusal("what is sorted would be computed twice")
        values = text_of(call.func.value)
        args = "".join(f", {text_of(one).rstrip(', ')}" for one in call.args)
        made = cst.parse_statement(f"{values}[:] = {name}({values}{args})")
        assert isinstance(made, cst.SimpleStatementLine)
        return made.body[0]

    module = rewritten(source.module, change)
    swaps: dict[cst.CSTNode, Made] = {node: cst.Name(name) for node in variables(module) if node.value == "sorted"}
    return with_definitions(source.with_text(replaced(module, swaps).code), _SORT.format(name=name))


@transforms("semantic-avoid-aggregates")
@transforms("semantic-replace-aggregates-by-loops")
def own_aggregates(source: Source) -> str:
    """A function with a loop for each of sum, min, max, any and all that the program uses."""
    source.builtin(*_AGGREGATES, "len")
    used = sorted({node.value for node in variables(source.module)} & _AGGREGATES.keys())
    namer = source.namer()
    names = {one: namer(_NAMES[one], f"{_NAMES[one]}_values") for one in used}
    swaps: dict[cst.CSTNode, Made] = {
        node: cst.Name(names[node.value]) for node in variables(source.module) if node.value in names
    }
    definitions = [_AGGREGATES[one].replace("{name}", names[one]) for one in used]
    return with_definitions(source.with_text(replaced(source.module, swaps).code), *definitions)


@transforms("semantic-avoid-imports")
def no_imports(source: Source) -> str:
    """No imports, where all that they serve is hints with an equal among the built-ins."""
    generic = source.with_text(modern_generics(source))
    return drop_unused_imports(generic)


@transforms("cosmetic-prohibit-joined-statements")
def one_a_line(source: Source) -> str:
    """Every statement on a line of its own."""
    return unjoined(source.module).code


@transforms("cosmetic-split-imports")
def split_imports(source: Source) -> str:
    """Every imported module on a line of its own."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Import) or len(small.names) < 2:
            return node
        plain = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in small.names]
        lines = [cst.SimpleStatementLine(body=[cst.Import(names=[one])]) for one in plain]
        assert isinstance(node, cst.SimpleStatementLine)
        lines[0] = lines[0].with_changes(leading_lines=node.leading_lines)
        return cst.FlattenSentinel(lines)

    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]


@transforms("semantic-remove-assertions", kind=cst.Assert)
@transforms("semantic-remove-prints", kind=cst.Expr)
def without_statements(source: Source, kind: type[cst.CSTNode]) -> str:
    """No assertions, or no print calls; one whose parts compute something by a call stays."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.IndentedBlock) and not node.body:
            return node.with_changes(body=[cst.parse_statement("pass")])
        if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], kind):
            return node
        small = node.body[0]
        if isinstance(small, cst.Assert) and not _computes(small.test):
            return cst.RemoveFromParent()
        call = small.value if isinstance(small, cst.Expr) else None
        prints = isinstance(call, cst.Call) and text_of(call.func) == "print"
        if prints and isinstance(call, cst.Call) and not any(_computes(one.value) for one in call.args):
            return cst.RemoveFromParent()
        return node

    source.builtin("print")
    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]


_PURE = {"len", "isinstance", "str", "repr", "type", "abs", "all", "any"}


def _computes(node: cst.CSTNode) -> bool:
    calls = [one for one in nodes(node) if isinstance(one, cst.Call)]
    return any(text_of(one.func) not in _PURE for one in calls) or has(node, cst.NamedExpr, cst.Await, cst.Yield)
