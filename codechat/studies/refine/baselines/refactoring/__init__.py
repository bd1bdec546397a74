"""Refactorings: source-to-source transformations that keep behaviour, one per instruction. Pure; nothing is executed.

A transformation is a function under the decorator `transforms`, keyed by the instruction's id. Every one is a change
that a developer asked for it might make. It refuses if it cannot be sure: a baseline that sometimes does nothing is
honest, one that guesses is not. `add_defect` is the opposite, for a baseline that makes mistakes.

The transformations import libcst (0.15 s), so their modules are imported at the first use and not before.
"""

import ast
import importlib
import pkgutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from codechat.base.domain import Instruction
from codechat.studies.refine.baselines.refactoring.base import Refusal, Source, Transformation, registered
from codechat.studies.refine.baselines.refactoring.defects import add_defect
from codechat.studies.refine.patterns import adherence, read
from codechat.studies.refine.patterns.reading.tree import FUNCTIONS


@dataclass(frozen=True, slots=True)
class Revision:
    """The code after a request. `reason` is empty if it was changed, and says why not otherwise."""

    code: str
    reason: str

    @property
    def changed(self) -> bool:
        """Whether the code was changed."""
        return not self.reason


@cache
def _transformations() -> Mapping[str, Transformation]:
    room = importlib.import_module("codechat.studies.refine.baselines.refactoring")
    for module in pkgutil.iter_modules(room.__path__, "codechat.studies.refine.baselines.refactoring."):
        importlib.import_module(module.name)
    return registered


def transformable() -> frozenset[str]:
    """The ids of the instructions that have a transformation."""
    return frozenset(_transformations())


def refactor(code: str, instruction: Instruction, entry_point: str) -> Revision:
    """The code changed as asked, or unchanged if that is not surely safe or the instruction's rule is not met."""
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
    """The reason not to trust a result; empty if there is none."""
    old, new = read(before).tree, read(after).tree
    if old is None or new is None:
        return "the result does not parse"
    if _signature(old, entry_point) != _signature(new, entry_point):
        return "the result has another signature"
    judged = adherence(before, after, instruction)
    return "" if judged.verdict == "adhered" else f"the result is {judged.verdict}: {judged.reason}"


def _signature(tree: ast.Module, entry_point: str) -> str:
    """Names, kinds and defaults of the entry point's parameters; nothing if it is no function of the module."""
    found = [node for node in tree.body if isinstance(node, FUNCTIONS) and node.name == entry_point]
    a = found[-1].args if found else None
    if a is None:
        return ""
    kinds = (a.posonlyargs, a.args, [a.vararg], a.kwonlyargs, [a.kwarg])
    names = [[one.arg for one in kind if one is not None] for kind in kinds]
    defaults = [ast.dump(default) if default else "" for default in (*a.defaults, *a.kw_defaults)]
    return f"{type(found[-1]).__name__} {names} {defaults}"


__all__ = ["Revision", "add_defect", "refactor", "transformable"]
