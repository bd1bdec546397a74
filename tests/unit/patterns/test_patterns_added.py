"""Places where something can sensibly be added, and what came back in disguise: small programs, one class each."""

import pytest

from codechat.patterns import patterns, read
from codechat.patterns.finders.arguments import may_be
from codechat.patterns.remnants.remains import remaining


def found(name: str, code: str, **options: object) -> list[int]:
    """The lines of what a pattern finds, each once."""
    return sorted({one.line for one in patterns()[name].present(read(code), options)})


def came_back(name: str, change: str, before: str, after: str, **options: object) -> list[int]:
    """The lines of the other forms of what was to go."""
    return [one.line for one in remaining(name, change, options, read(before), read(after))]


@pytest.mark.parametrize(
    ("name", "code", "lines"),
    [
        ("keyed_call", "def f(a):\n    len(a)\n    a.append(1)\n    sorted(a)\n", [4]),
        ("keyed_call", "import math\nmath.sqrt(2)\nmath.isclose(1, 2)\nopen('a')\n", [3, 4]),
        ("keyed_call", "def g(a):\n    return a\ndef f():\n    f()\n    return g(1)\n", [5]),
        ("joinable_assignment", "def f():\n    a = 1\n    b = 2\n    return a + b\n", [1]),
        ("joinable_assignment", "def f(a):\n    return a\ndef g(a):\n    b = a\n    return b\n", []),
        ("joinable_assignment", "def f(a):\n    return a[0] + a[1]\n", [1]),
        ("joinable_assignment", "def f(a, b):\n    c = a + b\n    return c\n", [1]),
        ("testing", "if a:\n    b()\nwhile True:\n    c()\nwhile d:\n    e()\n[f for f in g if f]\n", [1, 5, 7]),
        ("testing", "a = b if c else d\n", [1]),
        ("valued_function", "def f(a):\n    return a\ndef g(a, b):\n    return a\ndef h(a):\n    b = a\n", [3, 5]),
        ("valued_function", "class A:\n    def f(self):\n        return 1\n", [2]),
        ("expecting_function", "def f(a):\n    return a.size\ndef g(a):\n    return a + 1\n", [1]),
        ("expecting_function", "def f(a):\n    return a.upper()\ndef g(a):\n    for b in a:\n        b()\n", [3]),
        ("expecting_function", "def f(a):\n    return a()\ndef g(a):\n    return int(a)\n", [1]),
        ("expecting_function", "def f(a, b):\n    return a in b\ndef g(a, b):\n    return a == b\n", [1]),
        ("managing", "def f(a):\n    print(a)\n    a.append(1)\n    return int(a)\n", [2, 4]),
        ("managing", "def f(a, b):\n    c = a + b\n    return a / b\n", [3]),
        ("managing", "def g(a):\n    return a\ndef f(a):\n    return g(a)\n", []),
        ("managing", "try:\n    a()\nexcept E:\n    raise\n", [1, 2, 4]),
        ("missing_value", "def f(a, b=1):\n    return a\n", [1]),
        ("missing_value", "def f(a: int | None):\n    return a.get(1)\n", [2]),
        (
            "missing_value",
            "def f(a):\n    try:\n        return a[0]\n    except IndexError:\n        return -1\n",
            [4, 5],
        ),
        ("missing_value", "def f(a, b):\n    return a[b] if b in a else 1\n", [2]),
        ("missing_value", "def f(a, b):\n    return a + b\n", []),
        ("fixed_values", "def f(a):\n    b = [1, 2]\n    c = [3, 4]\n    c.append(5)\n    return b, c\n", [1, 2]),
        ("fixed_values", "def f(a):\n    b = []\n    b.append(a)\n    return b\n", []),
        ("fixed_values", "def f(a, b):\n    return a in b\n", [2]),
        ("fixed_values", "def f(a: list[int]):\n    return a\ndef g(b: list[int]):\n    b.sort()\n", [1]),
        ("fixed_values", "class A:\n    def __init__(self, a, b):\n        self.a = a\n        self.b = b\n", [2]),
        ("changeable_argument", "def f(a: str, b):\n    for c in a:\n        b[c] = 1\n", [1]),
        ("changeable_argument", "def f(a):\n    return g(a)\ndef h(a):\n    return len(a) + a[0]\n", [3]),
    ],
)
def test_places(name: str, code: str, lines: list[int]) -> None:
    assert found(name, code) == lines


@pytest.mark.parametrize(
    ("name", "code", "lines"),
    [
        ("keyed_work", "a = {}\nb = dict()\nc = [1]\na[1] += 1\n", [1, 2, 4]),
        ("keyed_work", "for a in b:\n    c.append(a)\nfor a in b:\n    print(a)\n", [1]),
        ("keyed_work", "for a in b:\n    if a:\n        c += 1\n    else:\n        d += 1\n", [1]),
        ("keyed_work", "while a:\n    b.append(a)\n", []),
        ("item_walk", "for a in b:\n    print(a)\nfor _ in range(3):\n    print(b)\n", [1]),
        ("item_walk", "while a < b:\n    a += 1\nwhile a:\n    a.pop()\n", [3]),
        ("item_walk", "range(3)\nsum(a)\n", [2]),
        ("item_store", "for i in range(3):\n    print(i)\nfor i in range(3):\n    a[i] = 1\n", [3]),
        ("item_store", "for _ in range(3):\n    a[roll()] = 1\nfor _ in range(3):\n    a[0] = 1\n", [1]),
        ("item_store", "for a in b:\n    print(a)\n", [1]),
        ("selecting", "for a in b:\n    if a:\n        c()\nfor a in b:\n    c()\n", [1]),
        ("selecting", "[a for a in b if a]\n[a for a in b]\nfilter(f, b)\nwhile a < b:\n    a += 1\n", [1, 3]),
        ("listable", "for a in b:\n    c()\n{a for a in b}\n[a for a in b]\nmap(f, b)\n", [1, 3, 5]),
        ("spreadable", "a = [1, 2]\nb = a[0]\nc: list[int] = d\n(e, f) = a\n", [2, 4]),
        ("spreadable", "a = b + [1]\na += (2,)\nprint(a)\nprint()\n", [1, 2, 3]),
    ],
)
def test_walks(name: str, code: str, lines: list[int]) -> None:
    assert found(name, code) == lines


@pytest.mark.parametrize(
    ("code", "lines"),
    [("a.split(',')\na.isalnum()\na.append(b)\n", [1, 2]), ("V = 'aeiou'\na in V\na in 'x'\na in b\n", [2])],
)
def test_searches_in_texts(code: str, lines: list[int]) -> None:
    assert found("text_search", code, names=[".split"]) == lines


TEXT = 'def f():\n    """Give one of them."""\n    return 1\n'
PASSING = "def f(a):\n    b = a + 1\n    return b\n"
LISTED = "def f(a):\n    b = [1, 2]\n    return a in b\n"
ROUNDS = "def f(a):\n    b = [1, 2]\n    for c in a:\n        d(c in b)\n"
CALLED = "def f(a, b):\n    b.append(a)\n    return b\n"
ITSELF = "def f(a, b):\n    f(a - 1, b)\n    b.append(a)\n    return b\n"


@pytest.mark.parametrize(
    ("name", "change", "before", "after", "lines"),
    [
        ("any_docstring", "remove", TEXT, "# Give one of them.\ndef f():\n    return 1\n", [1]),
        ("any_docstring", "remove", TEXT, "# One.\ndef f():\n    return 1\n", []),
        ("any_docstring", "modify", TEXT, "# Give one of them.\ndef f():\n    return 1\n", []),
        ("mutated_parameter", "remove", CALLED, "def f(a, b):\n    b += a\n    return b\n", [2]),
        ("mutated_parameter", "remove", CALLED, "def f(a, b):\n    b = list(b)\n    b += a\n    return b\n", []),
        ("mutated_parameter", "remove", CALLED, "def f(a, b):\n    b = b or []\n    b += a\n    return b\n", [3]),
        ("mutated_parameter", "remove", ITSELF, "def f(a, b):\n    b = f(a - 1, b)\n    b += a\n    return b\n", [3]),
        ("recursion", "remove", "def f(a):\n    return f(a)\n", "def g(h, a):\n    return h(h, a)\n", [2]),
        ("recursion", "remove", "def f(a):\n    return f(a)\n", "g = lambda a: g(a)\n", [1]),
        ("recursion", "remove", "def f(a):\n    return f(a)\n", "def f(a):\n    return globals()['f'](a)\n", [2]),
        ("listed_membership", "modify", LISTED, LISTED.replace("in b", "in set(b)"), [3]),
        ("listed_membership", "modify", LISTED, LISTED.replace("in b", "in {*b}"), [3]),
        ("listed_membership", "modify", LISTED, LISTED.replace("[1, 2]", "{1, 2}"), []),
        ("listed_membership", "modify", LISTED, LISTED.replace("in b", "in set('ab')"), []),
        ("listed_membership", "modify", ROUNDS, ROUNDS.replace("in b", "in set(list(b))"), [4]),
        (
            "listed_membership",
            "modify",
            ROUNDS,
            ROUNDS.replace("        d(", "        e = set(b)\n        d(").replace("in b", "in e"),
            [5],
        ),
        (
            "listed_membership",
            "modify",
            ROUNDS,
            ROUNDS.replace("    for", "    e = set(b)\n    for").replace("in b", "in e"),
            [],
        ),
        ("passing_variable", "remove", PASSING, PASSING.replace("    r", "    assert b\n    r"), [2]),
        ("passing_variable", "remove", PASSING, PASSING.replace("    r", "    print(b)\n    r"), [2]),
        ("passing_variable", "remove", PASSING, PASSING.replace("    r", "    if True:\n        r"), [2]),
        ("passing_variable", "remove", PASSING, PASSING.replace("    r", "    c(b)\n    r"), []),
        ("passing_variable", "remove", PASSING, PASSING.replace("    r", "    b += 1\n    r"), []),
        ("passing_variable", "remove", PASSING, PASSING.replace("    b =", "    b = c ="), [2]),
    ],
)
def test_what_came_back(name: str, change: str, before: str, after: str, lines: list[int]) -> None:
    assert came_back(name, change, before, after) == lines


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", True), ("a or []", True), ("[] if a is None else a", True), ("same(a)", True), ("same(b=1, a=a)", True),
        ("list(a)", False), ("copied(a)", False), ("same(1, a)", False), ("[*a]", False), ("b", False),
    ],
)  # fmt: skip
def test_a_value_that_may_be_the_variable_itself(value: str, expected: bool) -> None:
    code = read(
        "def same(a, b=0):\n    a += [b]\n    return a\n"
        "def copied(a):\n    a = list(a)\n    return a\n"
        f"def f(a, b):\n    a = {value}\n    return a\n"
    )
    assigned = code.functions[-1].body[0]
    assert may_be(code, assigned.value, "a") is expected  # type: ignore[attr-defined]
