"""What MultiCodeIF's paper prints (`published.yaml`): Tables IV to VI and open weights; rows beside it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from codechat.base.files import from_yaml
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Column, Table, Value
from codechat.report.generic.published import NOWHERE, PUBLISHED, beside, plain_name, said_apart
from codechat.studies.multicodeif.dataset import PUBLISHED as PUBLISHED_TASKS

DATA = Path(__file__).with_name("published.yaml")
TASKS, CHAINS = 1526, 165
"""How many sessions a cell of the whole dataset has: tasks of one constraint, or chains of levels."""

Weights = Literal["open", "closed"]


@dataclass(frozen=True)
class Paper:
    """The paper's figures in per cent, by the paper's names of models.

    `accuracy` has a figure for each of `categories` and the mean over tasks; `means` are Figure 7's. `satisfaction`
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
        """The paper's name of a model; empty if the paper has none such."""
        return self.known.get(plain_name(model), "")

    def weights_of(self, model: str) -> Weights | None:
        """Whether a model's weights are open; None if its name does not tell."""
        if name := self.name_of(model):
            return self.weights[name]
        told = [begin for begin in self.beginnings if plain_name(model).startswith(begin)]
        return self.beginnings[max(told, key=len)] if told else None


@cache
def paper() -> Paper:
    """The data file's content."""
    data: dict[str, Any] = from_yaml(DATA.read_text(encoding="utf-8"))
    models = data["models"]
    return Paper(
        **{name: data[name] for name in ("categories", "accuracy", "means", "satisfaction", "ifrepair")},
        known={known: name for name, about in models.items() for known in about["known"]},
        weights={name: about["weights"] for name, about in models.items()},
        beginnings={begin: kind for kind, names in data["weights"].items() for begin in names},
    )


PER_CENT = ".1f"
SOURCE = "Published: what MultiCodeIF's paper prints, judged by GPT-4-Turbo. It stands here only if a cell has "

Figures = Sequence[float | None]
Lines = Iterable[tuple[str, Figures]]  # a cell's rows: where the figures come from, and the figures in per cent


@dataclass(frozen=True)
class Beside:
    """What of the paper stands beside which cells: its figures by model, and what sets a cell apart, in words.

    They stand beside a cell that nothing sets apart; `needs` says what that takes.
    """

    figures: Mapping[str, Figures]
    apart: Callable[[LoadedCell], Sequence[str]]
    needs: str


def beside_table(
    comparison: Comparison[Any],
    columns: Sequence[Column],
    lines: Callable[[SessionVerdicts], Lines],
    published: Beside,
    *,
    name: str,
    title: str,
    note: str,
    group: str,
) -> Table:
    """The rows of every cell; the paper's follow the last cell of its model, those of its other models the last."""
    cells = [found.cell for found in comparison.in_order()]
    stands, several = not all(map(published.apart, cells)), len(comparison.datasets) > 1
    datasets = {paper().name_of(cell.model): cell.dataset for cell in cells}

    def row(model: str, dataset: str, source: str, values: Figures) -> tuple[Value, ...]:
        return (model, *([dataset] if several else []), source, *values)

    measured = [
        (paper().name_of(cell.model), [row(cell.label, cell.dataset, *line) for line in lines(found)])
        for found, cell in zip(comparison.in_order(), cells, strict=True)
    ]
    printed = {
        model: row(model, datasets.get(model, cells[-1].dataset), PUBLISHED, values)
        for model, values in (published.figures.items() if stands else ())
    }
    rows = beside(measured, printed)
    heads = (Column("model", "Model"), *([Column("dataset", "Dataset")] if several else []), Column("source", "Source"))
    lacking = "" if stands else NOWHERE + said_apart((cell.label, published.apart(cell)) for cell in cells)
    told = f"{note} {SOURCE}{published.needs}.{lacking}"
    return Table(name, title, (*heads, *columns), tuple(rows), told, group)


def is_whole(cell: LoadedCell, sessions: int, *, chains: bool = False) -> bool:
    """Whether a cell has all single tasks of MultiCodeIF as they were published, or all chains."""
    dataset = cell.config.get("dataset") or {}
    known = cell.content in PUBLISHED_TASKS and (dataset.get("part", "single") != "single") == chains
    return known and cell.metrics["sessions"] == sessions


def apart_in_size(cell: LoadedCell, sessions: int, *, chains: bool = False) -> list[str]:
    """In words, that a cell has not all the published tasks; nothing if it has."""
    whole = is_whole(cell, sessions, chains=chains)
    return [] if whole else [f"{cell.metrics['sessions']:,} tasks, not the published {sessions:,}"]


def apart_in_options(cell: LoadedCell, options: Mapping[str, object]) -> list[str]:
    """In words, the options of a cell's protocol that are not these, and a judge that leaves what it is asked open."""
    protocol, judge = cell.config.get("protocol") or {}, cell.config.get("judge") or {}
    found = [f"protocol.{name}={protocol.get(name)}" for name, value in options.items() if protocol.get(name) != value]
    return [*found, *(["judge=rules"] if judge.get("kind") == "rules" else [])]


def filled(values: Figures, length: int) -> list[float | None]:
    """The values, with None in place of what is missing; no more than `length`."""
    return [*values, *[None] * length][:length]
