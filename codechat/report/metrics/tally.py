"""Figures counted by task: how many hits of how many, one figure for each measured name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codechat.report.metrics.statistics import TaskRatio

Part = tuple[int, int]

# Shares of several instructions are averaged over tasks in whole parts of this number, so that sums are exact: it is
# divisible by every number up to 20, and the rounding error of a part is below 1e-8.
WHOLE = 232_792_560


@dataclass
class Tally:
    """One figure for each measured name."""

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
        found: dict[str, list[TaskRatio]] = {}
        for tally in tallies:
            for name, figure in tally.figures.items():
                found.setdefault(name, []).append(figure)
        return cls({name: TaskRatio.union(figures) for name, figures in found.items()})


def size(figure: TaskRatio) -> int:
    """The number of tasks, turns or instructions behind a figure."""
    total = sum(total for _, total in figure.by_task.values())
    return total // WHOLE if total >= WHOLE and total % WHOLE == 0 else total
