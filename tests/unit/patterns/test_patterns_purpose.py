"""What a construct has to do to be what was asked for: effects, roles, uses, empty calls, prose, wider forms."""

import ast

import pytest

from codechat.domain import Change, Instruction
from codechat.patterns import adherence, applicable, read
from codechat.patterns.base import Occurrence, at, patterns
from codechat.patterns.finders.wider import PLACES, SEARCHED, SUBJECTS, WIDER
from codechat.patterns.purpose.definitions import CHECKS
from codechat.patterns.purpose.libraries import is_kept, makes_missing
from codechat.patterns.purpose.prose import says_no_more, telling
from codechat.patterns.purpose.turned import lasts, stay_whole
from codechat.patterns.remnants.instead import swallowing
from codechat.patterns.remnants.remains import remaining
from codechat.patterns.substance.effects import acts, keeps_to_itself
from codechat.patterns.substance.vain import VAIN


def asked(text: str, change: Change, **rule: object) -> Instruction:
    return Instruction("i", text, "semantic", change, rule=rule)


@pytest.mark.parametrize(
    ("expression", "effect"),
    [
        ("len(a) + 1", False),
        ("lambda: f()", False),
        ("unknown(a)", True),
        ("pure(a)", False),
        ("loud(a)", True),
        ("(b := 1)", True),
        ("a.append(1)", True),
    ],
)
def test_what_evaluating_an_expression_may_do(expression: str, effect: bool) -> None:
    code = read(f"def pure(a):\n    return a + 1\ndef loud(a):\n    raise ValueError\n{expression}\n")
    assert acts(code, next(code.find(ast.Expr)).value) is effect


@pytest.mark.parametrize(
    ("body", "alone"),
    [("self.a = len(a)", True), ("setattr(self, 'a', a)", True), ("setattr(a, 'b', 1)", False), ("print(a)", False)],
)
def test_whether_a_class_changes_its_own_objects_alone(body: str, alone: bool) -> None:
    code = read(f"class A:\n    def put(self, a):\n        {body}\n")
    assert keeps_to_itself(code, next(code.find(ast.ClassDef))) is alone


@pytest.mark.parametrize(
    ("code", "empty"),
    [
        ("for i, _ in zip(range(3), b):\n    print(i)\n", True),
        ("for i, c in zip(range(3), b):\n    print(i, c)\n", False),
        ("zip(a, a)\n", True),
        ("import re\nre.sub('$^x', '', a)\n", True),
        ("import re\nre.sub(r'^\\s+$', '', a)\n", False),
        ("import re\nre.sub(r'a$', '', a)\n", False),
    ],
)
def test_calls_that_do_nothing(code: str, empty: bool) -> None:
    name = "re.sub" if "re.sub" in code else "zip"
    tree = read(code)
    assert VAIN[name](tree, next(one for one in tree.find(ast.Call) if ast.unparse(one.func) == name)) is empty


@pytest.mark.parametrize(
    ("code", "useful"),
    [
        ("import heapq\ndef f(a):\n    heapq.heapify(a)\n    return heapq.heappop(a)\n", True),
        ("import heapq\ndef f(a):\n    heapq.heapify(a)\n    return a[0]\n", True),
        ("import heapq\ndef f(a):\n    heapq.heapify(a)\n    return a[:2]\n", False),
        ("import heapq\ndef f(a):\n    heapq.heapify(a)\n    a.sort()\n    return a[0]\n", False),
    ],
)
def test_a_heap_is_one_if_its_order_is_read(code: str, useful: bool) -> None:
    tree = read(code)
    assert is_kept(tree, next(one for one in tree.find(ast.Attribute) if one.attr == "heapify")) is useful


@pytest.mark.parametrize(
    ("line", "useful"),
    [
        ("d[k].append(1)", True),
        ("d.setdefault(k, []).append(1)", False),
        ("if k not in d: d[k] = []", False),
    ],
)
def test_a_defaultdict_makes_what_is_missing(line: str, useful: bool) -> None:
    tree = read(f"from collections import defaultdict\nd = defaultdict(list)\n{line}\n")
    assert makes_missing(tree, next(one for one in tree.find(ast.Name) if one.id == "defaultdict")) is useful


@pytest.mark.parametrize(
    ("code", "kind", "kept"),
    [
        ("a = list((1, 2))\n", "tuple", False),
        ("a = (1, 2)\n", "tuple", True),
        ("a = list(set())\n", "set", False),
        ("a = list(set(b))\n", "set", True),
        ("class A:\n    def f(self):\n        self.a = (1, 2)\n", "tuple", False),
        ("class A:\n    def f(self):\n        self.a = (1, 2)\n        return self.a\n", "tuple", True),
    ],
)
def test_what_is_turned_into_something_else_at_once_is_no_use(code: str, kind: str, kept: bool) -> None:
    tree = read(code)
    found = patterns()["collection"].present(tree, {"kind": kind})
    assert [lasts(tree, one, {"kind": kind}) for one in found] == [kept]


@pytest.mark.parametrize(
    ("line", "whole"),
    [("b = [(p.x, p.y) for p in [P(*q) for q in a]]", False), ("b = [p.x * p.y for p in [P(*q) for q in a]]", True)],
)
def test_objects_that_are_taken_apart_at_once(line: str, whole: bool) -> None:
    tree = read(f"class P:\n    x: int\n    y: int\n{line}\n")
    assert stay_whole(tree, at(next(tree.find(ast.ClassDef))), {"fields": True}) is whole


def test_a_stack_holds_what_is_put_there_for_longer_than_a_statement() -> None:
    for last, holds in (("b = s.pop()", False), ("print(s)\n    b = s.pop()", True)):
        tree = read(f"def f(a):\n    s = []\n    s.append(a)\n    {last}\n    return b\n")
        assert [CHECKS["stack"](tree, one, {}) for one in patterns()["stack"].present(tree, {})] == [holds]


@pytest.mark.parametrize(
    ("text", "says"), [("# so that ties stay in order", True), ("# code", False), ("# a = 1", False)]
)
def test_what_a_comment_says(text: str, says: bool) -> None:
    assert telling("comment", read(f"{text}\nb = 2\n"), Occurrence(1), {}) is says


def test_comments_cut_in_two_say_no_more() -> None:
    before, cut, more = (read(text) for text in ("# walk over\n", "# walk\n# over\n", "# walk over\n# digits\n"))
    assert says_no_more("comment", before, cut)
    assert not says_no_more("comment", before, more)


@pytest.mark.parametrize(
    ("name", "change", "before", "after", "lines"),
    [
        ("try", "remove", "try:\n    a()\nexcept E:\n    pass\n", "import contextlib as c\nwith c.suppress(E):\n    a()\n", [2]),
        ("else_after_exit", "remove", "if a:\n    return\nelif b:\n    c()\n", "if a:\n    pass\nelif b:\n    c()\n", [1]),
        ("index_loop", "remove", "for i in range(len(a)):\n    b(i)\n", "i = 0\nwhile i < len(a):\n    b(i)\n    i += 1\n", [2]),
        ("lambda", "remove", "f = lambda: 1\n", "def f():\n    return 1\n", []),
    ],
)  # fmt: skip
def test_what_is_left_in_another_form(name: str, change: str, before: str, after: str, lines: list[int]) -> None:
    assert [one.line for one in remaining(name, change, {}, read(before), read(after))] == lines


def test_a_handler_gives_no_value_that_was_none_before() -> None:
    before = read("def f(a):\n    return int(a)\n")
    swallows = "def f(a):\n    try:\n        return int(a)\n    except ValueError:\n        return {}\n"
    assert swallowing(before, read(swallows.format("None"))) == "None"
    assert swallowing(before, read(swallows.format("g(a)"))) == ""


def test_wider_forms_are_patterns() -> None:
    names = {*WIDER.values(), *PLACES.values(), *SUBJECTS.values(), *SEARCHED.values()}
    assert names <= {*patterns()}


@pytest.mark.parametrize(
    ("instruction", "fits"),
    [
        (asked("Use bisect.", "add", pattern="use", names=["bisect.*"], where={"pattern": "use", "names": ["sorted"]}), True),
        (asked("Use heapq.", "add", pattern="use", names=["heapq.*"], where={"pattern": "use", "names": ["sorted"]}), False),
    ],
)  # fmt: skip
def test_a_search_by_hand_is_a_place_for_bisect(instruction: Instruction, fits: bool) -> None:
    code = "def f(a, b):\n    k = 0\n    while k < len(a) and a[k] < b:\n        k += 1\n    return k\n"
    assert applicable(code, instruction).applicable is fits


@pytest.mark.parametrize(
    ("copy", "verdict"),
    [
        ("a[:]", "violated"),
        ("[*map(list, a)]", "adhered"),
        ("list(a)", "violated"),
        ("[list(b) for b in a]", "adhered"),
    ],
)
def test_a_shallow_copy_shares_its_items_with_the_argument(copy: str, verdict: str) -> None:
    before, after = (
        "def f(a):\n    a[0][1] = 2\n    return a\n",
        f"def f(a):\n    a = {copy}\n    a[0][1] = 2\n    return a\n",
    )
    assert adherence(before, after, asked("Avoid it.", "remove", pattern="mutated_parameter")).verdict == verdict
