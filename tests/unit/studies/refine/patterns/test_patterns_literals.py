"""A value that is written out is a literal in every shape, for every pattern that tells literals from the rest."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable, patterns, read
from codechat.studies.refine.patterns.reading.neutral import read_tree
from codechat.studies.refine.patterns.trees import tree_clause

NAMED = {one.id: one for one in read_pool(EMBEDDED, {}).instructions}
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3)
DISPLAYS = st.recursive(
    (PLAIN | st.complex_numbers(allow_nan=False, allow_infinity=False)).map(repr).filter(lambda text: "n" not in text),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.lists(inner, max_size=3).map(lambda parts: f"({', '.join([*parts, ''])})" if parts else "()"),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"{{{', '.join(parts)}}}"),
        st.lists(inner, max_size=3).map(lambda parts: f"{{{', '.join(f'{part}: {part}' for part in parts)}}}"),
        st.tuples(st.sampled_from(["-", "+", "~", "not "]), inner).map(lambda two: f"({two[0]}{two[1]})"),
    ),
    max_leaves=6,
)
LITERALS = [
    "-1", "+1", "-(1)", "[]", "{}", "()", "True, False", "[1, 2]", "{'a': 1}", "{1}", "not True", "1 - 2j", "...",
    "''", "b''", "f''", "f'a'", "'a' 'b'", "None", "set()", "list()", "float('inf')", "-float('inf')", "dict(a=1)",
    "math.inf", "Color.RED",
]  # fmt: skip
COMPUTED = [
    "x + 1", "-x", "not x", "[x]", "x, 1", "{'a': x}", "{**x}", "[*x]", "f'{x}'", "set(x)", "float(x)", "x[0]", "f()",
    "1 if x else 2", "x == -1", "x or []", "[0] * 3", "math.sqrt(2)", "x.value", "range(3)",
]  # fmt: skip


def found(name: str, code: str, **options: Any) -> list[int]:
    return [one.line for one in patterns()[name].present(read(code), options)]


def returning(value: str) -> str:
    return f"import math\ndef f(x):\n    return {value}\n"


@pytest.mark.parametrize("value", LITERALS)
def test_a_returned_literal_needs_no_name(value: str) -> None:
    assert (found("literal_return", returning(value)), found("computed_return", returning(value))) == ([3], [])
    assert applicable(returning(value), NAMED["structural-use-named-results"]).applicable is False


@pytest.mark.parametrize("value", COMPUTED)
def test_a_returned_value_that_is_computed_needs_one(value: str) -> None:
    assert (found("literal_return", returning(value)), found("computed_return", returning(value))) == ([], [3])


@given(DISPLAYS)
def test_what_is_made_of_literals_is_one_and_with_a_name_in_it_is_none(value: str) -> None:
    assert found("literal_return", returning(value)) == [3]
    assert found("computed_return", returning(f"[{value}, x]")) == [3]


def test_a_type_of_ones_own_is_called_for_what_it_computes() -> None:
    assert found("computed_return", "def set():\n    return 1\ndef f():\n    return set()\n") == [4]


def test_a_named_result_beside_a_literal_is_all_that_was_asked() -> None:
    before = "def f(x):\n    if not x:\n        return -1\n    return x + 1\n"
    after = "def f(x):\n    if not x:\n        return -1\n    result = x + 1\n    return result\n"
    assert adherence(before, after, NAMED["structural-use-named-results"]).verdict == "adhered"


@pytest.mark.parametrize("value", ["1", "-1", "[]", "True, False"])
def test_a_literal_is_inlined_too(value: str) -> None:
    before = f"def f(x):\n    y = {value}\n    return y\n"
    assert adherence(before, returning(value), NAMED["structural-inline-passing-variables"]).verdict == "adhered"
    nothing = "def f(x):\n    return\n"
    assert adherence(before, nothing, NAMED["structural-inline-passing-variables"]).verdict == "violated"


CASES: list[tuple[str, list[int], str]] = [
    ("equality_choice", [], "x == -1 or y == -1\nx == [] or y == []\nx == (0, 1) or y == (0, 1)\n"),
    ("equality_choice", [1], "x == -1 or x == []\n"),
    ("split_comparison", [], "x == -1 and y == -1\nx == set() and y == set()\n"),
    ("split_comparison", [1], "x == -1 and y == x\n"),
    (
        "flag_loop",
        [2, 6],
        "def f(a):\n  for x in a:\n    if x: return -1\n  for x in a:\n    x = -1\n  while a:\n    return []\n",
    ),
    ("missing_value", [], "def f(x, y):\n    if y in x:\n        x[-1], x[1:]\n"),
    ("missing_value", [2], "def f(x, y):\n    if y in x:\n        x[y]\n"),
    ("module_cache", [], "a = {1: 2}\ndef f(x):\n    a[-1] = x\n"),
    ("module_cache", [1], "a = {1: 2}\ndef f(x):\n    a[x] = x\n"),
    ("arithmetic", [], "x = (0,) * n\nx = y + (1,)\n"),
]


@pytest.mark.parametrize(("name", "lines", "code"), CASES)
def test_other_patterns_read_literals_alike(name: str, lines: list[int], code: str) -> None:
    assert found(name, code) == lines


WRITTEN = {
    "javascript": (
        ["-1", "[]", "{}", "[1, -2]", "{a: 1}", "null", "undefined", "-Infinity", "!true", "`a`", "new Map()", "(-1)"],
        ["-x", "`${x}`", "[x]", "{x}", "{a: x}", "[...x]", "x + 1", "f()", "new Foo()", "new Map(x)", "x => 1"],
    ),
    "java": (
        ["-1", "-1L", "new int[0]", "new int[]{1, -1}", "new ArrayList<>()", "null", '"a"', "Integer.MAX_VALUE"],
        ["-x", "x + 1", "new int[x]", "new int[]{x}", "new Foo()", "new ArrayList<>(x)", "f(x)"],
    ),
}
IN = {"javascript": "function f(x) {{ return {}; }}", "java": "class S {{ Object f(int x) {{ return {}; }} }}"}


@pytest.mark.parametrize("language", sorted(WRITTEN))
def test_in_other_languages_too(language: str) -> None:
    for name, values in zip(("literal_return", "computed_return"), WRITTEN[language], strict=True):
        for value in values:
            assert len(tree_clause(name).present(read_tree(IN[language].format(value), language))) == 1, value
