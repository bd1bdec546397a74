"""Rows of the paper's tables: the report's cells, each model beside what the paper prints of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codechat.report.data import Column, Table, Value
from codechat.report.study import LoadedCell, Study, Verdicts
from codechat.studies.multicodeif.chapter.published import paper

PUBLISHED = "published"
PER_CENT = ".1f"
SOURCE = "Published: what MultiCodeIF's paper prints, judged by GPT-4-Turbo. It stands here only if a cell has "
NOWHERE = " No cell here has."

Figures = Sequence[float | None]
Lines = Iterable[tuple[str, Figures]]  # a cell's rows: where the figures come from, and the figures in per cent


@dataclass(frozen=True)
class Beside:
    """What of the paper stands beside which cells: its figures by model, and a test of cells, which `needs` tells."""

    figures: Mapping[str, Figures]
    comparable: Callable[[LoadedCell], bool]
    needs: str


def beside_table(
    study: Study[Any],
    columns: Sequence[Column],
    lines: Callable[[Verdicts], Lines],
    published: Beside,
    *,
    name: str,
    title: str,
    note: str,
    group: str,
) -> Table:
    """The rows of every cell; the paper's follow the last cell of its model, those of its other models the last."""
    cells = [found.cell for found in study.in_order()]
    stands = any(map(published.comparable, cells))
    left = dict(published.figures) if stands else {}
    last = {paper().name_of(cell.model): cell for cell in cells}
    several = len(study.datasets) > 1
    rows: list[tuple[Value, ...]] = []

    def add(model: str, dataset: str, source: str, values: Figures) -> None:
        rows.append((model, *([dataset] if several else []), source, *values))

    for found in study.in_order():
        for source, values in lines(found):
            add(found.cell.label, found.cell.dataset, source, values)
        model = paper().name_of(found.cell.model)
        if last[model] is found.cell and model in left:
            add(model, found.cell.dataset, PUBLISHED, left.pop(model))
    for model, values in left.items():
        add(model, cells[-1].dataset, PUBLISHED, values)
    heads = (Column("model", "Model"), *([Column("dataset", "Dataset")] if several else []), Column("source", "Source"))
    told = f"{note} {SOURCE}{published.needs}.{'' if stands else NOWHERE}"
    return Table(name, title, (*heads, *columns), tuple(rows), told, group)


def is_whole(cell: LoadedCell, sessions: int, *, chains: bool = False) -> bool:
    """Whether a cell has all single tasks of MultiCodeIF, or all chains."""
    dataset = cell.config.get("dataset") or {}
    known = dataset.get("kind") == "multicodeif" and (dataset.get("part", "single") != "single") == chains
    return known and cell.metrics["sessions"] == sessions


def per_cent(value: float | None) -> float | None:
    """A share in per cent."""
    return None if value is None else 100 * value


def filled(values: Figures, length: int) -> list[float | None]:
    """The values, with None in place of what is missing; no more than `length`."""
    return [*values, *[None] * length][:length]
