"""What a protocol may do: ask the model, ask the judge, run the tests, draw a random number.

Every verb is a journal step: its result is on disk before the protocol sees it, and a resumed session gets
the recorded one back. So a protocol must be deterministic given its verbs' results.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from codechat.calls import Brake
from codechat.domain import (
    Adherence,
    Applicability,
    AssertionTests,
    Extraction,
    Instruction,
    Message,
    ProgramTests,
    Reply,
    Task,
    Verdict,
)
from codechat.errors import ContextOverflow, UserError
from codechat.files import GrowingHash, content_hash
from codechat.journal import Journal
from codechat.judges import Judge
from codechat.models import Crib, Model, Request
from codechat.records import TurnRecord
from codechat.sandbox import Sandbox
from codechat.seeding import generator

T = TypeVar("T")


@dataclass
class SessionLog:
    """What a session has shown so far; the runner makes its record from it."""

    agenda: list[str] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    ended: Literal["context_overflow"] | None = None


class _Checked(Protocol):
    async def check(self) -> None: ...


class Gate:
    """Checks a component once, before its first use: a cell that needs no call contacts nothing."""

    def __init__(self, component: _Checked) -> None:
        self._component = component
        self._lock = asyncio.Lock()
        self._open = False

    async def pass_through(self) -> None:
        """Raises what the component's `check` raises, for everybody until it succeeds."""
        if self._open:
            return
        async with self._lock:
            if not self._open:
                await self._component.check()
                self._open = True


@dataclass(frozen=True)
class Services:
    """The cell's components, shared by its sessions. `judge_offline`: its decisions cost nothing."""

    model: Model
    baseline: bool
    judge: Judge
    sandbox: Sandbox
    journal: Journal
    model_gate: Gate
    judge_gate: Gate
    brake: Brake = field(default_factory=Brake)
    judge_offline: bool = False


@dataclass(frozen=True, slots=True)
class _Overflowed:
    """A reply step that ended in a context overflow, as the journal keeps it."""

    overflow: str


class Kit:
    """The verbs of one session. `on_turn` is told of every finished turn, in order, and whether a step of it is new."""

    def __init__(
        self, task: Task, session_id: str, seed: int, services: Services, on_turn: Callable[[TurnRecord, bool], None]
    ) -> None:
        self.log = SessionLog()
        self._worked_at: set[int] = set()  # turns of which a step was not in the journal
        self._task, self._session, self._seed = task, session_id, seed
        self._services, self._on_turn = services, on_turn
        self._conversation = GrowingHash(lambda message: [message.role, message.content])

    @property
    def judge_offline(self) -> bool:
        """Whether the judge asks nobody, so that a decision costs nothing."""
        return self._services.judge_offline

    def generator(self, purpose: str) -> random.Random:
        """A generator of its own for every random choice, by (seed, task, purpose)."""
        return generator(self._seed, self._task.task_id, purpose)

    def finish_turn(self, turn: TurnRecord) -> None:
        """Append a finished turn to the session's record."""
        self.log.turns.append(turn)
        self._on_turn(turn, turn.turn in self._worked_at)

    async def complete(
        self, turn: int, messages: tuple[Message, ...], instruction: Instruction | None, code: str | None
    ) -> Reply:
        """The model's reply. `instruction` and `code` reach baselines only. Raises `ContextOverflow`."""
        services = self._services
        if services.baseline and self._task.reference is None:
            raise UserError(
                f"{self._task.task_id} has no reference solution, and a baseline model answers with it",
                "add canonical_solution to the task, or choose a model that is not a baseline",
            )
        crib = Crib(self._task, instruction, code, self._seed) if services.baseline else None
        request = Request(messages, self._task.task_id, turn, crib, sample=self._seed)

        async def ask() -> Reply | _Overflowed:
            services.brake.check()
            await services.model_gate.pass_through()
            try:
                return _writable(await services.model.complete(request))
            except ContextOverflow as overflow:
                return _Overflowed(str(overflow))

        digest = self._conversation.of(messages)
        answer: Reply | _Overflowed = await self._step(turn, "reply", digest, Reply | _Overflowed, ask)
        if isinstance(answer, _Overflowed):
            raise ContextOverflow(answer.overflow)
        return answer

    async def applicable(self, turn: int, code: str, instruction: Instruction) -> Applicability:
        """Whether the instruction fits the code."""

        async def ask() -> Applicability:
            await self._services.judge_gate.pass_through()
            return await self._services.judge.applicable(code, instruction)

        digest = content_hash([code, instruction.id, instruction.text])
        name = f"{instruction.id}/applicable"
        return await self._step(turn, name, digest, Applicability, ask, free=self.judge_offline)

    async def adherence(self, turn: int, before: str, after: str, instruction: Instruction) -> Adherence:
        """Whether the change does what was asked."""

        async def ask() -> Adherence:
            await self._services.judge_gate.pass_through()
            return await self._services.judge.adherence(before, after, instruction)

        digest = content_hash([before, after, instruction.id, instruction.text])
        return await self._step(turn, "adherence", digest, Adherence, ask, free=self.judge_offline)

    async def verify(self, turn: int, extraction: Extraction) -> Verdict:
        """What the tests say of the extracted program."""
        program = extraction.program
        if program is None:
            raise ValueError("there is no program to verify")
        digest = content_hash([program])
        return await self._step(
            turn, "verdict", digest, Verdict, lambda: self._services.sandbox.verify(program, self._task)
        )

    async def assess(self, turn: int, name: str, program: str, tests: ProgramTests) -> Verdict:
        """What tests other than the task's say of a program; `name` tells the assessments of one turn apart."""
        digest, entry_point = content_hash([program, *_told_apart(tests)]), self._task.entry_point
        return await self._step(
            turn,
            f"{name}/assessment",
            digest,
            Verdict,
            lambda: self._services.sandbox.assess(program, tests, entry_point),
        )

    async def script(self, turn: int, name: str, source: str, wall_s: float) -> Verdict:
        """What a script's exit status says; `name` tells the scripts of one turn apart, `wall_s` bounds its seconds."""
        digest = content_hash([source, wall_s])
        return await self._step(
            turn, f"{name}/script", digest, Verdict, lambda: self._services.sandbox.run_script(source, wall_s)
        )

    async def _step(
        self, turn: int, name: str, digest: str, kind: Any, compute: Callable[[], Awaitable[T]], *, free: bool = False
    ) -> T:
        """A step of the session. An interruption lets none begin; a budget stops only what asks an endpoint."""

        async def begin() -> T:
            if self._services.brake.interrupted:
                self._services.brake.check()
            self._worked_at.add(turn)
            return await compute()

        journal, name = self._services.journal, f"{turn}/{name}"
        result: T = await journal.step(self._session, name, digest, kind, begin, free=free)
        return result


def _told_apart(tests: ProgramTests) -> list[Any]:
    """What makes tests what they are, as JSON; not where a repository lies."""
    if isinstance(tests, AssertionTests):
        return list(tests.snippets)
    return [tests.file, list(tests.lines), tests.indent, list(tests.nodes)]


def _writable(reply: Reply) -> Reply:
    """The reply without lone surrogates, which no UTF-8 file can hold."""
    text = reply.text.encode("utf-8", "replace").decode()
    return reply if text == reply.text else replace(reply, text=text)
