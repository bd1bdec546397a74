"""Nothing that a program does passes assertions decided outside; what passes inside is marked so, and listed here.

Attacks run some at a time, each followed by a right program, and after each group right ones pass in all workers at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import pytest
from attack_inside import PASSES_INSIDE
from attack_outside import INSIDE, LYING, OUTSIDE_ATTACKS
from attack_outside_texts import READERS, RIGHT_TEXTS, TEXT_ATTACKS

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites.assertions import Assertions

LIMITS = {"load_cpu_s": 0.6, "total_cpu_s": 1.0, "idle_s": 0.7, "memory_mb": 1500, "processes": 16, "output_mb": 16}
WORKERS, GROUP = 4, 16
CEILING_S = 60.0  # two runs with all their limits, on a busy machine
RIGHT = "def solve(n: int) -> int:\n    return n * n\n"
CASES = """
import unittest
class Squares(unittest.TestCase):
    def test_squares(self):
        self.assertEqual(first=solve(3), second=9)
    def test_others(self):
        for n in (2, 5):
            with self.subTest(n=n): self.assertEqual(solve(n), n * n)
"""
TOLERANT = """
got = []
for n in (2, 3):
    try: got.append(solve(n))
    except Exception: got.append(None)
assert got == [4, 9]
"""
MUTATION = """
def check(one):
    for n in (2, 3): assert one(n) == n * n
check(solve)
try: check(lambda n: n + 1)
except AssertionError: pass
else: raise ValueError
"""
STYLES: dict[str, tuple[str, ...]] = {
    "plain": ("assert solve(3) == 9", "assert [solve(n) for n in (1, 2)] == [1, 4]"),
    "in other ways": ("assert solve(3) in (8, 9)\nassert {'a': solve(2)} == {'a': 4}", "if not 25 == solve(5): raise ValueError"),
    "chained": ("assert 8 < solve(3) < 10 and 4 == solve(2) == 4",),
    "mapped": ("assert all(map(lambda n: solve(n) == n * n, range(2, 5)))",),
    "unittest": (CASES,),
    "tolerant": (TOLERANT,),
    "mutation": (MUTATION,),
}  # fmt: skip
# Results that are decided by what their base classes make of them.
DERIVED = frozenset(
    (
        "a slot of int",
        "a slot of float",
        "a slot of list",
        "another class, it says",
        "a named tuple",
        "an enumeration",
        "a subclass of bool's base",
        "a string",
        "a fraction",
        "a decimal",
    )
)


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    config = SANDBOXES.validate({"kind": request.param, **LIMITS})
    try:
        room: Any = SANDBOXES.build(config, workers=WORKERS)
    except UserError as error:
        pytest.skip(str(error))
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


async def assess(sandbox: Sandbox, source: str, snippets: tuple[str, ...]) -> Verdict:
    return await Assertions(snippets).check(Program(source, Target(entry_point="solve")), sandbox)


async def right(sandbox: Sandbox, remark: str, program: str = RIGHT) -> None:
    verdict = await assess(sandbox, f"# {remark}\n{program}", STYLES["plain"])
    assert (verdict.passed, verdict.decided) == (True, "outside"), (remark, verdict)


def groups(names: Iterable[str]) -> list[list[str]]:
    """The names, some at a time."""
    every = [*names]
    return [every[start : start + GROUP] for start in range(0, len(every), GROUP)]


async def together(sandbox: Sandbox, attack: Callable[[str], Awaitable[None]], names: list[str]) -> None:
    """Wait for attacks, as many at a time as there are workers, and for right programs in all of these."""
    places = asyncio.Semaphore(WORKERS)

    async def wait(name: str) -> None:
        async with places:
            await attack(name)

    await asyncio.gather(*map(wait, names))
    slow = f"import time\ntime.sleep(0.3)\n{RIGHT}"  # so that no worker gets two
    await asyncio.gather(*(right(sandbox, f"after {names[0]}, {place}", slow) for place in range(WORKERS)))


async def passing(sandbox: Sandbox, name: str, program: str, styles: dict[str, tuple[str, ...]]) -> set[str]:
    """The styles of tests that the program passes: never outside."""
    passed = set()
    for style, snippets in styles.items():
        began = time.monotonic()
        verdict = await assess(sandbox, program, snippets)
        assert time.monotonic() - began < CEILING_S, (name, style)
        assert verdict.decided == "inside" or not verdict.passed, (name, style)
        assert verdict.passed or verdict.failure is not None, (name, style)
        if verdict.passed:
            passed.add(style)
        if verdict.outcome == "timeout":
            break
    return passed


@pytest.mark.parametrize("style", STYLES)
async def test_a_right_program_passes_outside(sandbox: Any, style: str) -> None:
    verdict = await assess(sandbox, RIGHT, STYLES[style])
    assert (verdict.passed, verdict.decided) == (True, "outside"), verdict


@pytest.mark.parametrize("names", groups(OUTSIDE_ATTACKS), ids=lambda names: names[0])
async def test_attacks_do_not_pass_outside(sandbox: Any, names: list[str]) -> None:
    async def attack(name: str) -> None:
        passed = await passing(sandbox, name, OUTSIDE_ATTACKS[name], STYLES)
        assert not passed or name in PASSES_INSIDE, (name, passed)
        await right(sandbox, f"after {name}")

    await together(sandbox, attack, names)


@pytest.mark.parametrize("name", LYING)
async def test_a_result_that_is_not_plain_is_marked_or_fails(sandbox: Any, name: str) -> None:
    """It fails if its class is derived from a plain one, or its own, if the reference's result is plain."""
    verdict = await assess(sandbox, LYING[name], STYLES["plain"])
    assert verdict.decided == ("outside" if name in DERIVED else "inside")
    assert verdict.by_program is (name not in DERIVED)
    held = Assertions(STYLES["plain"], reference=RIGHT)
    beside = await held.check(Program(LYING[name], Target(entry_point="solve")), sandbox)
    assert not beside.passed or beside.decided == "inside"
    if name in ("equal to everything", "in a list", "a data class"):
        assert (beside.outcome, beside.decided) == ("fail", "outside") and "own class" in str(beside.failure)


@pytest.mark.parametrize("name", INSIDE)
async def test_what_still_passes_is_marked_as_inside(sandbox: Any, name: str) -> None:
    verdict = await assess(sandbox, *INSIDE[name])
    assert verdict.decided == "inside" and verdict.passed <= (f"chosen: {name}" in PASSES_INSIDE), verdict


@pytest.mark.parametrize("name", RIGHT_TEXTS)
async def test_a_right_text_is_read_outside(sandbox: Any, name: str) -> None:
    program, reader = RIGHT_TEXTS[name]
    verdict = await assess(sandbox, program, (READERS.get(reader, reader),))
    assert (verdict.passed, verdict.decided) == (True, "outside"), verdict


@pytest.mark.parametrize("names", groups(TEXT_ATTACKS), ids=lambda names: names[0])
async def test_texts_that_lie_do_not_pass_outside(sandbox: Any, names: list[str]) -> None:
    async def attack(name: str) -> None:
        program, reader, passes = TEXT_ATTACKS[name]
        passed = await passing(sandbox, name, program, {reader: (READERS.get(reader, reader),)})
        assert passed == ({reader} if passes else set()), name

    await together(sandbox, attack, names)


def test_the_corpus_is_large_enough() -> None:
    assert len(OUTSIDE_ATTACKS) + len(TEXT_ATTACKS) >= 200
