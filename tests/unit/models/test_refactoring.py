"""Transformations keep behaviour, meet their instruction's rule, and refuse where they cannot be sure."""

import subprocess
import sys
from collections import Counter

import pytest

from codechat.base.domain import Instruction
from codechat.datasets import DATASETS
from codechat.studies.refine.baselines.refactoring import refactor, transformable
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.patterns import adherence, applicable


def instructions() -> dict[str, Instruction]:
    config = INSTRUCTIONS.validate({"kind": "default"})
    return {one.id: one for one in INSTRUCTIONS.build(config).instructions}


POOL = instructions()


# How many instructions of each cell have a transformation, and how many of the pairs of a fifth of the starter's
# references with an applicable instruction of the cell are handled.
COUNTS = {
    "cosmetic/add": 18,
    "cosmetic/modify": 9,
    "cosmetic/remove": 9,
    "semantic/add": 13,
    "semantic/modify": 1,
    "semantic/remove": 1,
    "structural/add": 9,
    "structural/modify": 3,
    "structural/remove": 2,
}
HANDLED = {
    "cosmetic/add": (144, 335),
    "cosmetic/modify": (57, 89),
    "cosmetic/remove": (44, 59),
    "semantic/add": (68, 302),
    "semantic/modify": (4, 32),
    "semantic/remove": (2, 25),
    "structural/add": (59, 297),
    "structural/modify": (9, 35),
    "structural/remove": (3, 39),
}


def test_each_cell_has_as_many_transformations_as_are_said() -> None:
    assert transformable() <= POOL.keys()
    assert Counter(POOL[name].kind for name in transformable()) == COUNTS
    assert COUNTS.keys() == {one.kind for one in POOL.values()}


def test_libcst_is_imported_at_the_first_use_and_not_before() -> None:
    program = "import sys; import codechat.studies.refine.baselines.refactoring; assert 'libcst' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_change_meets_its_rule_and_a_refusal_changes_nothing() -> None:
    config = DATASETS.validate({"kind": "starter"})
    handled: Counter[str] = Counter()
    applies: Counter[str] = Counter()
    for task in DATASETS.build(config).tasks[::5]:
        assert task.reference is not None
        for one in (one for one in POOL.values() if applicable(task.reference, one).applicable):
            revision = refactor(task.reference, one, task.target.entry_point)
            applies[one.kind] += 1
            if not revision.changed:
                assert revision.code == task.reference
                assert revision.reason
                continue
            handled[one.kind] += 1
            assert adherence(task.reference, revision.code, one).verdict == "adhered"
    assert {cell: (handled[cell], applies[cell]) for cell in applies} == HANDLED


def test_code_that_does_not_parse_is_left_alone() -> None:
    revision = refactor("def f(:\n", POOL["cosmetic-add-comment"], "f")
    assert revision.code == "def f(:\n" and "not parse" in revision.reason


def test_an_unknown_instruction_is_refused() -> None:
    unknown = Instruction("mine", "Sing.", "cosmetic", "add")
    assert "no transformation" in refactor("x = 1\n", unknown, "f").reason


RENAME = "cosmetic-rename-single-letter-locals"


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("def f(x):\n    y = [x for x in range(x)]\n    return sorted(y, key=lambda y: -y)\n", (4,)),
        ("def f(a):\n    def g(n):\n        return n * k\n    k = 3\n    return g(a) + k\n", (5,)),
        ("def f(a):\n    t = 0\n    for i, a[0] in enumerate(list(a)):\n        t += i\n    return t, a\n", ([1, 2],)),
        ("def f(n):\n    d = dict(k=n)\n    k = d['k']\n    return f'{k:>{n}}'\n", (5,)),
        ("def f(n):\n    v = 1\n    class A:\n        v = 2\n    return A.v + v + n\n", (5,)),
    ],
)
def test_renaming_goes_by_scope(code: str, arguments: tuple[object, ...]) -> None:
    made = refactor(code, POOL[RENAME], "f").code
    assert call(made, arguments) == call(code, arguments)


def test_a_condition_in_brackets_that_touch_the_keyword_is_named() -> None:
    code = "def f(n):\n    while(n > 3):\n        n -= 2\n    if(n == 3):\n        n = 0\n    return n\n"
    revision = refactor(code, POOL["structural-introduce-named-conditions"], "f")
    assert revision.changed
    assert [call(revision.code, (n,)) for n in (7, 8)] == [0, 2]


def call(code: str, arguments: tuple[object, ...]) -> object:
    """What `f` of a trusted program returns."""
    space: dict[str, object] = {}
    exec(code, space)
    return space["f"](*arguments)  # type: ignore[operator]


DEAR = [
    "semantic-add-try", "semantic-apply-cache", "semantic-include-finally", "semantic-include-timing",
    "semantic-log-progress", "semantic-use-lock", "structural-implement-decorator", "structural-use-closure",
]  # fmt: skip
LUCAS = "def f(n: int) -> int:\n    if n < 2:\n        return 2 - n\n    return f(n - 1) + f(n - 2)\n"
SQUARE = "def f(n: int) -> int:\n    return n * n\n"


@pytest.mark.parametrize("name", DEAR)
def test_what_is_dear_is_not_paid_at_every_call_of_a_recursion(name: str) -> None:
    """The time of the tests is limited to a few times the reference's."""
    revision = refactor(LUCAS, POOL[name], "f")
    assert not revision.changed
    assert revision.reason.startswith("the function calls itself")
    assert refactor(SQUARE, POOL[name], "f").changed


@pytest.mark.parametrize(
    ("head", "cached"),
    [
        ("def f(n: int, s: str) -> bool:", True),
        ("def f(n: int, s) -> bool:", False),  # may be a list
        ("def f(n: int, s: str) -> list[int]:", False),  # a caller may change it
        ("def f(n: int, s: str):", False),
    ],
)
def test_only_what_surely_cannot_change_is_cached(head: str, cached: bool) -> None:
    code = f"{head}\n    return len(s) > n\n"
    revision = refactor(code, POOL["semantic-apply-cache"], "f")
    assert revision.changed is cached
    assert call(revision.code, (1, "ab")) is True


@pytest.mark.parametrize(("body", "changed"), [("values.append(1)", True), ("add = values.append\n    add(1)", False)])
def test_what_is_appended_is_given_in_a_list(body: str, changed: bool) -> None:
    code = f"def f(values):\n    {body}\n    return values\n"
    revision = refactor(code, POOL["semantic-avoid-append"], "f")
    assert revision.changed is changed
    assert call(revision.code, ([0],)) == [0, 1]
    own = "class Pile(list):\n    pass\n\n\n" + code
    assert not refactor(own, POOL["semantic-avoid-append"], "f").changed


HELPER = POOL["structural-create-helper"]


def test_a_helper_is_given_what_it_reads() -> None:
    code = "import math\n\n\n# keep\ndef f(values, k):\n    top = max(values)\n    return [v * k for v in values if v < top]\n"
    made = refactor(code, HELPER, "f").code
    assert "def compute_f(k, values, top):\n    return [v * k for v in values if v < top]\n" in made
    assert "# keep\ndef f(values, k):" in made
    assert call(made, ([1, 3, 2], 2)) == [2, 4]
    hidden = refactor("def f(x):\n    return [x for x in range(x)]\n", HELPER, "f").code
    assert "def compute_f(x):" in hidden
    assert call(hidden, (3,)) == [0, 1, 2]


@pytest.mark.parametrize(
    "code",
    [
        "def f(n):\n    made = [lambda: n + i for i in range(n)]\n    return made\n",  # a function keeps the variable
        "def f(n):\n    if n:\n        k = 1\n    return n > 3 and k + 1\n",  # k may have no value
        "def f(n):\n    return locals()\n",
        "def f(n):\n    return 1 if n < 2 else n * f(n - 1)\n",  # twice as deep
        "def f(n):\n    return 5\n",
    ],
)
def test_no_helper_is_made_if_that_is_not_surely_safe(code: str) -> None:
    assert not refactor(code, HELPER, "f").changed
