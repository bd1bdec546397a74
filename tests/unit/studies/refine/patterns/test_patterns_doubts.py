"""Doubts: the form is there, and whether it is more than a show cannot be seen."""

import pytest

from codechat.base.domain import Instruction
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable

POOL = {one.id: one for one in read_pool(EMBEDDED, {}).instructions}
DOUBLE = "def f(xs):\n    out = []\n    for x in xs:\n        out.append(2 * x)\n    return out\n"
STORE = "state = {}\ndef f(k):\n    state[k] = k\n    return state\n"
TEXTS = '"""Say hello."""\ndef f():\n    def g():\n        return 1\n    return g()\n'


@pytest.mark.parametrize(
    ("name", "before", "old", "new", "reason"),
    [
        ("structural-use-list-comprehension", DOUBLE, "in xs", "in [y for y in xs]", "only has something around it"),
        ("structural-use-with", DOUBLE + "print(1)\n", "    for", "    with a():\n        b()\n    for", "stayed as it was"),
        ("semantic-add-assertion", DOUBLE, "    out = []", "    assert xs\n    out = []", "nothing that the function computed"),
        ("semantic-add-assertion", DOUBLE, "return out\n", "return out\nassert f([1]) == [2]\n", "outside of the functions"),
        ("semantic-use-lock", STORE, "    state", "    import threading\n    with threading.Lock():\n        state", "made anew"),
        ("semantic-add-try", DOUBLE, "    return out", "    try:\n        return out.copy()\n    except KeyError:\n        return 1",
         "may hide an exception"),
        ("structural-eliminate-nested-functions", TEXTS, "def g():\n        return 1", "g = lambda: 1", "another form of it"),
        ("semantic-change-loops-to-backward", DOUBLE, DOUBLE[11:], "    out = [2 * x for x in xs]\n    return out[::-1]\n",
         "another form of it"),
        ("semantic-optimise-membership", "def f(x):\n    return x in [1, 2]\n", "x in [1, 2]", "any(x == y for y in {1, 2})",
         "nothing is tested for membership"),
        ("semantic-replace-builtin-sort", "def f(xs):\n    xs.sort()\n    return xs[0]\n", "    xs.sort()\n",
         "    for x in xs:\n        g(x)\n", "nothing moves elements"),
        ("cosmetic-remove-module-docstring", TEXTS, '"""Say hello."""', "# say hello", "its text is still there: say hello"),
        ("cosmetic-add-todo", DOUBLE, "    out = []", "    # TODO\n    out = []", "the comment says nothing"),
    ],
)  # fmt: skip
def test_what_may_be_a_show_is_undecided(name: str, before: str, old: str, new: str, reason: str) -> None:
    assert old in before
    decision = adherence(before, before.replace(old, new, 1), POOL[name])
    assert (decision.verdict, decision.by) == ("undecided", "rules") and reason in decision.reason


def test_less_than_went_may_have_become_something_else() -> None:
    instruction = Instruction("mine", "Replace.", "structural", "modify", {"pattern": "for", "into": "while"})
    two = "for a in b:\n    c()\nfor d in e:\n    c()\n"
    one, both = "while b:\n    c()\nmap(c, e)\n", "while b:\n    c()\nwhile e:\n    c()\n"
    assert adherence(two, one, instruction).reason.endswith("but only 1 took the place of 2")
    assert adherence(two, both, instruction).verdict == "adhered"


def test_what_was_reworked_raises_no_doubt() -> None:
    after = "def f(xs):\n    return [2 * x for x in xs]\n"
    assert adherence(DOUBLE, after, POOL["structural-use-list-comprehension"]).verdict == "adhered"


def test_any_of_several_patterns_counts() -> None:
    rule = {"pattern": "lambda", "where": ["while", {"pattern": "call", "names": ["map"]}]}
    instruction = Instruction("mine", "Use a lambda.", "structural", "add", rule)
    assert applicable("map(a, b)\n", instruction).reason == "1 while loop or call of map: map (line 1)"
    assert applicable("for a in b:\n    c()\n", instruction).reason == "no while loop or call of map"


@pytest.mark.parametrize(
    ("name", "before", "after", "verdict"),
    [
        ("structural-create-helper", DOUBLE, DOUBLE + "def test_f():\n    assert f([1]) == [2]\ntest_f()\n", "violated"),
        ("structural-create-helper", DOUBLE, "def g(x):\n    return 2 * x\ndef f(xs):\n    return list(map(g, xs))\n", "adhered"),
        ("semantic-add-fast-path", DOUBLE, "def f(xs):\n    xs.sort()\n    if xs[0]:\n        return xs\n    return []\n", "violated"),
        ("semantic-add-fast-path", DOUBLE, DOUBLE.replace("    out", "    if not xs:\n        return []\n    out", 1), "adhered"),
        ("semantic-replace-builtin-sort", "def f(xs):\n    xs.sort()\n    return xs[0]\n",
         "def f(xs):\n    for x in xs[:]:\n        xs.remove(x)\n        xs.insert(place(x), x)\n    return xs[0]\n", "adhered"),
        ("structural-extract-nested-functions", TEXTS, "def g():\n    return 1\ndef f():\n    return g()\n", "adhered"),
        ("structural-introduce-named-conditions", "def f(a):\n    if a > 1:\n        return a\n    return 0\n",
         "def f(a):\n    more = [b for b in a if b > 1]\n    if more:\n        return a\n    return 0\n", "violated"),
        ("structural-introduce-named-conditions", "def f(a):\n    if a > 1:\n        return a\n    return 0\n",
         "def f(a):\n    more = a > 1\n    if more:\n        return a\n    return 0\n", "adhered"),
    ],
)  # fmt: skip
def test_what_was_there_or_is_something_else_is_no_addition(name: str, before: str, after: str, verdict: str) -> None:
    assert adherence(before, after, POOL[name]).verdict == verdict
