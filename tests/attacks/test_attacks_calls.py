"""No hostile program in JavaScript or Java passes calls, none harms, none outlives its limits.

Programs run some at a time, and after each group right programs must pass in every worker that they ran in.
"""

import asyncio
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from attacks import attack_calls_java, attack_calls_node
from attacks.attack_calls_java import FOLDERS, LEFT
from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites.calls import Calls, Driven
from support.machine import needs_java, needs_node

RIGHT = "function square(n) { return n * n }"
RIGHT_IN_JAVA = "class Solution { public int square(int n) { return n * n; } }"
NODE = Driven.of(Calls("square", RIGHT, ((3,), (-4,), (5,)), ((0,), (1000,))), "javascript", "")
JAVA = Driven.of(Calls("square", RIGHT_IN_JAVA, NODE.base, NODE.plus), "java", "public int square(int n)")
LIMITS = {"min_cpu_s": 0.3, "load_cpu_s": 2.0, "total_cpu_s": 2.0, "idle_s": 0.5, "output_mb": 8}
CPU_S = 2 * LIMITS["total_cpu_s"] + LIMITS["load_cpu_s"]
LONGEST_S = 120.0  # by the clock for a group, on a busy machine: far more than any limit
WORKERS, GROUP = 3, 12
World = tuple[asyncio.Runner, Sandbox]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "bubblewrap", **LIMITS}), workers=WORKERS)
        yield runner, sandbox
        runner.run(sandbox.aclose())


def groups(names: Iterable[str]) -> list[tuple[str, ...]]:
    """The names, some at a time."""
    every = tuple(names)
    return [every[start : start + GROUP] for start in range(0, len(every), GROUP)]


def attack(world: World, suite: Driven, sources: dict[str, str], right: str) -> None:
    runner, sandbox = world
    target = Target(suite.language, suite.entry_point)

    async def check(source: str) -> tuple[Verdict, float]:
        began = time.monotonic()
        return await suite.check(Program(source, target), sandbox), time.monotonic() - began

    async def together(programs: Iterable[str]) -> list[tuple[Verdict, float]]:
        return await asyncio.gather(*map(check, programs))

    for name, (verdict, took) in zip(sources, runner.run(together(sources.values())), strict=True):
        assert not verdict.passed and verdict.decided == "outside" and verdict.failure is not None, (name, verdict)
        assert verdict.cpu_s < CPU_S and took < LONGEST_S, (name, took, verdict)
    assert not living(sandbox), "a process of a program outlives it"
    assert not [folder for folder in FOLDERS.split() if Path(folder, LEFT).exists()]
    after = [verdict for verdict, _ in runner.run(together([right] * WORKERS))]
    assert all(verdict.passed for verdict in after), after


def living(sandbox: Sandbox) -> list[int]:
    """The processes of programs: node, or the runtime that programs in Java run in, below this one."""
    found, waiting = [], [os.getpid()]
    while waiting:
        pid = waiting.pop()
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            waiting += [int(word) for task in tasks for word in (task / "children").read_text().split()]
        except OSError:
            continue
        if any(word in (b"runner.js", b"codechat.junit.Calls") for word in words):
            found.append(pid)
    return found


def test_there_are_many() -> None:
    assert len(attack_calls_node.NODE_ATTACKS) >= 40 and len(attack_calls_java.JAVA_ATTACKS) >= 40


@needs_node
@pytest.mark.long
@pytest.mark.parametrize("names", groups(attack_calls_node.NODE_ATTACKS), ids=lambda names: names[0])
def test_no_hostile_program_in_javascript_passes(world: World, names: tuple[str, ...]) -> None:
    sources = {name: attack_calls_node.written(attack_calls_node.NODE_ATTACKS[name]) for name in names}
    attack(world, NODE, sources, RIGHT)


@needs_java
@pytest.mark.long
@pytest.mark.parametrize("names", groups(attack_calls_java.JAVA_ATTACKS), ids=lambda names: names[0])
def test_no_hostile_program_in_java_passes(world: World, names: tuple[str, ...]) -> None:
    sources = {name: attack_calls_java.written(attack_calls_java.JAVA_ATTACKS[name]) for name in names}
    attack(world, JAVA, sources, RIGHT_IN_JAVA)


@needs_node
def test_no_expected_value_enters_the_process(world: World) -> None:
    """The program writes out every file that it was given, its own memory's strings included: none has a result."""
    runner, sandbox = world
    secret = 7_919_000_017
    suite = Driven.of(Calls("square", None, ((1,),), expected_base=(secret,)), "javascript", "")
    source = f"""
const fs = require('fs'), v8 = require('v8');
const seen = fs.readdirSync('.').map(name => fs.readFileSync(name, 'latin1')).join('');
const heap = v8.getHeapSnapshot().read()?.toString('latin1') ?? '';
function square() {{
  const mark = Buffer.alloc(8); mark.writeBigInt64LE({secret - 1}n + 1n);
  return (seen + heap).includes(String({secret - 1} + 1)) || seen.includes(mark.toString('latin1')) ? 'found' : 'not found';
}}
"""
    verdict = runner.run(suite.check(Program(source, Target("javascript", "square")), sandbox))
    assert verdict.failure is not None and verdict.failure.actual == "'not found'", verdict
