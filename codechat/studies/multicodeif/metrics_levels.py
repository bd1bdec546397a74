"""The figures of tasks whose constraints grow level by level (MultiCodeIF, RQ3; definitions in docs/multicodeif.md)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from codechat.base.records import SessionRecord
from codechat.report.metrics.measures import Final, Measures, Series
from codechat.report.metrics.spending import Effort
from codechat.report.metrics.sums import CellSums, Mean, Tally, Value, at
from codechat.studies.multicodeif.metrics import (
    UNDECIDED_DECISIONS,
    ConstrainedTurn,
    Groups,
    breakdowns_of,
    turn_parts,
)

SATISFIED = tuple(f"{name}{mark}" for name in ("hsr", "ssr") for mark in ("", "_guarded", "_official"))
"""The figures by level: by the harness that counts, and by each harness. `avg_` and the name: the mean over levels."""

_SSR = "constraints met, of all so far that are decided"
_HSR = "tasks with all constraints so far met, of those decided"
_OFFICIAL = "the same under protocol.harness=official"
_BY_GROUP = (
    ("accuracy", "Constraints met", True, "constraints met, of those of the group at all levels; by language, tasks"),
    ("official", "Constraints met, official", True, _OFFICIAL),
    ("undecided", "Undecided", False, "constraints of the group that are undecided; by language, turns"),
)
_PARSES = ("parses", "Code parses", True, "turns whose code parses in the task's language, where known")

LEVELS = Measures(
    protocol="levels",
    title="MultiCodeIF, levels: a constraint more at every level",
    series=(
        Series("hsr", "HSR", help=_HSR),
        Series("ssr", "SSR", help=_SSR),
        Series("hsr_official", "HSR, official", help=_OFFICIAL),
        Series("ssr_official", "SSR, official", help=_OFFICIAL),
        Series("undecided_levels", "Undecided", higher_is_better=False,
               help="tasks of which it is undecided whether all is met, of all"),
    ),
    finals=(
        Final("avg_hsr", "HSR, mean", help=f"{_HSR}; unweighted mean over the levels"),
        Final("avg_ssr", "SSR, mean", help=f"{_SSR}; unweighted mean over the levels"),
        Final("avg_hsr_official", "HSR, mean, official", help=_OFFICIAL),
        Final("avg_ssr_official", "SSR, mean, official", help=_OFFICIAL),
        Final("parses", "Code parses", help="turns whose code parses in the task's language, where known"),
        Final("undecided", "Undecided", higher_is_better=False, help="undecided turns, of all; in no rate"),
        Final(*UNDECIDED_DECISIONS, higher_is_better=False, help="undecided constraints of all turns"),
    ),
    breakdowns=breakdowns_of(_BY_GROUP, _PARSES),
    passed="the code meets all constraints so far",
)  # fmt: skip


@dataclass
class _Seen(CellSums):
    groups: Groups = field(default_factory=Groups)
    turns: list[Tally] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    whole: Tally = field(default_factory=Tally)

    def count(self, session: SessionRecord) -> None:
        for turn in session.turns:
            own = ConstrainedTurn.of(turn)
            at(self.names, turn.turn, str)
            self.names[turn.turn] = own.level
            parts = turn_parts(turn, own)
            for tally in (at(self.turns, turn.turn, Tally), self.whole):
                tally.count(session.task_id, parts)
            self.groups.add(session, turn, own)

    def values(self, value: Value) -> dict[str, Any]:
        series = {name: [tally[name] for tally in self.turns] for name in (*SATISFIED, "undecided")}
        return {
            **{name: [*map(value, series[name])] for name in SATISFIED},
            "undecided_levels": [*map(value, series["undecided"])],
            **{name: value(self.whole[name]) for name in ("parses", "undecided", "undecided_decisions")},
            **self.groups.values(LEVELS.breakdowns, value),
            **{f"avg_{name}": value(Mean(series[name])) for name in SATISFIED},
        }


def levels_metrics(sessions: Iterable[SessionRecord], *, seed: int, effort: Effort | None = None) -> dict[str, Any]:
    """The content of metrics.json, as `LEVELS` says, with the names of the levels."""
    seen = _Seen()
    return seen.content(sessions, seed, effort) | {"levels": seen.names}
