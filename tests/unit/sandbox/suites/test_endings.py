"""How a program and a command ended, in words: what is its failure, and what is want of time."""

import signal
from typing import Any

import pytest

from codechat.base.domain import Verdict
from codechat.sandbox import Command, Ended, Ran, TakenDown
from codechat.sandbox.inside import wire
from codechat.sandbox.suites.endings import (
    CPU_USED_UP,
    IDLE,
    INPUT_USED_UP,
    TAKEN_DOWN,
    explain_end,
    judge_status,
    run_in_box,
)

COMMAND = Command(argv=("tool",), wall_s=7.0)


@pytest.mark.parametrize(
    ("ran", "options", "outcome", "reason"),
    [
        (Ran(0), {}, "pass", None), (Ran(3), {"expected": 3}, "pass", None),
        (Ran(0, stderr="a token"), {"token": "token"}, "pass", None),
        (Ran(0), {"token": "token"}, "crash", "it ends before its tests do"),
        (Ran(1), {}, "fail", "it ends with status 1"), (Ran(0), {"expected": 3}, "fail", "it ends with status 0"),
        (Ran(1), {"meanings": {1: "no tests"}}, "fail", "no tests"),
        (Ran(-signal.SIGKILL), {}, "crash", "killed by SIGKILL"), (Ran(-40), {}, "crash", "killed by signal 40"),
        (Ran(0, why="wall"), {}, "timeout", "it runs for longer than 7 s"), (Ran(0, why="cpu"), {}, "timeout", CPU_USED_UP),
        (Ran(0, why="idle"), {}, "timeout", IDLE), (Ran(1, why="idle"), {"meanings": {1: "no tests"}}, "timeout", IDLE),
        (Ran(0, why="output"), {}, "crash", "it prints more than is read"), (Ran(0, why="down"), {}, "crash", TAKEN_DOWN),
        (Ran(0, why="missing"), {}, "fail", "there is no tool to run"),
    ],
)  # fmt: skip
def test_a_commands_verdict_is_that_of_its_end(
    ran: Ran, options: dict[str, Any], outcome: str, reason: str | None
) -> None:
    verdict = judge_status(ran, COMMAND, **options)
    assert (verdict.outcome, verdict.failure and verdict.failure.reason) == (outcome, reason)
    assert verdict.passed is (outcome == "pass")


@pytest.mark.parametrize(
    ("ended", "outcome", "reason"),
    [
        (Ended(0, 1.0, 0), "crash", "the process ended with status 0"),
        (Ended(3 << 8, 1.0, 0), "crash", "the process ended with status 3"),
        (Ended(signal.SIGKILL, 1.0, 0), "crash", "killed by SIGKILL"),
        (Ended(wire.TIMED_OUT << 8, 1.0, 0), "timeout", INPUT_USED_UP),
        (Ended(signal.SIGKILL, 10.0, 0), "timeout", CPU_USED_UP), (Ended(signal.SIGKILL, 1.0, 0, "cpu"), "timeout", CPU_USED_UP),
        (Ended(signal.SIGKILL, 1.0, 0, "idle"), "timeout", IDLE), (Ended(0, 10.0, 0, "input"), "timeout", INPUT_USED_UP),
    ],
)  # fmt: skip
def test_the_end_of_a_program_before_its_verdict_is_its_failure(ended: Ended, outcome: str, reason: str) -> None:
    assert explain_end(ended, 10) == (outcome, reason)


async def test_a_program_that_takes_its_box_down_crashed_and_passed_nothing() -> None:
    class Down:
        async def lend(self, work: Any, tools: Any) -> Any:
            raise TakenDown

    sandbox: Any = Down()
    verdict = await run_in_box(sandbox, lambda box: Verdict("pass", True, None))
    assert (verdict.outcome, verdict.passed, verdict.passed_base) == ("crash", False, False)
    assert verdict.failure is not None and verdict.failure.reason == TAKEN_DOWN


def test_a_command_shows_the_end_of_what_it_printed() -> None:
    lines = [f"line {number}" for number in range(100)]
    ran = Ran(1, stdout="\n".join(lines) + "\n", stderr="at 0x7f00deadbeef\n\n")
    failure = judge_status(ran, COMMAND, output=True).failure
    assert failure is not None and failure.exception == "at 0x…"
    assert failure.stdout is not None and lines[-1] in failure.stdout and lines[0] not in failure.stdout.splitlines()
    failure = judge_status(ran, COMMAND).failure
    assert failure is not None and failure.stdout is None
