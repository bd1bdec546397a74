"""What a gate did: turns asked again, accepted and rolled back, and Pass@1 of first replies and of code that stands."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from codechat.base.domain import Usage
from codechat.base.records import GATE, UNDER_TEST, SessionRecord
from codechat.report.metrics.measures import Final, Measures, Series
from codechat.report.metrics.spending import Effort, Tokens, spending_of
from codechat.report.metrics.statistics import Interval, TaskBootstrap, TaskRatio

_FINALS = (
    Final("asked_again", "turns asked again", f"{GATE}.asked_again", "share", False,
          "answered turns whose first reply the gate refused"),
    Final("rolled_back", "turns rolled back", f"{GATE}.rolled_back", "share", False,
          "answered turns whose last try the gate refused, so that the code before stands"),
)  # fmt: skip
STANDING = Series(
    "standing", "standing code passes", f"{GATE}.standing",
    help="sessions whose code after the turn, or after a roll-back the code before, passes the whole test suite",
)  # fmt: skip
_SERIES = (
    STANDING,
    Series("without", "Pass@1, first replies", f"{GATE}.without",
           help="sessions whose first reply at the turn passes the whole test suite"),
)  # fmt: skip


def with_gate(measures: Measures) -> Measures:
    """The measures of a cell with a gate."""
    return replace(measures, series=(*measures.series, *_SERIES), finals=(*measures.finals, *_FINALS))


class GateIntervals(BaseModel):
    """95 % intervals of the figures of the same names."""

    asked_again: Interval | None
    rolled_back: Interval | None
    standing: list[Interval | None]
    without: list[Interval | None]


class GateMetrics(BaseModel):
    """The key `gate` of metrics.json: counts of turns, shares of answered turns, and shares of sessions by turn.

    `accepted` counts turns by the number of the further try that passed the gate; none of `given_up` did. `calls`
    counts replies to further tries.
    """

    model_config = ConfigDict(extra="forbid")

    turns: int
    calls: int
    accepted: dict[str, int]
    given_up: int
    asked_again: float | None
    rolled_back: float | None
    standing: list[float | None]
    without: list[float | None]


@dataclass
class GateSums:
    """Sums over completed sessions, by task."""

    accepted: Counter[int] = field(default_factory=Counter)
    turns: int = 0
    calls: int = 0
    asked_again: TaskRatio = field(default_factory=TaskRatio)
    rolled_back: TaskRatio = field(default_factory=TaskRatio)
    standing: dict[int, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))
    without: dict[int, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))

    def watching(self, sessions: Iterable[SessionRecord]) -> Iterator[SessionRecord]:
        """The sessions, each counted as it passes."""
        for session in sessions:
            if session.status == "completed":
                self._add(session)
            yield session

    def _add(self, session: SessionRecord) -> None:
        task, stands = session.task_id, False
        for turn in session.turns:
            gate = (turn.model_extra or {}).get(GATE) or {}
            tries = gate.get("tries", ())
            if not turn.rolled_back:
                stands = bool(turn.passed)
            self.standing[turn.turn].count(task, stands)
            self.without[turn.turn].count(task, bool(tries[0]["passed"] if tries else turn.passed))
            if session.has_answer(turn):
                self.asked_again.count(task, bool(gate))
                self.rolled_back.count(task, turn.rolled_back)
            if gate:
                self.turns += 1
                self.calls += len(tries) - 1
                self.accepted[len(tries) - 1 if gate["accepted"] else 0] += 1

    def metrics(self, bootstrap: TaskBootstrap, length: int) -> tuple[GateMetrics, GateIntervals]:
        """The figures of sessions of so many turns, with their intervals."""
        curves = [[figures[turn] for turn in range(length)] for figures in (self.standing, self.without)]
        standing, without = curves
        found = GateMetrics(
            turns=self.turns, calls=self.calls,
            accepted={str(number): self.accepted[number] for number in sorted(self.accepted) if number},
            given_up=self.accepted[0],
            asked_again=self.asked_again.rate, rolled_back=self.rolled_back.rate,
            standing=_rates(standing), without=_rates(without),
        )  # fmt: skip
        ends = GateIntervals(
            asked_again=bootstrap.interval(self.asked_again), rolled_back=bootstrap.interval(self.rolled_back),
            standing=[bootstrap.interval(figure) for figure in standing],
            without=[bootstrap.interval(figure) for figure in without],
        )  # fmt: skip
        return found, ends


def _rates(figures: Sequence[TaskRatio]) -> list[float | None]:
    return [figure.rate for figure in figures]


def spending_with_tries(tokens: Tokens, effort: Effort) -> dict[str, Any]:
    """`spending_of` of a cell with a gate: its further tries are priced as the model's replies."""
    tokens.setdefault(GATE, Usage())
    found, price = spending_of(tokens, effort), effort.tariff.price(UNDER_TEST)
    found["cost_usd"][GATE] = None if price is None else price.cost(tokens[GATE])
    return found
