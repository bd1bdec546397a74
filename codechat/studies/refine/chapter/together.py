"""Several models as one: means over the models, and all their turns together (the paper's aggregates)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from codechat.metrics.statistics import Figure, TaskBootstrap, percent_change, percentile_interval
from codechat.report.data import Interval
from codechat.report.study import resamples_of
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy
from codechat.studies.refine.chapter.setups import setups_of

MEAN = "mean of all"  # in place of a dataset's name
FEWEST = 2  # models that make a mean
Pick = Callable[[Outcomes], Figure]
Measured = tuple[float | None, Interval | None]


class Draws(NamedTuple):
    """A value, and the same in every resample of the tasks."""

    value: float | None
    resampled: Sequence[float | None]

    @property
    def measured(self) -> Measured:
        """The value with its 95 % interval."""
        return self.value, None if self.value is None else Interval.of(percentile_interval(self.resampled))


def change(first: Draws, last: Draws) -> Draws:
    """The change from the first to the last in per cent of the first."""
    ends = zip(first.resampled, last.resampled, strict=True)
    return Draws(percent_change(first.value, last.value), [percent_change(*pair) for pair in ends])


@dataclass(frozen=True)
class Together:
    """The cells of several models under one setup, a cell for each model and dataset.

    `setting` says what sets the setup apart from the report's others. Intervals are resampled by task, the tasks of two
    datasets apart; all models of a dataset share a resample.
    """

    setting: str
    datasets: Sequence[str]
    models: Sequence[str]
    cells: Mapping[tuple[str, str], Outcomes]

    def on(self, dataset: str) -> list[Outcomes]:
        """The cells on a dataset, a model each; all cells for any other word."""
        return [found for (_, name), found in self.cells.items() if name == dataset or dataset not in self.datasets]

    def blocks(self, word: str) -> list[str]:
        """The datasets, and if there are several a word for all of them."""
        return [*self.datasets, *([word] if len(self.datasets) > 1 else [])]

    @property
    def noun(self) -> str:
        """How many are averaged over, in words."""
        kind = "baselines" if all(found.cell.is_baseline for found in self.cells.values()) else "models"
        return f"{len(self.models)} {kind}"

    @property
    def turns(self) -> int:
        """N, which all cells have."""
        return next(iter(self.cells.values())).cell.turns

    def mean(self, pick: Pick, name: str) -> Draws:
        """The mean of the models' rates on a dataset; for `MEAN`, the unweighted mean of the datasets' means.

        A model without a rate is left out of a dataset's mean. If a dataset has none, neither has `MEAN`.
        """
        if name == MEAN:
            means = [self.mean(pick, dataset) for dataset in self.datasets]
            rows = zip(*(each.resampled for each in means), strict=True)
            return Draws(_whole([each.value for each in means]), [_whole(row) for row in rows])
        figures = [pick(found) for found in self.on(name)]
        drawn = [self._resamples[name].ratios(figure) for figure in figures]
        return Draws(_mean([figure.rate for figure in figures]), [_mean(row) for row in zip(*drawn, strict=True)])

    def counted(self, pick: Pick, models: Sequence[str] = ()) -> Figure:
        """A figure over all turns on all datasets, of some models or of all."""
        whole = Figure()
        for (model, dataset), found in self.cells.items():
            if model in (models or self.models):
                for task, counts in pick(found).by_task.items():
                    whole.count(f"{dataset}\n{task}", *counts)
        return whole

    def pooled(self, pick: Pick, models: Sequence[str] = ()) -> Measured:
        """The rate over all turns on all datasets, of some models or of all, with its interval."""
        whole = self.counted(pick, models)
        return whole.rate, Interval.of(self._all_tasks.interval(whole))

    @cached_property
    def _resamples(self) -> Mapping[str, TaskBootstrap]:
        """By dataset, of all tasks that a model completed: the models' rates are resampled together."""
        tasks = {name: {task for found in self.on(name) for task in found.tasks} for name in self.datasets}
        return {name: resamples_of(tuple(sorted(found)), name) for name, found in tasks.items()}

    @cached_property
    def _all_tasks(self) -> TaskBootstrap:
        tasks = {f"{dataset}\n{task}" for (_, dataset), found in self.cells.items() for task in found.tasks}
        return resamples_of(tuple(sorted(tasks)), "\n".join(self.datasets))


def together(study: RefineStudy) -> list[Together]:
    """The setups of several models, that of the most models first."""
    found = {each.cell.folder: each for each in study.cells}
    setups = [setup for setup in setups_of([each.cell for each in study.cells]) if len(setup.cells) >= FEWEST]
    words = [setup.setting for setup in setups]
    return [
        Together(
            # setups that only their datasets tell apart, such as one judge for each
            setup.setting if words.count(setup.setting) == 1 else ", ".join([setup.setting, *setup.datasets]),
            setup.datasets, sorted(setup.cells),
            {(model, cell.dataset): found[cell.folder] for model, cells in setup.cells.items() for cell in cells},
        )
        for setup in setups
    ]  # fmt: skip


def sustained(found: Outcomes) -> Figure:
    """MST."""
    return found.figure(found.sustained)


def passing(found: Outcomes, turn: int) -> Figure:
    """Pass@1 at a turn, which counts from the end if it is negative."""
    figure = Figure()
    place = turn % found.cell.turns
    for task, verdicts in zip(found.tasks, found.passed, strict=True):
        for verdict in verdicts[place : place + 1]:
            if verdict is not None:
                figure.count(task, verdict)
    return figure


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _whole(values: Sequence[float | None]) -> float | None:
    return None if None in values else _mean(values)
