"""Import published completions as recorded sessions, so that a replay can be compared with results from elsewhere.

One file per format: a registered factory that reads the sources named by the config. Values that a source lacks stay
null or zero; nothing is invented.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codechat.base.config import Config, original_option, place_option
from codechat.base.domain import Failure, Message, Outcome
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.registry import Registry


class ImportConfig(Config):
    """Options every format has."""

    format: str = original_option(..., "what the source is")
    source: str = place_option(..., "the published completions of one mode of one model", min_length=1)
    tasks: str | None = place_option(None, "the task file, if no fitting one is in the source's folder", min_length=1)
    model: str | None = original_option(
        None, "the model's name for the records, if the file's name does not have it", min_length=1
    )


@dataclass(frozen=True, slots=True)
class Imported:
    """The sessions, the other files that were read, and remarks for the user. A source with several models or datasets
    has `parts`: the same sessions by the name of the file to write."""

    sessions: list[SessionRecord]
    companions: list[Path]
    remarks: list[str] = field(default_factory=list)
    parts: dict[str, list[SessionRecord]] = field(default_factory=dict)


@dataclass(frozen=True)
class FormatTraits:
    """`preview` returns remarks to show before the conversion, for example the meaning of the source's columns."""

    preview: Callable[[Any], Iterable[str]] = lambda config: ()


@dataclass(frozen=True, slots=True)
class PublishedTurn:
    """One turn of a published dialogue; None for missing values. `passed` is the verdict on the tests, `outcome` a more
    precise outcome than pass or fail if it is known; `own` are further fields of the record."""

    code: str | None
    passed: bool | None
    reason: str | None = None
    outcome: Outcome | None = None
    request: Sequence[Message] = ()
    response: str | None = None
    skipped: bool = False
    own: Mapping[str, Any] | None = None

    def record(self, number: int) -> TurnRecord:
        """The record, with the published verdict as `official` and as the outcome: nothing is tested here."""
        known: dict[bool | None, Outcome | None] = {True: "pass", False: "fail", None: None}
        outcome = self.outcome or known[self.passed]
        official = {"passed": self.passed, "outcome": outcome, "reason": self.reason}
        reason = f"published: {self.reason}" if self.reason else "published: not passed"
        return TurnRecord(
            turn=number,
            skipped=self.skipped,
            request=list(self.request),
            response=self.response,
            code=self.code,
            outcome=outcome,
            passed=self.passed,
            failure=Failure(reason) if self.passed is False else None,
            **{"passed_base": self.passed, **(self.own or {}), "official": None if self.passed is None else official},
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


FORMATS: Registry[Imported, FormatTraits] = Registry(
    "format", "codechat.datasets.importing", FormatTraits, Imported, ImportConfig, key="format"
)

__all__ = ["FORMATS", "FormatTraits", "ImportConfig", "Imported", "PublishedTurn", "dialogue"]
