"""The type that a parameter of a function must have: `language;function;type`."""

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import read_values
from codechat.constraints.published_types import SUPPORTED, is_of, seen
from codechat.constraints.signatures import absent, asked, types_of, unwritten
from codechat.constraints.types import is_kind


def read(raw: str) -> Answer:
    return supported(read_values(raw, 2, "language;function;type"))


def supported(answer: Answer) -> Answer:
    """The answer, if its type is one that both rules know. Raises `ValueError` otherwise."""
    kind = answer.values[1]
    if kind not in SUPPORTED and not kind.startswith("Struct:"):
        raise ValueError(f"the type '{kind}' is none of {', '.join(sorted(SUPPORTED))} and Struct:NAME")
    return answer


def words(answer: Answer) -> str:
    return f"A parameter of {answer.values[0]} must be of the type {answer.values[1]}."


def wanted_as_written(answer: Answer) -> str:
    """The type with its spaces, as the published harness looks for it in `Struct: Name`."""
    return answer.raw.split(";")[2]


def official(answer: Answer, code: str) -> Finding:
    """A piece of a type's text is enough: `Point` is an integer."""
    wanted = wanted_as_written(answer)
    for function in seen(code, answer.language, answer.values[0]):
        arrays = function.arrays or (False,) * len(function.parameters)
        for text, array in zip(function.parameters, arrays, strict=True):
            if is_of(text, wanted, answer.language, array=array):
                return Finding(True, f"the published harness takes {text} for {wanted}")
    return Finding(False, f"the published harness takes no parameter for {wanted}")


def guarded(answer: Answer, code: str) -> Finding:
    name, wanted = answer.values
    functions = asked(answer, code)
    for function in functions:
        for kind in types_of(function):
            if kind and is_kind(kind, wanted):
                return Finding(True, f"line {function.name.line}: {name} takes {kind[:60]}")
    if not functions:
        return Finding(False, absent(answer))
    if any(not kind for function in functions for kind in types_of(function)):
        return Finding(None, unwritten(functions[0]))
    taken = ", ".join(kind[:40] or "a parameter without a type" for kind in types_of(functions[0])) or "nothing"
    return Finding(False, f"line {functions[0].name.line}: {name} takes {taken}, and no {wanted}")


register(
    ConstraintType(
        "parameter_type",
        "interface_specification",
        ("input_output", "input_type"),
        "rule",
        read,
        words,
        official,
        guarded,
    )
)
