"""No program passes assertions that it does not meet, by the ways that docs/sandbox.md calls guarded."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from attack_assertions import ASSERTION_ATTACKS, NOT_GUARDED, UGLY

from codechat.domain import AssertionTests
from codechat.errors import UserError
from codechat.sandbox import SANDBOXES

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
}
CHECKS = RESULTS | LOOKS


@pytest.fixture(scope="module", params=["bubblewrap", "process"])
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    config = SANDBOXES.validate({"kind": request.param, **LIMITS})
    try:
        room: Any = SANDBOXES.of(config).factory(config, workers=1)
    except UserError as error:
        pytest.skip(str(error))
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


@pytest.mark.parametrize("check", CHECKS)
async def test_what_meets_the_assertions_passes(sandbox: Any, check: str) -> None:
    verdict = await sandbox.assess(RIGHT, AssertionTests(CHECKS[check]), "solve")
    assert verdict.passed, verdict.failure


@pytest.mark.parametrize("name", ASSERTION_ATTACKS)
async def test_an_attack_on_assertions_fails(sandbox: Any, name: str) -> None:
    program = ASSERTION_ATTACKS[name]
    # Programs that are well laid out may pass what only looks at that: their results are wrong.
    checks = ["plain"] if name in SLOW else CHECKS if UGLY in program else RESULTS
    for check in checks:
        verdict = await sandbox.assess(program, AssertionTests(CHECKS[check]), "solve")
        assert not verdict.passed, check
        assert not verdict.passed_base
        assert verdict.failure is not None
    assert (await sandbox.assess(f"# after {name}\n{RIGHT}", AssertionTests(CHECKS["standard"]), "solve")).passed


@pytest.mark.parametrize("name", NOT_GUARDED)
async def test_what_the_docs_call_not_guarded_passes(sandbox: Any, name: str) -> None:
    assert (await sandbox.assess(NOT_GUARDED[name], AssertionTests(RESULTS["plain"]), "solve")).passed


def test_the_corpus_is_large_enough() -> None:
    assert len(ASSERTION_ATTACKS) >= 50
