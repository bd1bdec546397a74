"""What has the form of a construct and does nothing, and what is still there in another form."""

import ast

import pytest

from codechat.domain import Change, Instruction
from codechat.patterns import adherence, read
from codechat.patterns.remnants.instead import _INSTEAD, _clauses
from codechat.patterns.remnants.remains import remaining
from codechat.patterns.substance.dead import dead
from codechat.patterns.substance.hollow import hollow


def lines(nodes: frozenset[object]) -> list[int]:
    return sorted({line for node in nodes if (line := getattr(node, "lineno", None)) is not None})


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("with a:\n    pass\nwith a:\n    b()\n", [1, 2]),
        ("try:\n    ...\nfinally:\n    b()\ntry:\n    c()\nfinally:\n    pass\n", [1, 2, 4, 5, 8]),
        ("for a in b:\n    pass\nfor a in b():\n    pass\nwhile next(c):\n    pass\n", [1]),
        ("def f(b):\n    for a in b:\n        pass\n    for c in b:\n        pass\n    return c\n", [2]),
        ("while True:\n    a()\n    break\nwhile True:\n    if a():\n        continue\n    break\n", [1, 3]),
        ("match a:\n    case _:\n        b()\nmatch a:\n    case 1:\n        b()\n", [1]),
        (
            "assert a is a\nassert (a, 'text')\nassert a or True\nassert a and True\nassert isinstance(a, object)\n",
            [1, 2, 3, 5],
        ),
        ("a | 0\na >> 0\na & a\na & b\na ^ a\n~~a\n~a\n", [1, 2, 3, 6]),
        ("b if True else c\nb if a else b\nb if a else c\n", [1, 2]),
        (
            "def f():\n    '''Text.'''\n    return None\ndef g():\n    return 1\nclass A:\n    '''Text.'''\n",
            [1, 2, 3, 6],
        ),
        ("class A(Exception):\n    pass\nclass B:\n    def f(self): return 1\n", []),
        ("import functools as t\na = t.partial(b)\na = t.partial(b, 1)\nzip(a)\nzip(*a)\nzip(a, b)\n", [2, 4]),
        ("import logging\nlogging.debug('on')\nlogging.debug('%s', a)\nlogging.debug(f'{a}')\n", [2]),
        ("sorted(a, key=lambda b: b)\nsorted(a, key=lambda b: -b)\nsorted(reversed(a))\nlist(reversed(a))\n", [1, 3]),
    ],
)
def test_what_does_nothing(code: str, expected: list[int]) -> None:
    assert lines(hollow(read(code))) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f():\n    return 1\n    a()\n    b()\n", [3, 4]),
        ("for a in b:\n    continue\n    c()\n", [3]),
        ("if False:\n    a()\nelse:\n    b()\nif 1:\n    a()\nelse:\n    b()\n", [2, 8]),
        ("while 0:\n    a()\nwhile True:\n    b()\n", [2]),
        ("try:\n    raise A\nexcept A:\n    b()\n", []),
    ],
)
def test_what_never_runs(code: str, expected: list[int]) -> None:
    assert lines(dead(read(code))) == expected


@pytest.mark.parametrize(
    ("last", "closes"),
    [
        ("not a < 1", True),
        ("a >= 1", True),
        ("1 <= a", True),
        ("not (a < 1 or b == 2)", True),
        ("a >= 1 and 2 != b", True),
        ("1", True),
        ("a > 1", False),
        ("a >= 1 and c", False),
        ("not c", False),
    ],
)
def test_an_elif_that_is_an_else(last: str, closes: bool) -> None:
    before = read("if a < 1:\n    f()\nelif b == 2:\n    g()\nelse:\n    h()\n")
    after = read(f"if a < 1:\n    f()\nelif b == 2:\n    g()\nelif {last}:\n    h()\n")
    assert bool(remaining("if_with_else", "remove", {}, before, after)) is closes


def test_what_stood_there_before_is_no_other_form() -> None:
    before = read("'a text'\n# a comment\n")
    assert not remaining("comment", "remove", {}, before, read("'a text'\n"))
    assert remaining("comment", "remove", {}, before, read("'a text'\n'a comment'\n"))


def ask(change: Change, **rule: object) -> Instruction:
    return Instruction("mine", "Do it.", "semantic", change, rule)


def test_what_moved_under_the_main_guard_is_not_removed() -> None:
    before = "def f(a):\n    return a\nassert f(1)\nif __name__ == '__main__':\n    assert f(2)\n"
    remove = ask("remove", pattern="assert")
    moved = before.replace("assert f(1)\n", "") + "    assert f(1)\n"
    assert adherence(before, moved, remove).reason.startswith("moved under the main guard: 2 asserts: lines 4, 5")
    left = adherence(before, before.replace("assert f(1)\n", ""), remove)
    assert (left.verdict, left.reason) == ("violated", "left under the main guard: 1 assert: line 4")
    assert adherence(before, before.replace("assert f", "f"), remove).verdict == "adhered"


def test_what_was_added_and_does_nothing_says_so() -> None:
    judged = adherence(
        "def f(a):\n    return a\n", "def f(a):\n    with a:\n        pass\n    return a\n", ask("add", pattern="with")
    )
    assert (judged.verdict, judged.reason) == ("violated", "what was added does nothing: 1 with statement: line 2")


def test_a_part_that_became_something_else_is_named() -> None:
    before = "def f(a):\n    for b in a:\n        g(b)\n    for b in a:\n        h(b)\n"
    after = "def f(a):\n    c = iter(a)\n    while b := next(c, None):\n        g(b)\n    d = [h(b) for b in a]\n    return d\n"
    judged = adherence(before, after, ask("modify", pattern="for", into="while"))
    assert judged.reason == "it has another form now: line 5"


@pytest.mark.parametrize("name", sorted(_INSTEAD))
def test_other_forms_are_patterns_with_their_options(name: str) -> None:
    for clause in _clauses(name):
        clause.pattern.check_options(clause.options)


def test_another_name_of_what_is_called_is_followed_once_around() -> None:
    code = read("a = b\nb = a\nshow = print\nshow(1)\na()\n")
    assert [code.called(node.func) for node in code.find(ast.Call)] == ["print", ""]
