"""What is added has to be used: values that nothing reads and definitions that nothing names do not count."""

import pytest

from codechat.base.domain import Instruction
from codechat.studies.refine.patterns import adherence, applicable, read
from codechat.studies.refine.patterns.reading.use import idle


def lines(code: str, earlier: str | None = None) -> list[int]:
    """The lines where something idle begins."""
    found = idle(read(code), read(earlier) if earlier is not None else None)
    return sorted({line for node in found if (line := getattr(node, "lineno", None)) is not None})


@pytest.mark.parametrize(
    ("code", "dropped"),
    [
        ("def f(a):\n    b = set(a)\n    sorted(a)\n    c = sorted(a)\n    return c\n", [2, 3]),
        ("def f(a):\n    a.sort()\n    b = a.pop()\n    c = g(set(a))\n", []),  # these may do something
        ("def f(a):\n    b = [g(x) for x in a]\n    c = [x for x in a]\n", [3]),
        ("def f(a):\n    b = lambda: g(a)\n    c = lambda: g(a)\n    return c\n", [2]),
        ("def f(a):\n    b, *c = set(a), 1\n    d, e = set(a), 1\n    return e\n", [2, 3]),
        ("def f(a):\n    b[0] = set(a)\n    b.c = set(a)\n    del d\n", []),
        ("def f(a):\n    b = set(a)\n    def g():\n        return b\n    return g\n", []),
        ("def f(a):\n    global b\n    b = set(a)\ndef g():\n    return b\n", []),
        ("def f(a):\n    b = set(a)\ndef g(b):\n    return b\n", [2]),
        ("class A:\n    b = {1}\n__all__ = ('A',)\nc = {2}\n", [4]),
        ("async def f(a):\n    b = await a\n    c = (yield)\n    (d := set(a))\n    return d\n", []),
    ],
)
def test_values_that_nothing_reads(code: str, dropped: list[int]) -> None:
    assert lines(code) == dropped


BEFORE = "def f(a):\n    return a\n"


@pytest.mark.parametrize(
    ("added", "kept"),
    [
        ("def g(a):\n    return a\n", False),
        ("def g(a):\n    return g(a)\n", False),
        ("class G:\n    def g(self):\n        return G()\n", False),
        ("def g(a):\n    return h(a)\ndef h(a):\n    return g(a)\n", False),  # they name each other alone
        ("def g(a):\n    return a\nprint(g)\n", True),
        ("class G: pass\ndef f(a: 'list[G]'):\n    return a\n", True),
        ("class G: pass\ndef f(a):\n    return 'G'\n", False),
        ("def f(a):\n    return g(a)\ndef g(a):\n    return h(a)\ndef h(a):\n    return a\n", True),
        ("@f\ndef g(a):\n    return a\n", True),  # f may keep it somewhere
        ("import functools\n@functools.cache\ndef g(a):\n    return a\n", False),
    ],
)
def test_new_definitions_that_nothing_names(added: str, kept: bool) -> None:
    after = added if "def f(" in added else BEFORE + added
    assert (not lines(after, BEFORE)) is kept
    assert lines(after, after) == []


USE_SET = Instruction("one", "Use a set.", "semantic", "add", {"pattern": "collection", "kind": "set"})


def test_what_is_idle_neither_fulfils_a_request_nor_hinders_it() -> None:
    unused = "def f(a):\n    b = set(a)\n    return a\n"
    assert adherence(BEFORE, unused, USE_SET).reason == "nothing uses what was added: 1 set: line 2"
    assert applicable(unused, USE_SET).applicable
    used = "def f(a):\n    b = set(a)\n    return b\n"
    assert adherence(unused, used, USE_SET).verdict == "adhered"
    assert not applicable(used, USE_SET).applicable


def test_what_is_to_be_removed_may_be_idle() -> None:
    avoid = Instruction("two", "Avoid sets.", "semantic", "remove", {"pattern": "collection", "kind": "set"})
    assert applicable("def f(a):\n    b = set(a)\n", avoid).applicable


def test_comments_and_hints_need_no_use() -> None:
    hint = Instruction(
        "three", "Rename single letters.", "cosmetic", "modify",
        {"pattern": "local_name", "matches": "[a-z]", "into": {"pattern": "local_name", "matches": "[a-z]{2,}"}},
    )  # fmt: skip
    assert (
        adherence("def f(a):\n    b = [c for c in a]\n", "def f(a):\n    kept = [one for one in a]\n", hint).verdict
        == "adhered"
    )


def test_code_before_that_does_not_parse_leaves_every_definition_in_use() -> None:
    assert lines("def f(a):\n    return a\n", "def f(:") == []
