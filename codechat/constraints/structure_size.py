"""The size that a data structure of the code must be bounded by: `language;name;size`."""

import re
from dataclasses import replace

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.blanking import blanked
from codechat.constraints.published import without_comments
from codechat.constraints.published_structures import structure_seen
from codechat.constraints.receivers import CONCRETE
from codechat.constraints.structures import plain, use_of

_NUMBER = re.compile(r"(?<![\w.])(\d[\d_']*)(?:[uUlL]{1,3}|[iu](?:8|16|32|64|128|size))?(?![\w.]|'\d)")

# What stands before a number that says nothing about a size: it is compared with a value, is waited for, or is put in.
_NO_SIZE = re.compile(
    r"\b(?:input|sum|score|grade|value|val|age|price|amount|year|percent\w*|temp\w*|\w*(?:Score|Price|Value|_score|_price"
    r"|_value))\s*(?:[<>]=?|[=!]=)\s*\Z"
    r"|\b(?:sleep\w*|setTimeout|delay|of(?:Seconds|Millis)|from_(?:secs|millis))\s*\([^()]*\Z"
    r"|\b(?:push|push_back|push_front|add|append|insert|put|offer|enqueue|addFirst|addLast)\s*\([^()]*\Z"
    r"|\d\s*[*/]\s*\Z",
    re.IGNORECASE,
)
_ADDED = re.compile(r"[\w)\]]\s*[+-]\s*\Z")
_MADE = re.compile(
    r"(\w+)\s*(?:<[^;(){}]*>)?(?:::(?:<[^;(){}]*>::)?(?:with_capacity|new))?\s*\((?:maxlen|maxsize)?\s*=?\s*\Z"
)


def read(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;structure;size")
    if not answer.values[1].isascii() or not answer.values[1].isdigit():
        raise ValueError(f"the size '{answer.values[1]}' is not a whole number")
    return replace(answer, values=(answer.values[0], str(int(answer.values[1]))))


def words(answer: Answer) -> str:
    name, size = answer.values
    return f"The code must use the data structure {name} of {answer.language}, and bound its size by {size}."


def official(answer: Answer, code: str) -> Finding:
    """The digits count anywhere, also in a text or in a longer number; Rust's and Go's names as they are written.

    Those are searched among names in lower case, so that `HashMap` is never found.
    """
    name, size = answer.values
    code = without_comments(code, answer.language)
    found, bounded = structure_seen(name, code, answer.language), size in code
    return Finding(found and bounded, f"the published harness sees {name}: {found}, the digits {size}: {bounded}")


def guarded(answer: Answer, code: str) -> Finding:
    name, size = answer.values
    use = use_of(name, answer, code)
    if use is None:
        return Finding(False, f"nothing in the code uses {name}")
    tree = answer.tree(code)
    others = CONCRETE - {plain(name), *(found.text.lower() for found in tree.classes)}
    text = blanked(tree)
    for number in _NUMBER.finditer(text):
        if re.sub(r"[_']", "", number[1]).lstrip("0") == size and _may_bound(text, number, others):
            return Finding(
                True, f"line {use.line} uses {name}, line {text.count(chr(10), 0, number.start()) + 1} says {size}"
            )
    return Finding(False, f"line {use.line} uses {name}, but no number that may bound it is {size}")


def _may_bound(text: str, number: re.Match[str], others: frozenset[str]) -> bool:
    """Whether a number may bound a structure, by its surroundings: not as a plain value, nor as the size of others."""
    before, after = text[max(0, number.start() - 120) : number.start()], text[number.end() : number.end() + 40]
    if _NO_SIZE.search(before) or _ADDED.search(before):
        return False
    made = _MADE.search(before)
    if made and made[1].lower() in others:
        return False
    return not (re.search(r"\d\s*,\s*\Z", before) and re.match(r"\s*,\s*\d|\s*[}\]]", after))  # one of a list


register(
    ConstraintType(
        "data_structure_size", "data_structure", ("data_structure", "size"), "rule", read, words, official, guarded
    )
)
