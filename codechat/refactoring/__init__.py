"""Refactorings: source-to-source transformations that keep behaviour, one per instruction. Pure; nothing is executed.

A transformation is a function under the decorator `transforms`, keyed by the instruction's id. It refuses where it
cannot be sure: a baseline that sometimes does nothing is honest, one that guesses is not. `with_defect` is the
opposite, for a baseline that makes mistakes.
"""

from codechat.refactoring.defects import with_defect
from codechat.refactoring.finding import Revision, refactored, transformable

__all__ = ["Revision", "refactored", "transformable", "with_defect"]
