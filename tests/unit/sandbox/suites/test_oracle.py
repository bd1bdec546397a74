"""The comparison rules, on decoded plain data."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.sandbox.inside.decode import Iterated, Opaque
from codechat.sandbox.suites.calls.oracle import ORACLES, Comparison, Oracle

NAN, INF = float("nan"), float("inf")


def holds(
    actual: Any, expected: Any, oracle: Oracle = "equal", atol: float = 0.0, arguments: tuple[Any, ...] = ()
) -> bool:
    return Comparison(oracle, atol).holds(actual, expected, arguments)


@pytest.mark.parametrize(
    ("actual", "expected", "right"),
    [
        (1, 1, True),
        (1.0, 1, True),
        (True, 1, True),
        (1 + 0j, 1, True),
        ([1, 2], [1.0, 2.0], True),
        ((1, 2), [1, 2], False),
        ("a", b"a", False),
        ({"a": 1}, {"a": True}, True),
        (frozenset({1}), frozenset({1.0}), True),
        (NAN, float("nan"), False),
        ([NAN], [float("nan")], False),
        (INF, INF, True),
        (-0.0, 0.0, True),
        (None, False, False),
        (Opaque("x"), Opaque("x"), False),
        (10**400, 10**400 + 1, False),
    ],
)
def test_equality_is_the_languages_own(actual: Any, expected: Any, right: bool) -> None:
    assert holds(actual, expected) is right


@pytest.mark.parametrize(
    ("actual", "expected", "atol", "right"),
    [
        (0.1 + 0.2, 0.3, 0.0, True),
        (0.3001, 0.3, 0.0, False),
        ([0.1 + 0.2], [0.3], 0.0, True),
        ([[0.1 + 0.2]], [[0.3]], 0.0, False),  # no float, nor a sequence of floats alone: no tolerance
        ([[0.1 + 0.2]], [[0.3]], 1e-6, True),
        ((0.3,), [0.3], 1e-6, False),
        (1, 1.0000001, 1e-6, False),  # the types must agree where the values do not
        ([1], [1.0000001], 1e-6, True),
        ([], [1.0], 1e-6, False),
        ([[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0]], 1.0, False),  # no shape is stretched to another
        (INF, 1.0, 1e-6, False),
        (NAN, 1.0, 1e-6, False),
        ("a", "b", 1e-6, False),
        ([1.0, None], [1.0, None], 1e-6, True),
        ([1.1, None], [1.0, None], 1.0, False),
        (1e12, 1e12 + 1e4, 1e-6, True),  # the relative part
        (10**98 + 10**82, 10**98, 1e-6, True),  # an integer by itself, of any size
        (10**98 + 10**92, 10**98, 1e-6, False),
        (10**400 + 1, 10**400, 1e-6, False),  # but for those that no float holds
        ([10**30], [10**30 + 1], 1e-6, False),  # integers beyond 64 bits within a list are compared exactly
        ([2**63 + 2], [2**63], 1e-6, True),
        ([1j], [1j + 1e-9], 1e-6, True),
    ],
)
def test_float_tolerance(actual: Any, expected: Any, atol: float, right: bool) -> None:
    assert holds(actual, expected, atol=atol) is right


NUMBERS = st.sampled_from([0, 3, -7, 2**53, 2**63, -(2**63) - 1, 2**64, 10**23, 10**98, 10**309, 0.5, 1e300, 1 + 2j])
NUDGES = st.sampled_from([0.0, 1e-16, 1e-9, 3e-7, 0.1])


def nudged(number: Any, by: float) -> Any:
    """A number of the same type that differs by this share."""
    return number + number * int(by * 10**17) // 10**17 if isinstance(number, int) else number * (1 + by)


@given(st.lists(st.tuples(NUMBERS, NUDGES), min_size=1, max_size=3), st.booleans())
def test_the_tolerance_is_that_of_numpy(pairs: list[tuple[Any, float]], alone: bool) -> None:
    expected: Any = [number for number, _ in pairs]
    actual: Any = [nudged(*pair) for pair in pairs]
    if alone:
        actual, expected = actual[0], expected[0]
    try:
        near = bool(np.allclose(actual, expected, rtol=1e-7, atol=1e-6))
    except (TypeError, OverflowError):
        near = False
    assert holds(actual, expected, atol=1e-6) is (near or actual == expected)


def test_after_a_float_the_tolerance_holds_for_the_rest_of_the_suite() -> None:
    fresh, used = Comparison("equal", 0.0), Comparison("equal", 0.0)
    assert used.holds(1.0, 1.0, ())
    assert not fresh.holds([[0.1 + 0.2]], [[0.3]], ())
    assert used.holds([[0.1 + 0.2]], [[0.3]], ())
    noted = Comparison("equal", 0.0)
    noted.note([2.5])
    assert noted.holds([[0.1 + 0.2]], [[0.3]], ())


@pytest.mark.parametrize(
    ("oracle", "actual", "expected", "arguments", "right"),
    [
        ("set_equal", [1, 1, 2], (2, 1), (), True),
        ("set_equal", Iterated([2, 1]), [1, 2], (), True),
        ("set_equal", [1], [1, 2], (), False),
        ("set_equal", None, [1], (), False),
        ("set_equal", [[1]], [[1]], (), False),
        ("not_none", Opaque("re.Match"), Opaque("re.Match"), (), True),
        ("not_none", "text", Opaque("re.Match"), (), True),
        ("not_none", None, Opaque("re.Match"), (), False),
        ("not_none", False, None, (), True),
        ("not_none", True, None, (), False),
        ("not_none", False, Opaque("re.Match"), (), False),
        ("anything", None, 1, (), True),
        ("equal_or_zero", 0, 5, (), True),
        ("equal_or_zero", 5, 5, (), True),
        ("equal_or_zero", 4, 5, (), False),
        ("surface_area", 33, 33, (3, 4), True),
        ("surface_area", 3**2 + round(6 * math.sqrt(1.5**2 + 16)), 33, (3, 4), True),
        ("surface_area", 34.5, 33, (3, 4), False),
        ("digit_distance", 1, 1, (1, 2), True),
        ("digit_distance", 6, 6, (23, 56), True),
        ("digit_distance", 2 + 9, 3, (9, 20), True),
        ("digit_distance", 7, 3, (9, 20), False),
    ],
)
def test_special_oracles(oracle: str, actual: Any, expected: Any, arguments: tuple[Any, ...], right: bool) -> None:
    assert holds(actual, expected, oracle, 0.0, arguments) is right


@pytest.mark.parametrize(
    ("actual", "right"), [(-0.5, True), (-0.5000001, True), (0.5, False), (None, False), (NAN, False), ("x", False)]
)
def test_any_root_of_the_polynomial_is_right(actual: Any, right: bool) -> None:
    assert holds(actual, 123.0, "polynomial_root", 1e-4, ([1, 2],)) is right


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(values, values, st.sampled_from(ORACLES), st.sampled_from([0.0, 1e-6]))
def test_a_comparison_never_raises(actual: Any, expected: Any, oracle: str, atol: float) -> None:
    arguments: tuple[Any, ...] = ([1, 2], 3) if oracle == "surface_area" else (4, 5)
    assert holds(actual, expected, oracle, atol, arguments) in (True, False)
