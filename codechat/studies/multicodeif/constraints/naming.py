"""The case of names: `language;class:CASE,function:CASE,variable:CASE`."""

import re
from collections.abc import Iterator

from codechat.sandbox.languages.grammar import Found
from codechat.studies.multicodeif.constraints import Answer, ConstraintType, Finding, register
from codechat.studies.multicodeif.constraints.answers import read_values
from codechat.studies.multicodeif.constraints.published import names_seen

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

_HYPHEN = "qQ9Qq"  # what stands for a hyphen within a name while it is read
_HYPHENS = re.compile(r"(?<=[A-Za-z0-9])-(?=[A-Za-z])")


def read(raw: str) -> Answer:
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


def words(answer: Answer) -> str:
    parts = [f"{kind} names in {case}" for kind, case in _asked(answer).items()]
    return f"The code must have {', '.join(parts)}."


def official(answer: Answer, code: str) -> Finding:
    """Names of `struct` are not examined; of variables only those of five letters or more, no `_x`, no capitals."""
    asked, found = _asked(answer), names_seen(code, answer.language)
    for kind in ("class", "function", "variable"):
        for name in sorted(found[kind]):
            if kind in asked and not _PUBLISHED[asked[kind]].fullmatch(name):
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
        *(read, words, official, guarded),
        form="language;class:CASE,function:CASE,variable:CASE; CASE: snake_case, camelCase, PascalCase or kebab-case",
        examples=("java;class:PascalCase,function:camelCase",),
    )
)
