"""The audit page's differences: right for any texts, and quick for those that are made to be slow."""

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.audit.diff import Change, changes

LINES = st.lists(st.sampled_from("abcde"), max_size=12)


def rebuilt(found: list[Change], old: list[str], new: list[str]) -> list[str]:
    """The new lines by the changes; asserts that the changes are in order and true."""
    lines: list[str] = []
    i = j = 0
    for tag, a, b, c, d in found:
        assert (i, j) == (a, c) and (b > a or d > c)
        assert {"equal": b - a == d - c, "replace": b > a and d > c, "delete": c == d, "insert": a == b}[tag]
        assert tag != "equal" or old[a:b] == new[c:d]
        lines += old[a:b] if tag == "equal" else new[c:d]
        i, j = b, d
    assert (i, j) == (len(old), len(new))
    return lines


@given(LINES, LINES)
def test_the_changes_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    assert rebuilt(changes(old, new), old, new) == new


def test_a_small_change_is_told_as_such() -> None:
    old = ["def f(x):", "    return x", "", "def g(x):", "    return x", ""]
    new = ["def f(x):", "    # as it is", "    return x", "", "def h(x):", "    return x", ""]
    assert changes(old, new) == [
        ("equal", 0, 1, 0, 1), ("insert", 1, 1, 1, 2), ("equal", 1, 3, 2, 4), ("replace", 3, 4, 4, 5),
        ("equal", 4, 6, 5, 7),
    ]  # fmt: skip
    assert changes(["a"], ["a"]) == [("equal", 0, 1, 0, 1)]
    assert changes([], ["a"]) == [("insert", 0, 0, 0, 1)]


SLOW: dict[str, Callable[[random.Random], tuple[list[str], list[str]]]] = {
    "few lines, shuffled": lambda r: ([r.choice("ab") for _ in range(2000)], [r.choice("ab") for _ in range(2000)]),
    "one line": lambda r: (["x"] * 1999 + ["y"], ["y"] + ["x"] * 1999),
    "another order": lambda r: ([str(n) for n in range(2000)], r.sample([str(n) for n in range(2000)], 2000)),
    "backwards": lambda r: ([str(n) for n in range(2000)], [str(n) for n in reversed(range(2000))]),
    "every second line": lambda r: ([str(n) for n in range(2000)], [str(n) if n % 2 else "" for n in range(2000)]),
    "a megabyte of lines": lambda r: (["a", "b"] * 250_000, ["b", "b", "a"] * 170_000),
    "many gaps": lambda r: (
        [str(n) if n % 100 == 0 else r.choice("ab") for n in range(20_000)],
        [str(n) if n % 100 == 0 else r.choice("ab") for n in range(20_000)],
    ),
}


@pytest.mark.parametrize("name", SLOW)
def test_no_text_takes_long(name: str) -> None:
    old, new = SLOW[name](random.Random(0))
    start = time.process_time()
    found = changes(old, new)
    assert time.process_time() - start < 2
    assert rebuilt(found, old, new) == new
