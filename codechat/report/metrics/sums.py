"""A protocol's metrics.json as sums over a cell's sessions, counted by task in one pass."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from codechat.base.domain import OUTCOMES
from codechat.base.records import SessionRecord
from codechat.report.metrics.spending import Effort, Tokens, add_tokens, no_tokens, spending_of
from codechat.report.metrics.statistics import TaskBootstrap, TaskRatio, mean_of, percentile_interval

T = TypeVar("T")
Part = tuple[int, int]

# Shares of several instructions are averaged over tasks in whole parts of this number, so that sums are exact: it is
# divisible by every number up to 20, and the rounding error of a part is below 1e-8.
WHOLE = 232_792_560


@dataclass
class Tally:
    """One figure, hits out of a total by task, for each measured name."""

    figures: dict[str, TaskRatio] = field(default_factory=dict)

    def count(self, task_id: str, parts: Mapping[str, Part]) -> None:
        """Add the parts of one turn."""
        for name, (hits, total) in parts.items():
            self.figures.setdefault(name, TaskRatio()).count(task_id, hits, total)

    def __getitem__(self, name: str) -> TaskRatio:
        return self.figures.get(name, TaskRatio())

    @classmethod
    def union(cls, tallies: Iterable["Tally"]) -> "Tally":
        """The sum of several tallies."""
        every = list(tallies)
        names = dict.fromkeys(name for tally in every for name in tally.figures)
        return cls({name: TaskRatio.union(tally[name] for tally in every) for name in names})


def size(figure: TaskRatio) -> int:
    """The number of tasks, turns or instructions behind a figure."""
    total = sum(total for _, total in figure.by_task.values())
    return total // WHOLE if total >= WHOLE and total % WHOLE == 0 else total


@dataclass(frozen=True)
class Mean:
    """The unweighted mean of several figures; figures without a value are left out."""

    parts: Sequence[TaskRatio]


Value = Callable[[TaskRatio | Mean], Any]


@dataclass
class CellSums:
    """The sums that protocols share. A subclass adds figures, and gives their places in metrics.json."""

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
        """Count a session; an errored session is in no figure."""
        self.sessions += 1
        if session.status == "completed":
            self.tasks.append(session.task_id)
            add_tokens(self.tokens, session)
            self.outcomes.update(turn.outcome for turn in session.turns if turn.outcome is not None)
            self.count(session)

    def content(self, sessions: Iterable[SessionRecord], seed: int, effort: Effort | None) -> dict[str, Any]:
        """The content of metrics.json after these sessions, which are read once, in any order. Every figure has a rate,
        the count behind it (`n`) and a 95 % interval (`ci`)."""
        for session in sessions:
            self.add(session)
        bootstrap = TaskBootstrap(self.tasks, seed)

        def interval(figure: TaskRatio | Mean) -> list[float] | None:
            if isinstance(figure, Mean):
                ends = percentile_interval(map(mean_of, zip(*map(bootstrap.ratios, figure.parts), strict=True)))
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
    """The element at a place of a list, which is first filled with `new` elements up to there."""
    while len(found) <= place:
        found.append(new())
    return found[place]
