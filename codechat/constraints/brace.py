"""Where braces stand: `language;K&R`, `language;Allman` or `language;1TBS`."""

import re
from dataclasses import replace
from itertools import pairwise

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import one_of, read_values
from codechat.constraints.blanking import code_of
from codechat.constraints.published import without_comments
from codechat.languages.grammar import Found

_STYLES = ("K&R", "Allman", "1TBS")
_CONTINUING = ("else", "catch", "finally")
_HEAD = re.compile(r"[\w)]\Z")
_FOLLOWING = re.compile(rb"\s*(?:else|catch|finally)\b")
_MEANT = {
    "K&R": "an opening brace stands at the end of the line that it belongs to",
    "Allman": "an opening brace stands in a line of its own",
    "1TBS": "an opening brace stands at the end of its line, and else, catch and finally in the line of a closing one",
}


def read(raw: str) -> Answer:
    answer = read_values(raw, 1, "language;style of braces")
    one_of(answer, answer.values[0], _STYLES)
    return replace(answer, values=tuple(style for style in _STYLES if style.lower() == answer.values[0].lower()))


def words(answer: Answer) -> str:
    return f"The code must have braces in the {answer.values[0]} style: {_MEANT[answer.values[0]]}."


def official(answer: Answer, code: str) -> Finding:
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
                and not line.split("}", 1)[1].strip().startswith(_CONTINUING)
                and following.startswith(_CONTINUING)
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


def guarded(answer: Answer, code: str) -> Finding:
    style = answer.values[0]
    tree = answer.tree(code)
    if not answer.grammar.customs.braces:
        return Finding(None, f"{answer.language.capitalize()} has no braces that could stand in the {style} style")
    if not tree.blocks:
        return Finding(False, "the code has no block in braces")
    for block in tree.blocks:
        if block.text.strip("{} \t\r\n") and (problem := _misplaced(code_of(tree), block, style)):
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
    if follows and (b"\n" in follows[0]) != (style == "Allman"):
        line = block.line + block.text.count("\n")
        where = "in a line of its own" if style == "Allman" else "in the line of the closing brace"
        return f"line {line}: what follows the closing brace is not {where}"
    return ""


register(
    ConstraintType(
        "brace", "coding_style", ("code_convention", "brace_block_formatting"), "rule", read, words, official, guarded
    )
)
