"""No program passes assertions that it does not meet, unless they are decided inside, which the verdict says."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from attack_assertions import ASSERTION_ATTACKS, LIES, UGLY
from attack_inside import PASSES_INSIDE

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites.assertions import Assertions

IN_THE_CALL = "checkers patched in the call"  # as ugly as the others
SLOW = ("endless", "sleeping", "memory")
LIMITS = {"load_cpu_s": 0.6, "total_cpu_s": 1.0, "idle_s": 0.7, "memory_mb": 512, "processes": 16}
RIGHT = "def solve(n: int) -> int:\n    return n * n\n"

STANDARD = """
import inspect
import os
import pycodestyle
def check(function, name="temp.py"):
    try:
        with open(name, "w") as stream: stream.write(inspect.getsource(function))
        assert pycodestyle.StyleGuide(quiet=True).check_files([name]).total_errors == 0
    finally:
        if os.path.exists(name): os.remove(name)
check(solve)
"""
COMPLEXITY = """
from radon.complexity import cc_visit
import inspect
blocks = cc_visit(inspect.getsource(solve))
assert len(blocks) == 1 and isinstance(blocks, list)
assert max(block.complexity for block in blocks) <= 3
"""
GRAPH = """
import ast, inspect
from mccabe import PathGraphingAstVisitor
visitor = PathGraphingAstVisitor()
visitor.preorder(ast.parse(inspect.getsource(solve)), visitor)
assert all(graph.complexity() <= 3 for graph in visitor.graphs.values()) and visitor.graphs
"""
CASES = """
import unittest
class Squares(unittest.TestCase):
    def test_squares(self):
        self.assertEqual([solve(n) for n in (2, 3, 5)], [4, 9, 25])
if __name__ == "__main__":
    unittest.main()
"""
RESULTS: dict[str, tuple[str, ...]] = {
    "plain": ("assert solve(3) == 9", "assert [solve(n) for n in (1, 2)] == [1, 4]"),
    "unittest": (CASES,),
    "looks first": ("solve(1)", STANDARD, COMPLEXITY, "assert solve(3) == 9"),
}
LOOKS: dict[str, tuple[str, ...]] = {
    "annotations": ("assert solve.__annotations__ == {'n': int, 'return': int}",),
    "standard": (STANDARD,),
    "complexity": (COMPLEXITY,),
    "graph": (GRAPH,),
    "after a call": ("solve(1)", STANDARD),
    "after a call in one": ("solve(1)\n" + STANDARD,),
}
CHECKS = RESULTS | LOOKS


@pytest.fixture(scope="module", params=["bubblewrap", "landlock", "process"])
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    config = SANDBOXES.validate({"kind": request.param, **LIMITS})
    try:
        room: Any = SANDBOXES.build(config, workers=1)
    except UserError as error:
        pytest.skip(str(error))
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


async def assess(sandbox: Sandbox, source: str, snippets: tuple[str, ...]) -> Verdict:
    return await Assertions(snippets).check(Program(source, Target(entry_point="solve")), sandbox)


@pytest.mark.parametrize("check", CHECKS)
async def test_what_meets_the_assertions_passes(sandbox: Any, check: str) -> None:
    verdict = await assess(sandbox, RIGHT, CHECKS[check])
    assert verdict.passed, verdict.failure


@pytest.mark.parametrize("name", ASSERTION_ATTACKS)
async def test_an_attack_on_assertions_fails(sandbox: Any, name: str) -> None:
    program = ASSERTION_ATTACKS[name]
    # Programs that are well laid out may pass what only looks at that: their results are wrong.
    checks = ["plain"] if name in SLOW else CHECKS if UGLY in program or name == IN_THE_CALL else RESULTS
    for check in checks:
        verdict = await assess(sandbox, program, CHECKS[check])
        if verdict.decided == "inside" and f"assertions: {name}" in PASSES_INSIDE:
            continue
        assert not verdict.passed, check
        assert not verdict.passed_base
        assert verdict.failure is not None
    assert (await assess(sandbox, f"# after {name}\n{RIGHT}", CHECKS["standard"])).passed


COMPARISONS: dict[str, tuple[str, ...]] = {
    "equal": ("assert solve(3) == 9",),
    "the other way round": ("assert 9 == solve(3)",),
    "a name": ("wanted = 9\ngot = solve(3)\nassert got == wanted",),
    "in a list": ("assert [solve(3), solve(2)] == [9, 4]",),
    "in a dict": ("assert {'a': solve(3)} == {'a': 9}",),
    "among others": ("assert solve(3) in (8, 9)",),
    "in a loop": ("for n in (2, 3):\n    assert solve(n) == n * n",),
    "in a condition": ("if not solve(3) == 9: raise ValueError",),
    "in a function": ("def check(f):\n    assert f(3) == 9\ncheck(solve)",),
    "unittest": (CASES,),
    "unittest, one": (CASES.replace("[solve(n) for n in (2, 3, 5)], [4, 9, 25]", "solve(2), 4"),),
}


@pytest.mark.parametrize("name", LIES)
async def test_a_result_does_not_answer_for_itself(sandbox: Any, name: str) -> None:
    for how, snippets in COMPARISONS.items():
        verdict = await assess(sandbox, LIES[name], snippets)
        assert not verdict.passed or verdict.decided == "inside", how


@pytest.mark.parametrize("how", COMPARISONS)
async def test_right_results_compare_equal(sandbox: Any, how: str) -> None:
    assert (await assess(sandbox, RIGHT, COMPARISONS[how])).passed


HONEST: dict[str, tuple[str, str]] = {
    "a named tuple": (
        "import collections\nP = collections.namedtuple('P', 'x y')\ndef solve(n): return P(n, 1)",
        "assert solve(3) == (3, 1)",
    ),
    "a counter": (
        "import collections\ndef solve(n): return collections.Counter('aab')",
        "assert solve(1) == {'a': 2, 'b': 1}",
    ),
    "a fraction": ("import fractions\ndef solve(n): return fractions.Fraction(6, 2)", "assert solve(1) == 3"),
    "a decimal": ("import decimal\ndef solve(n): return decimal.Decimal('0.5')", "assert solve(1) == 0.5"),
    "an array": ("import numpy\ndef solve(n): return numpy.arange(3)", "assert (solve(1) == [0, 1, 2]).all()"),
    "a number of numpy": ("import numpy\ndef solve(n): return numpy.int64(3)", "assert solve(1) == 3"),
    "a subclass of list": ("class L(list): pass\ndef solve(n): return L([n])", "assert solve(1) == [1]"),
    "an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2\ndef solve(n): return E(n)",
        "assert solve(1) == E.A and solve(2) != E.A",
    ),
    "a data class": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef solve(n): return P(n)",
        "assert solve(1) == P(1) and [solve(1)] == [P(1)] and solve(1) != P(2)",
    ),
    "an equality of its own": (
        "class P:\n    def __init__(s, x): s.x = x\n    def __eq__(s, o): return s.x == o.x\ndef solve(n): return P(n)",
        "assert solve(1) == P(1) and not solve(1) == P(2)",
    ),
    "its annotations": (
        "from typing import List\ndef solve(n: List[int]) -> 'int': return n",
        "from typing import List\nassert solve.__annotations__ == {'n': List[int], 'return': 'int'}",
    ),
    "an exception": (
        "def solve(n): raise ValueError('no')",
        "try: solve(1)\nexcept ValueError as e: assert str(e) == 'no'",
    ),
    "a chain": ("def solve(n): return n", "assert 0 < solve(1) < 2"),
    "sets": (
        "def solve(n): return {(1, 2), frozenset({3})}",
        "assert solve(1) == {(1, 2), frozenset({3})} and 4 not in solve(1)",
    ),
    "the same object": ("kept = []\ndef solve(n): return kept", "assert solve(1) is solve(2) and solve(1) == []"),
    "not a number": ("def solve(n): return float('nan')", "assert solve(1) != solve(1)"),
    "a mock of the test's": (
        "def solve(n): return [n, 2]",
        "from unittest.mock import ANY\nassert solve(1) == [1, ANY]",
    ),
    "a mock of a module's": (
        "def solve(n): return [n, 2]",
        "from unittest import mock\nassert mock.Mock(side_effect=solve)(1) == [1, mock.ANY]",
    ),
}


@pytest.mark.parametrize("name", HONEST)
async def test_honest_results_compare_as_ever(sandbox: Any, name: str) -> None:
    program, snippet = HONEST[name]
    verdict = await assess(sandbox, program, (snippet,))
    assert verdict.passed, verdict.failure


def test_the_corpus_is_large_enough() -> None:
    assert len(ASSERTION_ATTACKS) >= 50
