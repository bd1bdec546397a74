"""Indentation, and spaces around operators: `language;spaces:4;spacing` or `language;tabs;no spacing`."""

import re
from dataclasses import replace

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.blanking import blanked
from codechat.constraints.published import without, without_comments
from codechat.languages.grammar import Tree

_OPERATORS = ("=", r"\+", "-", r"\*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", r"\|\|")
_CONTINUING = ("<<", ">>", "+", "- ", "* ", "/", "%", "&&", "||", "?", ":", ".", "|", "=")
_OPENING = ("{", ":")
_SPACED = [re.compile(rf"\w\s+{operator}\s+\w") for operator in _OPERATORS] + [re.compile(r",\s+\S")]
_UNSPACED = [re.compile(rf"\w{operator}\w") for operator in _OPERATORS] + [re.compile(r",\S")]


def read(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;spaces:N or tabs;spacing or no spacing")
    indent, spacing = answer.values
    if not re.fullmatch(r"tabs|spaces:[1-9]", indent) or spacing not in ("spacing", "no spacing"):
        raise ValueError(f"'{raw:.60}' is not of the form language;spaces:N or tabs;spacing or no spacing")
    return replace(answer, values=("\t" if indent == "tabs" else " " * int(indent[-1]), spacing))


def words(answer: Answer) -> str:
    unit, spacing = answer.values
    indent = "a tab" if unit == "\t" else f"{len(unit)} spaces"
    around = "one or more spaces" if spacing == "spacing" else "no spaces"
    return f"The code must be indented by {indent} a level, and have {around} around operators and after commas."


def official(answer: Answer, code: str) -> Finding:
    """Blank lines before the code and all strings are taken out, so that the code around a string moves together."""
    unit, spacing = answer.values
    code = without("Token.Literal.String", without_comments(code, answer.language), answer.language)
    for line in code.split("\n"):
        before = line[: len(line) - len(line.lstrip())] if line.strip() else ""
        if (" " in before) if unit == "\t" else ("\t" in before or len(before) % len(unit) != 0):
            return Finding(False, f"the published harness objects to the indentation of {line.strip()[:40]}")
    for pattern in _UNSPACED if spacing == "spacing" else _SPACED:
        if found := pattern.search(code):
            return Finding(False, f"the published harness objects to {' '.join(found[0].split())[:40]}")
    return Finding(True, "the published harness objects to nothing")


def guarded(answer: Answer, code: str) -> Finding:
    unit, spacing = answer.values
    tree = answer.tree(code)
    within, free = _within(tree), _free(tree)
    indented = 0
    for number, line in enumerate(code.split("\n"), 1):
        before = line[: len(line) - len(line.lstrip(" \t"))]
        if not line.strip() or not before or number in within:
            continue
        indented += 1
        if unit == "\t" and " " in before and number not in free:
            return Finding(False, f"line {number} is not indented by tabs alone")
        if unit != "\t" and "\t" in before:
            return Finding(False, f"line {number} is not indented by spaces alone")
        if unit != "\t" and number not in free and len(before) % len(unit):
            return Finding(False, f"line {number} is indented by {len(before)} spaces, no multiple of {len(unit)}")
    problem = _wrong_step(tree, unit, within | free) or _spacing(tree, spacing)
    return Finding(not problem, problem or f"all {indented} indented lines and all operators are as asked for")


def _wrong_step(tree: Tree, unit: str, left_out: set[int]) -> str:
    """The first line that begins a block and is not one level deeper than the block's head; empty if none is.

    It may be as deep as the head, as labels and the content of a namespace often are.
    """
    above: tuple[str, str] | None = None
    for number, line in enumerate(blanked(tree).split("\n"), 1):
        code = line.strip()
        before = line[: len(line) - len(line.lstrip(" \t"))]
        if not code or number in left_out:
            above = above if not code else None
            continue
        if above and above[1].endswith(_OPENING) and code[0] not in "})]" and before not in (above[0], above[0] + unit):
            return f"line {number} is not one level deeper than the line above"
        above = (before, code)
    return ""


def _within(tree: Tree) -> set[int]:
    """The lines that begin within a comment or a string."""
    lines: set[int] = set()
    for found in (*tree.comments, *tree.strings):
        lines |= set(range(found.line + 1, found.line + found.text.count("\n") + 1))
    return lines


def _free(tree: Tree) -> set[int]:
    """The lines that continue an expression, in brackets or not: they may be aligned to it."""
    lines: set[int] = set()
    opened: list[str] = []
    for number, line in enumerate(blanked(tree).split("\n"), 1):
        if (opened and opened[-1] != "{") or line.lstrip().startswith(_CONTINUING):
            lines.add(number)
        for character in line:
            if character in "([{":
                opened.append(character)
            elif character in ")]}" and opened:
                opened.pop()
    return lines


def _spacing(tree: Tree, spacing: str) -> str:
    """The first operator or comma that lacks the spaces asked for, or has some if none are; empty if there is none."""
    for operator in tree.operators:
        before, after = tree.data[operator.start - 1 : operator.start], tree.data[operator.end : operator.end + 1]
        sides = after if operator.text == "," else before + after
        spaced = [chr(side).isspace() for side in sides]
        if spacing == "spacing" and not all(spaced) and not (operator.text == "," and after in (b")", b"]", b"}")):
            return f"line {operator.line}: no space {'after' if operator.text == ',' else 'around'} {operator.text}"
        if spacing == "no spacing" and any(chr(side) in " \t" for side in sides):
            return f"line {operator.line}: a space {'after' if operator.text == ',' else 'around'} {operator.text}"
    return ""


register(
    ConstraintType(
        *("indentation", "coding_style", ("code_convention", "indentation_spacing"), "rule"),
        *(read, words, official, guarded),
    )
)
