"""What first replies keep by category, and the means over models of one setup."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from codechat.base.records import SessionRecord
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts, resamples_of
from codechat.report.data import Interval
from codechat.report.generic.overview import rivals_of
from codechat.report.metrics.statistics import TaskRatio, mean_of, percentile_interval
from codechat.report.metrics.sums import Tally
from codechat.studies.multicodeif.chapter.published import Weights, paper
from codechat.studies.multicodeif.constraints import constraint_types
from codechat.studies.multicodeif.metrics import ConstrainedTurn, is_open, turn_parts

ALL = "all tasks"
"""In place of a category's name: every task counts alike."""
FEWEST = 2  # models that make a mean
REPAIRS = (
    "protocol.rounds", "protocol.context", "protocol.feedback", "protocol.rejudge", "protocol.prompts.repair",
    "protocol.prompts.followup",
)  # fmt: skip
"""The options of repairs, which no first reply depends on."""


@dataclass
class Kept(SessionVerdicts):
    """A cell's sessions, and which constraints their first replies keep: by category, and of `ALL` tasks."""

    first: Tally = field(default_factory=Tally)
    undecided: Tally = field(default_factory=Tally)

    def kept(self, category: str) -> TaskRatio:
        """The constraints of a category that are kept, of those decided; nothing if almost all are undecided."""
        return TaskRatio() if is_open(self.undecided[category]) else self.first[category]

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        own = ConstrainedTurn.of(session.turns[0])
        for each in own.constraints:  # of an undecided one that there is such a category
            self.first.count(session.task_id, {each.category: (bool(each.met), int(each.met is not None))})
            self.undecided.count(session.task_id, {each.category: (each.met is None, 1)})
        parts = turn_parts(session.turns[0], own)
        self.first.count(session.task_id, {ALL: parts["hsr"]} if "hsr" in parts else {})


@dataclass(frozen=True)
class Mean:
    """An unweighted mean over models with its interval, their lowest and highest rate, and how many they are."""

    value: float
    ends: Interval | None
    least: float
    most: float
    models: int


@dataclass(frozen=True)
class Models:
    """The cells of several models on one dataset under one setup; `setting` tells it in words if there are others."""

    dataset: str
    setting: str
    cells: Sequence[Kept]

    @property
    def categories(self) -> list[str]:
        """The categories that any of them has, the paper's first, in its order."""
        return categories_of(self.cells)

    def of(self, weights: Weights) -> list[Kept]:
        """The models whose weights are open, or closed, by their names."""
        return [found for found in self.cells if paper().weights_of(found.cell.model) == weights]

    def mean(self, category: str, cells: Sequence[Kept]) -> Mean | None:
        """The mean of some of the models on a category; None if none of them has a decided task of it."""
        figures = [found.kept(category) for found in cells]
        known = [figure.rate for figure in figures if figure.rate is not None]
        if not known:
            return None
        tasks = tuple(sorted({task for found in self.cells for task in found.tasks}))
        drawn = zip(*(resamples_of(tasks, self.dataset).ratios(figure) for figure in figures), strict=True)
        ends = Interval.of(percentile_interval(mean_of(values) for values in drawn))
        return Mean(fmean(known), ends, min(known), max(known), len(known))


def models_of(comparison: Comparison[Any]) -> Iterator[Models]:
    """For every dataset the setup of the most models, if several. Baselines count if there is nothing else.

    Of cells that differ in their repairs alone, which no first reply depends on, a model's first counts.
    """
    for dataset in comparison.datasets:
        rivals = {cell.folder for cell in rivals_of([found.cell for found in comparison.on(dataset)])}
        setups: dict[str, dict[str, Kept]] = defaultdict(dict)
        for found in comparison.on(dataset):
            if found.cell.folder in rivals:
                setups[_before_repairs(found.cell)].setdefault(_entrant(found.cell), found)
        largest = [*max(setups.values(), key=len).values()]
        if len(largest) >= FEWEST:
            told = (words for key, words in largest[0].cell.differences.items() if not key.startswith(REPAIRS))
            yield Models(dataset, ", ".join(told) if len(setups) > 1 else "", largest)


def _before_repairs(cell: LoadedCell) -> str:
    """All that can change a first reply or its verdict, but the model."""
    settings = json.loads(cell.setup or "{}").items()
    return json.dumps([each for each in settings if not each[0].startswith(REPAIRS)])


def _entrant(cell: LoadedCell) -> str:
    return json.dumps([cell.model, cell.config.get("model")], sort_keys=True, default=str)


def categories_of(cells: Sequence[Kept]) -> list[str]:
    """The categories that any cell has, the paper's first, in its order."""
    found = {name for each in cells for name in each.first.figures if name != ALL}
    return [*(name for name in paper().categories if name in found), *sorted(found - {*paper().categories})]


def words(category: str) -> str:
    """A category, or a type, as a reader sees it."""
    return category.replace("_", " ")


def sizes_of(comparison: Comparison[Any], dataset: str) -> dict[str, dict[str, int]]:
    """By category and type the constraints of a dataset's tasks, as the cell that has most of them knows."""
    categories = {kind.name: kind.category for kind in constraint_types()}
    counted = [found.cell.metrics["n"]["by_type"]["undecided"] for found in comparison.on(dataset)]
    found: dict[str, dict[str, int]] = {}
    for name, size in max(counted, key=lambda each: sum(each.values()), default={}).items():
        found.setdefault(categories.get(name, "own"), {})[name] = size
    order = [*paper().categories]
    return dict(sorted(found.items(), key=lambda each: order.index(each[0]) if each[0] in order else len(order)))
