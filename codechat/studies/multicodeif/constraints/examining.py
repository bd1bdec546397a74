"""Examine code in processes that can be ended: a grammar or a lexer may never finish with a hostile reply."""

import asyncio
import contextlib
import json
import os
import pickle
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from codechat.base.errors import InfrastructureError, UserError
from codechat.sandbox.languages import parses
from codechat.studies.multicodeif.constraints import Constraint, Finding, Harness, constraint_type

CPU_S = 10.0
"""Seconds of CPU of one examination: thousands of times the need of honest code."""
WALL_S = 120.0  # after which a process that uses no CPU is ended
GONE_S = 0.5  # that a process may take to end after its input is closed
MEMORY = 4 << 30  # bytes of address space of a process
LONGEST_REASON = 500  # characters
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import serve; serve()"
_READY = b"ready\n"


class Inquiry(Protocol):
    """A question about a code, which another process answers.

    `key` is everything that decides the answer, as JSON; `reads_code`: whether the answer needs the code. `find`
    answers, and raises `UserError` if something is not installed.
    """

    @property
    def key(self) -> list[Any]: ...

    @property
    def reads_code(self) -> bool: ...

    def find(self) -> Finding: ...


@dataclass(frozen=True, slots=True)
class Examination:
    """Does the code keep the constraint, by the rule of a harness?"""

    constraint: Constraint
    code: str | None
    harness: Harness

    @property
    def key(self) -> list[Any]:
        return [self.constraint.type, self.constraint.answer.raw, self.code, self.harness]

    @property
    def reads_code(self) -> bool:
        return constraint_type(self.constraint.type).guarded is not None

    def find(self) -> Finding:
        return self.constraint.check(self.code, self.harness)


@dataclass(frozen=True, slots=True)
class Parsing:
    """Is the code of its language, by its grammar?"""

    language: str
    code: str
    reads_code: ClassVar[bool] = True

    @property
    def key(self) -> list[Any]:
        return ["parses", self.language, self.code]

    def find(self) -> Finding:
        return Finding(parses(self.language, self.code), "")


class Examiner:
    """Up to `workers` processes, started when needed; `cpu_s` bounds the seconds of CPU of one examination."""

    def __init__(self, workers: int, cpu_s: float = CPU_S) -> None:
        self._places, self._cpu_s = asyncio.Semaphore(workers), cpu_s
        self._idle: list[asyncio.subprocess.Process] = []

    async def find(self, inquiries: Sequence[Inquiry]) -> list[Finding]:
        """The answers, in order: undecided for a code that no process finishes.

        Raises `UserError` if something is not installed, and `InfrastructureError` if no process starts.
        """
        async with self._places:
            return [await self._ask(each) if each.reads_code else each.find() for each in inquiries]

    async def _ask(self, inquiry: Inquiry) -> Finding:
        process = self._idle.pop() if self._idle else await _start()
        answer = b""
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(pickle.dumps((inquiry, self._cpu_s)))
            with contextlib.suppress(ConnectionError):
                await process.stdin.drain()
            answer = await asyncio.wait_for(process.stdout.readline(), WALL_S)
        except TimeoutError:
            pass
        finally:
            if answer:
                self._idle.append(process)
            else:
                await _end(process)
        if not answer:
            slow = f" within {self._cpu_s:g} s of CPU" if process.returncode == -signal.SIGPROF else ""
            why = slow or ": it took too long, or ended the process that read it"
            return Finding(None, f"the code could not be examined{why}")
        values = json.loads(answer)
        if "mistake" in values:
            raise UserError(*values["mistake"])
        return Finding(values["met"], values["reason"])

    async def aclose(self) -> None:
        """End the processes."""
        while self._idle:
            await _end(self._idle.pop())


async def _start() -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _START.format(module=__name__), json.dumps(sys.path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    if await process.stdout.readline() != _READY:
        await _end(process)
        raise InfrastructureError("the process that examines code ended when it began")
    return process


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), GONE_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def serve() -> None:
    """Answer the inquiries on standard input, one line of JSON each, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted cell closes the input at its end
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.write(1, _READY)
    with contextlib.suppress(EOFError):
        while True:
            inquiry, cpu_s = pickle.load(sys.stdin.buffer)
            signal.setitimer(signal.ITIMER_PROF, cpu_s)
            answer = _answer(inquiry)
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(1, json.dumps(answer).encode() + b"\n")


def _answer(inquiry: Inquiry) -> dict[str, Any]:
    """An answer as JSON. A rule that fails on a code decides nothing about it."""
    try:
        found = inquiry.find()
    except UserError as error:
        return {"mistake": [error.message, error.remedy]}
    except Exception as error:  # noqa: BLE001  hostile code may cause any error, and none may end a session
        found = Finding(None, f"the code could not be examined: {type(error).__name__}: {error}")
    return {"met": found.met, "reason": found.reason[:LONGEST_REASON]}
