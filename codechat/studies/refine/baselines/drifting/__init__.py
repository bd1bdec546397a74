"""Refactorings and defects in any language whose grammar says what its nodes are: edits of the text, by its tree.

As for Python, a transformation is a function under the decorator `transforms`, keyed by the instruction's id, and
refuses if it cannot be sure. A change that the instruction's rule does not call adhered is not made.
"""

import random

from codechat.base.domain import Instruction
from codechat.studies.refine.baselines.drifting.cosmetic import COSMETIC
from codechat.studies.refine.baselines.drifting.defects import defects_of
from codechat.studies.refine.baselines.drifting.edits import Program, applied
from codechat.studies.refine.baselines.drifting.structural import STRUCTURAL
from codechat.studies.refine.patterns import adherence
from codechat.studies.refine.patterns.reading.neutral import read_tree

CHANGES = COSMETIC | STRUCTURAL


def refactor_tree(code: str, instruction: Instruction, language: str, entry_point: str) -> str:
    """The code changed as asked, or unchanged if that is not surely safe or the instruction's rule is not met."""
    change, tree = CHANGES.get(instruction.id), read_tree(code, language)
    edits = change(Program(tree, language, entry_point)) if change is not None and not tree.problem else []
    made = applied(tree, edits)
    new = read_tree(made, language)
    if not edits or new.problem or any(new.outer.get(name) != given for name, given in tree.outer.items()):
        return code
    return made if adherence(code, made, instruction).verdict == "adhered" else code


def add_tree_defect(code: str, language: str, draw: random.Random) -> str | None:
    """The code with one defect: its kind drawn first, its place second. None if there is no place for any.

    Slips that a compiler would refuse are left out, as are those that would only hang a program.
    """
    tree = read_tree(code, language)
    found = defects_of(tree, typed=language == "java")
    while found:
        kind = draw.choice(sorted(found))
        edit = found[kind].pop(draw.randrange(len(found[kind])))
        if not found[kind]:
            del found[kind]
        made = applied(tree, [edit])
        if not read_tree(made, language).problem:
            return made
    return None
