"""The type of a data structure that code must use: `language;name`."""

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.published import without_comments
from codechat.constraints.published_structures import structures_seen
from codechat.constraints.structures import use_of


def read(raw: str) -> Answer:
    return read_values(raw, 1, "language;structure")


def words(answer: Answer) -> str:
    return f"The code must use the data structure {answer.values[0]} of {answer.language}."


def official(answer: Answer, code: str) -> Finding:
    """A name with a package, such as `sync.Map`, equals no type's name: only four of Python's are seen with theirs."""
    found = answer.values[0].lower() in structures_seen(without_comments(code, answer.language), answer.language)
    return Finding(found, f"the published harness sees {'' if found else 'no '}{answer.values[0]}")


def guarded(answer: Answer, code: str) -> Finding:
    name = answer.values[0]
    use = use_of(name, answer, code)
    return Finding(use is not None, f"line {use.line} uses {name}" if use else f"nothing in the code uses {name}")


register(
    ConstraintType(
        "data_structure_type", "data_structure", ("data_structure", "type"), "rule", read, words, official, guarded
    )
)
