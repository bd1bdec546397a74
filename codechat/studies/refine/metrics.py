"""The figures of the refinement protocol (paper III-F, V and VI; definitions in the table of metrics.json)."""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from codechat.base.domain import CHANGES, OUTCOMES, SCOPES, Outcome
from codechat.base.records import SessionRecord
from codechat.report.metrics import statistics
from codechat.report.metrics.measures import Breakdown, Final, Measures, Series
from codechat.report.metrics.outline import SessionOutline, TurnOutline, outlines_of, transitions
from codechat.report.metrics.spending import Costs, Effort, Tokens, spending_of
from codechat.report.metrics.statistics import Interval, PhiTable, TaskBootstrap, TaskRatio, Trend, percent_change
from codechat.report.metrics.sums import size
from codechat.studies.refine.agendas.learned import Learned
from codechat.studies.refine.gate_metrics import GateIntervals, GateMetrics, GateSums, spending_with_tries

_BY_NUMBER = ("adherence", "all_followed", "regression", "regression_by_pair")
_DECIDED = ("adhered", "violated")
_BREAKS = "follow-up turns that break the code, of those whose code before passed"
_MENDS = "follow-up turns that mend the code, of those whose code before failed"

REFINE = Measures(
    protocol="refine",
    title="CodeChat-Eval: functionality-preserving refinements",
    series=(
        Series("pass_at_1", "Pass@1", help="sessions whose code passes the whole test suite at the turn"),
        Series("iar", "adherence rate", first_turn=1, help="instructions followed at the turn, of those judged"),
    ),
    finals=(
        Final("mst", "Mean Sustainable Turns", unit="number", help="passing turns from turn 0 on, per session"),
        Final("delta_pct", "change of Pass@1 in %", unit="percent", help="first to last turn"),
        Final("regression", "regression rate", "regression.overall", "share", higher_is_better=False, help=_BREAKS),
        Final("self_correction", "self-correction rate", "self_correction.overall", help=_MENDS),
        Final("phi", "phi of passing and adherence", "phi.value", "number", None),
        Final("iar_delta_pct", "change of adherence in %", unit="percent", help="first to last judged turn"),
        Final("mk_p", "p of the trend of Pass@1", "mann_kendall.pass_at_1.p", "p", None),
        Final("mk_p_iar", "p of the trend of adherence", "mann_kendall.iar.p", "p", None),
    ),
    breakdowns=(
        Breakdown("mst_at", "MST, truncated", "turns", "mst_at", "number"),
        *(
            Breakdown(key, label, by, f"{key}.by_{by}", "share", better, meaning)
            for key, label, better, meaning in (
                ("regression", "regression rate", False, _BREAKS),
                ("self_correction", "self-correction rate", True, _MENDS),
            )
            for by in ("scope", "change", "cell")
        ),
    ),
    counts=(
        Final("skipped_turns", "Skipped turns", unit="count", higher_is_better=None,
              help="no instruction applied; they count for Pass@1 and MST alone"),
        Final("undecided", "Undecided", unit="count", higher_is_better=None,
              help="no readable verdict on adherence; left out of adherence and Phi"),
        Final("undecided_applicability", "Undecided applicability", unit="count", higher_is_better=None,
              help="nobody could decide; counts as not applicable"),
    ),
    passed="the code passes the whole test suite",
)  # fmt: skip


T = TypeVar("T")
U = TypeVar("U")


@dataclass
class ByType(Generic[T]):
    """One value over all follow-up turns, and one per scope, change and `scope/change`."""

    overall: T
    by_scope: dict[str, T]
    by_change: dict[str, T]
    by_cell: dict[str, T]

    @classmethod
    def create(cls, new: Callable[[], T]) -> "ByType[T]":
        """A new value in every place."""
        cells = [f"{scope}/{change}" for scope in SCOPES for change in CHANGES]
        return cls(new(), {s: new() for s in SCOPES}, {c: new() for c in CHANGES}, {c: new() for c in cells})

    def map(self, function: Callable[[T], U]) -> "ByType[U]":
        """The function of every value."""
        parts = (self.by_scope, self.by_change, self.by_cell)
        return ByType(
            function(self.overall), *({key: function(value) for key, value in part.items()} for part in parts)
        )

    def items(self) -> Iterator[tuple[str, T]]:
        """Every value with its place, such as `overall` or `by_scope.cosmetic`."""
        yield "overall", self.overall
        for name in ("by_scope", "by_change", "by_cell"):
            yield from ((f"{name}.{key}", value) for key, value in getattr(self, name).items())

    def of(self, kind: str | None) -> Iterator[T]:
        """The values to which a turn of this `scope/change` belongs; an empty part belongs to none."""
        yield self.overall
        scope, _, change = (kind or "").partition("/")
        parts = ((self.by_scope, scope), (self.by_change, change), (self.by_cell, kind))
        yield from (part[name] for part, name in parts if name in part)


class Trends(BaseModel):
    pass_at_1: Trend | None
    iar: Trend | None


class Intervals(BaseModel):
    """95 % intervals of the figures of the same names."""

    mst: Interval | None
    delta_pct: Interval | None
    pass_at_1: list[Interval | None]
    regression: ByType[Interval | None]
    gate: GateIntervals | None = Field(None, exclude_if=operator.not_)


class Counted(BaseModel):
    """A share with its counts and its 95 % interval, resampled by task."""

    value: float | None
    hits: int
    n: int
    ci: Interval | None


class CompositeMetrics(BaseModel):
    """Turns by the number of instructions in their request, as a text.

    `adherence` is of the instructions, `all_followed` of the turns; `regression` is as for all turns. A turn counts in
    `regression_by_pair` once for each pair of scopes among its instructions, such as `cosmetic+semantic`. `conflicts`
    counts applicable candidates that were not asked since they contradict another instruction, by what decided, or as
    `undecided`.
    """

    turns: dict[str, int]
    adherence: dict[str, Counted]
    all_followed: dict[str, Counted]
    regression: dict[str, Counted]
    regression_by_pair: dict[str, Counted]
    conflicts: dict[str, int]


class Sizes(BaseModel):
    """The numbers of sessions behind figures by turn."""

    pass_at_1: list[int]


class RefineMetrics(BaseModel):
    """The content of metrics.json, in its order. A value is None if it could not be computed.

    `learned` and `n` are there if the agenda was learned from dialogues, whose lengths differ.
    """

    model_config = ConfigDict(extra="forbid")

    sessions: int
    completed: int
    errored: int
    skipped_turns: int
    undecided: int
    undecided_applicability: int
    without_code: int = 0
    skipped_unparsable: int = Field(0, exclude_if=operator.not_)
    outcomes: dict[Outcome, int]
    retries: int
    rate_limited: int = 0
    cached_replies: int = 0
    pass_at_1: list[float | None]
    iar: list[float | None]
    mst: float | None
    mst_at: dict[str, float | None]
    delta_pct: float | None
    iar_delta_pct: float | None
    mann_kendall: Trends
    regression: ByType[float | None]
    self_correction: ByType[float | None]
    phi: PhiTable
    gate: GateMetrics | None = Field(None, exclude_if=operator.not_)
    ci: Intervals
    composite: CompositeMetrics | None = Field(None, exclude_if=operator.not_)
    learned: Learned | None = Field(None, exclude_if=operator.not_)
    n: Sizes | None = Field(None, exclude_if=operator.not_)
    tokens: Tokens
    cost_usd: Costs
    spent_usd: Costs = {}
    wall_s: float


def refine_metrics(
    sessions: Iterable[SessionRecord],
    *,
    seed: int,
    effort: Effort | None = None,
    gated: bool = False,
    learned: Learned | None = None,
    uneven: bool = False,
) -> dict[str, Any]:
    """The content of metrics.json, in the shape of `RefineMetrics`; `seed` seeds the resampling.

    A cell with a gate is `gated`. `learned`: what the agendas were drawn from, if from dialogues. `uneven`: sessions
    differ in length by design.
    """
    gate = GateSums() if gated else None
    seen = outlines_of(gate.watching(sessions) if gate else sessions)
    done, length = seen.completed, seen.length
    passes = [_share(done, turn, lambda scored: scored.passed) for turn in range(length)]
    pass_at_1 = [figure.rate for figure in passes]
    iar = [_share(done, turn, lambda judged: judged.adhered).rate for turn in range(1, length)]
    regression = _transitions(done, from_passed=True)
    caps = sorted({*range(2, length + 1, 2), *([length] if length else [])})  # even numbers of turns, and all
    bootstrap = TaskBootstrap((session.task_id for session in done), seed)
    of_gate, gate_ends = gate.metrics(bootstrap, length) if gate else (None, None)
    spending = spending_with_tries if gate else spending_of
    judged = Counter((turn.passed, turn.adhered) for session in done for turn in session.turns[1:])
    metrics = RefineMetrics(
        sessions=seen.sessions, completed=len(done), errored=seen.sessions - len(done),
        skipped_turns=seen.skipped_turns, skipped_unparsable=seen.skipped_unparsable,
        without_code=seen.without_code, undecided=seen.undecided,
        undecided_applicability=seen.undecided_applicability,
        outcomes={outcome: seen.count(outcome) for outcome in OUTCOMES},
        pass_at_1=pass_at_1, iar=iar, mst=_sustained(done, length).rate,
        mst_at={str(cap): _sustained(done, cap).rate for cap in caps},
        delta_pct=_change(pass_at_1), iar_delta_pct=_change(iar),
        mann_kendall=Trends(pass_at_1=statistics.mann_kendall(pass_at_1), iar=statistics.mann_kendall(iar)),
        regression=regression.map(lambda figure: figure.rate),
        self_correction=_transitions(done, from_passed=False).map(lambda figure: figure.rate),
        phi=statistics.phi(*(judged[code, adhered] for code in (True, False) for adhered in (True, False))),
        gate=of_gate,
        ci=_intervals(bootstrap, _sustained(done, length), passes, regression, gate_ends),
        composite=_composite(done, bootstrap, seen.conflicts),
        learned=learned, n=Sizes(pass_at_1=[size(figure) for figure in passes]) if uneven else None,
        **spending(seen.tokens, effort or Effort()),
    )  # fmt: skip
    return metrics.model_dump(mode="json")


def _change(series: Sequence[float | None]) -> float | None:
    return percent_change(series[0], series[-1]) if series else None


def _share(sessions: Sequence[SessionOutline], turn: int, verdict: Callable[[TurnOutline], bool | None]) -> TaskRatio:
    """Sessions with a positive verdict at a turn, among sessions with a verdict there."""
    figure = TaskRatio()
    for session in sessions:
        for met in map(verdict, session.turns[turn : turn + 1]):
            if met is not None:
                figure.count(session.task_id, met)
    return figure


def _sustained(sessions: Sequence[SessionOutline], cap: int) -> TaskRatio:
    """The passing turns from turn 0 on, at most `cap`, per session."""
    figure = TaskRatio()
    for session in sessions:
        figure.count(session.task_id, statistics.sustained(turn.passed for turn in session.turns[:cap]))
    return figure


def _transitions(sessions: Sequence[SessionOutline], *, from_passed: bool) -> ByType[TaskRatio]:
    """Follow-up turns that changed the verdict, among those whose code before had passed (or failed)."""
    figures = ByType.create(TaskRatio)
    for session in sessions:
        for before, turn in transitions(session.turns):
            if before.passed is from_passed and turn.passed is not None and turn.answered:
                for figure in figures.of(turn.kind):
                    figure.count(session.task_id, turn.passed is not from_passed)
    return figures


def _composite(
    sessions: Sequence[SessionOutline], bootstrap: TaskBootstrap, conflicts: Mapping[str, int]
) -> CompositeMetrics | None:
    """The figures of requests with several instructions; None without such a request."""
    if not any(turn.asked for session in sessions for turn in session.turns):
        return None
    turns: Counter[str] = Counter()
    figures: dict[str, dict[str, TaskRatio]] = {name: {} for name in _BY_NUMBER}
    for session in sessions:
        for before, turn in transitions(session.turns):
            if turn.answered and turn.kind is not None:
                turns[str(len(turn.asked) or 1)] += 1
                for name, key, met in _counts(before, turn):
                    figures[name].setdefault(key, TaskRatio()).count(session.task_id, met)
    shown = {name: {key: _counted(of[key], bootstrap) for key in sorted(of)} for name, of in figures.items()}
    return CompositeMetrics(
        turns={key: turns[key] for key in sorted(turns)},
        conflicts={key: conflicts[key] for key in sorted(conflicts)},
        **shown,
    )


def _counts(before: TurnOutline, turn: TurnOutline) -> Iterator[tuple[str, str, bool]]:
    """The figures in which a turn counts, each with its key and whether the turn is a hit."""
    number = str(len(turn.asked) or 1)
    verdicts = [verdict for _, verdict in turn.asked] or [turn.verdict]
    yield from (("adherence", number, verdict == "adhered") for verdict in verdicts if verdict in _DECIDED)
    if turn.adhered is not None:
        yield "all_followed", number, turn.adhered
    if before.passed and turn.passed is not None:
        yield "regression", number, not turn.passed
        scopes = sorted((kind.partition("/")[0] for kind, _ in turn.asked), key=SCOPES.index)
        for pair in dict.fromkeys(combinations(scopes, 2)):
            yield "regression_by_pair", "+".join(pair), not turn.passed


def _counted(figure: TaskRatio, bootstrap: TaskBootstrap) -> Counted:
    hits, total = (sum(counts) for counts in zip(*figure.by_task.values(), strict=True))
    return Counted(value=figure.rate, hits=hits, n=total, ci=bootstrap.interval(figure))


def _intervals(
    bootstrap: TaskBootstrap,
    mst: TaskRatio,
    passes: Sequence[TaskRatio],
    regression: ByType[TaskRatio],
    gate: GateIntervals | None,
) -> Intervals:
    deltas: list[float | None] = []
    if passes:
        ends = zip(bootstrap.ratios(passes[0]), bootstrap.ratios(passes[-1]), strict=True)
        deltas = [percent_change(first, last) for first, last in ends]
    return Intervals(
        mst=bootstrap.interval(mst),
        delta_pct=statistics.percentile_interval(deltas),
        pass_at_1=[bootstrap.interval(figure) for figure in passes],
        regression=regression.map(bootstrap.interval),
        gate=gate,
    )
