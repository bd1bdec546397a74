"""What results are compared by value in every kind of sandbox, and which a reference may not return."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from codechat.base.domain import Program
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.calls import Calls
from support.machine import sandbox_here

LIMITS = {"idle_s": 1.5, "min_cpu_s": 0.5, "memory_mb": 1024}


@pytest.fixture(scope="module", params=[component.name for component in SANDBOXES])
def sandbox(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    of_kind: Callable[[str], dict[str, str]],
) -> Iterator[Any]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    room = sandbox_here(**of_kind(request.param), **LIMITS)
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


IMPORTS = """
import array, datetime, itertools, re
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
"""
NUMPY = "import numpy\n"


def returning(expression: str) -> str:
    return f"{NUMPY if 'numpy' in expression else ''}{IMPORTS}\ndef f(n):\n    return {expression}\n"


# What the reference returns, another way to the same value, and a different value.
COMPARED: dict[str, tuple[str, str, str]] = {
    "array": ("numpy.arange(n)", "numpy.array(list(range(n)))", "numpy.arange(n) + 1"),
    "shape": ("numpy.zeros((2, n))", "numpy.zeros(2 * n).reshape(2, n)", "numpy.zeros((n, 2))"),
    "floats of an array": ("numpy.array([0.1 + 0.2, n])", "numpy.array([0.3, n])", "numpy.array([0.3001, n])"),
    "array in a dictionary": ("{'a': numpy.ones(n)}", "{'a': 1.0 + numpy.zeros(n)}", "{'a': numpy.ones(n + 1)}"),
    "range": ("range(0, n, 2)", "range(0, n + n % 2, 2)", "list(range(0, n, 2))"),
    "deque": ("deque([n])", "deque([float(n)], 3)", "[n]"),
    "generator": ("(k for k in range(n))", "iter(range(n))", "list(range(n))"),
    "date": ("datetime.date(2024, 1, n)", "datetime.date.fromordinal(738885 + n)", "datetime.datetime(2024, 1, n)"),
    "instant": (
        "datetime.datetime(2024, 1, n, 12, tzinfo=datetime.timezone.utc)",
        "datetime.datetime(2024, 1, n, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))",
        "datetime.datetime(2024, 1, n, 12)",
    ),
    "duration": ("datetime.timedelta(n)", "datetime.timedelta(hours=24 * n)", "datetime.timedelta(n, 1)"),
    "time": ("datetime.time(n)", "datetime.time(n, 0)", "datetime.time(n, 1)"),
    "fraction": ("Fraction(n, 7)", "Fraction(2 * n, 14)", "n / 7"),
    "decimal": ("Decimal(n) / 10", "Fraction(n, 10)", "n / 10"),
    "exact fraction": ("Fraction(n, 2)", "n / 2", "Fraction(n, 3)"),
    "bytes": ("bytearray([n])", "bytes([n])", "[n]"),
    "keys": ("{n: 1}.keys()", "{float(n)}", "[n]"),
    "nested": ("[{'a': (deque([n]), range(n))}]", "[dict(a=(deque((n,)), range(n)))]", "[{'a': (deque([n]), range(1))}]"),
    "long iterator": ("map(str, range(20_000 + n))", "(str(k) for k in range(20_000 + n))", "map(str, range(20_000))"),
    "long array": ("numpy.arange(60_000) + n", "numpy.arange(n, 60_000 + n)", "numpy.arange(60_000)"),
    "array of the library": ("array.array('d', [n])", "array.array('f', [n])", "array.array('d', [1])"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARED)
async def test_equal_results_pass_and_different_ones_fail(sandbox: Any, name: str) -> None:
    reference, same, different = COMPARED[name]
    calls = Calls("f", returning(reference), base=((3,),), plus=((5,),), name=name)
    assert (await calls.check(Program("# itself\n" + returning(reference)), sandbox)).passed
    assert (await calls.check(Program(returning(same)), sandbox)).passed
    verdict = await calls.check(Program(returning(different)), sandbox)
    assert (verdict.outcome, verdict.passed_base) == ("fail", False)


OWN = "@dataclass\nclass Own:\n    n: int\ndef f(n):\n    return [Own(n)]\n"
REFUSED: dict[str, tuple[str, str]] = {
    "own class": (IMPORTS + OWN, "candidate.Own"),
    "function": (returning("f"), "builtins.function"),
    "code": (returning("[f.__code__]"), "the type code"),
    "endless iterator": (returning("itertools.count(n)"), "more than 100000 items"),
    "match": (returning("re.match('x', 'x')"), "re.Match"),
    "values of a dictionary": (returning("{1: 2}.values()"), "dict_values"),
    "in a set": (returning("{f}"), "function"),
    "array of dates": (returning("numpy.zeros(2, 'M8[s]')"), "datetime64"),
    "in a long value": (returning("[object()] * 70_000"), "a large value"),
    "in a long text": (returning("['x' * 300_000, object()]"), "a large value"),
    "nested too deeply": (
        f"{IMPORTS}def f(n):\n    x = []\n    for _ in range(500): x = [x]\n    return x\n",
        "too deep",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_reference_whose_results_cannot_be_compared_is_refused(sandbox: Any, name: str) -> None:
    reference, words = REFUSED[name]
    calls = Calls("f", reference, base=((3,), (4,)), name=f"task {name}")
    for _ in range(2):  # the second time its results come from the disk
        with pytest.raises(UserError, match=f"task {name} .* input 0: .*{words}"):
            await calls.check(Program(reference), sandbox)
    with pytest.raises(UserError, match="input 0"):
        await replace(calls, reference=None, expected_base=(3, object())[::-1]).check(Program(reference), sandbox)


async def test_what_is_not_compared_by_value_may_be_anything(sandbox: Any) -> None:
    found = "import re\ndef f(n):\n    return re.match('3', str(n))\n"
    calls = Calls("f", found, base=((3,), (4,)), oracle="not_none", name="match")
    assert (await calls.check(Program("# itself\n" + found), sandbox)).passed
    assert (await calls.check(Program("def f(n): return [n] * 50_000 if n == 3 else None"), sandbox)).passed
    assert not (await calls.check(Program("def f(n): return n"), sandbox)).passed
    with pytest.raises(UserError, match=r"re\.Match"):
        await replace(calls, oracle="equal").check(Program(found), sandbox)


async def test_where_elements_are_compared_neither_order_nor_number_counts(sandbox: Any) -> None:
    reference = "def f(n):\n    return [k % n for k in range(2 * n)]\n"
    calls = Calls("f", reference, base=((3,), (900,)), oracle="set_equal", name="elements")
    for program in (
        "def f(n): return set(range(n))",
        "def f(n): return list(range(n)) * 400",
        "def f(n): return (k % n for k in range(9 * n))",
        "def f(n): return {k: 'x' * 2000 for k in range(n)}",
        "import numpy\ndef f(n): return numpy.arange(n)",
        "from collections import deque\ndef f(n): return deque(range(n))",
    ):
        assert (await calls.check(Program(program), sandbox)).passed, program
    assert not (await calls.check(Program("def f(n): return [[k] for k in range(n)]"), sandbox)).passed


@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("def f(n):\n    while True: yield n", "fail"),
        ("def f(n):\n    while True: pass\n    yield n", "timeout"),
        ("import time\ndef f(n):\n    time.sleep(60)\n    yield n", "timeout"),
        ("def f(n):\n    yield n\n    raise ValueError(n)", "fail"),
        ("def f(n):\n    yield n", "fail"),
    ],
)
async def test_generators_of_a_candidate_end_in_a_verdict(sandbox: Any, program: str, outcome: str) -> None:
    calls = Calls("f", "def f(n):\n    return [n]\n", base=((3,),), name="generators")
    assert (await calls.check(Program(program), sandbox)).outcome == outcome
