"""A dialogue from elsewhere as a recorded session: its turns as they were published, with the publisher's verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codechat.base.domain import Failure, Message, Outcome
from codechat.base.records import SessionRecord, TurnRecord

NO_REASON = "published: not passed"


@dataclass(frozen=True, slots=True)
class PublishedTurn:
    """What a source says of one turn; None wherever it says nothing.

    `passed` is its verdict on the tests, `outcome` its kind if it is known to be more than pass or fail; `own` are
    further fields of the record.
    """

    code: str | None
    passed: bool | None
    reason: str | None = None
    outcome: Outcome | None = None
    request: Sequence[Message] = ()
    response: str | None = None
    skipped: bool = False
    own: Mapping[str, Any] | None = None

    def record(self, number: int) -> TurnRecord:
        """The record, with the verdict as `official`. Nothing is tested here: the outcome is the published one."""
        outcome: Outcome | None = self.outcome
        if outcome is None and self.passed is not None:
            outcome = "pass" if self.passed else "fail"
        official = {"passed": self.passed, "outcome": outcome, "reason": self.reason}
        failed = self.passed is False
        return TurnRecord(
            turn=number,
            skipped=self.skipped,
            request=list(self.request),
            response=self.response,
            code=self.code,
            outcome=outcome,
            passed=self.passed,
            passed_base=self.passed,
            failure=Failure(f"published: {self.reason}" if self.reason else NO_REASON) if failed else None,
            **{**(self.own or {}), "official": None if self.passed is None else official},
        )


def dialogue(
    task_id: str, dataset: str, model: str, turns: Sequence[PublishedTurn], *, language: str = "python", seed: int = 0
) -> SessionRecord:
    """The session of a published dialogue, for `protocol=recorded` with `model=replay`."""
    return SessionRecord(
        cell_id="imported",
        session_id=f"imported/{task_id}",
        task_id=task_id,
        dataset=dataset,
        model=model,
        protocol="recorded",
        agenda=[],
        seed=seed,
        status="completed",
        turns=[turn.record(number) for number, turn in enumerate(turns)],
        language=language,
    )
