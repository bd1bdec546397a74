"""The further fields of turns whose code must keep constraints, and the metrics over them (docs/multicodeif.md)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from codechat.base.domain import Outcome
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.measures import Breakdown, Final, Measures, Series
from codechat.report.metrics.spending import Effort
from codechat.report.metrics.statistics import TaskRatio
from codechat.report.metrics.sums import CellSums, Mean, Part, Tally, Value, at
from codechat.studies.multicodeif.constraints import Constraint, constraint_type, solved_types

GROUPS = ("category", "type", "language", "check")
"""The groupings of constraints; `check` is what decides them."""
NO_LANGUAGE = "none"
"""The group of tasks that name no language."""
VERDICTS = ("met", "guarded", "official")
"""The verdicts on a constraint: by the chosen harness, and by each harness."""
UNDECIDED_DECISIONS = ("undecided_decisions", "Undecided decisions")
"""Key and label of the share of undecided constraints: a task is decided if one of its constraints is unmet."""
ALWAYS = ("undecided", "parses")
"""The metrics that need no verdict."""
MOST_UNDECIDED = 0.9
"""The share of undecided decisions beyond which a group has only this metric."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ConstraintRecord(_Part):
    """The verdict on one constraint: `met` by the chosen harness, null if undecided; `reason` is one line.

    `guarded` and `official` are the verdicts under each harness; a type that a judge decides has the judge's in both.
    """

    type: str
    category: str
    by: Literal["rule", "judge", "classifier", "compiler"]
    met: bool | None
    reason: str
    guarded: bool | None
    official: bool | None

    @classmethod
    def of(
        cls, constraint: Constraint, met: bool | None, reason: str, guarded: bool | None, official: bool | None
    ) -> "ConstraintRecord":
        """The record of the verdicts on a constraint."""
        kind, verdicts = constraint_type(constraint.type), {"guarded": guarded, "official": official}
        return cls(type=kind.name, category=kind.category, by=kind.by, met=met, reason=reason, **verdicts)


class OfficialTurn(_Part):
    """All constraints by the published harness; null if one is undecided and none unmet."""

    passed: bool | None
    outcome: Outcome | None
    reason: str | None


class ConstrainedTurn(_Part):
    """The fields that `repair` and `levels` add to a turn.

    `level` is `single` or L1, L2, …; `round` counts repairs. `carried`: a met reply that was judged again, without a
    request. `parses`: whether the code parses in the task's language, null if unknown; `grammar` is the package that
    read it, with its version, null if none did.
    """

    level: str
    round: int
    carried: bool = False
    constraints: list[ConstraintRecord]
    parses: bool | None = None
    grammar: str | None = None
    official: OfficialTurn | None = None

    @classmethod
    def of(cls, turn: TurnRecord) -> "ConstrainedTurn":
        """The fields of a recorded turn."""
        known = turn.model_extra or {}
        return cls.model_validate({name: known[name] for name in cls.model_fields if name in known})

    def all_met(self, verdict: str) -> bool | None:
        """Whether all constraints are met by one of `VERDICTS`: one unmet decides; None if undecided."""
        return all_met([getattr(each, verdict) for each in self.constraints]) if self.constraints else None

    @property
    def leaks(self) -> bool:
        """Whether the published answer of a constraint is a whole solution: `protocol.feedback=paper` hands it out."""
        return any(each.type in solved_types() for each in self.constraints)


def all_met(found: Sequence[bool | None]) -> bool | None:
    """Whether all constraints are met: one unmet decides; None if none is known to be unmet, but one is undecided."""
    return False if False in found else None if None in found else True


def outcome_of(passed: bool | None) -> Literal["pass", "fail"] | None:
    """The outcome of a verdict on all constraints; None if it is undecided."""
    return None if passed is None else "pass" if passed else "fail"


def _breakdowns(parses: str, *metrics: tuple[str, str, str]) -> tuple[Breakdown, ...]:
    """The metrics (key, label, meaning) by each of `GROUPS`, and by language also the code that parses."""
    of_languages = ("parses", "Code parses", f"{parses} whose code parses in the task's language, where known")
    return tuple(
        Breakdown(key, label, by, f"by_{by}.{key}", higher_is_better=key != "undecided", help=meaning)
        for by in GROUPS
        for key, label, meaning in (*metrics, *([of_languages] if by == "language" else []))
    )


# Metrics of whole turns, by their names in groups.
_OF_TURNS = {"hsr": "accuracy", "hsr_guarded": "guarded", "hsr_official": "official"}
_OF_TURNS |= {"undecided": "undecided", "parses": "parses"}


@dataclass
class Groups:
    """Tallies by group: constraints by category, type and check, turns by language."""

    tallies: dict[str, dict[str, Tally]] = field(default_factory=lambda: {by: {} for by in GROUPS})

    def add(self, session: SessionRecord, turn: TurnRecord, own: ConstrainedTurn) -> None:
        """Count the verdicts of a turn."""
        for each in own.constraints:
            verdicts = {"accuracy": each.met, "guarded": each.guarded, "official": each.official}
            parts: dict[str, Part] = {name: (met, 1) for name, met in verdicts.items() if met is not None}
            for by, name in groups_of(each):
                self.at(by, name).count(session.task_id, {"undecided": (each.met is None, 1), **parts})
        parts = turn_parts(turn, own)
        known = {name: parts[source] for source, name in _OF_TURNS.items() if source in parts}
        self.at("language", session.language or NO_LANGUAGE).count(session.task_id, known)

    def at(self, by: str, name: str) -> Tally:
        """The tally of a group."""
        return self.tallies[by].setdefault(name, Tally())

    def values(self, shown: Iterable[Breakdown], value: Value) -> dict[str, dict[str, Any]]:
        """The values of every group at their places in metrics.json."""
        values: dict[str, dict[str, Any]] = {}
        for part in shown:
            values.setdefault(f"by_{part.by}", {})[part.key] = {
                name: value(tally[part.key])
                for name, tally in sorted(self.tallies[part.by].items())
                if part.key in tally.figures and (part.key in ALWAYS or not is_open(tally["undecided"]))
            }
        return values


def is_open(undecided: TaskRatio) -> bool:
    """Whether almost a whole group is undecided, so that a share of the few decided ones means nothing."""
    return (undecided.rate or 0.0) > MOST_UNDECIDED


def groups_of(constraint: ConstraintRecord) -> Iterator[tuple[str, str]]:
    """The groups of a constraint, each after its grouping."""
    yield from (("category", constraint.category), ("type", constraint.type), ("check", constraint.by))


def turn_parts(turn: TurnRecord, own: ConstrainedTurn) -> dict[str, Part]:
    """A turn's part of each metric: `hsr` of turns, `ssr` of constraints, by verdict; undecided ones are in no rate.

    `undecided` counts turns, `undecided_decisions` constraints.
    A turn with one constraint unmet and another undecided is decided: not all are met.
    """
    open_ones = sum(each.met is None for each in own.constraints)
    parts: dict[str, Part] = {
        "undecided": (turn.passed is None, 1), "undecided_decisions": (open_ones, len(own.constraints)),
    }  # fmt: skip
    if own.parses is not None:
        parts["parses"] = (own.parses, 1)
    for verdict in VERDICTS:
        mark = "" if verdict == "met" else f"_{verdict}"
        passed = turn.passed if verdict == "met" else own.all_met(verdict)
        if passed is not None:
            parts[f"hsr{mark}"] = (passed, 1)
        known = [met for each in own.constraints if (met := getattr(each, verdict)) is not None]
        if known:
            parts[f"ssr{mark}"] = (sum(known), len(known))
    return parts


SATISFIED = tuple(f"{name}{mark}" for name in ("hsr", "ssr") for mark in ("", "_guarded", "_official"))
"""The metrics by level: by the harness that counts, and by each harness. `avg_` and the name: the mean over levels."""

HSR_FIXED = "hsr_fixed"
"""HSR over one set of chains: undecided chains leave `hsr`, which would rise if failing chains become undecided."""

_SSR = "constraints met, of all so far that are decided"
_HSR = "tasks with all constraints so far met, of those decided"
_HSR_FIXED = (
    "chains shown to meet all constraints so far, of the chains with every level and a decided first; undecided "
    "later is not shown"
)
_OFFICIAL = "the same under protocol.harness=official"
LEVELS = Measures(
    protocol="levels",
    title="MultiCodeIF, levels: a constraint more at every level",
    series=(
        Series(HSR_FIXED, "HSR, same chains", help=_HSR_FIXED),
        Series("hsr", "HSR", help=_HSR),
        Series("ssr", "SSR", help=_SSR),
        Series("hsr_official", "HSR, official", help=_OFFICIAL),
        Series("ssr_official", "SSR, official", help=_OFFICIAL),
        Series("undecided_levels", "Undecided", higher_is_better=False,
               help="tasks of which it is undecided whether all is met, of all"),
    ),
    finals=(
        Final(f"avg_{HSR_FIXED}", "HSR, mean, same chains", help=f"{_HSR_FIXED}; unweighted mean over the levels"),
        Final("avg_hsr", "HSR, mean", help=f"{_HSR}; unweighted mean over the levels"),
        Final("avg_ssr", "SSR, mean", help=f"{_SSR}; unweighted mean over the levels"),
        Final("avg_hsr_official", "HSR, mean, official", help=_OFFICIAL),
        Final("avg_ssr_official", "SSR, mean, official", help=_OFFICIAL),
        Final("parses", "Code parses", help="turns whose code parses in the task's language, where known"),
        Final("undecided", "Undecided", higher_is_better=False, help="undecided turns, of all; in no rate"),
        Final(*UNDECIDED_DECISIONS, higher_is_better=False, help="undecided constraints of all turns"),
    ),
    breakdowns=_breakdowns(
        "turns",
        ("accuracy", "Constraints met", "the group's constraints that are met, at all levels; by language, tasks"),
        ("official", "Constraints met, official", _OFFICIAL),
        ("undecided", "Undecided", "constraints of the group that are undecided; by language, turns"),
    ),
    passed="the code meets all constraints so far",
)  # fmt: skip


@dataclass
class _LevelSums(CellSums):
    groups: Groups = field(default_factory=Groups)
    turns: list[Tally] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    whole: Tally = field(default_factory=Tally)
    chains: list[tuple[str, dict[int, bool | None]]] = field(default_factory=list)

    def count(self, session: SessionRecord) -> None:
        self.chains.append((session.task_id, {turn.turn: turn.passed for turn in session.turns}))
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
        series[HSR_FIXED] = self._fixed()
        fixed_and_all = (HSR_FIXED, *SATISFIED)
        return {
            **{name: [*map(value, series[name])] for name in fixed_and_all},
            "undecided_levels": [*map(value, series["undecided"])],
            **{name: value(self.whole[name]) for name in ("parses", "undecided", "undecided_decisions")},
            **self.groups.values(LEVELS.breakdowns, value),
            **{f"avg_{name}": value(Mean(series[name])) for name in fixed_and_all},
        }

    def _fixed(self) -> list[TaskRatio]:
        """By level, the chains shown to meet all, of the chains with every level and a decided first."""
        figures = [TaskRatio() for _ in self.turns]
        for task, states in self.chains:
            if len(states) == len(figures) and states.get(0) is not None:
                for level, figure in enumerate(figures):
                    figure.count(task, states[level] is True)
        return figures


def levels_metrics(sessions: Iterable[SessionRecord], *, seed: int, effort: Effort | None = None) -> dict[str, Any]:
    """The content of metrics.json, as `LEVELS` says, with the names of the levels."""
    sums = _LevelSums()
    return sums.content(sessions, seed, effort) | {"levels": sums.names}


WITHOUT = "ifrepair_without_leaks"
BY_CATEGORY = "ifrepair_by_category"
"""Where metrics.json has IFRepair by category: for each a value after every round."""

FIXED = "ifrepair_fixed"
"""IFRepair over one set of tasks: an undecided task leaves `ifrepair`, which rises if tasks that fail become undecided.
The other figures after repairs are of this set too."""

_AFTER = "tasks with all constraints met after at most k repairs (rejudged: at round k), of those decided"
_AFTER_FIXED = (
    "tasks shown to have all constraints met after at most k repairs (rejudged: at round k), of those decided at the "
    "first reply: what is undecided later is not shown"
)
_NO_LEAK = "the same without code quality, scenario, code context and exemplar, whose answer is a whole solution"
# The metrics of first replies, by their names in a tally.
_FIRST = {"accuracy": "hsr", "ssr": "ssr", "hsr": "hsr", "guarded": "hsr_guarded", "official": "hsr_official"}
_FIRST |= {name: name for name in ("parses", "undecided", "undecided_decisions")}

REPAIR = Measures(
    protocol="repair",
    title="MultiCodeIF, self-repair: unmet constraints are named",
    series=(
        Series(FIXED, "IFRepair@k, same tasks", help=_AFTER_FIXED),
        Series("ifrepair", "IFRepair@k", help=_AFTER),
        Series(WITHOUT, "IFRepair@k without leaks", help=_NO_LEAK),
        Series("gains", "Gain", first_turn=1, unit="percent",
               help="IFRepair@k less IFRepair@k-1 in points, of the same tasks"),
        Series("gains_without_leaks", "Gain without leaks", first_turn=1, unit="percent", help=_NO_LEAK),
        Series("undecided_rounds", "Undecided", higher_is_better=False,
               help="tasks of which it is undecided whether all is met, of all"),
    ),
    finals=(
        Final("accuracy", "Accuracy", help="tasks whose first reply meets all constraints, of those decided"),
        Final("ifrepair_end", "IFRepair, end", help=f"{_AFTER_FIXED}; k is the last round"),
        Final("ifrepair_end_without_leaks", "IFRepair, end, without leaks", help=_NO_LEAK),
        Final("ssr", "SSR", help="constraints that first replies meet, of those decided"),
        Final("hsr", "HSR", help="tasks with all constraints met, of first replies: the accuracy"),
        Final("guarded", "Accuracy, guarded", help="the accuracy under protocol.harness=guarded"),
        Final("official", "Accuracy, official", help="the accuracy under protocol.harness=official"),
        Final("parses", "Code parses", help="first replies whose code parses in the task's language, where known"),
        Final("undecided", "Undecided", higher_is_better=False, help="tasks undecided at the first reply; in no rate"),
        Final(*UNDECIDED_DECISIONS, higher_is_better=False, help="constraints undecided at the first reply"),
    ),
    breakdowns=_breakdowns(
        "first replies",
        ("accuracy", "Accuracy", "first replies: share of the group's constraints that are met; by language, tasks"),
        ("guarded", "Accuracy, guarded", "the same under protocol.harness=guarded"),
        ("official", "Accuracy, official", _OFFICIAL),
        ("ifrepair", "IFRepair, end", "tasks of the group shown to have all constraints met after the last round"),
        ("undecided", "Undecided", "first replies: constraints of the group that are undecided; by language, tasks"),
    ),
    passed="the code meets all constraints of the task",
)  # fmt: skip


@dataclass
class _Rounds:
    """After every round: the tasks that meet all of those decided, and of those decided at the first reply; the gain
    of the round; the undecided tasks."""

    met: list[TaskRatio]
    fixed: list[TaskRatio]
    gains: list[TaskRatio]
    undecided: list[TaskRatio]

    @classmethod
    def of(cls, rounds: int) -> "_Rounds":
        return cls(*([TaskRatio() for _ in range(count)] for count in (rounds + 1, rounds + 1, rounds, rounds + 1)))

    def count(self, task: str, states: Sequence[bool | None]) -> None:
        for place, state in enumerate(states):
            self.undecided[place].count(task, state is None)
            if state is not None:
                self.met[place].count(task, state)
            if states[0] is not None:
                self.fixed[place].count(task, state is True)
                if place:
                    self.gains[place - 1].count(task, 100 * ((state is True) - (states[place - 1] is True)))


@dataclass
class _RepairSums(CellSums):
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
        for name in categories:
            self.categories.setdefault(name, _Rounds.of(self.rounds)).count(task, states)
        for rounds in (self.all, *([] if own.leaks else [self.sealed])):
            rounds.count(task, states)
        if states[0] is not None:
            groups = {group for constraint in own.constraints for group in groups_of(constraint)}
            for by, name in sorted({*groups, ("language", session.language or NO_LANGUAGE)}):
                self.groups.at(by, name).count(task, {"ifrepair": (states[-1] is True, 1)})

    def values(self, value: Value) -> dict[str, Any]:
        return {
            **{name: value(self.first[source]) for name, source in _FIRST.items()},
            FIXED: [*map(value, self.all.fixed)],
            "ifrepair": [*map(value, self.all.met)],
            WITHOUT: [*map(value, self.sealed.fixed)],
            "gains": [*map(value, self.all.gains)],
            "gains_without_leaks": [*map(value, self.sealed.gains)],
            "undecided_rounds": [*map(value, self.all.undecided)],
            "ifrepair_end": value(self.all.fixed[-1]),
            "ifrepair_end_without_leaks": value(self.sealed.fixed[-1]),
            **self.groups.values(REPAIR.breakdowns, value),
            BY_CATEGORY: {
                name: [*map(value, rounds.fixed)]
                for name, rounds in sorted(self.categories.items())
                if not is_open(self.groups.at("category", name)["undecided"])
            },
        }


def states_of(passed: Sequence[bool | None], rounds: int, *, rejudge: bool) -> list[bool | None]:
    """Whether all is met after 0, 1, … `rounds` repairs, None if undecided: from the verdicts of a session's turns.

    A session that has ended keeps its state. A met task stays met, unless replies are judged again.
    """
    states: list[bool | None] = []
    for place in range(rounds + 1):
        stays = not rejudge and bool(states) and states[-1]
        states.append(True if stays else passed[min(place, len(passed) - 1)])
    return states


def repair_metrics(
    sessions: Iterable[SessionRecord], *, rounds: int, rejudge: bool, seed: int, effort: Effort | None = None
) -> dict[str, Any]:
    """The content of metrics.json, as `REPAIR` says.

    `rounds` is how many repairs a session may have; `rejudge`: met replies were judged again at every round.
    """
    return _RepairSums(rounds=rounds, rejudge=rejudge).content(sessions, seed, effort)
