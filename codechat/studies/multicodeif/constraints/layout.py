"""How code is laid out: `language;indentation` and `language;style of braces`."""

import re
from dataclasses import replace
from itertools import pairwise

from codechat.sandbox.languages.grammar import Found, Tree
from codechat.studies.multicodeif.constraints import Answer, ConstraintType, Finding, register
from codechat.studies.multicodeif.constraints.answers import blanked, code_of, lacks, one_of, read_values
from codechat.studies.multicodeif.constraints.published import without, without_comments

_OPERATORS = ("=", r"\+", "-", r"\*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", r"\|\|")
_CONTINUING = ("<<", ">>", "+", "- ", "* ", "/", "%", "&&", "||", "?", ":", ".", "|", "=")
_OPENING = ("{", ":")
_SPACED = [re.compile(rf"\w\s+{operator}\s+\w") for operator in _OPERATORS] + [re.compile(r",\s+\S")]
_UNSPACED = [re.compile(rf"\w{operator}\w") for operator in _OPERATORS] + [re.compile(r",\S")]


def _read_indentation(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;spaces:N or tabs;spacing or no spacing")
    indent, spacing = answer.values
    if not re.fullmatch(r"tabs|spaces:[1-9]", indent) or spacing not in ("spacing", "no spacing"):
        raise ValueError(f"'{raw:.60}' is not of the form language;spaces:N or tabs;spacing or no spacing")
    return replace(answer, values=("\t" if indent == "tabs" else " " * int(indent[-1]), spacing))


def _words_indentation(answer: Answer) -> str:
    unit, spacing = answer.values
    indent = "a tab" if unit == "\t" else f"{len(unit)} spaces"
    around = "one or more spaces" if spacing == "spacing" else "no spaces"
    return f"The code must be indented by {indent} a level, and have {around} around operators and after commas."


def _official_indentation(answer: Answer, code: str) -> Finding:
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


def _guarded_indentation(answer: Answer, code: str) -> Finding:
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
        *(_read_indentation, _words_indentation, _official_indentation, _guarded_indentation),
        unknown=lacks("operator"),
        form="language;spaces:N or tabs;spacing or no spacing",
        examples=("go;tabs;spacing",),
    )
)


_STYLES = ("K&R", "Allman", "1TBS")
_SECOND = ("else", "catch", "finally")
_HEAD = re.compile(r"[\w)]\Z")
_FOLLOWING = re.compile(rb"\s*(?:else|catch|finally)\b")
_MEANT = {
    "K&R": "an opening brace stands at the end of the line that it belongs to",
    "Allman": "an opening brace stands in a line of its own",
    "1TBS": "an opening brace stands at the end of its line, and else, catch and finally in the line of a closing one",
}


def _read_braces(raw: str) -> Answer:
    answer = read_values(raw, 1, "language;style of braces")
    one_of(answer, answer.values[0], _STYLES)
    return replace(answer, values=tuple(style for style in _STYLES if style.lower() == answer.values[0].lower()))


def _words_braces(answer: Answer) -> str:
    return f"The code must have braces in the {answer.values[0]} style: {_MEANT[answer.values[0]]}."


def _official_braces(answer: Answer, code: str) -> Finding:
    """Every brace counts, also one in a text; Python has none at the head of a block, so most code passes."""
    style = answer.values[0]
    cleaned = without_comments(code, answer.language)
    lines = [line.strip() for line in cleaned.splitlines() if line.strip()]
    wrong = _not_allman(lines) if style == "Allman" else _not_attached(lines)
    if not wrong and style == "1TBS":
        wrong = next(
            (
                line
                for line, following in pairwise(lines)
                if "}" in line
                and not line.split("}", 1)[1].strip().startswith(_SECOND)
                and following.startswith(_SECOND)
            ),
            "",
        )
    return Finding(not wrong, f"the published harness objects to {wrong[:60]}" if wrong else "no brace stands wrongly")


def _not_attached(lines: list[str]) -> str:
    """The first line whose brace stands alone, or follows something other than a word or a round bracket."""
    for line in lines:
        if "{" in line and not _HEAD.search(line.split("{", 1)[0].strip()):
            return line
    return ""


def _not_allman(lines: list[str]) -> str:
    """The first line whose opening brace does not stand alone, or whose lone brace follows no head of a block."""
    for before, line in zip(["", *lines], lines, strict=False):
        if "{" in line and (line != "{" or not _HEAD.search(before)):
            return line
    return ""


def _braceless(answer: Answer) -> str:
    """Why no code can be decided: the language has no braces, or none that a rule knows."""
    if not answer.grammar.customs.braces:
        return f"{answer.language.capitalize()} has no braces that could stand in the {answer.values[0]} style"
    return lacks("block")(answer)


def _guarded_braces(answer: Answer, code: str) -> Finding:
    style = answer.values[0]
    tree = answer.tree(code)
    if not tree.blocks:
        return Finding(False, "the code has no block in braces")
    for block in tree.blocks:
        if (style == "Allman" or block.text.strip("{} \t\r\n")) and (
            problem := _misplaced(code_of(tree), block, style)
        ):
            return Finding(False, problem)
    return Finding(True, f"all {len(tree.blocks)} blocks have their braces in the {style} style")


def _misplaced(data: bytes, block: Found, style: str) -> str:
    """The fault in a block's braces, in code without comments; empty if there is none."""
    before = data[data.rfind(b"\n", 0, block.start) + 1 : block.start]
    above = data[: block.start].rstrip()[-1:]
    alone = not before.strip()
    if style == "Allman":
        if not alone or data[block.start + 1 : block.end].split(b"\n", 1)[0].strip():
            return f"line {block.line}: the opening brace is not in a line of its own"
    elif alone and above not in (b"", b";", b"{", b"}"):  # after these it opens a block of its own
        return f"line {block.line}: the opening brace does not end the line that it belongs to"
    follows = _FOLLOWING.match(data, block.end)
    if style != "K&R" and follows and (b"\n" in follows[0]) != (style == "Allman"):
        line = block.line + block.text.count("\n")
        where = "in a line of its own" if style == "Allman" else "in the line of the closing brace"
        return f"line {line}: what follows the closing brace is not {where}"
    return ""


register(
    ConstraintType(
        *("brace", "coding_style", ("code_convention", "brace_block_formatting"), "rule"),
        *(_read_braces, _words_braces, _official_braces, _guarded_braces),
        unknown=_braceless,
        form="language;K&R, Allman or 1TBS",
        examples=("java;K&R",),
    )
)
