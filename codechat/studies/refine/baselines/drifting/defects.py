"""Defects put into code by its tree: the slips that Python's drifter makes, where they can be seen in a result.

Nothing is changed in a `while` loop, in the head of a `for` loop but for its bound, in what only leaves a loop, or in a
message: such a slip hangs the program or changes no result. In a typed language slips that a compiler refuses are left
out: a lost return, and another operator than the one between what may be texts.
"""

import re
from typing import Any

from codechat.studies.refine.baselines.drifting.edits import Edit, instead
from codechat.studies.refine.patterns.reading.neutral import TreeCode
from codechat.studies.refine.patterns.trees.flow import branch, operator_of

OPPOSITE = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "===": "!==", "!==": "===",
}  # fmt: skip
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
WRONG = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "+", "+=": "-=", "-=": "+=", "*=": "+="}


def defects_of(tree: TreeCode, *, typed: bool) -> dict[str, list[Edit]]:
    """The possible slips by their kind, in source order."""
    found: dict[str, list[Edit]] = {}
    for node in tree.nodes:
        if _hidden(tree, node):
            continue
        for kind, edit in _slips(tree, node, typed):
            found.setdefault(kind, []).append(edit)
    return found


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
