"""Benches for protocols and judges: scripted replies, given decisions, tasks made by hand."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from codechat.base.domain import (
    Adherence,
    Applicability,
    Failure,
    Instruction,
    Output,
    Program,
    Reply,
    Target,
    Usage,
    Verdict,
)
from codechat.base.errors import InfrastructureError
from codechat.base.records import TurnRecord
from codechat.datasets.tasks import Requirement, Task, Workspace
from codechat.judging import ADHERENCE, APPLICABILITY, JUDGES, JudgeTraits
from codechat.models import Request
from codechat.run.journal import Journal
from codechat.run.protocols import DialogueProtocol, Kit
from codechat.run.protocols.services import Asked, CheckOnce, Player, Services
from codechat.sandbox import Command, Ran
from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.inside.beside import landlock_version
from codechat.sandbox.rooms.box import works
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.exit_status import ExitStatus
from codechat.studies.cab.environments import ENVIRONMENTS, Environment, Worktree
from codechat.studies.multicodeif.constraints import Finding
from codechat.studies.multicodeif.constraints.examining import Inquiry
from support import machine

Answer = Callable[[Request], str | Exception]


def asking(name: str, *, accumulates: bool = True, asked: bool = True) -> Requirement:
    """A requirement that code meets if it holds the word."""
    return Requirement(name, f"strategy {name}", f"Have {name}.", snippets(name), accumulates, asked)


def conversation_task(*requirements: Requirement) -> Task:
    """A task whose own tests look for the word `base`."""
    return task_of(
        "t/1", "def f(x):", "def f(x):\n    return x\n", prompt="Write f.", assertions=snippets("base"),
        requirements=requirements, level="L-1",
    )  # fmt: skip


def fenced(program: str) -> str:
    """A reply that holds the program."""
    return f"Here:\n```python\n{program}```\n"


def code(*words: str) -> str:
    """A reply whose code meets what the words name."""
    return fenced(f"def f(x):\n    return {' '.join(words)!r}\n")


class Script:
    """Answers by turn; an exception in the script is raised."""

    def __init__(self, answer: Answer) -> None:
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
    """Checks that look for a word; those of a task with calls to compare hold unless the program says `broken`.

    A program that says `unlucky` breaks the sandbox, and one that says `slow` takes its time.
    """

    def __init__(self) -> None:
        self.assessed: list[tuple[str, ...]] = []
        self.scripts: list[tuple[str, float]] = []

    async def check(self, program: Program, suite: Suite) -> Verdict:
        match suite:
            case Assertions():
                return await self._assess(program.source, suite)
            case ExitStatus():
                self.scripts.append((program.source, suite.wall_s))
                return Verdict("pass", True)
            case _:
                await self._run(program.source)
                broken = "broken" in program.source
                return Verdict("fail" if broken else "pass", not broken)

    async def check_reference(self, program: Program, suite: Suite) -> Verdict:
        return await self.check(program, suite)

    def remember(self, program: Program, suite: Suite, verdict: Verdict) -> str:
        return f"{suite.key} {program.source}"

    async def run(self, command: Command) -> Ran:
        raise AssertionError("no protocol here runs a command")

    async def _assess(self, program: str, suite: Assertions) -> Verdict:
        self.assessed.append(suite.snippets)
        await self._run(program)
        held = "".join(program.split("'")[1:2]).split()
        missing = [word for word in suite.snippets if word not in held]
        if missing:
            return Verdict("fail", False, Failure("an assertion does not hold", exception=f"no {missing[0]}"), 0.25)
        return Verdict("pass", True, cpu_s=0.25)

    async def _run(self, program: str) -> None:
        await asyncio.sleep(0.05 if "slow" in program else 0.001)
        if "unlucky" in program:
            raise InfrastructureError("the sandbox is gone")


class Judging:
    """Decides as it is told; code that did not change violates its instruction."""

    def __init__(self, applies: Callable[[Instruction], bool | Exception | None] = lambda _: True) -> None:
        self.applies, self.asked = applies, list[str]()

    async def check(self) -> None: ...

    async def aclose(self) -> None: ...

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        self.asked.append(instruction.id)
        await asyncio.sleep(0)
        decision = self.applies(instruction)
        if isinstance(decision, Exception):
            raise decision
        return Applicability(decision, "test", "because", usage=Usage(3, 2))

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        return Adherence("adhered" if before != after else "violated", "test", "seen", usage=Usage(7, 1))


class Examining:
    """Examines code in this process, which is faster than to start one for each session."""

    async def find(self, inquiries: Sequence[Inquiry]) -> list[Finding]:
        await asyncio.sleep(0)
        return [each.find() for each in inquiries]

    async def aclose(self) -> None: ...


class NoJudge(Judging):
    """No conversation of verifiable instructions asks a judge."""

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        raise AssertionError

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        raise AssertionError


async def converse(
    protocol: DialogueProtocol,
    task: Task,
    folder: Path,
    answer: Answer | list[str],
    *,
    judge: Judging | None = None,
    baseline: bool = False,
    journal_name: str = "journal.db",
    seen: list[TurnRecord] | None = None,
) -> tuple[Kit, Script, Words]:
    """One session over the journal in a folder; `seen` gets every finished turn, even if the session fails."""
    model = Script(answer if callable(answer) else lambda request: answer[request.turn])
    judge, words, journal = judge or NoJudge(), Words(), Journal(folder / journal_name)
    players = {"model": Player.of(model, baseline=baseline)}
    services = Services(players, journal, words, Asked(judge, CheckOnce(judge)))
    services.opened.get("examiner", Examining)
    kit = Kit(task, "session", 0, services, lambda turn, _: None if seen is None else seen.append(turn))
    kit.log.agenda = protocol.agenda(kit.generator("agenda"))
    try:
        await protocol.run(task, kit)
    finally:
        await journal.settle()
        journal.close()
    return kit, model, words


def shape(turns: list[TurnRecord]) -> list[dict[str, object]]:
    """What must be the same however a session came about."""
    return [turn.model_dump(exclude={"cpu_s", "latency_s"}) for turn in turns]


T = TypeVar("T")


BESIDE = "beside"
"""Rooms of `checkout` where the system grants no namespaces."""
DOCKERFILE = "FROM tiny\nWORKDIR /app\nCOPY . .\n"


def lacking(kind: str) -> str:
    """Why rooms of a kind cannot be had here; empty if they can."""
    if kind == "docker":
        return machine.lacking_engine()
    if kind == BESIDE:
        return "" if landlock_version() else "needs Landlock"
    return "" if kind == "none" or any(map(works, programs())) else "needs user namespaces"


def in_kind(workspace: Workspace, kind: str) -> Workspace:
    """The workspace with what a kind of room needs."""
    return replace(workspace, dockerfile=DOCKERFILE) if kind == "docker" else workspace


class Driven:
    """An environment with an event loop of its own."""

    def __init__(self, kind: str, **options: Any) -> None:
        self._runner, self._rooms = asyncio.Runner(), list[DrivenRoom]()
        self.config = ENVIRONMENTS.validate({"kind": "checkout" if kind == BESIDE else kind, **options})
        with pytest.MonkeyPatch.context() as patch:
            if kind == BESIDE:
                patch.setattr("codechat.sandbox.rooms.box.programs", list)
            self.environment: Environment = ENVIRONMENTS.build(self.config)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def open(self, workspace: Workspace) -> "DrivenRoom":
        self._rooms.append(DrivenRoom(self, self.wait(self.environment.open(workspace))))
        return self._rooms[-1]

    def close(self) -> None:
        for room in self._rooms:
            room.close()
        self.wait(self.environment.aclose())
        self._runner.close()


class DrivenRoom:
    """A room whose methods block."""

    def __init__(self, of: Driven, room: Worktree) -> None:
        self._of, self.room, self._closed = of, room, False

    def run(self, command: str) -> Output:
        return self._of.wait(self.room.run(command))

    def text(self, command: str) -> str:
        """The output of a command that must succeed."""
        output = self.run(command)
        assert output.status == 0, output
        return output.text

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._of.wait(self.room.aclose())


@dataclass(frozen=True)
class OwnJudge:
    """Stands for `JUDGES`: every config is of the judge called own, which has these traits."""

    traits: JudgeTraits

    @classmethod
    def deciding(cls, *questions: str, needs_rules: bool = False, languages: Any = None) -> "OwnJudge":
        """Decides these questions, or those about instructions."""
        decided = frozenset(questions or (APPLICABILITY, ADHERENCE))
        return cls(JudgeTraits(needs_rules=needs_rules, questions=decided, languages=languages))

    def of(self, config: object) -> Any:
        return SimpleNamespace(name="own", traits=self.traits)

    def __iter__(self) -> Iterator[Any]:
        return iter(JUDGES)


Inputs = tuple[tuple[Any, ...], ...]


def task_of(
    task_id: str,
    signature: str,
    reference: str | None = None,
    *,
    prompt: str = "",
    base: Inputs = (),
    plus: Inputs = (),
    assertions: Suite | None = None,
    requirements: tuple[Requirement, ...] = (),
    level: str | None = None,
    **comparison: Any,
) -> Task:
    """A task for the function that `signature` defines; `comparison` holds further options of the calls' comparison."""
    name = signature.removeprefix("def ").partition("(")[0]
    calls = Calls(name, reference, base, plus, name=task_id, **comparison) if base or plus else None
    return Task(
        task_id=task_id,
        prompt=prompt,
        target=Target("python", name, signature),
        suite=calls or assertions,
        reference=reference,
        requirements=requirements,
        level=level,
    )


def snippets(*texts: str) -> Assertions:
    """Tests by Python snippets that follow a program."""
    return Assertions(texts)
