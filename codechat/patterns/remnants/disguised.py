"""What came back in disguise: docstrings as comments, arguments changed by `+=`, variables returned a line later."""

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from codechat.languages.python.syntax import parameters
from codechat.patterns.base import Occurrence, at
from codechat.patterns.finders.arguments import may_be, mutated_parameter
from codechat.patterns.reading.code import Code
from codechat.patterns.reading.tree import COMPREHENSIONS, FUNCTIONS, LOOPS, blocks, docstring, walk
from codechat.patterns.remnants.leftover import words_of
from codechat.patterns.remnants.remains import remains
from codechat.patterns.substance.dead import settled


@remains("remove any_docstring", "remove module_docstring")
def docstrings_as_comments(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Comments that say what the first line of a docstring said."""
    if code is old:
        return
    texts = [text for one in old.find(ast.Module, ast.ClassDef, *FUNCTIONS) if (text := docstring(one))]
    said = {words_of(str(text.value).strip().partition("\n")[0]) for text in texts}
    before = {words_of(one.text) for one in old.comments}
    for one in code.comments:
        words = words_of(one.text)
        yield from [Occurrence(one.line)] if " " in words and words in said - before else []


@remains("mutated_parameter")
def extended_arguments(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`items += more` for an argument that was a list before: something was put into it, or taken from it."""
    held = {one.what for one in mutated_parameter(old)}
    for function in code.functions:
        names = {f"'{one.arg}'" for one in parameters(function)} & held
        stored = {one.id for one in walk(function) if isinstance(one, ast.Name) and _is_given(code, one)}
        for node in walk(function):
            text = f"'{ast.unparse(node.target)}'" if isinstance(node, ast.AugAssign) else ""
            yield from [at(node)] if text in names and text.strip("'") not in stored else []


def _is_given(code: Code, name: ast.Name) -> bool:
    """Whether a plain assignment gives a name another value."""
    above = code.parents.get(name)
    same = isinstance(above, ast.Assign) and may_be(code, above.value, name.id)
    return isinstance(name.ctx, ast.Store) and not isinstance(above, ast.AugAssign) and not same


@remains("listed_membership")
def sets_made_anew(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`x in set(xs)`, there or by a name in the same round of a loop: a set that is made for this test alone."""
    for node in code.find(ast.Compare):
        for operator, right in zip(node.ops, node.comparators, strict=True):
            made: ast.expr | None = right
            if isinstance(right, ast.Name) and _round(code, node) is not None:
                given = code.values.get(right.id)
                made = given if given is not None and _round(code, given) is _round(code, node) else None
            if isinstance(operator, ast.In | ast.NotIn) and made is not None and _copies(code, made):
                yield at(node)


def _round(code: Code, node: ast.AST) -> ast.AST | None:
    """The loop or comprehension that a node is innermost in."""
    return next((one for one in code.ancestors(node) if isinstance(one, (*LOOPS, *COMPREHENSIONS))), None)


def _copies(code: Code, made: ast.expr) -> bool:
    """Whether it makes a set of what a variable, an attribute or an entry holds."""
    if isinstance(made, ast.Set):
        return any(isinstance(one, ast.Starred) for one in made.elts)
    if not isinstance(made, ast.Call) or code.called(made.func) not in ("set", "frozenset") or not made.args:
        return False
    held: ast.expr = made.args[0]
    while isinstance(held, ast.Call) and code.called(held.func) in ("list", "tuple", "sorted") and held.args:
        held = held.args[0]
    return isinstance(held, ast.Name | ast.Attribute | ast.Subscript)


@remains("passing_variable")
def returned_apart(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`x = …` and `return x` with nothing between them but assertions, and what is printed, logged or deleted."""
    for owner in code.nodes:
        for block in blocks(owner):
            end = block[-1]
            while isinstance(end, ast.If) and settled(end.test):
                end = end.body[-1]
            last = end.value if isinstance(end, ast.Return) else None
            rest = [one for one in block[:-1] if not _is_aside(code, one)]
            first = rest[-1] if rest else None
            targets = first.targets if isinstance(first, ast.Assign) else [getattr(first, "target", None)]
            named = isinstance(last, ast.Name) and last.id in [ast.unparse(one) for one in targets if one is not None]
            apart = first is not None and (first is not block[-2] or end is not block[-1])
            if first is not None and named and apart and not isinstance(first, ast.AugAssign | ast.For):
                yield at(first)


def _is_aside(code: Code, statement: ast.stmt) -> bool:
    """Whether a statement leaves the value of every variable as it is, and only checks or shows it."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    shown = isinstance(call, ast.Call) and code.called(call.func) in (
        "print",
        "logging.debug",
        ".debug",
        "logging.info",
    )
    return shown or isinstance(statement, ast.Assert | ast.Delete | ast.Pass)


@remains("passing_variable")
def chained_names(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """`x = y = …` right before `return x`."""
    for owner in code.nodes:
        for first, second in (two for block in blocks(owner) for two in pairwise(block)):
            value = second.value if isinstance(second, ast.Return) else None
            names = [ast.unparse(one) for one in first.targets] if isinstance(first, ast.Assign) else []
            if len(names) > 1 and isinstance(value, ast.Name) and value.id in names:
                yield at(first)


@remains("recursion")
def hidden_recursion(code: Code, old: Code, _: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Functions that get themselves handed, are looked up by name, or are lambdas that hand themselves on."""
    for node in code.find(ast.Call):
        itself = isinstance(node.func, ast.Name) and node.func.id in [ast.unparse(one) for one in node.args]
        looked_up = isinstance(node.func, ast.Subscript) and "globals()" in ast.unparse(node.func)
        if itself or looked_up:
            yield at(node)
    for name, value in code.values.items():
        if isinstance(value, ast.Lambda) and any(isinstance(one, ast.Name) and one.id == name for one in walk(value)):
            yield at(value)
