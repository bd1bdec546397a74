"""No wrong program of the hundreds in `attack_forged` passes calls outside: `-k some` tries a twentieth, all take a minute by
`pytest -m "" tests/attacks/test_attacks_forged.py`. The right program passes in each group, so that none refuses all."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from attacks import attack_forged
from attacks.attack_forged import SUITES, Attempt
from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites.calls import Calls, Driven
from support.machine import needs_java, needs_node

LIMITS = {"min_cpu_s": 0.5, "load_cpu_s": 4.0, "total_cpu_s": 4.0, "idle_s": 0.5}
EACH, GROUP, LEAST = 20, 120, 500
RIGHT = {
    "javascript": "function square(n) { return n * n }",
    "java": attack_forged.JAVA.format(name="square", body="return n * n;"),
    "python": "def square(n): return n * n",
}
ATTEMPTS = {
    "javascript": list(attack_forged.of_node()),
    "java": list(attack_forged.of_java()),
    "python": list(attack_forged.of_python()),
}
World = tuple[asyncio.Runner, Sandbox]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "bubblewrap", **LIMITS}), workers=3)
        yield runner, sandbox
        runner.run(sandbox.aclose())


def suite_of(name: str, language: str) -> Calls:
    given, right = SUITES[name]
    calls = Calls(name, None, tuple((each,) for each in given), expected_base=right)
    return calls if language == "python" else Driven.of(calls, language, f"Object {name}(int n)")


def check(world: World, language: str, attempts: Sequence[Attempt]) -> list[Verdict]:
    runner, sandbox = world

    async def each(name: str, source: str) -> Verdict:
        return await suite_of(name, language).check(Program(source, Target(language, name)), sandbox)

    async def together() -> list[Verdict]:
        return await asyncio.gather(*(each(*attempt) for attempt in attempts))

    return runner.run(together())


def forged(world: World, language: str, attempts: Sequence[Attempt]) -> list[Any]:
    """The attempts that pass, or whose verdict is decided inside. A verdict that the right program gets, too, shows
    that the suite is at work."""
    *verdicts, right = check(world, language, [*attempts, ("square", RIGHT[language])])
    assert right.passed and right.decided == "outside", right
    found = zip(attempts, verdicts, strict=True)
    return [(attempt, verdict) for attempt, verdict in found if verdict.passed or verdict.decided != "outside"]


def groups(language: str) -> list[Any]:
    attempts = ATTEMPTS[language]
    needs: dict[str, Callable[..., Any]] = {"javascript": needs_node, "java": needs_java}
    marks = [pytest.mark.long, *([needs[language]] if language in needs else [])]
    return [
        pytest.param(language, attempts[start : start + GROUP], marks=marks, id=f"{language} from {start}")
        for start in range(0, len(attempts), GROUP)
    ]


def test_there_are_many() -> None:
    every = [(language, *attempt) for language, attempts in ATTEMPTS.items() for attempt in attempts]
    assert len(set(every)) == len(every) >= LEAST


@needs_node
def test_some_in_javascript(world: World) -> None:
    assert forged(world, "javascript", ATTEMPTS["javascript"][::EACH]) == []


def test_some_in_python(world: World) -> None:
    assert forged(world, "python", ATTEMPTS["python"][::EACH]) == []


@pytest.mark.parametrize(("language", "attempts"), [each for language in ATTEMPTS for each in groups(language)])
def test_none_passes(world: World, language: str, attempts: Sequence[Attempt]) -> None:
    assert forged(world, language, attempts) == []
