"""Comparisons in assertions are Python's own, but where the program's code would answer them."""

import ast
import unittest
import unittest.mock
from typing import Any

import numpy
import pytest

from codechat.sandbox.inside.comparing import Guarded, names, names_of_arrays

PROGRAM = """
import weakref
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return True
    def __lt__(self, other): return True
    def __gt__(self, other): return True
    def __contains__(self, item): return True
    __hash__ = None
class Int(int): __eq__ = Yes.__eq__; __hash__ = int.__hash__
class List(list): __eq__ = Yes.__eq__
class Dict(dict): __eq__ = Yes.__eq__
class Set(frozenset): __eq__ = Yes.__eq__; __hash__ = frozenset.__hash__
class Lying(list):
    def __iter__(self): return iter([1, 2])
class Odd: __eq__ = property(lambda self: bool)
class Plain(int): pass
class Name: pass
name = Name()
proxied = Yes()
"""
GUARDED: dict[str, bool] = {
    "1 == 1.0": True, "1 == 2": False, "[1, 2] == [1, 2]": True, "[1] != [1]": False, "1 < 2 <= 2 < 3": True,
    "1 < 2 > 3": False, "3 in [1, 2]": False, "3 not in [1, 2]": True, "'a' in 'cat'": True, "name is name": True,
    "2 > 1 >= 1": True, "1 < 1": False, "1 <= 0": False, "1 > 1": False, "0 >= 1": False,
    "Yes() == 2": False, "2 == Yes()": False, "Yes() != 2": True, "2 in Yes()": None, "Yes() < 1": None,
    "Yes() in [1, 2]": False, "Odd() == 1": False, "[Yes()] == [1]": False, "(1, [Yes()]) == (1, [2])": False,
    "{'a': Yes()} == {'a': 1}": False, "{'a': 1} == {'a': 1}": True, "weakref.proxy(proxied) == 1": False,
    "Int(3) == 3": True, "Int(3) == 4": False, "List([1]) == [1]": True, "List([1]) == [2]": False,
    "List([1, Int(2)]) == [1, 3]": False, "Dict(a=1) == {'a': 1}": True, "Dict(a=1) == {'a': 2}": False,
    "Set([1]) == {1}": True, "Set([1]) == {2}": False, "{Set([1])} == {frozenset([2])}": False,
    "Lying([3]) == [3]": True, "Lying([3]) == [1, 2]": False, "Plain(2) == 2": True, "[Plain(2)] == [3]": False,
    "Yes() == Yes()": True, "name == name": True, "name == Name()": False, "[name] == [name]": True,
    "0 < Int(1) < 1": False, "0 < Int(1) < 2": True,
    "numpy.float16(3.14) == 3.14": False, "numpy.float64(3.5) == 3.5": True, "numpy.int8(100) == 100": True,
    "len([numpy.array([]) == numpy.array([1.0])]) == 1": True, "bool(numpy.array([]) == [1.0])": False,
    "(numpy.array([1, 2]) == numpy.array([1, 2])).all()": True,
}  # fmt: skip


def evaluated(expression: str, guard: dict[str, Any], guarded: Guarded) -> Any:
    """What an expression of an assertion gives beside the program; None for an exception."""
    space: dict[str, Any] = {"numpy": numpy, **guard}
    exec(compile(PROGRAM, "program.py", "exec"), space)
    tree = ast.fix_missing_locations(guarded.visit(ast.parse(expression, mode="eval")))
    try:
        return eval(compile(tree, "<assertion 1>", "eval"), space)
    except TypeError:
        return None


@pytest.mark.parametrize("expression", GUARDED)
def test_a_program_does_not_say_what_its_results_equal(expression: str) -> None:
    result = evaluated(expression, names("program.py", mocks=False), Guarded())
    assert result is None if GUARDED[expression] is None else bool(result) is GUARDED[expression]


def test_what_a_chain_does_not_need_is_not_evaluated() -> None:
    calls: list[int] = []
    guard = names("program.py", mocks=False) | {"note": lambda n: calls.append(n) or n}
    assert evaluated("note(1) < note(2) > note(5) == note(9)", guard, Guarded()) is False
    assert calls == [1, 2, 5]
    assert evaluated("1 < (later := 3) < 4 and later", guard, Guarded()) == 3
    assert evaluated("1 < (n := 2) is not None", guard, Guarded()) is True


def test_an_object_that_equals_everything_is_for_tests_that_ask_for_it() -> None:
    guard = {"ANY": unittest.mock.ANY}
    assert not evaluated("ANY == 1", guard | names("program.py", mocks=False), Guarded())
    assert evaluated("ANY == 1", guard | names("program.py", mocks=True), Guarded())


@pytest.mark.parametrize(
    "call",
    [
        "case.assertEqual({}, 2)", "case.assertEqual(2, {})", "case.assertEqual(first={}, second=2)",
        "case.assertEqual({}, second=2)", "case.assertEqual(second=2, first={}, msg='m')", "case.assertIn({}, [2])",
        "case.assertIn(member={}, container=[2])", "case.assertListEqual([{}], [2])",
        "case.assertCountEqual([{}], [2])", "case.assertDictEqual(d1={{1: {}}}, d2={{1: 2}})",
    ],
)  # fmt: skip
def test_methods_of_test_cases_do_not_ask_the_program(call: str) -> None:
    guard = names("program.py", mocks=False) | {"case": unittest.TestCase()}
    with pytest.raises(AssertionError):
        evaluated(call.format("Yes()"), guard, Guarded())
    evaluated(call.format("2"), guard, Guarded())


def test_messages_and_other_arguments_keep_their_places() -> None:
    guard = names("program.py", mocks=False) | {"case": unittest.TestCase()}
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
