"""No program chooses where, how exactly and by whose names it is decided: none of these passes outside."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from attack_chosen import CHOSEN, EMPTY, VALUES

from codechat.base.domain import Program, Target
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from support.machine import sandbox_here

LIMITS = {"load_cpu_s": 0.6, "total_cpu_s": 1.0, "idle_s": 0.7, "memory_mb": 1500, "processes": 16, "output_mb": 16}
RIGHT = "def solve(n: int) -> int:\n    return n * n\n"
# Each has a way to ask for the result that some of the programs wait for.
TESTS: dict[str, str] = {
    "equal": "assert solve(3) == 9 and not solve(3) != 9 and 9 == solve(3)",
    "close": "assert abs(solve(3) - 9) < 1e-9 and round(solve(3), 6) == 9",
    "among": "assert solve(3) in (9, 10) and solve(2) in {4} and solve(2) in [4]",
    "as text": "assert str(solve(3)) == '9' and f'{solve(2)}' == '4' and repr(solve(1)) == '1'",
    "converted": "assert int(solve(3)) == 9 and float(solve(2)) == 4.0 and isinstance(solve(3), int)",
    "ordered": "assert 8 < solve(3) < 10 and sorted([solve(3), 1]) == [1, 9] and max(solve(2), 3) == 4",
    "hashed": "assert {solve(3)} == {9} and {9: 1}[solve(3)] == 1 and len({solve(3), 9}) == 1",
    "mapped": "assert all(map(lambda n: solve(n) == n * n, range(2, 5)))",
    "in loops": "for n, got in zip((2, 3), map(solve, (2, 3))):\n    assert got == n * n\nassert solve(2) == 4",
    "stops": "# StopIteration: Stop\nassert [*map(solve, (2, 3))] == [4, 9], 'Stop'",
    "copied": "import copy\nassert copy.deepcopy([solve(3)]) == [9]",
    "imported": "import math\nassert math.isclose(solve(3), 9) and math.sqrt(solve(2)) == 2",
    "not imported": "assert isclose(solve(3), 9)",
    "of pytest": "import pytest\nassert solve(3) == pytest.approx(9)",
    "of NumPy": "import numpy as np\nassert np.allclose(solve(3), 9) and np.isclose(solve(2), 4).all() and solve(1) == 1",
    "arrays": "import numpy\nassert numpy.allclose(solve(3), [9, 9]) and solve(1) == 1",
    "by NumPy's tests": "import numpy as np\nnp.testing.assert_allclose(solve(3), 9)",
    "cases": "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(solve(3), 9)\n        self.assertAlmostEqual(solve(2), 4)\n        self.assertIn(solve(1), (1, 2))\n        self.assertTrue(solve(1) == 1)",
    "as pytest": "class TestIt:\n    def test_it(self): assert solve(3) == 9\ndef test_that():\n    assert solve(2) == 4",
    "checked": "def check(candidate):\n    for n in (2, 3): assert candidate(n) == n * n",
    "annotated": "assert solve.__annotations__ == {'n': int, 'return': int} and solve(3) == 9",
}  # fmt: skip
OF_ALL_ITEMS: dict[str, str] = {
    "method": "import numpy as np\nassert (np.array([9.0]) == solve(3)).all()",
    "function": "import numpy\nassert numpy.all(solve(3) == numpy.array([9]))",
    "counted": "import numpy as np\nassert np.sum(solve(3) != np.array([9])) == 0",
    "difference": "import numpy as np\nassert np.all(np.abs(np.array([9.0]) - solve(3)) < 1e-6)",
    "largest": "import numpy as np\nassert np.max(np.abs(solve(3) - np.array([9.0])), initial=0) < 1e-6",
    "chain": "import numpy as np\nassert ((8 < np.array([9.0])) & (np.array([9.0]) <= solve(3))).all()",
}
AT_ONCE = 4
CALLS = Calls("solve", RIGHT, base=((2,), (3,)), plus=((70,),), atol=1e-6)


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    room = sandbox_here(AT_ONCE, kind=request.param, **LIMITS)
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


def chosen(number: int) -> list[str]:
    """The tests of a program: three of them in turn, so that all meet programs of each kind."""
    names = list(TESTS)
    return [names[place % len(names)] for place in (number, 4 * number + 9, 10 * number + 2)]


async def passing(sandbox: Any, programs: list[tuple[str, str, list[str]]]) -> list[tuple[str, str]]:
    """The programs that pass outside, with the tests that they pass."""
    places, passed = asyncio.Semaphore(AT_ONCE), list[tuple[str, str]]()

    async def assess(name: str, program: str, test: str) -> bool:
        async with places:
            target = Target(entry_point="solve")
            verdict = await Assertions((TESTS[test],), reference=RIGHT).check(Program(program, target), sandbox)
        if verdict.passed and verdict.decided == "outside":
            passed.append((name, test))
        return verdict.outcome != "timeout"

    async def assess_all(name: str, program: str, tests: list[str]) -> None:
        for test in tests:
            if not await assess(name, program, test):
                break

    await asyncio.gather(*(assess_all(*each) for each in programs))
    return sorted(passed)


async def test_a_right_program_passes_all_tests_outside(sandbox: Any) -> None:
    tests = [name for name in TESTS if name != "not imported"]
    assert [test for _, test in await passing(sandbox, [("right", RIGHT, tests)])] == sorted(tests)


@pytest.mark.parametrize("group", sorted({name.partition(":")[0] for name in CHOSEN}))
async def test_what_a_program_chooses_does_not_pass_outside(sandbox: Any, group: str) -> None:
    numbered = [(number, name) for number, name in enumerate(CHOSEN) if name.startswith(f"{group}:")]
    assert not await passing(sandbox, [(name, CHOSEN[name], chosen(number)) for number, name in numbered])


async def test_what_has_no_items_equals_no_array(sandbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, test in OF_ALL_ITEMS.items():
        monkeypatch.setitem(TESTS, name, test)
    programs = {"right": RIGHT, "an array": "import numpy\ndef solve(n): return numpy.array([n * n])", **EMPTY}
    passed = await passing(sandbox, [(name, program, [*OF_ALL_ITEMS]) for name, program in programs.items()])
    assert {name for name, _ in passed} == {"right", "an array"} and len(passed) == 2 * len(OF_ALL_ITEMS)


async def test_nor_does_it_pass_calls(sandbox: Any) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def passes(program: str) -> bool:
        async with places:
            return (await CALLS.check(Program(program), sandbox)).passed

    assert await passes(RIGHT)
    found = await asyncio.gather(*map(passes, VALUES.values()))
    assert not [name for name, passed in zip(VALUES, found, strict=True) if passed]


def test_the_corpus_is_large_enough() -> None:
    assert len(CHOSEN) >= 440
