"""Which attacks pass where program and tests share an interpreter: those of a list alone, and the verdict says so."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from attack_assertions import ASSERTION_ATTACKS, LIES, UGLY
from attack_inside import PASSES_INSIDE
from attack_outside import INSIDE, LYING, OUTSIDE_ATTACKS
from attack_outside_texts import READERS, RIGHT_TEXTS, TEXT_ATTACKS
from test_attacks_assertions import CHECKS, COMPARISONS, HONEST, LIMITS, RESULTS, RIGHT, SLOW
from test_attacks_outside import STYLES

from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import Sandbox
from codechat.sandbox.suites.assertions import Assertions
from support.machine import sandbox_here

Snippets = tuple[str, ...]
SHARES = "globals()"
"""A snippet for which program and tests must share an interpreter."""

OTHERS = [STYLES["mapped"], STYLES["unittest"]]
"""The tests for attacks that do not lie about results."""


def checks_of(name: str, program: str) -> list[Snippets]:
    """The tests that an attack on assertions is tried on: its look may be right where its results are not."""
    if name in SLOW:
        return [CHECKS["plain"]]
    return list((CHECKS if UGLY in program or "patched in the call" in name else RESULTS).values())


ATTACKS: dict[str, tuple[str, list[Snippets]]] = {
    **{f"assertions: {name}": (program, checks_of(name, program)) for name, program in ASSERTION_ATTACKS.items()},
    **{f"results: {name}": (program, list(COMPARISONS.values())) for name, program in LIES.items()},
    **{
        name: (program, list(STYLES.values()) if name.removeprefix("lying: ") in LYING else OTHERS)
        for name, program in OUTSIDE_ATTACKS.items()
    },
    **{f"chosen: {name}": (program, [snippets]) for name, (program, snippets) in INSIDE.items()},
    **{
        f"texts: {name}": (program, [(READERS.get(reader, reader),)])
        for name, (program, reader, _) in TEXT_ATTACKS.items()
    },
}
RIGHT_ONES: dict[str, tuple[str, Snippets]] = {
    **{name: (RIGHT, snippets) for name, snippets in (CHECKS | STYLES).items()},
    **{f"honest: {name}": (program, (snippet,)) for name, (program, snippet) in HONEST.items()},
    **{f"text: {name}": (program, (READERS.get(reader, reader),)) for name, (program, reader) in RIGHT_TEXTS.items()},
}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    room = sandbox_here(kind="bubblewrap", **LIMITS)
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


async def assess(sandbox: Sandbox, source: str, snippets: Snippets) -> Verdict:
    verdict = await Assertions((*snippets, SHARES)).check(Program(source, Target(entry_point="solve")), sandbox)
    assert verdict.decided == "inside" and verdict.inside, verdict
    return verdict


@pytest.mark.parametrize("name", ATTACKS)
async def test_what_passes_inside_is_listed_and_marked(sandbox: Any, name: str) -> None:
    program, tests = ATTACKS[name]
    passed = False
    for snippets in tests:
        verdict = await assess(sandbox, program, snippets)
        passed = passed or verdict.passed
        if verdict.outcome == "timeout":
            break
    assert passed == (name in PASSES_INSIDE)


@pytest.mark.parametrize("name", RIGHT_ONES)
async def test_right_programs_pass_inside(sandbox: Any, name: str) -> None:
    verdict = await assess(sandbox, *RIGHT_ONES[name])
    assert verdict.passed, verdict


def test_the_list_names_attacks() -> None:
    assert set(ATTACKS) >= PASSES_INSIDE
