"""The checker tests each pair of a program and tests once."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from codechat.base.domain import Failure, Program, Target, Verdict
from codechat.base.errors import InfrastructureError
from codechat.run.protocols.services import EqualTurns
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.checker import Checker, NoSandbox, key_of

ONE, SAME, ELSE = "def f(x):\n    return x\n", "def f(x):  # same\n    return x\n", "def f(x):\n    return -x\n"
PASSED = Verdict("pass", True, None, 0.5, inside="")


@dataclass
class Suite:
    """Tests that count their runs, and end as they are told."""

    ends: Verdict | Exception = PASSED
    key: str = "tests"
    seen: list[str] = field(default_factory=list)
    kind = "calls"
    outside: dict[str, str] = field(default_factory=dict)

    async def check(self, program: Program, sandbox: Any) -> Verdict:
        self.seen.append(program.source)
        await asyncio.sleep(0.01)
        if isinstance(self.ends, Exception):
            raise self.ends
        return self.ends


def check(checker: Checker, suite: Suite, *sources: str) -> list[Verdict]:
    async def both() -> list[Verdict]:
        return await asyncio.gather(*(checker.check(Program(source), suite) for source in sources))

    return asyncio.run(both())


def checker() -> Checker:
    return Checker(NoSandbox(SANDBOXES.validate({"kind": "process"})))


def test_equal_texts_are_tested_once_also_at_once_and_others_each() -> None:
    suite, tests = Suite(), checker()
    assert check(tests, suite, ONE, SAME, ELSE, ONE) == [PASSED] * 4
    assert suite.seen == [ONE, SAME, ELSE]
    assert check(tests, suite, ONE, SAME) == [PASSED] * 2
    assert suite.seen == [ONE, SAME, ELSE]


def test_other_tests_targets_and_languages_are_other_checks() -> None:
    keys = {
        key_of(Program(source, Target(language, entry)), Suite(key=key))  # type: ignore[arg-type]
        for source in (ONE, ELSE)
        for entry in ("f", "g")
        for language in ("python", "c")
        for key in ("tests", "others")
    }
    assert len(keys) == 16


def test_a_verdict_of_the_journal_is_not_found_out_again() -> None:
    suite, tests, failed = Suite(), checker(), Verdict("fail", False, Failure("wrong result"), inside="")
    assert tests.remember(Program(ONE), suite, failed) == key_of(Program(ONE), suite)  # type: ignore[arg-type]
    assert check(tests, suite, ONE, ELSE) == [failed, PASSED]
    assert suite.seen == [ELSE]


def test_an_error_is_no_verdict() -> None:
    suite = Suite(InfrastructureError("the box broke"))
    tests = checker()
    for _ in range(2):
        with pytest.raises(InfrastructureError):
            check(tests, suite, ONE)
    suite.ends = PASSED
    assert check(tests, suite, ONE) == [PASSED]
    assert suite.seen == [ONE] * 3


def test_turns_are_told_by_all_their_checks() -> None:
    turns = EqualTurns()
    turns.add(0, "text 0")
    assert turns.finish(0) is None
    turns.add(1, "text 0")
    turns.add(1, "other tests")
    assert turns.finish(1) is None  # one of its tests had not been run
    turns.add(2, "text 0")
    turns.add(2, "other tests")
    assert turns.finish(2) == 0
    assert turns.finish(3) is None  # nothing was tested
    turns.add(4, "other tests")
    assert turns.finish(4) == 1
