"""Transformations keep behaviour, meet their instruction's rule, and refuse where they cannot be sure."""

import subprocess
import sys

import pytest

from codechat.datasets import DATASETS
from codechat.domain import Instruction
from codechat.instructions import INSTRUCTIONS
from codechat.models.baselines.refactoring import refactor, transformable
from codechat.patterns import adherence, applicable


def instructions() -> dict[str, Instruction]:
    config = INSTRUCTIONS.validate({"kind": "default"})
    return {one.id: one for one in INSTRUCTIONS.of(config).factory(config).instructions}


POOL = instructions()


def test_at_least_sixty_instructions_of_the_pool_have_a_transformation() -> None:
    assert transformable() <= POOL.keys()
    assert len(transformable()) >= 60


def test_every_scope_and_change_has_one() -> None:
    assert {POOL[name].cell for name in transformable()} == {one.cell for one in POOL.values()}


def test_libcst_is_imported_at_the_first_use_and_not_before() -> None:
    program = "import sys; import codechat.models.baselines.refactoring; assert 'libcst' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_change_meets_its_rule_and_a_refusal_changes_nothing() -> None:
    config = DATASETS.validate({"kind": "starter"})
    changed = 0
    for task in DATASETS.of(config).factory(config).tasks[::5]:
        assert task.reference is not None
        for one in (one for one in POOL.values() if applicable(task.reference, one).applicable):
            revision = refactor(task.reference, one, task.entry_point)
            if not revision.changed:
                assert revision.code == task.reference
                assert revision.reason
                continue
            changed += 1
            assert adherence(task.reference, revision.code, one).verdict == "adhered"
    assert changed > 300


def test_code_that_does_not_parse_is_left_alone() -> None:
    revision = refactor("def f(:\n", POOL["cosmetic-add-comment"], "f")
    assert (revision.code, revision.reason) == ("def f(:\n", "the code does not parse")


def test_an_unknown_instruction_is_refused() -> None:
    unknown = Instruction("mine", "Sing.", "cosmetic", "add")
    assert refactor("x = 1\n", unknown, "f").reason == "no transformation for this instruction"


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


def test_a_generator_keeps_its_brackets_beside_a_keyword() -> None:
    code = "def f(values):\n    return max((one) * 2 for one in values)\n"
    revision = refactor(code, POOL["structural-use-keyword-arguments"], "f")
    assert "max(((one) * 2 for one in values), key=None)" in revision.code
    assert call(revision.code, ([1, 3],)) == 6


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


@pytest.mark.parametrize("name", ["structural-use-zip", "structural-replace-index-loops"])
def test_a_comprehension_that_empties_what_it_counts_is_left_alone(name: str) -> None:
    code = (
        "import heapq\n\n\ndef heap_sort(items):\n    heapq.heapify(items)\n"
        "    return [heapq.heappop(items) for _ in range(len(items))]\n"
    )
    assert not refactor(code, POOL[name], "heap_sort").changed


DEAR = [
    "structural-define-enum", "structural-use-closure", "structural-define-named-tuple", "structural-use-partial",
    "structural-use-with", "semantic-use-cached-property", "semantic-use-counter", "semantic-log-progress",
    "semantic-use-lock", "semantic-use-dispatch-table",
]  # fmt: skip
LUCAS = "def f(n):\n    if n < 2:\n        return 2 - n\n    return f(n - 1) + f(n - 2)\n"
NESTED = "def f(n):\n    if not isinstance(n, list):\n        return 1\n    return sum(f(one) for one in n)\n"
FACTORIAL = "def f(n):\n    if n < 2:\n        return 1\n    return max(n, 1) * f(n - 1)\n"


@pytest.mark.parametrize("name", DEAR)
def test_what_is_dear_is_not_paid_at_every_call_of_a_branching_recursion(name: str) -> None:
    """The time of the tests is limited to a few times the reference's: on Lucas numbers an enumeration took eleven."""
    for code in (LUCAS, NESTED):
        revision = refactor(code, POOL[name], "f")
        assert not revision.changed
        assert revision.reason == "f calls itself again and again"
    assert refactor(FACTORIAL, POOL[name], "f").changed
