"""The style of code: the case of names, indentation and spacing, braces."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from codechat.sandbox.languages.grammar import Found, Tree
from codechat.studies.multicodeif import constraints
from codechat.studies.multicodeif.constraints import Answer, ConstraintType, Finding, blanked, code_of, register
from codechat.studies.multicodeif.constraints.published import names_seen, without, without_comments

_PUBLISHED = {
    "snake_case": r"[a-z]+[a-z0-9_]*",
    "PascalCase": r"[A-Z][A-Za-z0-9]*",
    "camelCase": r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)*",
    "kebab-case": r"[a-z]+(-[a-z]+)*",
}
_CASES = {
    "snake_case": re.compile(r"[^\WA-Z_]+(?:_[^\WA-Z_]+)*"),
    "PascalCase": re.compile(r"[^\W\da-z_][^\W_]*"),
    "camelCase": re.compile(r"[^\W\dA-Z_][^\W_]*"),
    "kebab-case": re.compile(r"[^\WA-Z_]+(?:-[^\WA-Z_]+)*"),
}
_KINDS = {"class": "class", "struct": "class", "function": "function", "variable": "variable"}
# Names that the language or its runtime demands.
_FIXED = re.compile(r"__\w+__|main|constructor|~\w+|operator\b.*|init|self|cls|this|it|_|std")
_HYPHEN = "qQ9Qq"  # replaces a hyphen within a name while the code is parsed


def _read_naming(raw: str) -> Answer:
    answer = constraints.read_values(raw, 1, "language;class:CASE,function:CASE,variable:CASE")
    for part in answer.values[0].split(","):
        kind, _, case = part.partition(":")
        if kind not in _KINDS or case not in _CASES:
            known = f"{', '.join(_KINDS)} with one of {', '.join(_CASES)}"
            raise ValueError(f"'{part}' is not one of {known}, as class:PascalCase")
    return answer


def _asked(answer: Answer) -> dict[str, str]:
    return dict(part.split(":") for part in answer.values[0].split(","))


def _official_naming(answer: Answer, code: str) -> Finding:
    """Names of `struct` are not examined; short variables (up to four letters), `_x` and capitals neither."""
    asked, seen = _asked(answer), names_seen(code, answer.language)
    for kind in ("class", "function", "variable"):
        for name in sorted(seen[kind]):
            if kind in asked and not re.fullmatch(_PUBLISHED[asked[kind]], name):
                return Finding(False, f"the published harness sees the {kind} {name}, not in {asked[kind]}")
    return Finding(True, "the published harness sees no name in another case")


def guarded(answer: Answer, code: str) -> Finding:
    checked, code = 0, _readable(answer, code)
    for kind, case in _asked(answer).items():
        for found in _names(answer, code, _KINDS[kind]):
            checked += 1
            name = found.text.replace(_HYPHEN, "-")
            if not _CASES[case].fullmatch(name.strip("_#`") or "x"):
                return Finding(False, f"line {found.line}: the {kind} {name} is not in {case}")
    if not checked:
        return Finding(False, f"the code has none of the names asked about: {', '.join(_asked(answer))}")
    return Finding(True, f"all {checked} names are in the cases asked for")


def _readable(answer: Answer, code: str) -> str:
    """The code; if kebab-case is asked for, with a mark in place of hyphens, which no language here allows in names."""
    if "kebab-case" in answer.values[0] and answer.tree(code).broken:
        return re.sub(r"(?<=[A-Za-z0-9])-(?=[A-Za-z])", _HYPHEN, code)
    return code


def _no_name(answer: Answer) -> str:
    """Why no name of a kind can be in the case asked for: by the language's syntax, or as the rule reads names."""
    customs = answer.grammar.customs
    for kind, case in _asked(answer).items():
        hyphened = customs.hyphened.format("a-b")
        if case == "kebab-case" and not _CASES[case].fullmatch(hyphened.strip("_#`")):
            why = f"the rule reads no {hyphened}" if hyphened else f"no name in {answer.language} has a hyphen"
            return f"the names of {kind} cannot be in {case}: {why}"
        if customs.capitalised and (case == "PascalCase") != (_KINDS[kind] == "class"):
            return f"the names of {kind} cannot be in {case}: {answer.language} has capitals for types alone"
    return ""


def _names(answer: Answer, code: str, kind: str) -> Iterator[Found]:
    """The names of a kind at their declarations, except names that the language demands."""
    tree = answer.tree(code)
    classes = {found.text for found in tree.classes}
    functions = [function.name for function in tree.functions if function.name.text not in classes]  # no constructors
    called = {found.start for found in (*functions, *tree.classes)}
    variables = [found for found in tree.variables if found.start not in called]
    for found in {"class": list(tree.classes), "function": functions, "variable": variables}[kind]:
        if not _FIXED.fullmatch(found.text):
            yield found


register(ConstraintType(
    "naming", "coding_style", ("code_convention", "naming_convention"), "rule",
    _read_naming,
    lambda answer: "The code must have "
    f"{', '.join(f'{kind} names in {case}' for kind, case in _asked(answer).items())}.",
    _official_naming, guarded, impossible=_no_name,
    form="language;class:CASE,function:CASE,variable:CASE; CASE: snake_case, camelCase, PascalCase or kebab-case",
    examples=("java;class:PascalCase,function:camelCase",),
))  # fmt: skip


_OPERATORS = ("=", r"\+", "-", r"\*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", r"\|\|")
_CONTINUING = ("<<", ">>", "+", "- ", "* ", "/", "%", "&&", "||", "?", ":", ".", "|", "=")
_SPACED = [*(rf"\w\s+{operator}\s+\w" for operator in _OPERATORS), r",\s+\S"]
_UNSPACED = [*(rf"\w{operator}\w" for operator in _OPERATORS), r",\S"]
_INDENTATION = "language;spaces:N or tabs;spacing or no spacing"


def _read_indentation(raw: str) -> Answer:
    answer = constraints.read_values(raw, 2, _INDENTATION)
    indent, spacing = answer.values
    if not re.fullmatch(r"tabs|spaces:[1-9]", indent) or spacing not in ("spacing", "no spacing"):
        raise ValueError(f"'{raw:.60}' is not of the form {_INDENTATION}")
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
        if found := re.search(pattern, code):
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
    """The first line that begins a block and is not one level deeper than the block's head; empty if there is none.

    It may be as deep as the head, as labels and the content of a namespace often are.
    """
    above: tuple[str, str] | None = None
    for number, line in enumerate(blanked(tree).split("\n"), 1):
        code = line.strip()
        before = line[: len(line) - len(line.lstrip(" \t"))]
        if not code or number in left_out:
            above = above if not code else None
            continue
        if (
            above
            and above[1].endswith(("{", ":"))
            and code[0] not in "})]"
            and before not in (above[0], above[0] + unit)
        ):
            return f"line {number} is not one level deeper than the line above"
        above = (before, code)
    return ""


def _within(tree: Tree) -> set[int]:
    """The lines that begin within a comment or a string."""
    texts = (*tree.comments, *tree.strings)
    return {number for found in texts for number in range(found.line + 1, found.line + found.text.count("\n") + 1)}


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
        comma = operator.text == ","
        sides, where = (after, "after") if comma else (before + after, "around")
        spaced = all(chr(side).isspace() for side in sides)
        if spacing == "spacing" and not spaced and not (comma and after in (b")", b"]", b"}")):
            return f"line {operator.line}: no space {where} {operator.text}"
        if spacing == "no spacing" and any(chr(side) in " \t" for side in sides):
            return f"line {operator.line}: a space {where} {operator.text}"
    return ""


register(ConstraintType(
    "indentation", "coding_style", ("code_convention", "indentation_spacing"), "rule",
    _read_indentation, _words_indentation, _official_indentation, _guarded_indentation,
    unknown=constraints.lacks("operator"), form=_INDENTATION, examples=("go;tabs;spacing",),
))  # fmt: skip


_SECOND = ("else", "catch", "finally")
_HEAD = re.compile(r"[\w)]\Z")
_BRACES = {
    "K&R": "an opening brace stands at the end of the line that it belongs to",
    "Allman": "an opening brace stands in a line of its own",
    "1TBS": "an opening brace stands at the end of its line, and else, catch and finally in the line of a closing one",
}


def _read_braces(raw: str) -> Answer:
    answer = constraints.read_values(raw, 1, "language;style of braces")
    constraints.one_of(answer, answer.values[0], tuple(_BRACES))
    return replace(answer, values=tuple(style for style in _BRACES if style.lower() == answer.values[0].lower()))


def _official_braces(answer: Answer, code: str) -> Finding:
    """Every brace counts, also one in a text; Python has none at the head of a block, so most code passes."""
    style = answer.values[0]
    lines = [line.strip() for line in without_comments(code, answer.language).splitlines() if line.strip()]
    if style == "Allman":  # an opening brace does not stand alone, or a lone one follows no head of a block
        pairs = zip(["", *lines], lines, strict=False)
        wrong = [line for before, line in pairs if "{" in line and (line != "{" or not _HEAD.search(before))]
    else:  # a brace stands alone, or follows something other than a word or a round bracket
        wrong = [line for line in lines if "{" in line and not _HEAD.search(line.split("{", 1)[0].strip())]
    if style == "1TBS":
        closing = [(line, after) for line, after in pairwise(lines) if "}" in line and after.startswith(_SECOND)]
        wrong += [line for line, _ in closing if not line.split("}", 1)[1].strip().startswith(_SECOND)]
    return Finding(
        not wrong, f"the published harness objects to {wrong[0][:60]}" if wrong else "no brace stands wrongly"
    )


def _braceless(answer: Answer) -> str:
    """Why no code can be decided: the language has no braces, or none that a rule knows."""
    if not answer.grammar.customs.braces:
        return f"{answer.language.capitalize()} has no braces that could stand in the {answer.values[0]} style"
    return constraints.lacks("block")(answer)


def _no_brace(answer: Answer) -> str:
    """Why the language has no such brace at the head of a function."""
    if not answer.grammar.customs.braces:
        return _braceless(answer)
    alone = answer.values[0] == "Allman" and not answer.grammar.customs.lone_braces
    return f"{answer.language.capitalize()} ends a line before a lone brace, so no function can have one" * alone


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
    alone = not data[data.rfind(b"\n", 0, block.start) + 1 : block.start].strip()
    if style == "Allman":
        if not alone or data[block.start + 1 : block.end].split(b"\n", 1)[0].strip():
            return f"line {block.line}: the opening brace is not in a line of its own"
    elif alone and data[: block.start].rstrip()[-1:] not in (b"", b";", b"{", b"}"):  # a block that no head owns
        return f"line {block.line}: the opening brace does not end the line that it belongs to"
    follows = re.compile(rb"\s*(?:else|catch|finally)\b").match(data, block.end)
    if style != "K&R" and follows and (b"\n" in follows[0]) != (style == "Allman"):
        line = block.line + block.text.count("\n")
        where = "in a line of its own" if style == "Allman" else "in the line of the closing brace"
        return f"line {line}: what follows the closing brace is not {where}"
    return ""


register(ConstraintType(
    "brace", "coding_style", ("code_convention", "brace_block_formatting"), "rule",
    _read_braces,
    lambda answer: f"The code must have braces in the {answer.values[0]} style: {_BRACES[answer.values[0]]}.",
    _official_braces, _guarded_braces,
    unknown=_braceless, impossible=_no_brace, form="language;K&R, Allman or 1TBS", examples=("java;K&R",),
))  # fmt: skip
