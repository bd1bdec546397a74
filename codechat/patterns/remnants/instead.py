"""What became something else than was asked for, where a request to modify was followed for a part only.

Where three loops are to become `functools.reduce` and two became recursion, no loop is left and there is a `reduce`.
Fewer places of the new form than of the old one say nothing alone: one recursive function may replace two nested loops.
Together with more of a form that nobody asked for they do.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from codechat.patterns.base import Occurrence, patterns
from codechat.patterns.clauses import Clause
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS

_WALKING = {"pattern": "call", "names": ["map", "filter", "functools.reduce", "sum", "min", "max", "any", "all"]}
_OF_LOOPS = ("comprehension", "recursion", _WALKING)
_INSTEAD: dict[str, tuple[str | dict[str, Any], ...]] = {
    "loop": _OF_LOOPS,
    "for": (*_OF_LOOPS, "counting_while"),
    "while": _OF_LOOPS,
    "list_comprehension": ("generator_expression", _WALKING),
    "collecting_loop": ("comprehension", "recursion", "while", _WALKING),
    "use": (
        {"pattern": "use", "names": ["functools.reduce", "heapq.*", "bisect.*", "statistics.*", "math.fsum", "sorted"]},
    ),
    "arithmetic": (
        "bit_operation",
        {"pattern": "arithmetic", "operators": ["/"]},
        {"pattern": "use", "names": ["math.*", "operator.*"]},
    ),
    "ternary": ("boolean_operator", "table_lookup", "match", "indexed_choice"),
    "two_way_value": ("if_without_else", "boolean_operator", "table_lookup", "match", "indexed_choice"),
    "if_chain": ("if_statement", "table_lookup"),
    "lambda": ({"pattern": "use", "names": ["operator.*", "functools.partial"]}, "comprehension"),
    "old_formatting": ("string_concatenation", {"pattern": "use", "names": [".join", "string.Template"]}),
    "string_concatenation": ("old_formatting", {"pattern": "use", "names": [".join", "string.Template"]}),
    "augmented_assignment": ({"pattern": "use", "names": [".append", ".extend", ".update", "operator.*"]},),
    "index_loop": ("while", "recursion", _WALKING, {"pattern": "call", "names": ["zip"]}),
    "equality_choice": ({"pattern": "call", "names": ["any"]},),
    "split_comparison": ("if_statement", {"pattern": "call", "names": ["all"]}),
    "nested_function": ("lambda",),
    "collection": tuple({"pattern": "collection", "kind": kind} for kind in ("tuple", "set", "dict")),
    "listed_membership": ("equality_choice", {"pattern": "collection", "kind": "tuple"}),
    "legacy_hint": ("bare_parameter", "bare_function", "bare_local"),
}
"""What each pattern becomes besides what it is asked to become."""
_ONE_BY_ONE = (
    "comment", "any_docstring", "tall_docstring", "short_docstring", "quoted", "legacy_hint", "self_assignment",
    "augmented_assignment", "index_loop",
)  # fmt: skip
"""What is changed each for itself: less of the new than went of the old is something that was left out."""


def other_forms(subject: Clause, into: Clause, old: Code, new: Code, made: Iterable[Occurrence]) -> str:
    """What became of the rest, as `1 comprehension: line 3`; nothing if no other form is seen.

    A form that stands in one statement with what was asked for, or names it, is a part of that.
    """
    if subject.pattern.name in _ONE_BY_ONE:
        return "the rest is gone"
    nodes = [one.node for one in made if one.node is not None]
    named = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    parts = {_statement(new, node) for node in nodes} - {None}
    for other in _clauses(subject.pattern.name):
        if other.pattern.name == into.pattern.name and other.options == into.options:
            continue
        was, now = other.present(old), other.present(new)
        asked = {name.rpartition(".")[2] for name in into.options.get("names", ())}
        was, now = (tuple(one for one in found if one.what.rpartition(".")[2] not in asked) for found in (was, now))
        inside = into.pattern.name == "recursion"
        apart = [one for one in now if one.node is None or not _belongs(new, one.node, parts, named, inside)]
        if len(now) > len(was) and apart:
            return f"{other.count(len(apart))}: {other.list(tuple(apart))}"
    return ""


def swallowing(old: Code, new: Code) -> str:
    """The literal that a new handler returns in place of an exception and that was returned nowhere; nothing if none.

    A handler like that in the code before, or a condition there that returned the same, has it both ways.
    """
    was = {ast.unparse(one.value) if one.value else "None" for one in old.find(ast.Return)}
    before = len([*old.find(ast.ExceptHandler)])
    for handler in new.find(ast.ExceptHandler):
        last = handler.body[-1]
        if not before and (other := _other_error(handler)):
            return other
        value = last.value if isinstance(last, ast.Return) else last
        if isinstance(last, ast.Return) and (value is None or isinstance(value, ast.Constant)):
            text = ast.unparse(value) if value is not None else "None"
            implied = text == "None" and not was
            if text not in was and not implied:
                return text
    return ""


_EXPECTED = ("StopIteration", "KeyError", "IndexError", "ImportError", "AttributeError", "StopAsyncIteration")


def _other_error(handler: ast.ExceptHandler) -> str:
    """What a handler makes of an exception where it neither handles nor raises it: another one, or nothing at all."""
    last = handler.body[-1]
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = [ast.unparse(one) for one in kinds if one is not None]
    if isinstance(last, ast.Raise) and last.exc is not None:
        head = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
        again = ast.unparse(head) in (*names, handler.name) or ast.unparse(head).startswith("type(")
        return "" if again else ast.unparse(last)
    return "pass" if isinstance(last, ast.Pass) and not {*names} <= {*_EXPECTED} else ""


def requoted(subject: Clause, old: Code, new: Code) -> str:
    """The other quotes that strings got which were to get double ones; nothing if none did."""
    if subject.pattern.name != "quoted":
        return ""
    for kind in ("triple_double", "triple_single"):
        other = Clause(subject.pattern, {"quote": kind})
        more = len(other.present(new)) - len(other.present(old))
        single = Clause(subject.pattern, {"quote": "single"})
        lost = len(single.present(old)) - len(single.present(new))
        if more > 0 and len(subject.present(new)) - len(subject.present(old)) < lost:
            return f"other quotes took their place: {other.count(more)}"
    return ""


@cache
def _clauses(name: str) -> tuple[Clause, ...]:
    return tuple(_made(one) for one in _INSTEAD.get(name, ()))


def _made(value: str | dict[str, Any]) -> Clause:
    options = {"pattern": value} if isinstance(value, str) else dict(value)
    return Clause(patterns()[options.pop("pattern")], options)


def _belongs(code: Code, node: ast.AST, parts: set[ast.AST | None], named: set[str], inside: bool) -> bool:
    """Whether it stands in a statement of what was asked for, or names that; with `inside` no comprehension outside."""
    if inside and isinstance(node, COMPREHENSIONS) and named:
        return any(getattr(one, "name", "") in named for one in code.ancestors(node))
    return _statement(code, node) in parts or any(name in named for name in _names(code, node))


def _statement(code: Code, node: ast.AST) -> ast.AST | None:
    """The simple statement that holds a node; None for compound ones, which hold other statements."""
    around = next((one for one in (node, *code.ancestors(node)) if isinstance(one, ast.stmt)), None)
    return None if hasattr(around, "body") else around


def _names(code: Code, node: ast.AST) -> Iterator[str]:
    """The names in a node; for the name of what is called, in the call."""
    whole = code.parents.get(node, node) if isinstance(node, ast.Name | ast.Attribute) else node
    yield from (one.id for one in ast.walk(whole) if isinstance(one, ast.Name))
