"""The refinement's cells as its tables and figures need them: their sessions' outcomes, and several models as one."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from codechat.base.records import InstructionRecord, SessionRecord, TurnRecord
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts, resamples_of
from codechat.report.data import Interval
from codechat.report.generic.overview import rivals_of
from codechat.report.metrics import Final, statistics
from codechat.report.metrics.measures import interval_of, value_of
from codechat.report.metrics.powered import NO_CODE
from codechat.report.metrics.statistics import TaskBootstrap, TaskRatio, mean_of, mean_of_all, percent_change, sustained
from codechat.studies.refine.metrics import ByType


@dataclass
class Breaking:
    """How often an instruction met code that passed, and how often it broke it."""

    instruction: InstructionRecord
    met: int = 0
    broke: int = 0


@dataclass
class Outcomes(SessionVerdicts):
    """One cell's completed sessions; `regression_at` and `adherence_at` hold a figure a turn, from turn 1 on.

    `judged` holds by scope the changes judged adhered, of all judged ones.
    `languages` are the languages of the code.
    """

    regression: ByType[TaskRatio] = field(default_factory=lambda: ByType.create(TaskRatio))
    self_correction: ByType[TaskRatio] = field(default_factory=lambda: ByType.create(TaskRatio))
    regression_at: dict[int, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))
    adherence_at: dict[int, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))
    adherence: TaskRatio = field(default_factory=TaskRatio)
    judged: dict[str, TaskRatio] = field(default_factory=lambda: defaultdict(TaskRatio))
    instructions: dict[str, Breaking] = field(default_factory=dict)
    languages: set[str] = field(default_factory=set)

    @property
    def sustained(self) -> list[int]:
        """Per session, the passing turns from turn 0 on."""
        return [sustained(verdicts) for verdicts in self.passed]

    def figure(self, values: Sequence[int]) -> TaskRatio:
        """A mean over sessions, kept apart by task. `values` holds one number a session."""
        figure = TaskRatio()
        for task, value in zip(self.tasks, values, strict=True):
            figure.count(task, value)
        return figure

    def surviving(self, turn: int) -> TaskRatio:
        """Sessions that have passed at every turn up to this one."""
        return self.figure([length > turn for length in self.sustained])

    def measured(self, place: str) -> "Measured":
        """A value of metrics.json with its interval; `place` joins its keys by dots."""
        measure = Final(place, "")
        return value_of(self.cell.metrics, measure), Interval.of(interval_of(self.cell.metrics, measure))

    def counted(self, figure: TaskRatio) -> "Measured":
        """The rate of one of the cell's figures with its 95 % interval, resampled by task."""
        return figure.rate, Interval.of(self.resamples.interval(figure))

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        self.languages.add(session.language)
        for before, turn in pairwise(session.turns):
            if session.has_answer(turn):
                self._add_transition(session.task_id, before, turn)
                if turn.adherence is not None and turn.adherence.verdict != "undecided":
                    scope = turn.instruction.scope if turn.instruction and turn.code is not None else NO_CODE
                    for figure in (self.adherence, self.adherence_at[turn.turn], self.judged[scope]):
                        figure.count(session.task_id, turn.adherence.verdict == "adhered")

    def _add_transition(self, task: str, before: TurnRecord, turn: TurnRecord) -> None:
        if before.passed is None or turn.passed is None:
            return
        figures = self.regression if before.passed else self.self_correction
        asked = turn.instruction
        for figure in figures.of(f"{asked.scope}/{asked.change}" if asked else None):
            figure.count(task, turn.passed is not before.passed)
        if before.passed:
            self.regression_at[turn.turn].count(task, not turn.passed)
            if asked is not None:
                breaking = self.instructions.setdefault(asked.id, Breaking(asked))
                breaking.met += 1
                breaking.broke += not turn.passed


RefineComparison = Comparison[Outcomes]


@dataclass(frozen=True)
class Setup:
    """Cells of one setup by model; every model has one cell on each of the datasets. `setting` describes the setup."""

    setting: str
    datasets: Sequence[str]
    cells: Mapping[str, Sequence[LoadedCell]]


def setups_of(cells: Sequence[LoadedCell]) -> list[Setup]:
    """The setups, most models first. Baselines count only if there is nothing else.

    A setup has those datasets that leave the most cells; models that lack one of them are left out, since a mean over
    other tasks says nothing. Of different choices of a dataset's tasks, and of different tasks of one name, only those
    that most cells have count.
    """
    found: dict[Hashable, list[LoadedCell]] = {}
    for cell in rivals_of(cells):
        if cell.metrics.get("mst") is not None:
            found.setdefault((cell.variant, cell.agenda, cell.turns, cell.setup), []).append(cell)
    setups = [_setup(_alike(members)) for members in found.values()]
    return sorted(setups, key=lambda setup: -len(setup.cells))


def _alike(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells with the choice of tasks that most cells of a dataset have."""
    if any(cell.mark for cell in cells):  # different tasks of one name have no mean
        names = [cell.dataset for cell in cells]
        common = max(sorted(set(names)), key=names.count)
        cells = [cell for cell in cells if cell.dataset == common]
    chosen = {}
    for name in {cell.dataset for cell in cells}:
        selections = [_selection(cell) for cell in cells if cell.dataset == name]
        chosen[name] = max(selections, key=selections.count)
    return [cell for cell in cells if _selection(cell) == chosen[cell.dataset]]


def _selection(cell: LoadedCell) -> str:
    options = cell.config.get("dataset") or {}
    return json.dumps([options.get("limit"), options.get("tasks")])


def _setup(cells: Sequence[LoadedCell]) -> Setup:
    models: dict[str, list[LoadedCell]] = {}
    for cell in cells:
        models.setdefault(cell.model, []).append(cell)
    had = {model: frozenset(cell.dataset for cell in found) for model, found in models.items()}
    left = {names: len(names) * sum(each >= names for each in had.values()) for names in had.values()}
    datasets = max(left, key=lambda names: (left[names], len(names)))
    whole = {model: [cell for cell in found if cell.dataset in datasets]
             for model, found in models.items() if had[model] >= datasets}  # fmt: skip
    return Setup(cells[0].setting, sorted(datasets), whole)


MEAN = "mean of all"  # in place of a dataset's name
FEWEST = 2  # models that make a mean
Pick = Callable[[Outcomes], TaskRatio]
Measured = tuple[float | None, Interval | None]


class Draws(NamedTuple):
    """A value, and the same in every resample of the tasks."""

    value: float | None
    resampled: Sequence[float | None]

    @property
    def measured(self) -> Measured:
        """The value with its 95 % interval."""
        return self.value, None if self.value is None else Interval.of(statistics.percentile_interval(self.resampled))


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
            return Draws(mean_of_all([each.value for each in means]), [mean_of_all(row) for row in rows])
        figures = [pick(found) for found in self.on(name)]
        drawn = [self._resamples[name].ratios(figure) for figure in figures]
        return Draws(mean_of([figure.rate for figure in figures]), [mean_of(row) for row in zip(*drawn, strict=True)])

    def counted(self, pick: Pick, models: Sequence[str] = ()) -> TaskRatio:
        """A figure over all turns on all datasets, of some models or of all."""
        whole = TaskRatio()
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
        tasks = {name: {task for found in self.on(name) for task in found.tasks} for name in self.datasets}
        return {name: resamples_of(tuple(sorted(found)), name) for name, found in tasks.items()}

    @cached_property
    def _all_tasks(self) -> TaskBootstrap:
        tasks = {f"{dataset}\n{task}" for (_, dataset), found in self.cells.items() for task in found.tasks}
        return resamples_of(tuple(sorted(tasks)), "\n".join(self.datasets))


def together(comparison: RefineComparison) -> list[Together]:
    """The setups of several models, most models first."""
    found = {each.cell.folder: each for each in comparison.cells}
    setups = [setup for setup in setups_of([each.cell for each in comparison.cells]) if len(setup.cells) >= FEWEST]
    words = [setup.setting for setup in setups]
    return [
        Together(
            # setups that differ in their datasets alone, such as one judge for each
            setup.setting if words.count(setup.setting) == 1 else ", ".join([setup.setting, *setup.datasets]),
            setup.datasets, sorted(setup.cells),
            {(model, cell.dataset): found[cell.folder] for model, cells in setup.cells.items() for cell in cells},
        )
        for setup in setups
    ]  # fmt: skip


def sustained_turns(found: Outcomes) -> TaskRatio:
    """MST."""
    return found.figure(found.sustained)


def passing(found: Outcomes, turn: int) -> TaskRatio:
    """Pass@1 at a turn, which counts from the end if it is negative."""
    figure = TaskRatio()
    place = turn % found.cell.turns
    for task, verdicts in zip(found.tasks, found.passed, strict=True):
        for verdict in verdicts[place : place + 1]:
            if verdict is not None:
                figure.count(task, verdict)
    return figure
