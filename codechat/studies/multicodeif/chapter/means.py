"""Means over several models by category, and over those with open and closed weights (the paper's Figures 7 and 8)."""

from collections.abc import Iterator
from typing import Any

from codechat.report.data import Column, Interval, Table, Value
from codechat.report.study import Study
from codechat.studies.multicodeif.chapter.beside import PER_CENT, is_whole, per_cent
from codechat.studies.multicodeif.chapter.kept import ALL, Models, models_of, words
from codechat.studies.multicodeif.chapter.published import TASKS, paper
from codechat.studies.multicodeif.chapter.tables import REPAIR

COLUMNS = (
    Column("category", "Category"), Column("models", "Models", "d"), Column("mean", "Mean", PER_CENT),
    Column("mean_ci", "95 % interval", PER_CENT), Column("least", "least", PER_CENT), Column("most", "most", PER_CENT),
    Column("closed", "Closed weights", PER_CENT), Column("open", "Open weights", PER_CENT),
    Column("published", "Figure 7", PER_CENT),
)  # fmt: skip
FIGURE_7 = (
    "Figure 7: the paper's means of five models, without DeepSeek-R1; they stand here if a cell has all tasks of "
    "dataset.part=single."
)


def means(study: Study[Any]) -> Iterator[Table]:
    """A table for every dataset that several models under one setup have."""
    for models in models_of(study):
        mark = f"_{models.dataset}" if len(study.datasets) > 1 else ""
        setting = f", {models.setting}" if models.setting else ""
        names = (*models.categories, ALL)
        yield Table(
            f"repair_means{mark}",
            f"Means over {len(models.cells)} models, {models.dataset}{setting}, % (as MultiCodeIF's Figures 7 and 8)",
            COLUMNS, tuple(tuple(_row(models, name)) for name in names), f"First replies, over {told(models)} "
            f"A model without a decided task of a category is left out. Least, most: of a model. {FIGURE_7}", REPAIR,
        )  # fmt: skip


def told(models: Models) -> str:
    """Which models a mean is of, and of which is not known whether their weights are open, in sentences."""
    text = f"{', '.join(found.cell.model for found in models.cells)}; unweighted means."
    unknown = [found.cell.model for found in models.cells if paper().weights_of(found.cell.model) is None]
    return f"{text} Open or closed weights are told by the name; not of {', '.join(unknown)}." if unknown else text


def _row(models: Models, name: str) -> Iterator[Value]:
    mean = models.mean(name, models.cells)
    yield words(name)
    if mean is None:
        yield from (0, None, None, None, None)
    else:
        ends = Interval.of(tuple(100 * end for end in mean.ends)) if mean.ends else None
        yield from (mean.models, per_cent(mean.value), ends, per_cent(mean.least), per_cent(mean.most))
    for weights in ("closed", "open"):
        found = models.mean(name, models.of(weights))
        yield per_cent(found.value) if found else None
    whole = any(is_whole(found.cell, TASKS) for found in models.cells)
    printed = dict(zip(paper().categories, paper().means, strict=True))
    yield printed.get(name) if whole else None
