"""The metrics of conversations of verifiable instructions (CodeIF-Bench, paper 3.2; definitions in docs/codeif.md).

An instruction that later code need not keep (a functionality extension) counts only in instruction accuracy, because it
contradicts the others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from codechat.base.domain import Decided, Outcome
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.measures import Breakdown, Final, Measures, Series
from codechat.report.metrics.spending import Effort
from codechat.report.metrics.sums import WHOLE, CellSums, Part, Tally, Value, at

TASK = "task"
"""The id of the task itself, the first instruction of every conversation."""
BASE = "Base"
"""The strategy of the task itself."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RequirementRecord(_Part):
    """The verifiable instruction of a turn."""

    id: str
    strategy: str
    text: str


class CheckRecord(_Part):
    """The result of one instruction's tests on a turn's code.

    `asked` is False before the conversation asks for the instruction; `accumulates` is False if later code need not
    keep it. `reason` is null on a pass.
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
    round. `official` is null without the official harness, and if that harness gives no verdict.
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
        return cls.model_validate(turn.of_protocol)

    @property
    def own(self) -> CheckRecord:
        """The check of this turn's instruction."""
        wanted = self.requirement.id if self.requirement else TASK
        return next(check for check in self.checks if check.id == wanted)


_PASSED = "sessions whose code meets everything that must hold at the turn: all that was asked and lasts"
_HELP: Mapping[str, tuple[str, str]] = {
    "ca": ("Conversation Accuracy (share)", "instructions so far that the turn's code meets, averaged over tasks"),
    "ca_all": ("Conversation Accuracy (all met)", "tasks whose code meets every instruction so far"),
    "ia": ("Instruction Accuracy", "tasks whose code meets the turn's own instruction"),
    "ifr": ("Instruction Forgetting Ratio", "instructions not met now, of those met at some earlier turn"),
    "ife": ("Instruction Following Efficiency", "instructions that the code meets, per round so far"),
    "ife_asked": ("IFE of what was asked", "the same, of the instructions asked so far alone"),
    "passed": ("Passing turns", _PASSED),
    "official": ("official verdict passes", "turns that pass the benchmark's own harness, of those it scores"),
    "agreement": ("agreement of both harnesses", "turns on which official and guarded verdict agree"),
}
_UNITS = {"ife": "number", "ife_asked": "number"}
GROUPS = ("strategy", "level")


def _measures(protocol: str, title: str, names: tuple[str, ...], counts: tuple[Final, ...] = ()) -> Measures:
    def fields_of(name: str) -> dict[str, Any]:
        label, meaning = _HELP[name]
        return {"label": label, "unit": _UNITS.get(name, "share"), "higher_is_better": name != "ifr", "help": meaning}

    return Measures(
        protocol=protocol,
        title=title,
        series=tuple(Series(name, **fields_of(name)) for name in names),
        finals=tuple(Final(name, at=f"overall.{name}", **fields_of(name)) for name in names),
        breakdowns=tuple(
            Breakdown(name, by=by, at=f"by_{by}.{name}", **fields_of(name)) for by in GROUPS for name in names
        ),
        counts=counts,
        passed="the code meets everything that was asked so far and lasts",
    )


def static_measures(*, converses: bool, official: bool) -> Measures:
    """The measures of a static conversation; turns that do not build on each other can forget nothing."""
    names = ("ia", "ca", "ca_all", *(("ifr", "ife") if converses else ()), "passed")
    return _measures(
        "static",
        "CodeIF-Bench, static conversation: one verifiable instruction a turn",
        (*names, *(("official", "agreement") if official else ())),
    )


DYNAMIC = _measures(
    "dynamic",
    "CodeIF-Bench, dynamic conversation: tests choose the next instruction",
    ("ia", "ca", "ca_all", "ifr", "ife", "ife_asked", "passed"),
    (
        Final("instruction", "Instruction rounds", "rounds.instruction", "count", None),
        Final("feedback", "Feedback rounds", "rounds.feedback", "count", None),
        Final("repaired", "Feedback rounds that repaired", "rounds.repaired", "count", None),
        Final("discarded", "Instructions discarded", "rounds.discarded", "count", None),
    ),
)


@dataclass
class Conversations(CellSums):
    """The sums over all sessions of the metrics `names`.

    `converses`: a turn builds on the turns before it, so that something can be forgotten. `level_turns` holds a tally
    for every turn by level, `levels` one for all turns.
    """

    names: Sequence[str] = ()
    converses: bool = True
    rounds: Counter[str] = field(default_factory=Counter)
    overall: Tally = field(default_factory=Tally)
    turns: list[Tally] = field(default_factory=list)
    strategies: dict[str, Tally] = field(default_factory=dict)
    levels: dict[str, Tally] = field(default_factory=dict)
    level_turns: dict[str, list[Tally]] = field(default_factory=dict)

    def count(self, session: SessionRecord) -> None:
        met: set[str] = set()
        for turn in session.turns:
            exchange = Exchange.of(turn)
            self.rounds[exchange.round] += 1
            self.rounds["discarded"] += exchange.discarded
            self.rounds["repaired"] += exchange.round == "feedback" and exchange.own.passed
            self._count(session, turn, exchange, met)
            met |= {check.id for check in exchange.checks if check.accumulates and check.passed}

    def _count(self, session: SessionRecord, turn: TurnRecord, exchange: Exchange, met: set[str]) -> None:
        task, own = session.task_id, exchange.own
        parts = _parts(turn, exchange, self.converses)
        remembered = [check for check in exchange.checks if check.id in met]
        if not (self.converses and session.has_answer(turn)):
            remembered = []
        for check in remembered:
            self._strategy(check.strategy).count(task, {"ifr": (not check.passed, 1)})
        failed = sum(not check.passed for check in remembered)
        forgotten: dict[str, Part] = {"ifr": (failed, len(remembered))} if remembered else {}
        self._strategy(own.strategy).count(task, parts)
        level = exchange.level or "none"
        for tally in (
            self.overall,
            at(self.turns, turn.turn, Tally),
            self.levels.setdefault(level, Tally()),
            at(self.level_turns.setdefault(level, []), turn.turn, Tally),
        ):
            tally.count(task, {**parts, **forgotten})

    def _strategy(self, name: str) -> Tally:
        return self.strategies.setdefault(name, Tally())

    def values(self, value: Value) -> dict[str, Any]:
        def grouped(tallies: Mapping[str, Tally]) -> dict[str, Any]:
            groups = sorted(tallies.items())
            return {name: {group: value(tally[name]) for group, tally in groups} for name in self.names}

        return {
            **{name: [value(tally[name]) for tally in self.turns] for name in self.names},
            "overall": {name: value(self.overall[name]) for name in self.names},
            "by_strategy": grouped(self.strategies),
            "by_level": grouped(self.levels),
        }


def _parts(turn: TurnRecord, exchange: Exchange, converses: bool) -> dict[str, Part]:
    """A turn's part of each metric except forgetting, which needs the turns before."""
    own = exchange.own
    kept = [check for check in exchange.checks if check.accumulates]
    asked = [check for check in kept if check.asked]
    parts = {"ia": (int(own.passed), 1), "passed": (int(bool(turn.passed)), int(turn.passed is not None))}
    if own.accumulates:
        parts["ca"] = _share(sum(check.passed for check in asked), len(asked))
        parts["ca_all"] = (int(all(check.passed for check in asked)), 1)
    if converses:
        parts["ife"] = _share(sum(check.passed for check in kept), turn.turn + 1)
        parts["ife_asked"] = _share(sum(check.passed for check in asked), turn.turn + 1)
    if exchange.official is not None:
        parts["official"] = (int(exchange.official.passed), 1)
        parts["agreement"] = (int(exchange.official.passed == turn.passed), 1)
    return parts


def _share(hits: int, total: int) -> Part:
    """`hits / total` as parts of `WHOLE`: every turn weighs the same, however many instructions it has."""
    return (hits * WHOLE + total // 2) // total, WHOLE


def conversation_metrics(
    sessions: Iterable[SessionRecord], measures: Measures, *, converses: bool, seed: int, effort: Effort | None = None
) -> dict[str, Any]:
    """The content of metrics.json, as `measures` says."""
    seen = Conversations(names=[series.key for series in measures.series], converses=converses)
    return seen.content(sessions, seed, effort) | {
        "rounds": {kind: seen.rounds[kind] for kind in ("initial", "instruction", "feedback", "repaired", "discarded")},
        "series_by_level": {
            level: {name: [tally[name].rate for tally in tallies] for name in seen.names}
            for level, tallies in sorted(seen.level_turns.items())
        },
    }
