"""Refactorings: source-to-source transformations that keep behaviour, one per instruction. Pure; nothing is executed.

A transformation is a function under the decorator `transforms`, keyed by the instruction's id: a change that a person might
make. It refuses if it cannot be sure: a baseline that sometimes does nothing is honest, one that guesses is not.

`add_defect` adds a small, real slip, by which code runs and gives wrong results. Sites where a result cannot show the
slip, or where it hangs the program, are left out: `while` loops, branches that leave a loop, assertions and messages.

The transformations import libcst (0.15 s), so their modules are imported at the first use and not before.
"""

import ast
import importlib
import pkgutil
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from codechat.base.domain import Instruction
from codechat.studies.refine.baselines import first_that_parses
from codechat.studies.refine.patterns import Code, adherence, read
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS

_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_WRONG: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "+", ast.Pow: "*",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Revision:
    """The code after a request. `reason` is empty if it was changed, and says why not otherwise."""

    code: str
    reason: str

    @property
    def changed(self) -> bool:
        return not self.reason


@cache
def _transformations() -> Mapping[str, Callable[[Any], str]]:
    """The transformations by the instruction's id."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    from codechat.studies.refine.baselines.refactoring.trees import registered

    return registered


def transformable() -> frozenset[str]:
    """The ids of the instructions that have a transformation."""
    return frozenset(_transformations())


def refactor(code: str, instruction: Instruction, entry_point: str) -> Revision:
    """The code changed as asked, or unchanged if that is not surely safe or the instruction's rule is not met."""
    from codechat.studies.refine.baselines.refactoring.trees import Refusal, Source

    transformation = _transformations().get(instruction.id)
    if transformation is None:
        return Revision(code, "no transformation for this instruction")
    if read(code).tree is None:
        return Revision(code, "the code does not parse")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program's own escapes and comparisons, read as parts of it
            after = transformation(Source(code, entry_point))
    except Refusal as refusal:
        return Revision(code, str(refusal))
    except SyntaxError as error:  # libcst's word for a tree that could not be written out
        return Revision(code, f"the parts do not fit together: {error}")
    fault = _fault(code, after, instruction, entry_point)
    return Revision(code, fault) if fault else Revision(after, "")


def _fault(before: str, after: str, instruction: Instruction, entry_point: str) -> str:
    old, new = read(before).tree, read(after).tree
    if old is None or new is None:
        return "the result does not parse"
    if _signature(old, entry_point) != _signature(new, entry_point):
        return "the result has another signature"
    judged = adherence(before, after, instruction)
    return "" if judged.verdict == "adhered" else f"the result is {judged.verdict}: {judged.reason}"


def _signature(tree: ast.Module, entry_point: str) -> str:
    """Names, kinds and defaults of the entry point's parameters; empty if the module has no such function."""
    found = [node for node in tree.body if isinstance(node, FUNCTIONS) and node.name == entry_point]
    a = found[-1].args if found else None
    if a is None:
        return ""
    kinds = (a.posonlyargs, a.args, [a.vararg], a.kwonlyargs, [a.kwarg])
    names = [[one.arg for one in kind if one is not None] for kind in kinds]
    defaults = [ast.dump(default) if default else "" for default in (*a.defaults, *a.kw_defaults)]
    return f"{type(found[-1]).__name__} {names} {defaults}"


@dataclass(frozen=True, slots=True)
class Defect:
    """An edit: the half-open span of the text in bytes, by (line, column), and what replaces it."""

    kind: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def add_defect(code: str, draw: random.Random) -> str | None:
    """The code with one defect: its kind drawn first, its place second. None if there is no place for any."""
    source = read(code)
    found: dict[str, list[Defect]] = {}
    for node in _sites(source):
        for defect in (*_of_statement(source, node), *_of_expression(source, node)):
            found.setdefault(defect.kind, []).append(defect)
    edited = (lambda defect: _edited(source, defect), lambda code: read(code).tree is not None)
    return first_that_parses(found, draw, *edited)


def _sites(code: Code) -> Iterator[ast.AST]:
    hidden = (ast.While, ast.Assert, ast.Raise, ast.JoinedStr, ast.arguments, ast.ExceptHandler)
    for node in code.nodes:
        around = [node, *code.ancestors(node)]
        if any(isinstance(one, hidden) for one in around) or not any(isinstance(one, FUNCTIONS) for one in around[1:]):
            continue
        asides = [one.value for one in around if isinstance(one, ast.Expr)]  # docstrings, and calls that only log
        called = [one.func if isinstance(one, ast.Call) else one for one in asides]
        if not any(isinstance(one, ast.Constant) or getattr(one, "attr", "") == "debug" for one in called):
            yield node


def _span(node: ast.expr | ast.stmt) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _operator(code: Code, left: ast.expr, right: ast.expr, kind: str, text: str) -> Iterator[Defect]:
    """Another operator between two operands, if they share a line and no parenthesis stands between them."""
    (first, begin), (last, end) = _span(left)[1], _span(right)[0]
    if first == last and not set(b"()") & set(code.lines[first - 1].encode()[begin:end]):
        yield Defect(kind, (first, begin), (last, end), f" {text} ")


def _of_statement(code: Code, node: ast.AST) -> Iterator[Defect]:
    """A lost return, another augmented operator, a wrong initial value, a dropped branch."""
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        after = code.lines[node.lineno - 1].encode()[node.col_offset + 6 :]
        end = node.col_offset + 6 + len(after) - len(after.lstrip())
        yield Defect("lost return", (node.lineno, node.col_offset), (node.lineno, end), "")
    elif isinstance(node, ast.AugAssign) and type(node.op) in _WRONG:
        yield from _operator(code, node.target, node.value, "wrong operator", f"{_WRONG[type(node.op)]}=")
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, int | str):
            other = not value.value if isinstance(value.value, bool) else value.value
            text = '"?"' if isinstance(other, str) else repr(other if isinstance(value.value, bool) else other + 1)
            yield Defect("wrong initial value", *_span(value), text)
        elif isinstance(value, ast.List) and not value.elts:
            yield Defect("wrong initial value", *_span(value), "[0]")
    elif isinstance(node, ast.If) and not isinstance(node.body[-1], ast.Break | ast.Continue | ast.Raise | ast.Pass):
        yield Defect("dropped branch", *_span(node.test), "False")  # its block does more than leave a loop


def _of_expression(code: Code, node: ast.AST) -> Iterator[Defect]:
    """A flipped comparison, another operator, an off-by-one."""
    elsewhere = (ast.Assign, ast.AnnAssign, ast.Dict, ast.MatchValue, ast.Slice, ast.keyword)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _operator(code, node.left, node.comparators[0], "flipped comparison", _OPPOSITE[type(node.ops[0])])
    elif isinstance(node, ast.BinOp) and type(node.op) in _WRONG:
        yield from _operator(code, node.left, node.right, "wrong operator", _WRONG[type(node.op)])
    elif isinstance(node, ast.Constant):
        if type(node.value) is int and not isinstance(code.parents.get(node), elsewhere):
            yield Defect("off by one", *_span(node), repr(node.value + 1))
    elif isinstance(node, ast.Call) and code.origin(node.func) == "range" and len(node.args) in (1, 2):
        end = _span(node.args[-1])[1]
        if not isinstance(node.args[-1], ast.Starred | ast.Constant):
            yield Defect("off by one", end, end, " - 1")


def _edited(code: Code, defect: Defect) -> str:
    lines = [line.encode() for line in code.lines]
    (first, begin), (last, end) = defect.start, defect.end
    head, tail = lines[first - 1][:begin], lines[last - 1][end:]
    lines[first - 1 : last] = [head + defect.text.encode() + tail]
    return b"\n".join(lines).decode()
