"""What MultiCodeIF's paper prints (`published.yaml`), and what first replies keep by category and over models."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from codechat.base.files import from_yaml
from codechat.base.records import SessionRecord
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts, resamples_of
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.generic.overview import rivals_of
from codechat.report.generic.published import NOWHERE, PUBLISHED, beside, plain_name, said_apart
from codechat.report.metrics.statistics import TaskRatio, mean_of, percentile_interval
from codechat.report.metrics.sums import Tally
from codechat.studies.multicodeif.constraints import constraint_types
from codechat.studies.multicodeif.dataset import PUBLISHED as PUBLISHED_TASKS
from codechat.studies.multicodeif.metrics import ConstrainedTurn, is_open, turn_parts

TASKS, CHAINS = 1526, 165
"""The sessions of a cell with the whole dataset: tasks of one constraint, or chains of levels."""
REPAIR, LEVELS = "repair_paper", "levels_paper"
"""The groups of the paper's tables and figures."""
PER_CENT = ".1f"
SOURCE = "Published: what MultiCodeIF's paper prints, judged by GPT-4-Turbo. It stands here only if a cell has "

Weights = Literal["open", "closed"]
Figures = Sequence[float | None]
Lines = Iterable[tuple[str, Figures]]  # a cell's rows: the source of the values, and the values in per cent


@dataclass(frozen=True)
class Paper:
    """The paper's values in per cent, by the paper's names of models.

    `accuracy` has a value for each of `categories` and the mean over tasks; `means` are Figure 7's. `satisfaction`
    has SSR of four levels and its mean, then HSR alike. `ifrepair` has IFRepair@0 to 4, then four gains.
    """

    categories: Sequence[str]
    accuracy: Mapping[str, Sequence[float]]
    means: Sequence[float]
    satisfaction: Mapping[str, Sequence[float]]
    ifrepair: Mapping[str, Sequence[float]]
    known: Mapping[str, str]
    weights: Mapping[str, Weights]
    beginnings: Mapping[str, Weights]

    def name_of(self, model: str) -> str:
        """The paper's name of a model; empty for a model that the paper lacks."""
        return self.known.get(plain_name(model), "")

    def weights_of(self, model: str) -> Weights | None:
        """Whether a model's weights are open; None if the name does not show it."""
        if name := self.name_of(model):
            return self.weights[name]
        fitting = [begin for begin in self.beginnings if plain_name(model).startswith(begin)]
        return self.beginnings[max(fitting, key=len)] if fitting else None


@cache
def paper() -> Paper:
    """The content of the data file."""
    data: dict[str, Any] = from_yaml(Path(__file__).with_name("published.yaml").read_text(encoding="utf-8"))
    models = data["models"]
    return Paper(
        **{name: data[name] for name in ("categories", "accuracy", "means", "satisfaction", "ifrepair")},
        known={known: name for name, about in models.items() for known in about["known"]},
        weights={name: about["weights"] for name, about in models.items()},
        beginnings={begin: kind for kind, names in data["weights"].items() for begin in names},
    )


def beside_table(
    comparison: Comparison[Any],
    columns: Sequence[Column],
    lines: Callable[[SessionVerdicts], Lines],
    *,
    published: Mapping[str, Figures],
    apart: Callable[[LoadedCell], Sequence[str]],
    needs: str,
    name: str,
    title: str,
    note: str,
    group: str,
) -> Table:
    """The rows of every cell and the published values, which follow the last cell of their model, or the last row.

    `apart` returns what differs from the paper's setting, in words: the published rows need a cell without a
    difference. `needs` describes that setting.
    """
    cells = [each.cell for each in comparison.in_order()]
    stands, several = not all(map(apart, cells)), len(comparison.datasets) > 1
    datasets = {paper().name_of(cell.model): cell.dataset for cell in cells}

    def row(model: str, dataset: str, source: str, values: Figures) -> tuple[Value, ...]:
        return (model, *([dataset] if several else []), source, *values)

    measured = [
        (paper().name_of(each.cell.model), [row(each.cell.label, each.cell.dataset, *line) for line in lines(each)])
        for each in comparison.in_order()
    ]
    printed = {
        model: row(model, datasets.get(model, cells[-1].dataset), PUBLISHED, values)
        for model, values in (published.items() if stands else ())
    }
    heads = (Column("model", "Model"), *([Column("dataset", "Dataset")] if several else []), Column("source", "Source"))
    lacking = "" if stands else NOWHERE + said_apart((cell.label, apart(cell)) for cell in cells)
    rows = tuple(beside(measured, printed))
    return Table(name, title, (*heads, *columns), rows, f"{note} {SOURCE}{needs}.{lacking}", group)


def is_whole(cell: LoadedCell, sessions: int, *, chains: bool = False) -> bool:
    """Whether a cell has all single tasks of MultiCodeIF as published, or all chains."""
    dataset = cell.config.get("dataset") or {}
    known = cell.content in PUBLISHED_TASKS and (dataset.get("part", "single") != "single") == chains
    return known and cell.metrics["sessions"] == sessions


def apart_in_size(cell: LoadedCell, sessions: int, *, chains: bool = False) -> list[str]:
    """A difference in words if a cell lacks some of the published tasks."""
    whole = is_whole(cell, sessions, chains=chains)
    return [] if whole else [f"{cell.metrics['sessions']:,} tasks, not the published {sessions:,}"]


def apart_in_options(cell: LoadedCell, options: Mapping[str, object]) -> list[str]:
    """The differences from these options of the protocol in words, and a judge that decides nothing."""
    protocol, judge = cell.config.get("protocol") or {}, cell.config.get("judge") or {}
    apart = [f"protocol.{name}={protocol.get(name)}" for name, value in options.items() if protocol.get(name) != value]
    return [*apart, *(["judge=rules"] if judge.get("kind") == "rules" else [])]


def filled(values: Figures, length: int) -> list[float | None]:
    """The first `length` values, with None for each missing one."""
    return [*values, *[None] * length][:length]


ALL = "all tasks"
"""The name used in place of a category for all tasks, which count alike."""
FEWEST = 2  # models of a mean
REPAIRS = (
    *("protocol.rounds", "protocol.context", "protocol.feedback", "protocol.rejudge", "protocol.prompts.repair"),
    "protocol.prompts.followup",
)
"""The options of repairs, which no first reply depends on."""


@dataclass
class Kept(SessionVerdicts):
    """A cell's sessions, and the constraints that the first replies keep: by category, and of `ALL` tasks."""

    first: Tally = field(default_factory=Tally)
    undecided: Tally = field(default_factory=Tally)

    def kept(self, category: str) -> TaskRatio:
        """The constraints of a category that are kept, of the decided ones; empty if almost all are undecided."""
        return TaskRatio() if is_open(self.undecided[category]) else self.first[category]

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        turn = ConstrainedTurn.of(session.turns[0])
        for each in turn.constraints:  # an undecided one only makes the category known
            self.first.count(session.task_id, {each.category: (bool(each.met), int(each.met is not None))})
            self.undecided.count(session.task_id, {each.category: (each.met is None, 1)})
        parts = turn_parts(session.turns[0], turn)
        self.first.count(session.task_id, {ALL: parts["hsr"]} if "hsr" in parts else {})


@dataclass(frozen=True)
class Mean:
    """An unweighted mean over models with its interval, the lowest and highest rate, and the number of models."""

    value: float
    ends: Interval | None
    least: float
    most: float
    models: int


@dataclass(frozen=True)
class Models:
    """The cells of several models on one dataset with one setup, which `setting` describes if there are others."""

    dataset: str
    setting: str
    cells: Sequence[Kept]

    @property
    def categories(self) -> list[str]:
        """The categories of all cells, the paper's first, in the paper's order."""
        return categories_of(self.cells)

    def of(self, weights: Weights) -> list[Kept]:
        """The models whose weights are open, or closed, by their names."""
        return [each for each in self.cells if paper().weights_of(each.cell.model) == weights]

    def mean(self, category: str, cells: Sequence[Kept]) -> Mean | None:
        """The mean of some of the models on a category; None if none of them has a decided task in it."""
        ratios = [each.kept(category) for each in cells]
        known = [ratio.rate for ratio in ratios if ratio.rate is not None]
        if not known:
            return None
        tasks = tuple(sorted({task for each in self.cells for task in each.tasks}))
        drawn = zip(*(resamples_of(tasks, self.dataset).ratios(ratio) for ratio in ratios), strict=True)
        ends = Interval.of(percentile_interval(mean_of(values) for values in drawn))
        return Mean(fmean(known), ends, min(known), max(known), len(known))


def models_of(comparison: Comparison[Any]) -> Iterator[Models]:
    """For every dataset the setup of the most models, if several. Baselines count if there is nothing else.

    Of a model's cells that differ in their repairs alone, which no first reply depends on, the first counts.
    """
    for dataset in comparison.datasets:
        rivals = {cell.folder for cell in rivals_of([each.cell for each in comparison.on(dataset)])}
        setups: dict[str, dict[str, Kept]] = defaultdict(dict)
        for each in comparison.on(dataset):
            if (cell := each.cell).folder in rivals:
                settings = json.loads(cell.setup or "{}").items()
                setup = json.dumps([item for item in settings if not item[0].startswith(REPAIRS)])
                model = json.dumps([cell.model, cell.config.get("model")], sort_keys=True, default=str)
                setups[setup].setdefault(model, each)
        largest = [*max(setups.values(), key=len).values()]
        if len(largest) >= FEWEST:
            differing = (text for key, text in largest[0].cell.differences.items() if not key.startswith(REPAIRS))
            yield Models(dataset, ", ".join(differing) if len(setups) > 1 else "", largest)


def categories_of(cells: Sequence[Kept]) -> list[str]:
    """The categories of all cells, the paper's first, in the paper's order."""
    names = {name for each in cells for name in each.first.figures if name != ALL}
    return [*(name for name in paper().categories if name in names), *sorted(names - {*paper().categories})]


def words(category: str) -> str:
    """A category or a type as a reader sees it."""
    return category.replace("_", " ")


def sizes_of(comparison: Comparison[Any], dataset: str) -> dict[str, dict[str, int]]:
    """The number of a dataset's constraints by category and type, from the cell that has most of them."""
    categories = {kind.name: kind.category for kind in constraint_types()}
    counted = [each.cell.metrics["n"]["by_type"]["undecided"] for each in comparison.on(dataset)]
    sizes: dict[str, dict[str, int]] = {}
    for name, size in max(counted, key=lambda each: sum(each.values()), default={}).items():
        sizes.setdefault(categories.get(name, "own"), {})[name] = size
    order = [*paper().categories]
    return dict(sorted(sizes.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))
