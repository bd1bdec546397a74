"""The figures of self-repair (MultiCodeIF, section IV; definitions in docs/multicodeif.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from codechat.base.records import SessionRecord
from codechat.report.metrics.measures import Final, Measures, Series
from codechat.report.metrics.spending import Effort
from codechat.report.metrics.statistics import TaskRatio
from codechat.report.metrics.sums import CellSums, Tally, Value
from codechat.studies.multicodeif.metrics import (
    NO_LANGUAGE,
    UNDECIDED_DECISIONS,
    ByGroup,
    ConstrainedTurn,
    Groups,
    breakdowns_of,
    groups_of,
    is_open,
    turn_parts,
)

WITHOUT = "ifrepair_without_leaks"
BY_CATEGORY = "ifrepair_by_category"
"""Where metrics.json has IFRepair by category: for each a value after every round."""

_AFTER = "tasks with all constraints met after at most k repairs (rejudged: at round k), of those decided"
_NO_LEAK = "the same without code quality, scenario, code context and exemplar, whose answer is a whole solution"
_BY_GROUP: tuple[ByGroup, ...] = (
    ("accuracy", "Accuracy", True, "first replies: constraints met, of those of the group; by language, tasks"),
    ("guarded", "Accuracy, guarded", True, "the same under protocol.harness=guarded"),
    ("official", "Accuracy, official", True, "the same under protocol.harness=official"),
    ("ifrepair", "IFRepair, end", True, "tasks of the group with all constraints met after the last round"),
    ("undecided", "Undecided", False, "first replies: constraints of the group that are undecided; by language, tasks"),
)
_PARSES = ("parses", "Code parses", True, "first replies whose code parses in the task's language, where known")
_FIRST = {
    "accuracy": "hsr",
    "ssr": "ssr",
    "hsr": "hsr",
    "guarded": "hsr_guarded",
    "official": "hsr_official",
    "parses": "parses",
    "undecided": "undecided",
    "undecided_decisions": "undecided_decisions",
}  # the figures of first replies, by their names in a tally

REPAIR = Measures(
    protocol="repair",
    title="MultiCodeIF, self-repair: unmet constraints are named",
    series=(
        Series("ifrepair", "IFRepair@k", help=_AFTER),
        Series(WITHOUT, "IFRepair@k without leaks", help=_NO_LEAK),
        Series("gains", "Gain", first_turn=1, unit="percent",
               help="IFRepair@k less IFRepair@k-1 in points, of tasks decided at both"),
        Series("gains_without_leaks", "Gain without leaks", first_turn=1, unit="percent", help=_NO_LEAK),
        Series("undecided_rounds", "Undecided", higher_is_better=False,
               help="tasks of which it is undecided whether all is met, of all"),
    ),
    finals=(
        Final("accuracy", "Accuracy", help="tasks whose first reply meets all constraints, of those decided"),
        Final("ifrepair_end", "IFRepair, end", help="IFRepair@k after the last round"),
        Final("ifrepair_end_without_leaks", "IFRepair, end, without leaks", help=_NO_LEAK),
        Final("ssr", "SSR", help="constraints that first replies meet, of those decided"),
        Final("hsr", "HSR", help="tasks with all constraints met, of first replies: the accuracy"),
        Final("guarded", "Accuracy, guarded", help="the accuracy under protocol.harness=guarded"),
        Final("official", "Accuracy, official", help="the accuracy under protocol.harness=official"),
        Final("parses", "Code parses", help="first replies whose code parses in the task's language, where known"),
        Final("undecided", "Undecided", higher_is_better=False, help="tasks undecided at the first reply; in no rate"),
        Final(*UNDECIDED_DECISIONS, higher_is_better=False, help="constraints undecided at the first reply"),
    ),
    breakdowns=breakdowns_of(_BY_GROUP, _PARSES),
    passed="the code meets all constraints of the task",
)  # fmt: skip


@dataclass
class _Rounds:
    """Whether all is met, after every round: how many tasks, the gain of the round, and how many are undecided."""

    met: list[TaskRatio]
    gains: list[TaskRatio]
    undecided: list[TaskRatio]

    @classmethod
    def of(cls, rounds: int) -> "_Rounds":
        return cls(*([TaskRatio() for _ in range(count)] for count in (rounds + 1, rounds, rounds + 1)))

    def count(self, task: str, states: Sequence[bool | None]) -> None:
        for place, state in enumerate(states):
            self.undecided[place].count(task, state is None)
            if state is not None:
                self.met[place].count(task, state)
                before = states[place - 1] if place else None
                if before is not None:
                    self.gains[place - 1].count(task, 100 * (state - before))


@dataclass
class _Seen(CellSums):
    rounds: int = 0
    rejudge: bool = False
    groups: Groups = field(default_factory=Groups)
    first: Tally = field(default_factory=Tally)
    categories: dict[str, _Rounds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.all, self.sealed = _Rounds.of(self.rounds), _Rounds.of(self.rounds)

    def count(self, session: SessionRecord) -> None:
        task, first = session.task_id, session.turns[0]
        own = ConstrainedTurn.of(first)
        self.first.count(task, turn_parts(first, own))
        self.groups.add(session, first, own)
        states = states_of([turn.passed for turn in session.turns], self.rounds, rejudge=self.rejudge)
        categories = {constraint.category for constraint in own.constraints}
        for rounds in (self.all, *([] if own.leaks else [self.sealed]), *map(self._category, sorted(categories))):
            rounds.count(task, states)
        groups = {group for constraint in own.constraints for group in groups_of(constraint)}
        if states[-1] is not None:
            for by, name in sorted({*groups, ("language", session.language or NO_LANGUAGE)}):
                self.groups.at(by, name).count(task, {"ifrepair": (states[-1], 1)})

    def _category(self, name: str) -> _Rounds:
        return self.categories.setdefault(name, _Rounds.of(self.rounds))

    def values(self, value: Value) -> dict[str, Any]:
        def each(figures: Iterable[TaskRatio]) -> list[Any]:
            return [*map(value, figures)]

        return {
            **{name: value(self.first[source]) for name, source in _FIRST.items()},
            "ifrepair": each(self.all.met),
            WITHOUT: each(self.sealed.met),
            "gains": each(self.all.gains),
            "gains_without_leaks": each(self.sealed.gains),
            "undecided_rounds": each(self.all.undecided),
            "ifrepair_end": value(self.all.met[-1]),
            "ifrepair_end_without_leaks": value(self.sealed.met[-1]),
            **self.groups.values(REPAIR.breakdowns, value),
            BY_CATEGORY: {
                name: each(rounds.met)
                for name, rounds in sorted(self.categories.items())
                if not is_open(self.groups.at("category", name)["undecided"])
            },
        }


def states_of(passed: Sequence[bool | None], rounds: int, *, rejudge: bool) -> list[bool | None]:
    """Whether all is met after 0, 1, … `rounds` repairs, None if undecided: from the verdicts of a session's turns.

    A session that has ended stays as it was. What was met once stays met, unless replies are judged again.
    """
    states: list[bool | None] = []
    for place in range(rounds + 1):
        if not rejudge and states and states[-1]:
            states.append(True)
        else:
            states.append(passed[min(place, len(passed) - 1)])
    return states


def repair_metrics(
    sessions: Iterable[SessionRecord], *, rounds: int, rejudge: bool, seed: int, effort: Effort | None = None
) -> dict[str, Any]:
    """The content of metrics.json, as `REPAIR` says.

    `rounds` is how many repairs a session may have; `rejudge`: met replies were judged again at every round.
    """
    return _Seen(rounds=rounds, rejudge=rejudge).content(sessions, seed, effort)
