"""Comparison of a result with the reference's: EvalPlus 0.3.1's rules, over decoded plain data.

A dataset names the comparison of each task. Deliberate differences from EvalPlus: HumanEval/32 is decided only by the
polynomial's value (EvalPlus's comparison fails every program), tolerance never broadcasts one shape to another, and
NumPy scalars count as the numbers they hold. Set-valued results compare as sets, for every type.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

from codechat.sandbox.inside.decode import Marked
from codechat.sandbox.suites.values import elements

RTOL = 1e-07  # the relative tolerance, added to the absolute one
FLOAT_ATOL = 1e-6  # for a float result if the task names no tolerance
INT64 = 2**63

Oracle = Literal[
    "equal", "set_equal", "not_none", "anything", "equal_or_zero", "polynomial_root", "surface_area", "digit_distance"
]
ORACLES: tuple[Oracle, ...] = get_args(Oracle)

Arguments = tuple[Any, ...]
Rule = Callable[[Any, Any, Arguments, float], bool]


def _set_equal(actual: Any, expected: Any, arguments: Arguments, atol: float) -> bool:
    return elements(actual) == elements(expected)


def _not_none(actual: Any, expected: Any, arguments: Arguments, atol: float) -> bool:
    if isinstance(actual, bool):
        return actual == (expected is not None)
    return (actual is None) == (expected is None)


def _polynomial_root(actual: Any, expected: Any, arguments: Arguments, atol: float) -> bool:
    """HumanEval/32: any root of the polynomial with the coefficients `arguments[0]`, lowest power first."""
    value = math.fsum(coefficient * math.pow(actual, power) for power, coefficient in enumerate(arguments[0]))
    return abs(value) <= atol


def _surface_area(actual: Any, expected: Any, arguments: Arguments, atol: float) -> bool:
    """Mbpp/581: the height may also be read as the pyramid's own, not the slant's."""
    base, height = arguments
    slant = math.sqrt((base / 2) ** 2 + height**2)
    return bool(actual == expected or abs(actual - round(base**2 + 2 * base * slant)) <= atol)


def _digit_distance(actual: Any, expected: Any, arguments: Arguments, atol: float) -> bool:
    """Mbpp/558: also the sum of the differences of digits, both numbers padded to one length."""
    first, second = (str(number) for number in arguments)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    return bool(actual == expected or actual == sum(abs(int(one) - int(other)) for one, other in pairs))


_RULES: dict[Oracle, Rule] = {
    "equal": lambda actual, expected, *_: bool(actual == expected),
    "set_equal": _set_equal,
    "not_none": _not_none,
    "anything": lambda *_: True,
    "equal_or_zero": lambda actual, expected, *_: bool(actual in (expected, 0)),
    "polynomial_root": _polynomial_root,
    "surface_area": _surface_area,
    "digit_distance": _digit_distance,
}

# Right solutions that EvalPlus 0.3.1 nevertheless fails, and why: here they pass.
EVALPLUS_FAILS: dict[str, str] = {
    "HumanEval/32": "its oracle never records that an input was done",
    "Mbpp/255": "its memory limit counts what the child inherits",
}


class Comparison:
    """Compares the results of one suite in order. It has a memory, as EvalPlus has: after the first result that is a
    float or a sequence of only floats, the float tolerance applies to the rest of the suite."""

    def __init__(self, oracle: Oracle, atol: float) -> None:
        self._rule = _RULES[oracle]
        self._atol = atol

    def holds(self, actual: Any, expected: Any, arguments: Arguments) -> bool:
        """Whether `actual`, decoded plain data, counts as equal to `expected`; never raises for its content."""
        try:
            exact = self._rule(actual, expected, arguments, self._atol)
            self.note(expected)
            if exact or self._rule in (_polynomial_root, _set_equal) or self._atol == 0:
                return exact
            return close(actual, expected, self._atol)
        except (TypeError, ValueError, ArithmeticError, RecursionError, AttributeError):
            return False

    def note(self, expected: Any) -> None:
        """Remember a result that was found equal without `holds`."""
        if self._atol == 0 and is_floats(expected):
            self._atol = FLOAT_ATOL


def is_floats(value: Any) -> bool:
    """Whether `value` is a float or a non-empty list, tuple or array of only floats."""
    if isinstance(value, Marked) and value.kind == "array":
        return is_floats(value.content[2])
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def close(actual: Any, expected: Any, atol: float) -> bool:
    """Whether two numbers, or two equally shaped nests of numbers, differ by at most atol + RTOL·|expected|."""
    if type(actual) is not type(expected):
        return False
    pairs: list[tuple[Any, Any]] = []
    if not _pair(actual, expected, pairs):
        return False
    alone = isinstance(expected, (int, float, complex))
    return all((alone or _fit(pair)) and _near(*pair, atol) for pair in pairs)


def _pair(actual: Any, expected: Any, pairs: list[tuple[Any, Any]]) -> bool:
    """Collect the numbers of two nests side by side; False if their shapes differ or a leaf is no number."""
    if isinstance(expected, Marked) and isinstance(actual, Marked) and actual.kind == expected.kind == "array":
        return actual.content[:2] == expected.content[:2] and _pair(actual.content[2], expected.content[2], pairs)
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            return False
        return all(_pair(one, other, pairs) for one, other in zip(actual, expected, strict=True))
    numbers = isinstance(actual, (int, float, complex)) and isinstance(expected, (int, float, complex))
    pairs.append((actual, expected))
    return numbers


def _fit(values: tuple[Any, ...]) -> bool:
    """Whether integers within a nest fit 64 bits: larger ones make no numeric array, and tolerance does not apply."""
    return all(not isinstance(value, int) or -INT64 <= value < 2 * INT64 for value in values)


def _near(one: Any, other: Any, atol: float) -> bool:
    try:
        if one == other:
            return True
        difference = abs(one - other)
        return math.isfinite(difference) and bool(difference <= atol + RTOL * abs(other))
    except OverflowError:
        return False
