"""The types of a function's parameters in order: `language;function;[type,…]`."""

from dataclasses import replace

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.constraints.answers import listed, read_values
from codechat.constraints.published_types import takes
from codechat.constraints.signatures import absent, asked, types_of, unwritten
from codechat.constraints.types import is_kind


def read(raw: str) -> Answer:
    answer = read_values(raw, 2, "language;function;[type,…]")
    return replace(answer, values=(answer.values[0], *listed(answer.values[1])))


def words(answer: Answer) -> str:
    name, *wanted = answer.values
    return f"{name} must take exactly these types of parameters, in this order: {', '.join(wanted)}."


def official(answer: Answer, code: str) -> Finding:
    """The parameters of overloaded methods count as one list; `none` is a parameter without a type."""
    name, *wanted = answer.values
    met = takes(code, answer.language, name, wanted)
    return Finding(met, f"the published harness takes the parameters {'' if met else 'not '}for {', '.join(wanted)}")


def guarded(answer: Answer, code: str) -> Finding:
    name, *wanted = answer.values
    functions = asked(answer, code)
    for function in functions:
        kinds = types_of(function)
        if len(kinds) == len(wanted) and all(map(is_kind, kinds, wanted)):
            return Finding(True, f"line {function.name.line}: {name} takes {', '.join(wanted)}")
        if len(kinds) == len(wanted) and all(
            not kind or is_kind(kind, one) for kind, one in zip(kinds, wanted, strict=True)
        ):
            return Finding(None, unwritten(function))
    if not functions:
        return Finding(False, absent(answer))
    taken = ", ".join(kind[:40] or "a parameter without a type" for kind in types_of(functions[0])) or "nothing"
    return Finding(False, f"line {functions[0].name.line}: {name} takes {taken}, and not {', '.join(wanted)}")


register(
    ConstraintType(
        *("parameter_signature", "interface_specification", ("input_output", "input_order"), "rule"),
        *(read, words, official, guarded),
    )
)
