"""Comparisons in assertions are Python's own, but for NumPy's empty arrays and short numbers."""

import ast
import unittest
from typing import Any

import numpy
import pytest

from codechat.sandbox.inside.snippets import Guarded, guarded_names, names_of_arrays

GUARDED: dict[str, bool] = {
    "1 == 1.0": True, "1 == 2": False, "[1, 2] == [1, 2]": True, "[1] != [1]": False, "1 < 2 <= 2 < 3": True,
    "1 < 2 > 3": False, "3 in [1, 2]": False, "3 not in [1, 2]": True, "'a' in 'cat'": True, "name is name": True,
    "2 > 1 >= 1": True, "1 < 1": False, "1 <= 0": False, "1 > 1": False, "0 >= 1": False,
    "name == name": True, "name == object()": False, "[name] == [name]": True, "Own(3) == 4": True,
    "numpy.float16(3.14) == 3.14": False, "numpy.float64(3.5) == 3.5": True, "numpy.int8(100) == 100": True,
    "3.14 == numpy.float16(3.14)": False, "numpy.complex64(0.1) == 0.1": False,
    "len([numpy.array([]) == numpy.array([1.0])]) == 1": True, "bool(numpy.array([]) == [1.0])": False,
    "bool(numpy.array([]) == 1.0)": False,
    "(numpy.array([1, 2]) == numpy.array([1, 2])).all()": True,
}  # fmt: skip


class Own(int):
    """A number that compares by its own code: that counts."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


def evaluated(expression: str, guard: dict[str, Any], guarded: Guarded) -> Any:
    """What an expression of an assertion gives beside the program; None for an exception."""
    space: dict[str, Any] = {"numpy": numpy, "name": object(), "Own": Own, **guard}
    tree = ast.fix_missing_locations(guarded.visit(ast.parse(expression, mode="eval")))
    try:
        return eval(compile(tree, "<assertion 1>", "eval"), space)
    except TypeError:
        return None


@pytest.mark.parametrize("expression", GUARDED)
def test_no_result_is_equal_by_having_no_items_or_few_bits(expression: str) -> None:
    result = evaluated(expression, guarded_names(), Guarded())
    assert bool(result) is GUARDED[expression]


def test_what_a_chain_does_not_need_is_not_evaluated() -> None:
    calls: list[int] = []
    guard = guarded_names() | {"note": lambda n: calls.append(n) or n}
    assert evaluated("note(1) < note(2) > note(5) == note(9)", guard, Guarded()) is False
    assert calls == [1, 2, 5]
    assert evaluated("1 < (later := 3) < 4 and later", guard, Guarded()) == 3
    assert evaluated("1 < (n := 2) is not None", guard, Guarded()) is True


@pytest.mark.parametrize(
    "call",
    [
        "case.assertEqual({}, 2.1)", "case.assertEqual(2.1, {})", "case.assertEqual(first={}, second=2.1)",
        "case.assertEqual({}, second=2.1)", "case.assertEqual(second=2.1, first={}, msg='m')",
        "case.assertIn({}, [2.1])", "case.assertIn(member={}, container=[2.1])", "case.assertGreaterEqual({}, 2.1)",
    ],
)  # fmt: skip
def test_methods_of_test_cases_compare_in_the_same_way(call: str) -> None:
    guard = guarded_names() | {"case": unittest.TestCase()}
    with pytest.raises(AssertionError):
        evaluated(call.format("numpy.float32(2.1)"), guard, Guarded())
    evaluated(call.format("2.1"), guard, Guarded())


def test_messages_and_other_arguments_keep_their_places() -> None:
    guard = guarded_names() | {"case": unittest.TestCase()}
    with pytest.raises(AssertionError, match="1 != 2 : so it is"):
        evaluated("case.assertEqual(second=2, first=1, msg='so it is')", guard, Guarded())
    with pytest.raises(AssertionError, match="so it is"):
        evaluated("case.assertEqual(*(1, 2), 'so it is')", guard, Guarded())
    evaluated("case.assertAlmostEqual(1.0, 1.04, delta=0.1)", guard, Guarded())
    assert evaluated("dict(first=1, second=2)", guard, Guarded()) == {"first": 1, "second": 2}


ARRAYS: dict[str, Any] = {
    "numpy.allclose(numpy.array([1.0]), [1.0])": True, "numpy.allclose(numpy.array([]), [1.0])": AssertionError,
    "numpy.allclose([1.0], numpy.array([]))": AssertionError, "numpy.allclose(b=[1.0], a=numpy.array([]))": AssertionError,
    "numpy.allclose(numpy.array([]), numpy.array([]))": True, "bool((numpy.array([]) == 1.0).all())": True,
    "bool((numpy.array([]) == [1.0]).all())": AssertionError, "1 in numpy.array([1])": True,
    "1 in numpy.array([])": False, "numpy.array([]) in [[1.0]]": None, "bool(numpy.abs(numpy.array([]) - [1.0]).all())": AssertionError,
    "(numpy.array([3]) - [1]).tolist()": [2], "5 - 3": 2, "[1] == [1]": True, "[] == [1]": False, "5 + 3": 8,
    "0 < 1 < 2": True,
}  # fmt: skip


@pytest.mark.parametrize("expression", ARRAYS)
def test_no_array_is_close_to_another_by_having_no_items(expression: str) -> None:
    wanted = ARRAYS[expression]
    if wanted is AssertionError:
        with pytest.raises(AssertionError, match="an empty array"):
            evaluated(expression, names_of_arrays(), Guarded(differences=True))
    elif wanted is not None:
        assert evaluated(expression, names_of_arrays(), Guarded(differences=True)) == wanted


def test_differences_are_guarded_only_where_it_is_asked_for() -> None:
    assert "(compare)" not in ast.unparse(Guarded().visit(ast.parse("a - b")))
    assert "(compare)" in ast.unparse(Guarded(differences=True).visit(ast.parse("a - b")))
    assert "(compare)" not in ast.unparse(Guarded(differences=True).visit(ast.parse("a + b")))
