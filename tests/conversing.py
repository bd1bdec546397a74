"""A bench for protocols that ask verifiable instructions: scripted replies, and tests that look for words."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from codechat.domain import (
    Adherence,
    Applicability,
    AssertionTests,
    Failure,
    InputOutputTests,
    Instruction,
    ProgramTests,
    Reply,
    Requirement,
    Task,
    Usage,
    Verdict,
)
from codechat.errors import InfrastructureError
from codechat.journal import Journal
from codechat.models import Request
from codechat.protocols import DialogueProtocol, Kit
from codechat.protocols.kit import Gate, Services
from codechat.records import TurnRecord


def asking(name: str, *, accumulates: bool = True, asked: bool = True) -> Requirement:
    """A requirement that code meets if it holds the word."""
    return Requirement(name, f"strategy {name}", f"Have {name}.", AssertionTests((name,)), accumulates, asked)


def task_of(*requirements: Requirement) -> Task:
    """A task whose own tests look for the word `base`."""
    return Task(
        "t/1",
        "Write f.",
        "f",
        "def f(x):",
        "def f(x):\n    return x\n",
        InputOutputTests((), ()),
        assertions=AssertionTests(("base",)),
        requirements=requirements,
        level="L-1",
    )


def code(*words: str) -> str:
    """A reply whose code meets what the words name."""
    return f"Here:\n```python\ndef f(x):\n    return {' '.join(words)!r}\n```\n"


class Script:
    """Answers by turn; an exception in the script is raised."""

    def __init__(self, answer: Callable[[Request], str | Exception]) -> None:
        self.answer, self.requests = answer, list[Request]()

    async def check(self) -> None: ...

    async def aclose(self) -> None: ...

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        await asyncio.sleep(0)
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, usage=Usage(10, 5, 1))


class Words:
    """Tests that look for a word; `unlucky` breaks the sandbox, `slow` takes its time."""

    weak = False
    notice = None

    def __init__(self) -> None:
        self.assessed: list[tuple[str, ...]] = []
        self.scripts: list[tuple[str, float]] = []

    async def verify(self, program: str, task: Task) -> Verdict:
        assert task.assertions is not None
        return await self.assess(program, task.assertions)

    async def assess(self, program: str, tests: ProgramTests, entry_point: str = "") -> Verdict:
        assert isinstance(tests, AssertionTests)
        self.assessed.append(tests.snippets)
        await asyncio.sleep(0.05 if "slow" in program else 0.001)
        if "unlucky" in program:
            raise InfrastructureError("the sandbox is gone")
        held = "".join(program.split("'")[1:2]).split()
        missing = [word for word in tests.snippets if word not in held]
        if missing:
            return Verdict("fail", False, Failure("an assertion does not hold", exception=f"no {missing[0]}"), 0.25)
        return Verdict("pass", True, cpu_s=0.25)

    async def run_script(self, source: str, wall_s: float) -> Verdict:
        self.scripts.append((source, wall_s))
        return Verdict("pass", True)

    async def reference_cpu_s(self, task: Task) -> float:
        return 0.0

    async def aclose(self) -> None: ...


class NoJudge:
    """No conversation of verifiable instructions asks a judge."""

    async def check(self) -> None: ...

    async def aclose(self) -> None: ...

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        raise AssertionError

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        raise AssertionError


async def converse(
    protocol: DialogueProtocol,
    task: Task,
    folder: Path,
    answer: Callable[[Request], str | Exception] | list[str],
    *,
    journal_name: str = "journal.db",
    seen: list[TurnRecord] | None = None,
) -> tuple[Kit, Script, Words]:
    """One session over the journal in a folder; `seen` is told of every turn even where the session fails."""
    model = Script(answer if callable(answer) else lambda request: answer[request.turn])
    judge, words, journal = NoJudge(), Words(), Journal(folder / journal_name)
    services = Services(model, False, judge, words, journal, Gate(model), Gate(judge))
    kit = Kit(task, "session", 0, services, lambda turn, _: (seen if seen is not None else []).append(turn))
    try:
        await protocol.run(task, kit)
    finally:
        await journal.settle()
        journal.close()
    return kit, model, words


def shape(turns: list[TurnRecord]) -> list[dict[str, object]]:
    """What must be the same however a session came about."""
    return [turn.model_dump(exclude={"cpu_s", "latency_s"}) for turn in turns]
