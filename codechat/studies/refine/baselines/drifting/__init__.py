"""Refactorings and defects in any language whose grammar says what its nodes are: edits of the text, by its tree.

As for Python, a change is a function under a decorator (`serves`), keyed by the instruction's id, and refuses if it
cannot be sure. A change that the instruction's rule does not call adhered is not made.

Defects are the slips of Python's drifter, where a result can show them: none in a `while` loop, in the head of a `for`
loop except its bound, in what only leaves a loop, or in a message. In a typed language slips that a compiler refuses
are left out: a lost return, and another operator between operands that may be texts.
"""

import random
import re
from typing import Any

from codechat.base.domain import Instruction
from codechat.studies.refine.baselines import first_that_parses
from codechat.studies.refine.baselines.drifting.changes import CHANGES, Edit, Program, applied, instead
from codechat.studies.refine.patterns import adherence
from codechat.studies.refine.patterns.reading.neutral import TreeCode, read_tree
from codechat.studies.refine.patterns.trees.flow import branch, operator_of

OPPOSITE = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "===": "!==", "!==": "===",
}  # fmt: skip
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
WRONG = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "+", "+=": "-=", "-=": "+=", "*=": "+="}


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
    """The code with one defect: its kind drawn first, its place second. None if there is no place for any."""
    tree = read_tree(code, language)
    found: dict[str, list[Edit]] = {}
    for node in tree.nodes:
        for kind, edit in () if _hidden(tree, node) else _slips(tree, node, typed=language == "java"):
            found.setdefault(kind, []).append(edit)
    edited = (lambda edit: applied(tree, [edit]), lambda code: not read_tree(code, language).problem)
    return first_that_parses(found, draw, *edited)


def _hidden(tree: TreeCode, node: Any) -> bool:
    """Whether a slip would not show: outside of functions, in a `while` loop, in what is thrown, in parameters."""
    if tree.around(node, "function") is None or tree.around(node, "while", "throw", "parameters", "assert") is not None:
        return True
    loop = tree.around(node, "for")
    body = loop.child_by_field_name("body") if loop is not None else None
    in_head = body is not None and node.end_byte <= body.start_byte
    return bool(in_head and not (tree.is_a(node, "binary") and node == loop.child_by_field_name("condition")))


def _slips(tree: TreeCode, node: Any, typed: bool) -> list[tuple[str, Edit]]:
    found: list[tuple[str, Edit]] = []
    sign = node.child_by_field_name("operator")
    if tree.is_a(node, "binary"):
        loop = node.parent if tree.is_a(node.parent, "for") else None
        name = operator_of(tree, node)
        if loop is not None and name in BOUNDS:
            found.append(("off by one", instead(sign, BOUNDS[name])))
        elif loop is None and name in OPPOSITE:
            found.append(("flipped comparison", instead(sign, OPPOSITE[name])))
    if tree.is_a(node, "binary", "augmented", "assignment") and operator_of(tree, node) in WRONG:
        name = operator_of(tree, node)
        if not (typed and name[0] in "+%/") and not any(tree.is_a(each, "string") for each in node.children):
            found.append(("wrong operator", instead(sign, WRONG[name])))
    if tree.is_a(node, "number") and re.fullmatch(r"\d{1,8}", tree.of(node)):
        holder = node.parent
        more = str(int(tree.of(node)) + 1)
        if tree.is_a(holder, "declarator"):
            found.append(("wrong initial value", instead(node, more)))
        elif not holder.type.startswith(("switch", "array_access", "subscript", "dimensions")):
            found.append(("off by one", instead(node, more)))
    if tree.is_a(node, "return") and not typed and tree.statements(node):
        value = tree.statements(node)[0]
        found.append(("lost return", Edit(node.start_byte, value.start_byte, "void ")))
    if tree.is_a(node, "if"):
        inside = branch(tree, node, "consequence")
        if inside and not tree.is_a(inside[-1], "break", "continue", "throw"):
            found.append(("dropped branch", instead(node.child_by_field_name("condition"), "(false)")))
    return found
