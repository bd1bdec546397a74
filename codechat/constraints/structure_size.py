"""The size that a data structure of the code must be bounded by: `language;name;size`."""

import re
from dataclasses import replace

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.blanking import blanked
from codechat.constraints.published import without_comments
from codechat.constraints.structures import seen, use_of

_NUMBER = re.compile(r"(?<![\w.])(\d[\d_']*)(?:[uUlL]{1,3}|[iu](?:8|16|32|64|128|size))?(?![\w.]|'\d)")


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

    Those are looked for among names in lower case, so `HashMap` is never found.
    """
    name, size = answer.values
    code = without_comments(code, answer.language)
    wanted = name if answer.language in ("rust", "go") else name.lower()
    found, bounded = wanted in seen(code, answer.language), size in code
    return Finding(found and bounded, f"the published harness sees {name}: {found}, the digits {size}: {bounded}")


def guarded(answer: Answer, code: str) -> Finding:
    name, size = answer.values
    use = use_of(name, answer, code)
    if use is None:
        return Finding(False, f"nothing in the code uses {name}")
    text = blanked(answer.tree(code))
    for number in _NUMBER.finditer(text):
        if re.sub(r"[_']", "", number[1]).lstrip("0") == size:
            return Finding(
                True, f"line {use.line} uses {name}, line {text.count(chr(10), 0, number.start()) + 1} says {size}"
            )
    return Finding(False, f"line {use.line} uses {name}, but no number in the code is {size}")


register(
    ConstraintType(
        "data_structure_size", "data_structure", ("data_structure", "size"), "rule", read, words, official, guarded
    )
)
