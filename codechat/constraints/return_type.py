"""The type that a function must return: `language;function;type`."""

from functools import partial

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.parameter_type import supported, wanted_as_written
from codechat.constraints.published_types import returned_as
from codechat.constraints.python_values import fits, without_annotation
from codechat.constraints.signatures import absent, asked
from codechat.constraints.types import is_kind


def read(raw: str) -> Answer:
    return supported(read_values(raw, 2, "language;function;type"))


def words(answer: Answer) -> str:
    return f"{answer.values[0]} must return the type {answer.values[1]}."


def official(answer: Answer, code: str) -> Finding:
    """A piece of the type's text is enough; of Rust's functions only the first with a return type is looked at."""
    wanted = wanted_as_written(answer)
    text = returned_as(code, answer.language, answer.values[0], wanted)
    said = "no return type" if text is None else text
    return Finding(text is not None, f"the published harness takes {said} for {wanted}")


def guarded(answer: Answer, code: str) -> Finding:
    name, wanted = answer.values
    functions = asked(answer, code)
    for function in functions:
        if function.returns and is_kind(function.returns, wanted):
            return Finding(True, f"line {function.name.line}: {name} returns {function.returns[:60]}")
    if not functions:
        return Finding(False, absent(answer))
    if not answer.grammar.customs.typed and not functions[0].returns:
        return Finding(*without_annotation(code, name, partial(_fit, wanted)))
    returned = functions[0].returns[:60] or "a type that is not written"
    return Finding(False, f"line {functions[0].name.line}: {name} returns {returned}, and not {wanted}")


def _fit(wanted: str, values: list[str]) -> bool | None:
    """Whether the value of a `return` is of the type; None if that is unknown."""
    return fits("tuple" if len(values) > 1 else values[0] if values else "None", wanted)


register(
    ConstraintType(
        "return_type",
        "interface_specification",
        ("input_output", "output_type"),
        "rule",
        read,
        words,
        official,
        guarded,
    )
)
