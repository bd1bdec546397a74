"""Results of two programs on the same inputs, by the rules of the task's tests."""

from collections.abc import Sequence
from typing import Any

from codechat.sandbox.inside.decode import Iterated, Marked
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.calls.oracle import FLOAT_ATOL, close
from codechat.sandbox.suites.calls.oracle import Comparison as Rules
from codechat.sandbox.suites.calls.show import show_bytes
from codechat.sandbox.suites.values import Table, equals_itself, read_or_opaque
from codechat.studies.refine.probe.mutating import Arguments, text_of
from codechat.studies.refine.probe.records import Comparison, Difference
from codechat.studies.refine.probe.running import Result

MOST_BYTES = 4096  # of a reference's result
EXACT = 1e300  # a larger integer is no float


def is_comparable(result: Result) -> bool:
    """Whether a reference's result is a plain value that equals itself, and short."""
    return result.kind == "value" and len(result.data) <= MOST_BYTES and equals_itself(read_or_opaque(result.data))


def tolerance(calls: Calls, results: Sequence[Result]) -> float:
    """The absolute tolerance for floats. If the reference gives any, also within nests, the tests' tolerance applies
    from the first input on: rounding is no change of behaviour."""
    floats = any(result.kind == "value" and _has_float(read_or_opaque(result.data)) for result in results)
    return max(calls.atol, FLOAT_ATOL if floats else 0.0)


def _has_float(value: Any) -> bool:
    if isinstance(value, Marked):
        return _has_float(value.content)
    if isinstance(value, (Table, Iterated)):
        return any(map(_has_float, value.items))
    return isinstance(value, (float, complex)) or (isinstance(value, (list, tuple)) and any(map(_has_float, value)))


def differing(
    calls: Calls, atol: float, inputs: Sequence[Arguments], expected: Sequence[Result], actual: Sequence[Result]
) -> list[int]:
    """The numbers of the inputs with different results. Two exceptions are equal; a limit differs from nothing."""
    rules = Rules(calls.oracle, atol)
    found = []
    for number, (one, other) in enumerate(zip(expected, actual, strict=True)):
        if (
            _is_undecided(one, other)
            or (one.kind, one.data) == (other.kind, other.data)
            or one.kind == other.kind == "raised"
        ):
            continue
        if one.kind == other.kind == "value":
            right, claimed = (read_or_opaque(each.data) for each in (one, other))
            if rules.holds(claimed, right, inputs[number]) or _rounded(claimed, right, atol):
                continue
        found.append(number)
    return found


def _rounded(claimed: Any, right: Any, atol: float) -> bool:
    """Whether an integer and a float agree within the tolerance; the tests' rules want one type."""
    if {type(claimed), type(right)} != {int, float}:
        return False
    return close(float(claimed), float(right), atol) if max(abs(claimed), abs(right)) < EXACT else False


def _is_undecided(one: Result, other: Result) -> bool:
    both_long = one.kind == other.kind == "long"
    return "limit" in (one.kind, other.kind) or (both_long and one.data != other.data)


def compared(
    inputs: Sequence[Arguments], expected: Sequence[Result], actual: Sequence[Result], numbers: Sequence[int]
) -> Comparison:
    """The comparison's record, by the `numbers` of the inputs that differ; the inputs are in order of their length."""
    undecided = sum(map(_is_undecided, expected, actual))
    smallest = None
    if numbers:
        first = numbers[0]
        smallest = Difference(
            input=", ".join(map(text_of, inputs[first])), expected=_shown(expected[first]), actual=_shown(actual[first])
        )
    return Comparison(inputs=len(inputs) - undecided, differs=len(numbers), undecided=undecided, smallest=smallest)


def _shown(result: Result) -> str:
    if result.kind == "raised":
        name = result.data.decode(errors="replace")
        return "the process exits" if name == "exit" else f"raises {name}"
    return "a value too long to be shown" if result.kind == "long" else show_bytes(result.data)
