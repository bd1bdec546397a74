"""The functions of a name that a constraint on parameters or results asks about."""

from codechat.constraints.answers import Answer
from codechat.languages.grammar import Function

RECEIVERS = frozenset({"self", "cls"})


def asked(answer: Answer, code: str) -> list[Function]:
    """The functions of the answer's name in the code, without a Python method's `self`, in order."""
    return [each for each in answer.tree(code).functions if each.name.text.split("::")[-1] == answer.values[0]]


def types_of(function: Function) -> list[str]:
    """The types of its parameters as written, without the receiver's; empty if none is written."""
    return [each.type for each in function.parameters if each.name not in RECEIVERS]


def unwritten(function: Function) -> str:
    """The reason why nothing can be said of the parameters, if their types are not written; else empty."""
    return f"line {function.name.line}: not all types of {function.name.text}'s parameters are written"


def absent(answer: Answer) -> str:
    """The reason, if there is no such function."""
    return f"the code has no function {answer.values[0]}"
