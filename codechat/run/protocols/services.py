"""The services of a unit of work, a session or an item that is made: models by role, judge, tests and journal."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from codechat.base.domain import Program, Verdict
from codechat.judging import JUDGES, Judge, JudgeConfig
from codechat.models import Model
from codechat.models.calls import Brake
from codechat.run.journal import Journal
from codechat.sandbox import Command, Ran
from codechat.sandbox.suites import Suite


class _Checked(Protocol):
    async def check(self) -> None: ...


class Closing(Protocol):
    """Something that is closed at the end."""

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
    """What a study opens at its first use, by name: closed with the session (`Kit.opened`) or with the cell."""

    def __init__(self) -> None:
        self._things: dict[str, Closing] = {}

    def get(self, name: str, make: Callable[[], C]) -> C:
        """The open thing of this name, made if there is none."""
        found: Any = self._things.get(name)
        if found is None:
            found = self._things[name] = make()
        return found  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        """Close all things, the last one first."""
        while self._things:
            await self._things.popitem()[1].aclose()


class Tests(Protocol):
    """Checks programs and runs commands in the sandbox; `codechat.sandbox.suites.checker.Checker` does."""

    async def check(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on the program."""

    async def check_anew(self, program: Program, suite: Suite) -> Verdict:
        """The verdict of one more run of a program that may have been checked before."""

    async def check_reference(self, program: Program, suite: Suite) -> Verdict:
        """The verdict on a program of the dataset, which further cells of this process test too."""

    def remember(self, program: Program, suite: Suite, verdict: Verdict) -> str:
        """Keep a verdict that may come from the journal; a hash of the program's text and the tests."""

    async def run(self, command: Command) -> Ran:
        """Run a command in a box; returns exit status and output."""


@dataclass(frozen=True)
class Player:
    """The model of a role. A `baseline` is shown the `BaselineView`."""

    model: Model
    gate: CheckOnce
    baseline: bool = False

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

    `players` has the model under test as `model`, and further roles by their names. `judge` is None if the protocol
    uses none. `serving` has components of studies' groups, such as `environment`; `opened` what studies open for the
    cell; `workers` is the number of processes that checks may use.
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
