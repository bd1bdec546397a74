"""A protocol's metrics.json as sums over a cell's sessions, made in one pass."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from codechat.base.domain import OUTCOMES
from codechat.base.records import SessionRecord
from codechat.report.metrics.spending import Effort, Tokens, add_tokens, no_tokens, spending_of
from codechat.report.metrics.statistics import TaskBootstrap, TaskRatio, mean_of, percentile_interval
from codechat.report.metrics.tally import size

T = TypeVar("T")


@dataclass(frozen=True)
class Mean:
    """The unweighted mean of several figures, those without a value left out."""

    parts: Sequence[TaskRatio]


Value = Callable[[TaskRatio | Mean], Any]


@dataclass
class CellSums:
    """The sums that protocols share; a subclass adds figures, and gives their places in metrics.json."""

    sessions: int = 0
    tasks: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    tokens: Tokens = field(default_factory=no_tokens)

    def count(self, session: SessionRecord) -> None:
        """Add a completed session to the figures."""

    def values(self, value: Value) -> dict[str, Any]:
        """The value of every figure at its place in metrics.json."""
        return {}

    def add(self, session: SessionRecord) -> None:
        """Count a session; an errored one is in no figure."""
        self.sessions += 1
        if session.status == "completed":
            self.tasks.append(session.task_id)
            add_tokens(self.tokens, session)
            self.outcomes.update(turn.outcome for turn in session.turns if turn.outcome is not None)
            self.count(session)

    def content(self, sessions: Iterable[SessionRecord], seed: int, effort: Effort | None) -> dict[str, Any]:
        """The content of metrics.json after these sessions, which are read once, in any order.

        Beside every figure's rate there are the count behind it (`n`) and the 95 % interval (`ci`).
        """
        for session in sessions:
            self.add(session)
        bootstrap = TaskBootstrap(self.tasks, seed)

        def interval(figure: TaskRatio | Mean) -> list[float] | None:
            if isinstance(figure, Mean):
                drawn = zip(*map(bootstrap.ratios, figure.parts), strict=True)
                ends = percentile_interval(map(mean_of, drawn))
            else:
                ends = bootstrap.interval(figure)
            return None if ends is None else list(ends)

        return {
            "sessions": self.sessions,
            "completed": len(self.tasks),
            "errored": self.sessions - len(self.tasks),
            "outcomes": {outcome: self.outcomes[outcome] for outcome in OUTCOMES},
            **self.values(lambda each: mean_of(p.rate for p in each.parts) if isinstance(each, Mean) else each.rate),
            "n": self.values(lambda each: sum(map(size, each.parts)) if isinstance(each, Mean) else size(each)),
            "ci": self.values(interval),
            **spending_of(self.tokens, effort or Effort()),
        }


def at(found: list[T], place: int, new: Callable[[], T]) -> T:
    """The element at a place of a list, which is filled with `new` ones up to there."""
    while len(found) <= place:
        found.append(new())
    return found[place]
