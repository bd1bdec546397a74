"""A session's turns so far, and the services of a unit of work: models by role, judge, tests and journal."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from codechat.base.domain import Message, Program, Reply, Usage, Verdict
from codechat.base.errors import ContextOverflow
from codechat.base.records import CALLS, UNDER_TEST, CallRecord, TurnRecord
from codechat.judging import JUDGES, Judge, JudgeConfig
from codechat.judging.deciding import NO_TEXT
from codechat.models import Model
from codechat.models.calls import Brake
from codechat.run.journal import Journal
from codechat.sandbox import Command, Ran
from codechat.sandbox.suites import Suite


@dataclass(frozen=True, slots=True)
class Overflowed:
    """A reply step that ended in a context overflow, in the journal's format."""

    overflow: str


def call_record(
    role: str, messages: tuple[Message, ...], answer: Reply | Overflowed, before: tuple[Message, ...] = ()
) -> CallRecord:
    """The record of one call of a role, without the messages of its previous request `before`."""
    earlier = len(before) if messages[: len(before)] == before else 0
    reply: dict[str, Any] = {"response": None}
    if isinstance(answer, Reply):
        reply = {"response": answer.text, "finish_reason": answer.finish_reason}
        reply |= {"usage": answer.usage, "latency_s": answer.latency_s, "reasoning": answer.reasoning}
    return CallRecord(role=role, earlier=earlier, request=list(messages[earlier:]), **reply)


def reply_of(record: TurnRecord | CallRecord) -> Reply:
    """The reply of a recorded turn or call. Raises `ContextOverflow` if the conversation no longer fitted the model."""
    if record.response is None:
        raise ContextOverflow("the recorded conversation no longer fitted the model's context")
    said = record.response, record.finish_reason, record.latency_s
    done = record.trajectory if isinstance(record, TurnRecord) else None
    return Reply(*said, reasoning=record.reasoning or "", usage=record.usage, trajectory=done)


def sendable(messages: Iterable[Message]) -> list[Message]:
    """The messages with a text in each of the model's: a reply may have been empty, or nothing but a thought."""
    return [
        replace(each, content=NO_TEXT) if each.role == "assistant" and not each.content.strip() else each
        for each in messages
    ]


def by_role(calls: Sequence[CallRecord]) -> dict[str, Any]:
    """The fields of a turn's record in a protocol with further roles."""
    used: dict[str, Usage] = {}
    for call in calls:
        if call.role != UNDER_TEST:
            used[call.role] = used.get(call.role, Usage()) + call.usage
    return {
        "usage_by_role": {role: usage.fields() for role, usage in used.items()},
        CALLS: [call.model_dump() for call in calls],
    }


@dataclass
class SessionLog:
    """A session's results so far. `judgement` is the protocol's verdict on the whole dialogue, as JSON."""

    agenda: list[str] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    ended: Literal["context_overflow"] | None = None
    judgement: Any = None


class EqualTurns:
    """The checks of a session by turn. Its results depend on programs and tests, not on their order."""

    def __init__(self) -> None:
        self._checks: dict[int, list[str]] = defaultdict(list)
        self._first: dict[str, int] = {}

    def add(self, turn: int, check: str) -> None:
        """Add a check at a turn, by a hash of the program's text and the tests."""
        self._checks[turn].append(check)

    def finish(self, turn: int) -> int | None:
        """The earliest turn with an equal program, if all checks of this turn had been made before; turns in order."""
        checks = self._checks.pop(turn, [])
        known = [self._first[each] for each in checks if each in self._first]
        for each in checks:
            self._first.setdefault(each, turn)
        return min(known) if known and len(known) == len(checks) else None


class _Checked(Protocol):
    async def check(self) -> None: ...


class Closing(Protocol):
    async def aclose(self) -> None: ...


C = TypeVar("C", bound=Closing)


class CheckOnce:
    """Checks components before their first use: a cell that needs no call contacts nothing."""

    def __init__(self, *components: _Checked) -> None:
        self._components = components
        self._lock = asyncio.Lock()
        self._open = False

    async def check(self) -> None:
        """Check unless a check has succeeded. Raises what a component's `check` raises."""
        if self._open:
            return
        async with self._lock:
            if not self._open:
                for component in self._components:
                    await component.check()
                self._open = True


class Opened:
    """Resources that a study opens at first use, by name: closed with the session (`Kit.opened`) or with the cell."""

    def __init__(self) -> None:
        self._things: dict[str, Closing] = {}

    def get(self, name: str, make: Callable[[], C]) -> C:
        """The open resource of this name, made if there is none."""
        if name not in self._things:
            self._things[name] = make()
        resource: Any = self._things[name]
        return resource  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        """Close all, the last one first."""
        while self._things:
            await self._things.popitem()[1].aclose()


class Tests(Protocol):
    """Checks programs and runs commands in the sandbox; `codechat.sandbox.suites.checker.Checker` does."""

    async def check(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on the program."""

    async def check_reference(self, program: Program, suite: Suite) -> Verdict:
        """The verdict on a program of the dataset, which further cells of this process test too."""

    def remember(self, program: Program, suite: Suite, verdict: Verdict) -> str:
        """Keep a verdict, which may come from the journal; returns a hash of the program's text and the tests."""

    async def run(self, command: Command) -> Ran:
        """Run a command in a box; returns exit status and output."""


@dataclass(frozen=True)
class Player:
    """The model of a role. A `baseline` is shown the `BaselineView`; a model that `has_desk` works in a folder."""

    model: Model
    gate: CheckOnce
    baseline: bool = False
    has_desk: bool = False

    @classmethod
    def of(cls, model: Model, *, baseline: bool = False) -> "Player":
        """A model that is checked before its first call."""
        return cls(model, CheckOnce(model), baseline)


@dataclass(frozen=True)
class Asked:
    """The cell's judge. `offline`: a decision calls no endpoint and costs nothing."""

    judge: Judge
    gate: CheckOnce
    offline: bool = False

    @classmethod
    def of(cls, config: JudgeConfig) -> "Asked":
        """A judge that is checked before the first question."""
        judge = JUDGES.build(config)
        return cls(judge, CheckOnce(judge), JUDGES.of(config).traits.offline)


@dataclass(frozen=True)
class Services:
    """The components of a cell or a construction, shared by its units.

    `players` has the model under test as `model`, and further roles by name. `judge` is None if the protocol uses none.
    `serving` has components of studies' groups, such as `environment`; `opened` resources of studies for the cell;
    `workers` is the number of processes for checks.
    """

    players: Mapping[str, Player]
    journal: Journal
    tests: Tests
    judge: Asked | None = None
    brake: Brake = field(default_factory=Brake)
    serving: Mapping[str, Any] = field(default_factory=dict)
    opened: Opened = field(default_factory=Opened)
    workers: int = 1

    def asked(self) -> Asked:
        """The judge. Raises `ValueError` if the protocol does not name `judge` in `uses`."""
        if self.judge is None:
            raise ValueError("the protocol asks the judge, which it does not name in `uses`")
        return self.judge

    @property
    def has_roles(self) -> bool:
        """Whether the protocol asks other models than the one under test."""
        return len(self.players) > 1
