"""Dialogues that were held elsewhere, turn by turn as they were recorded: only their tests are run, and run here."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Protocol

from codechat.base.config import Config, original_option, place_option, result_option
from codechat.base.domain import Extraction, Reply
from codechat.base.errors import UserError
from codechat.base.files import file_hash
from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort
from codechat.report.metrics.measures import Final, Measures, Series
from codechat.report.metrics.sums import CellSums, Tally, Value, at
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.run.protocols.dialogue import Graded, grade_in_order, request_of
from codechat.sandbox.languages import code_text, extract

OWN = ("official", "executed", "source_fields")
"""Fields of a recorded turn that are kept: the published verdict, and further fields of the source."""

_HELP = {
    "passed": ("Passing turns", "turns whose code passes the tests"),
    "official": ("Published passes", "turns with a published verdict that pass by it"),
    "agreement": ("Agreement", "turns on which the published and our verdict agree"),
}
MEASURES = Measures(
    protocol="recorded",
    title="Published dialogues: tested again, turn by turn",
    series=tuple(Series(key, label, help=said) for key, (label, said) in _HELP.items()),
    finals=(
        *(Final(key, label, at=f"overall.{key}", help=said) for key, (label, said) in _HELP.items()),
        Final("solved", "Solved at last", at="overall.solved", help="dialogues whose last turn passes"),
    ),
)


class RecordedConfig(Config):
    """Options of `recorded`."""

    kind: Literal["recorded"] = original_option("recorded", "the protocol")
    path: str = place_option(..., "the sessions.jsonl with the dialogues, as `import` writes it", min_length=1)
    code: Literal["published", "extracted"] = result_option(
        "published", "the code of a turn: as the source took it, or extracted from the reply by codechat's own rules"
    )

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options and the hash of the recording. Raises `UserError` if it cannot be read."""
        return {
            **super().identity(older),
            "content": file_hash(Path(self.path), "protocol.path names a sessions.jsonl"),
        }


class Measure(Protocol):
    """The content of metrics.json, as `DialogueProtocol.metrics` gives it."""

    def __call__(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Recorded:
    """The recorded dialogues; the model is asked for each reply, so that `model=replay` returns the recorded replies.

    `measure` computes the metrics that `measures` describes.
    """

    config: RecordedConfig
    measures: Measures
    measure: Measure

    @cached_property
    def _sessions(self) -> dict[str, SessionRecord]:
        return {record.task_id: record for record in read_sessions(Path(self.config.path))}

    def _recorded(self, task: Task) -> SessionRecord:
        found = self._sessions.get(task.task_id)
        if found is None or not found.turns:
            raise UserError(
                f"{self.config.path} has no dialogue of {task.task_id}",
                "choose tasks of the recording by dataset.tasks",
            )
        return found

    def turns(self, task: Task) -> int:
        return len(self._recorded(task).turns)

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        for turn in self._recorded(task).turns:
            yield Ask(UNDER_TEST, turn.turn, sum(len(one.content) for one in turn.request), len(turn.response or ""))

    async def run(self, task: Task, kit: Kit) -> None:
        async with grade_in_order() as grading:
            for turn in (kit.recording or self._recorded(task)).turns:
                reply = None
                if turn.response is not None:
                    reply = await kit.ask(UNDER_TEST, turn.turn, request_of(turn))
                grading.start(partial(self._grade, kit, task, turn, reply))

    async def _grade(
        self, kit: Kit, task: Task, turn: TurnRecord, reply: Reply | None, earlier: Graded | None
    ) -> TurnRecord:
        if turn.skipped and earlier is not None:
            before = await earlier
            same = {"code", "outcome", "passed", "passed_base", "decided", "failure"}
            kept = before.model_copy(deep=True).model_dump(include=same)
            record = TurnRecord(turn=turn.turn, skipped=True, candidates=turn.candidates, **kept)
            kit.finish_turn(record)
            return record
        try:
            extraction = self._code(task, turn, reply)
            verdict = await kit.check(turn.turn, extraction, task.suite) if task.suite is not None else None
        finally:
            if earlier is not None:
                await earlier
        known = turn.model_extra or {}
        own = {"code": extraction.code, **{name: known[name] for name in OWN if name in known}}
        own |= {"asked": turn.asked, "candidates": turn.candidates, "adherence": turn.adherence}
        answer = None if reply is None else (reply, extraction)
        record = TurnRecord.of(turn.turn, turn.request, answer, verdict, **own)
        kit.finish_turn(record)
        return record

    def _code(self, task: Task, turn: TurnRecord, reply: Reply | None) -> Extraction:
        if self.config.code == "extracted" and reply is not None:
            return extract(code_text(reply, task.target.language), task.target)
        problem: Literal["no_code"] | None = "no_code" if turn.code is None else None
        return Extraction(turn.code, turn.code, problem, "the source has no code" if problem else "as published")

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return self.measure(sessions, seed=seed, effort=effort)


def recorded_metrics(sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
    """How many turns pass, by the published verdicts and by ours, and how many agree: overall and by turn."""
    return _Seen().content(sessions, seed, effort)


@dataclass
class _Seen(CellSums):
    turns: list[Tally] = field(default_factory=list)
    overall: Tally = field(default_factory=Tally)

    def count(self, session: SessionRecord) -> None:
        for place, turn in enumerate(session.turns):
            parts = {} if turn.passed is None else {"passed": (int(turn.passed), 1)}
            published = ((turn.model_extra or {}).get("official") or {}).get("passed")
            if published is not None:
                parts["official"] = (int(published), 1)
                if turn.passed is not None:
                    parts["agreement"] = (int(published == turn.passed), 1)
            for tally in (at(self.turns, place, Tally), self.overall):
                tally.count(session.task_id, parts)
        last = session.turns[-1].passed if session.turns else None
        if last is not None:
            self.overall.count(session.task_id, {"solved": (int(last), 1)})

    def values(self, value: Value) -> dict[str, Any]:
        series = {key: [value(tally[key]) for tally in self.turns] for key in _HELP}
        return {**series, "overall": {key: value(self.overall[key]) for key in (*_HELP, "solved")}}


@PROTOCOLS.register("recorded", RecordedConfig, uses=frozenset({"sandbox"}))
def recorded(config: RecordedConfig, parts: Parts) -> Recorded:
    """Dialogues that were held elsewhere, tested again turn by turn (protocol.path names what `import` wrote)."""
    return Recorded(config, MEASURES, recorded_metrics)
