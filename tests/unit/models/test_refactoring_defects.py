"""Defects: small, seen by tests in most cases, never a syntax error, and never in what only speaks."""

import ast
import random

import pytest

from codechat.studies.refine.baselines.refactoring import add_defect

CODE = '''def f(values, limit=3):
    """Add up what is below the limit."""
    total = 0
    for number in values:
        if number < limit:
            total += number * 2
    while total > 100:
        total -= 7
    assert total >= 0
    return total
'''


def made(number: int) -> str:
    broken = add_defect(CODE, random.Random(number))
    assert broken is not None
    return broken


def test_a_defect_is_one_small_edit_that_parses() -> None:
    for number in range(60):
        changed = [pair for pair in zip(CODE.split("\n"), made(number).split("\n"), strict=True) if pair[0] != pair[1]]
        assert len(changed) == 1
        ast.parse(made(number))


def test_every_kind_occurs() -> None:
    lines = {line.strip() for number in range(200) for line in made(number).split("\n")} - {
        line.strip() for line in CODE.split("\n")
    }
    assert lines == {
        "total",  # lost return
        "total = 1",  # wrong initial value
        "if number >= limit:",  # flipped comparison
        "if False:",  # dropped branch
        "total -= number * 2",  # wrong operator
        "total += number + 2",
        "total += number * 3",  # off by one
    }


def test_loops_that_might_not_end_and_checks_are_left_alone() -> None:
    for number in range(200):
        assert "    while total > 100:\n        total -= 7\n    assert total >= 0\n" in made(number)


def test_the_same_draw_gives_the_same_defect() -> None:
    assert made(5) == made(5)


@pytest.mark.parametrize("code", ["def f():\n    pass\n", "x = 1\n", "def f(:\n", "def f():\n    '''1 + 1'''\n"])
def test_code_without_a_place_gets_none(code: str) -> None:
    assert add_defect(code, random.Random(0)) is None
