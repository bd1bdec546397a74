"""The style of code: the case of names, comments, indentation and spacing, braces."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise

from codechat.sandbox.languages import languages
from codechat.sandbox.languages.grammar import Customs, Found, Parsed, Tree
from codechat.studies.multicodeif.constraints import (
    Answer,
    ConstraintType,
    Finding,
    blanked,
    code_of,
    lacks,
    one_of,
    read_values,
    register,
)
from codechat.studies.multicodeif.constraints.published import comments_kept, names_seen, without, without_comments

_PUBLISHED = {
    "snake_case": re.compile(r"[a-z]+[a-z0-9_]*"),
    "PascalCase": re.compile(r"[A-Z][A-Za-z0-9]*"),
    "camelCase": re.compile(r"[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)*"),
    "kebab-case": re.compile(r"[a-z]+(-[a-z]+)*"),
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

_HYPHEN = "qQ9Qq"  # what stands for a hyphen within a name while it is _read_naming
_HYPHENS = re.compile(r"(?<=[A-Za-z0-9])-(?=[A-Za-z])")


def _read_naming(raw: str) -> Answer:
    answer = read_values(raw, 1, "language;class:CASE,function:CASE,variable:CASE")
    for part in answer.values[0].split(","):
        kind, _, case = part.partition(":")
        if kind not in _KINDS or case not in _CASES:
            raise ValueError(
                f"'{part}' is not one of {', '.join(_KINDS)} with one of {', '.join(_CASES)}, as class:PascalCase"
            )
    return answer


def _asked(answer: Answer) -> dict[str, str]:
    return dict(part.split(":") for part in answer.values[0].split(","))


def _words_naming(answer: Answer) -> str:
    parts = [f"{kind} names in {case}" for kind, case in _asked(answer).items()]
    return f"The code must have {', '.join(parts)}."


def _official_naming(answer: Answer, code: str) -> Finding:
    """Names of `struct` are not examined; of variables only those of five letters or more, no `_x`, no capitals."""
    asked, found = _asked(answer), names_seen(code, answer.language)
    for kind in ("class", "function", "variable"):
        for name in sorted(found[kind]):
            if kind in asked and not _PUBLISHED[asked[kind]].fullmatch(name):
                return Finding(False, f"the published harness sees the {kind} {name}, not in {asked[kind]}")
    return Finding(True, "the published harness sees no name in another case")


def _guarded_naming(answer: Answer, code: str) -> Finding:
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
        return _HYPHENS.sub(_HYPHEN, code)
    return code


def _names(answer: Answer, code: str, kind: str) -> Iterator[Found]:
    """The names of a kind at their declarations, except those that the language demands."""
    tree = answer.tree(code)
    classes = {found.text for found in tree.classes}
    functions = [function.name for function in tree.functions if function.name.text not in classes]  # no constructors
    called = {found.start for found in (*functions, *tree.classes)}
    variables = [found for found in tree.variables if found.start not in called]
    for found in {"class": list(tree.classes), "function": functions, "variable": variables}[kind]:
        if not _FIXED.fullmatch(found.text):
            yield found


register(
    ConstraintType(
        *("naming", "coding_style", ("code_convention", "naming_convention"), "rule"),
        *(_read_naming, _words_naming, _official_naming, _guarded_naming),
        form="language;class:CASE,function:CASE,variable:CASE; CASE: snake_case, camelCase, PascalCase or kebab-case",
        examples=("java;class:PascalCase,function:camelCase",),
    )
)


_OPTIONAL = frozenset({"main", "toString", "equals", "hashCode", "fmt", "init"})


def _undocumented(tree: Tree, customs: Customs) -> tuple[int, list[Found]]:
    """The number of functions and types, and the names of those that have no documentation.

    An entry point, a test, and a method that overrides one need none.
    """
    names = [*tree.classes, *(function.name for function in tree.functions)]
    asked = [found for found in names if found.text not in _OPTIONAL and not _overrides(tree, found)] or names
    if customs.docstrings:
        missing = [found for found in asked if not _has_docstring(tree, found)]
    else:
        missing = [found for found in asked if not _has_comment(tree, found, customs)]
    return len(asked), sorted(missing, key=lambda found: found.start)


def _overrides(tree: Tree, name: Found) -> bool:
    line = tree.data.rfind(b"\n", 0, name.start)
    above = tree.data[:line][-200:].rstrip().rsplit(b"\n", 1)[-1]
    here = tree.data[line + 1 : name.start]
    return any(mark in above or mark in here.split() for mark in (b"@Override", b"#[test]", b"@Test", b"override"))


def _has_docstring(tree: Tree, name: Found) -> bool:
    """Whether the first statement behind the name's head is a documenting string."""
    for doc in tree.docs:
        if doc.start > name.end:
            between = tree.data[name.end : doc.start].decode("utf-8", "replace")
            return bool(re.search(r":\s*(?:#[^\n]*\s*)*\Z", between)) and not re.search(
                r"\n\s*(?:def|class)\b", between
            )
    return False


def _has_comment(tree: Tree, name: Found, customs: Customs) -> bool:
    """Whether the last comment before the name is documentation, with nothing between but the name's own head."""
    before = [found for found in tree.comments if found.end <= name.start]
    if not before or not re.match(customs.documents, before[-1].text):
        return False
    between = tree.data[before[-1].end : name.start].decode("utf-8", "replace")
    if re.search(r"[;{}]", between) or len(between) > 500:
        return False
    if not customs.named:
        return True
    if re.search(r"\n[ \t\r]*\n", between):
        return False
    start = next((found for found in reversed(before) if not _joined(tree, found, before)), before[-1])
    return bool(re.match(rf"(?:{customs.documents})\s*(?:A |An |The )?{re.escape(name.text)}\b", start.text))


def _joined(tree: Tree, comment: Found, before: list[Found]) -> bool:
    """Whether a comment continues the one on the line above it."""
    return any(
        other.end <= comment.start
        and not tree.data[other.end : comment.start].strip()
        and other.line == comment.line - 1
        for other in before
    )


_DOCUMENTED = (
    "a documentation comment of the language for each function and type, but for an entry point, a test and what"
    " overrides another"
)
_COMMENTS = {
    "single-line comment": "at least one comment, and each comment must end with its line",
    "multi-line comment": "at least one comment, and each must be written so that it may span lines",
    "inline comment": "at least one comment, and each must stand in a line with code",
    "block comment": "a comment in lines of its own above the code that it describes",
}


@cache
def _documentations() -> Mapping[str, str]:
    """The names of documentation comments, each with the language that has it."""
    parsed = [each for each in languages() if isinstance(each, Parsed)]
    return {own: each.names[0] for each in parsed if (own := each.grammar.customs.documentation)}


def _read_comment(raw: str) -> Answer:
    answer = read_values(raw, 1, "language;style of comments")
    one_of(answer, answer.values[0], (*_COMMENTS, *_documentations()))
    if answer.language != _documentations().get(answer.values[0].lower(), answer.language):
        raise ValueError(f"{answer.language} has no {answer.values[0]}")
    return answer


def _words_comment(answer: Answer) -> str:
    style = answer.values[0]
    return f"The code must have comments in the style {style}: {_COMMENTS.get(style.lower(), _DOCUMENTED)}."


def _official_comment(answer: Answer, code: str) -> Finding:
    """Code without comments passes for inline ones, and code without functions for docstrings and GoDoc."""
    met = comments_kept(answer.values[0].lower(), code, answer.language)
    return Finding(met, f"the published harness sees {'' if met else 'no '}{answer.values[0]}")


def _guarded_comment(answer: Answer, code: str) -> Finding:
    style = answer.values[0].lower()
    tree, joined = answer.tree(code), answer.grammar.customs.docstrings
    if style in _documentations():
        return _documented(answer, tree)
    comments = _spanning(tree) if joined and style == "multi-line comment" else list(tree.comments)
    if not comments:
        return Finding(False, "the code has no comment")
    if style == "block comment":
        return _above_code(tree, comments)
    for found in comments:
        if problem := _problem(tree, found, style):
            return Finding(False, f"line {found.line}: the comment {problem}")
    return Finding(True, f"all {len(comments)} comments are in the style {answer.values[0]}")


def _problem(tree: Tree, comment: Found, style: str) -> str:
    """The reason why a comment is not in a style; empty if it is."""
    spans = comment.text.startswith(("/*", "{-", '"', "'")) or "\n" in comment.text
    problems = {
        "inline comment": "" if _beside_code(tree, comment) else "stands in a line without code",
        "single-line comment": "is one that may span lines" if spans else "",
        "multi-line comment": "" if spans else "ends with its line",
    }
    return problems[style]


def _spanning(tree: Tree) -> list[Found]:
    """The comments and the documenting strings; comments on consecutive lines count as one."""
    joined: list[Found] = []
    for found in tree.comments:
        last = joined[-1] if joined else None
        gap = tree.data[last.end : found.start] if last else b"-"
        if last and re.fullmatch(rb"\r?\n[ \t]*", gap) and not _beside_code(tree, last):
            joined[-1] = Found(f"{last.text}\n{found.text}", last.line, last.start, found.end)
        else:
            joined.append(found)
    return sorted((*joined, *tree.docs), key=lambda found: found.start)


def _beside_code(tree: Tree, comment: Found) -> bool:
    """Whether there is code in the comment's first or last line."""
    text = code_of(tree)
    first = text[text.rfind(b"\n", 0, comment.start) + 1 : comment.start]
    end = text.find(b"\n", comment.end)
    return bool(first.strip() or text[comment.end : end if end >= 0 else None].strip())


def _above_code(tree: Tree, comments: list[Found]) -> Finding:
    for found in comments:
        rest = tree.data[found.end :].lstrip(b" \t\r")
        if rest.startswith(b"\n") and rest[1:].split(b"\n", 1)[0].strip() and not _beside_code(tree, found):
            return Finding(True, f"line {found.line}: a comment stands above the code that it describes")
    return Finding(False, "no comment stands in lines of its own right above code")


def _documented(answer: Answer, tree: Tree) -> Finding:
    total, missing = _undocumented(tree, answer.grammar.customs)
    if not total:
        return Finding(False, "the code has no function or type that could be documented")
    if missing:
        return Finding(False, f"line {missing[0].line}: {missing[0].text} has no {answer.values[0]}")
    return Finding(True, f"all {total} functions and types have their {answer.values[0]}")


register(
    ConstraintType(
        *("comment", "coding_style", ("code_convention", "comment_formatting"), "rule"),
        *(_read_comment, _words_comment, _official_comment, _guarded_comment),
        form="language;Single-line, Multi-line, Inline or Block comment, or the language's documentation",
        examples=(
            "java;Single-line comment",
            "python;Python docstring",
        ),
    )
)


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
