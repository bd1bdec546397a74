"""Defects outside of the tests' reach: code that passes every test of its task and is wrong on other valid inputs.

The slip is an early return for a special case that no test has, such as a length with a certain rest. Only properties
count that the tests vary in steps of one, and only rests of a value between the tests' least and greatest one, since
a value beyond them may be no valid one. The fewer rests there are, the more inputs have each.
"""

import ast
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from codechat.studies.refine.patterns import read

MOST_RESTS = 20  # a rarer property is no special case that plausible inputs meet
CHOICES = 3  # guards that a draw chooses from: the ones that most inputs meet
SIZED = (str, list, tuple, dict, set)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _all(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(fits, value))


Measures = Mapping[str, tuple[Callable[[Any], bool], Callable[[Any], int]]]
MEASURES: Measures = {
    "{}": (_whole, int),
    "round({})": (lambda value: isinstance(value, float) and abs(value) < 1e15, round),
    "len({})": (lambda value: isinstance(value, SIZED), len),
    "len(set({}))": (lambda value: isinstance(value, str) or _all(value, lambda each: isinstance(each, str | int)),
                     lambda value: len(set(value))),
    "sum({})": (lambda value: _all(value, _whole), sum),
    "sum(map(len, {}))": (lambda value: _all(value, lambda each: isinstance(each, SIZED)),
                          lambda value: sum(map(len, value))),
}  # fmt: skip
"""Whole numbers that an argument has: by the expression, the values that it takes and its function."""
LAST: Measures = {
    "sum(map(ord, {}))": (lambda value: isinstance(value, str), lambda value: sum(map(ord, value))),
    "len(str({}))": (lambda value: isinstance(value, list | tuple | dict | set), lambda value: len(str(value))),
}
"""The same if no other number varies enough: odder, and less often met."""


def add_unseen_defect(
    code: str, entry_point: str, inputs: Sequence[tuple[Any, ...]], draw: random.Random
) -> str | None:
    """The code with a defect that none of the test inputs meets. None if the entry point has no place for it or calls
    itself, or if no property of its arguments varies enough."""
    tree = read(code).tree
    found = [node for node in (tree.body if tree else ()) if getattr(node, "name", "") == entry_point]
    function = found[-1] if found else None
    if tree is None or not isinstance(function, ast.FunctionDef):
        return None
    variables = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if any(node.id == entry_point for node in variables):  # it calls itself with arguments that are no test inputs
        return None
    body = function.body[ast.get_docstring(function) is not None :]
    lines = code.split("\n")
    first = min([body[0].lineno, *(each.lineno for each in getattr(body[0], "decorator_list", ()))]) if body else 0
    indent = lines[first - 1][: body[0].col_offset] if body else "-"
    bound = {node.id for node in variables if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    guards = sorted(_guards(names, inputs, bound, MEASURES)) or sorted(_guards(names, inputs, bound, LAST))
    if indent.strip() or not guards:
        return None
    _, guard = draw.choice(guards[:CHOICES])
    return "\n".join([*lines[: first - 1], f"{indent}if {guard}:", f"{indent}    return None", *lines[first - 1 :]])


def _guards(
    names: Sequence[str], inputs: Sequence[tuple[Any, ...]], bound: set[str], measures: Measures
) -> Iterator[tuple[int, str]]:
    """Conditions that no test input meets, each with its number of rests."""
    for place, name in enumerate(names[: min(map(len, inputs), default=0)]):
        given = [arguments[place] for arguments in inputs]
        for text, (takes, measure) in measures.items():
            used = {node.id for node in ast.walk(ast.parse(text.format("_"))) if isinstance(node, ast.Name)}
            if used & bound or not all(map(takes, given)):
                continue
            values = set(map(measure, given))
            near = {value + step for value in values for step in (-1, 1)} - values
            gaps = [value for value in near if min(values) < value < max(values)]
            for rests in range(2, MOST_RESTS if gaps and any(value + 1 in values for value in values) else 2):
                missing = {value % rests for value in gaps} - {value % rests for value in values}
                if missing:
                    yield from ((rests, f"{text.format(name)} % {rests} == {rest}") for rest in missing)
                    break
