"""No hostile Java program passes, none outlives its limits, and the next verdict is right.

Programs run some at a time.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

import pytest

from attacks.attack_java import JAVA_ATTACKS, REFUSED, written
from attacks.attack_java_more import ENDS, FORGES, KNOWN, REACHES, TEXTS, forging, reaching
from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites.junit import INSIDE, JUnit
from codechat.sandbox.suites.junit import REFUSED as REASONS
from support.machine import needs_java

pytestmark = needs_java
TESTS = JUnit("""
import static org.junit.jupiter.api.Assertions.*;
import org.junit.jupiter.api.*;

class SquareTest {
    @Test void small() { assertEquals(Integer.valueOf(9), new Solution().square(3)); }
    @Test void negative() { assertTrue(16 == new Solution().square(-4)); }
    @Test void zero() { Assertions.assertEquals(0, new Solution().square(0)); }
    @Test void large() { assertEquals(1000000, new Solution().square(1000)); }
}
""")
RIGHT = Program("class Solution { int square(int n) { return n * n; } }", Target("java"))
LIMITS = {"total_cpu_s": 4.0, "load_cpu_s": 4.0}
LONGEST_S = 60.0  # by the clock, on a busy machine: far more than any limit
WORKERS, GROUP = 3, 9
Java = tuple[asyncio.Runner, Sandbox]


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    with asyncio.Runner() as runner:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "bubblewrap", **LIMITS}), workers=WORKERS)
        TESTS.make_ready(sandbox.config, print)
        yield runner, sandbox
        runner.run(sandbox.aclose())


def test_there_are_many() -> None:
    assert len(JAVA_ATTACKS) >= 40 and set(JAVA_ATTACKS) >= REFUSED


def groups(names: Iterable[str]) -> list[list[str]]:
    """The names, some at a time."""
    every = [*names]
    return [every[start : start + GROUP] for start in range(0, len(every), GROUP)]


def together(java: Java, attacks: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all, as many at a time as there are workers; right programs then pass in every worker."""
    runner, sandbox = java
    places = asyncio.Semaphore(WORKERS)

    async def wait(attack: Coroutine[Any, Any, None]) -> None:
        async with places:
            await attack

    async def wait_for_all() -> list[Verdict]:
        await asyncio.gather(*map(wait, attacks))
        return await asyncio.gather(*(TESTS.check(RIGHT, sandbox) for _ in range(WORKERS)))

    after = runner.run(wait_for_all())
    assert all(verdict.passed for verdict in after), after


@pytest.mark.parametrize("names", groups(JAVA_ATTACKS), ids=lambda names: names[0])
def test_hostile_programs_never_pass(java: Java, names: list[str]) -> None:
    sandbox = java[1]

    async def attack(name: str) -> None:
        began = time.monotonic()
        verdict = await TESTS.check(Program(written(JAVA_ATTACKS[name]), Target("java")), sandbox)
        assert time.monotonic() - began < LONGEST_S, name
        assert not verdict.passed and verdict.failure is not None, (name, verdict)
        refused = verdict.failure.reason in {reason for _, reason in REASONS.values()}
        assert refused == (name in REFUSED), (name, verdict)
        assert verdict.cpu_s < 2 * LIMITS["total_cpu_s"] + LIMITS["load_cpu_s"], (name, verdict)
        if verdict.outcome in ("crash", "timeout"):
            after = await TESTS.check(RIGHT, sandbox)
            assert after.passed, (name, after)

    together(java, map(attack, names))


@pytest.mark.parametrize("names", groups(TEXTS | ENDS), ids=lambda names: names[0])
def test_no_text_makes_a_wrong_program_pass(java: Java, names: list[str]) -> None:
    sandbox = java[1]

    async def attack(name: str) -> None:
        verdict = await TESTS.check(Program(written((TEXTS | ENDS)[name]), Target("java")), sandbox)
        assert not verdict.passed, (name, verdict)

    together(java, map(attack, names))


@pytest.mark.parametrize("name", KNOWN)
def test_what_passes_all_the_same_is_marked(java: Java, name: str) -> None:
    runner, sandbox = java
    tests, program = KNOWN[name]
    head = "import static org.junit.jupiter.api.Assertions.*; import org.junit.jupiter.api.Test;"
    verdict = runner.run(JUnit(f"{head} class AnyTest {{ {tests} }}").check(Program(program, Target("java")), sandbox))
    assert verdict.passed and verdict.inside == INSIDE
    assert all(
        word in INSIDE for word in ("run them", "read what they expect", "change their fields", "equal anything")
    )


def test_nothing_out_of_a_programs_reach_is_reached(java: Java) -> None:
    """All attempts in one virtual machine, whose tests then pass: the program is right, and says what it got."""
    runner, sandbox = java
    tests = TESTS.tests.replace(
        "@Test void small",
        "@Test void reached() { assertEquals(java.util.List.of(), Solution.reached()); } @Test void small",
    )
    verdict = runner.run(JUnit(tests).check(Program(reaching(), Target("java")), sandbox))
    assert verdict.passed, verdict


def test_no_act_makes_a_wrong_program_pass(java: Java) -> None:
    """All acts in one virtual machine; if its tests pass, each is tried alone, to name those that do it."""
    runner, sandbox = java

    def passes(*names: str) -> bool:
        return runner.run(TESTS.check(Program(forging(*names), Target("java")), sandbox)).passed

    assert len(TEXTS) + len(REACHES) + len(FORGES) + len(ENDS) >= 150
    assert not passes(*FORGES), [name for name in FORGES if passes(name)]
