"""Refactorings: source-to-source transformations that keep behaviour, one per instruction. Pure; nothing is executed.

A transformation is a function under the decorator `transforms`, keyed by the instruction's id. Every one is a change
that a developer asked for it might make. It refuses if it cannot be sure: a baseline that sometimes does nothing is
honest, one that guesses is not. `add_defect` is the opposite, for a baseline that makes mistakes.
"""

from codechat.models.baselines.refactoring.defects import add_defect
from codechat.models.baselines.refactoring.finding import Revision, refactor, transformable

__all__ = ["Revision", "add_defect", "refactor", "transformable"]
