"""The further fields of turns in conversations of verifiable instructions (docs/codeif.md)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from codechat.domain import Decided, Outcome
from codechat.records import INSIDE, TurnRecord

TASK = "task"
"""The id of the task itself, the first instruction of every conversation."""
BASE = "Base"
"""The strategy of the task's own instruction."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RequirementRecord(_Part):
    """The verifiable instruction of a turn."""

    id: str
    strategy: str
    text: str


class CheckRecord(_Part):
    """The result of one instruction's tests on a turn's code.

    `asked` is False if the conversation has not asked for it yet; `accumulates` is False if later code need not keep
    it. `reason` is null on a pass.
    """

    id: str
    strategy: str
    asked: bool
    accumulates: bool
    outcome: Outcome
    passed: bool
    decided: Decided | None = None
    reason: str | None


class OfficialRecord(_Part):
    """The verdict by exit status of the benchmark's own harness."""

    passed: bool
    outcome: Outcome
    reason: str | None


class Exchange(_Part):
    """The fields that `static` and `dynamic` add to a turn.

    `requirement` is null if the turn asks for the task itself. `discarded`: the instruction was discarded after this
    round. `official` is null unless asked for, and if that harness gives no verdict.
    """

    round: Literal["initial", "instruction", "feedback"]
    requirement: RequirementRecord | None
    level: str | None
    checks: list[CheckRecord]
    discarded: bool = False
    official: OfficialRecord | None = None

    @classmethod
    def of(cls, turn: TurnRecord) -> "Exchange":
        """The fields of a recorded turn."""
        return cls.model_validate({name: value for name, value in (turn.model_extra or {}).items() if name != INSIDE})

    @property
    def own(self) -> CheckRecord:
        """The check of this turn's instruction."""
        wanted = self.requirement.id if self.requirement else TASK
        return next(check for check in self.checks if check.id == wanted)
