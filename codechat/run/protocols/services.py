"""The services of a session: models by role, judge, tests and journal."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from codechat.base.domain import Program, Verdict
from codechat.judging import Judge
from codechat.models import Model
from codechat.models.calls import Brake
from codechat.run.journal import Journal
from codechat.sandbox import Command, Ran
from codechat.sandbox.suites import Suite
from codechat.studies.cab.environments import Environment
from codechat.studies.multicodeif.constraints.examining import Examiner


class _Checked(Protocol):
    async def check(self) -> None: ...


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


class Tests(Protocol):
    """Checks programs and runs commands in the sandbox; `codechat.sandbox.suites.checker.Checker` does."""

    async def check(self, program: Program, suite: Suite) -> Verdict:
        """The suite's verdict on the program."""

    async def check_reference(self, program: Program, suite: Suite) -> Verdict:
        """The same of a program of the dataset's own, which further cells of this process test too."""

    def remember(self, program: Program, suite: Suite, verdict: Verdict) -> str:
        """Keep a verdict that may come from the journal; a hash of the program's text and the tests."""

    async def run(self, command: Command) -> Ran:
        """Run a command in a box; its exit status and output."""


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
class Services:
    """The cell's components, shared by its sessions; no judge if the protocol uses none.

    `players` has the model under test as `model`, and the protocol's further roles by their names. `judge_offline`: the
    judge's decisions cost nothing. `examiner` checks constraints, if the protocol's tasks have any. `environment` opens
    the rooms in which a model runs commands, if the protocol uses one.
    """

    players: Mapping[str, Player]
    journal: Journal
    tests: Tests
    judge: Judge | None = None
    brake: Brake = field(default_factory=Brake)
    judge_offline: bool = False
    judge_gate: CheckOnce | None = None
    examiner: Examiner | None = None
    environment: Environment | None = None

    @property
    def has_roles(self) -> bool:
        """Whether the protocol asks other models than the one under test."""
        return len(self.players) > 1
