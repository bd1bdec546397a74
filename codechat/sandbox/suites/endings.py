"""Outcomes, reasons and exceptions from the end of a run, in the same words for every kind of suite."""

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from codechat.base.domain import Failure, Outcome, Verdict
from codechat.sandbox import CPU_LEFT_S, Box, Command, Ended, Ran, Sandbox, TakenDown, Why
from codechat.sandbox.inside import wire
from codechat.sandbox.inside.decode import Undecodable
from codechat.sandbox.suites.values import decode_value
from codechat.sandbox.watch import Malformed

SHOWN = 400  # characters of a value in a failure
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")  # of objects in memory: they differ in every process
NO_MEANINGS: Mapping[int, str] = MappingProxyType({})
SAID_LINES = 20  # of what a program printed
TAKEN_DOWN = "the program takes the sandbox's process down"
IDLE = "it sleeps or waits for longer than it may"
INPUT_USED_UP = "the CPU time of this input is used up"
CPU_USED_UP = "the CPU time of the whole program is used up"
ENDED_BY = {
    "idle": IDLE,
    "input": INPUT_USED_UP,
    "wall": "it takes far longer by the clock than it may compute and wait",
}


async def run_in_box(sandbox: Sandbox, work: Callable[[Box], Verdict], tools: Sequence[str] = ()) -> Verdict:
    """The verdict of `work` in a box that shows the `tools`; a crash if the program kills the box."""
    try:
        return await sandbox.lend(work, tools)
    except TakenDown:
        return Verdict("crash", False, Failure(TAKEN_DOWN), inside="")


def explain_end(ended: Ended, cpu_limit: int) -> tuple[Outcome, str]:
    """The outcome and reason of a child that ended before its verdict was decided."""
    if ended.why in ENDED_BY:
        return "timeout", ENDED_BY[ended.why]
    if ended.why == "cpu" or ended.cpu_s >= cpu_limit - CPU_LEFT_S:
        return "timeout", CPU_USED_UP
    if os.WIFSIGNALED(ended.status):
        return "crash", f"killed by {_signal(os.WTERMSIG(ended.status))}"
    code = os.WEXITSTATUS(ended.status)
    if code == wire.TIMED_OUT:
        return "timeout", INPUT_USED_UP
    return "crash", f"the process ended with status {code}"


def read_exception(payload: bytes) -> tuple[Outcome, str, str]:
    """The outcome, the reason and the text of a program's exception. Raises `Malformed`."""
    name, text, lines, kind = exception_parts(payload)
    described = "\n".join([*(line[:SHOWN] for line in lines[:12]), f"{name}: {text}"[: 2 * SHOWN]])
    described = ADDRESS.sub("0x…", described)
    if kind == "memory":
        return "crash", "out of memory", described
    if kind == "exit":
        return "crash", "the program exits", described
    return "fail", "an exception", described


def exception_parts(payload: bytes) -> tuple[str, str, list[str], str]:
    """Name, text, lines and kind of an exception, as its frame claims. Raises `Malformed`."""
    try:
        claim = decode_value(payload)
    except Undecodable as error:
        raise Malformed("an exception that cannot be read") from error
    if not isinstance(claim, tuple) or list(map(type, claim)) != [str, str, list, str]:
        raise Malformed("an exception without a name, a text, lines and a kind")
    if not all(type(line) is str for line in claim[2]):
        raise Malformed("an exception whose lines are no texts")
    name, text, lines, kind = claim
    return name, text, lines, kind


def judge_status(
    ran: Ran,
    command: Command,
    *,
    expected: int = 0,
    token: str = "",
    output: bool = False,
    meanings: Mapping[int, str] = NO_MEANINGS,
) -> Verdict:
    """The verdict by a command's exit status: passed if it is `expected` and the token, if any, was printed. `meanings`
    are reasons by status. The failure has the end of standard error, and with `output` of standard output."""
    if ran.why is None and ran.status == expected and token in ran.stderr:
        return Verdict("pass", True, None, ran.cpu_s)
    outcome, reason = _missed(ran, command, expected)
    if ran.why is None:
        reason = meanings.get(ran.status, reason)
    failure = Failure(reason, exception=_end(ran.stderr), stdout=_end(ran.stdout) if output else None)
    return Verdict(outcome, False, failure, ran.cpu_s)


def _missed(ran: Ran, command: Command, expected: int) -> tuple[Outcome, str]:
    if ran.why is not None:
        reasons: dict[Why, tuple[Outcome, str]] = {
            "wall": ("timeout", f"it runs for longer than {command.wall_s:g} s"),
            "cpu": ("timeout", CPU_USED_UP),
            "idle": ("timeout", IDLE),
            "input": ("timeout", INPUT_USED_UP),
            "output": ("crash", "it prints more than is read"),
            "down": ("crash", TAKEN_DOWN),
            "missing": ("fail", f"there is no {command.argv[0]} to run"),
        }
        return reasons[ran.why]
    if ran.status == expected:
        return "crash", "it ends before its tests do"
    if ran.status >= 0:
        return "fail", f"it ends with status {ran.status}"
    return "crash", f"killed by {_signal(-ran.status)}"


def _signal(number: int) -> str:
    """The signal's name; most real-time signals have none."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _end(text: str) -> str | None:
    return "\n".join(ADDRESS.sub("0x…", text).strip().splitlines()[-SAID_LINES:]) or None
