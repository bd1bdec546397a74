"""The tables of MultiCodeIF's paper, over the report's cells, in per cent."""

from collections.abc import Iterator, Sequence
from typing import Any

from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.generic.published import per_cent
from codechat.report.generic.tables import named_table
from codechat.studies.multicodeif.chapter.kept import ALL, Kept, Models, categories_of, models_of, sizes_of, words
from codechat.studies.multicodeif.chapter.published import (
    CHAINS,
    PER_CENT,
    TASKS,
    Beside,
    Lines,
    apart_in_options,
    apart_in_size,
    beside_table,
    filled,
    is_whole,
    paper,
)
from codechat.studies.multicodeif.metrics_repair import BY_CATEGORY, WITHOUT

REPAIR, LEVELS = "repair_paper", "levels_paper"  # the tables' groups
HARNESSES = ("guarded", "official")
BOTH = "Guarded and official: both harnesses on the same replies."
SETTING = {"harness": "official", "feedback": "paper", "context": "single", "rejudge": True}
"""The options under which the paper's rounds of repair were made."""


def categories(comparison: Comparison[Kept]) -> Table:
    """The accuracy of first replies by category, under both harnesses (the paper's Table IV)."""
    names = categories_of(comparison.cells)

    def lines(found: SessionVerdicts) -> Lines:
        metrics = found.cell.metrics
        for harness in HARNESSES:
            shares = [metrics["by_category"][harness].get(name) for name in names]
            undecided = 1 - metrics["n"][harness] / metrics["completed"]
            yield harness, [per_cent(share) for share in (*shares, metrics[harness], undecided)]

    printed = {model: dict(zip((*paper().categories, ""), row, strict=True)) for model, row in paper().accuracy.items()}
    published = Beside(
        {model: [*(row.get(name) for name in (*names, "")), None] for model, row in printed.items()},
        lambda cell: [*apart_in_size(cell, TASKS), *apart_in_options(cell, {})],
        "all tasks of dataset.part=single, and a judge that decides what no rule does",
    )
    columns = [Column(name, words(name).capitalize(), PER_CENT) for name in names]
    columns += [Column("average", "Avg.", PER_CENT), Column("undecided", "Undecided", PER_CENT)]
    return beside_table(
        comparison, columns, lines, published, name="repair_categories", group=REPAIR,
        title="Accuracy of first replies by category, % (as MultiCodeIF's Table IV)",
        note=f"{BOTH} Avg.: of all decided tasks. Undecided: tasks that are in no rate.",
    )  # fmt: skip


def constraints(comparison: Comparison[Any]) -> Table:
    """How many constraints of each type the tasks have (what the paper's Figure 5 draws)."""
    columns = (Column("dataset", "Dataset"), Column("category", "Category"), Column("type", "Type"))
    rows = tuple(
        (dataset, words(category), words(name), size)
        for dataset in comparison.datasets
        for category, each in sizes_of(comparison, dataset).items()
        for name, size in sorted(each.items())
    )
    return Table(
        "repair_constraints", "Constraints by category and type (as MultiCodeIF's Figure 5)",
        (*columns, Column("n", "Constraints", "d")), rows,
        "Of the first replies of completed sessions, of the cell that has most. The paper prints no numbers for this "
        "figure but the sum, 1,526 single tasks.", REPAIR,
    )  # fmt: skip


def rounds(comparison: Comparison[Kept]) -> Table:
    """IFRepair after every round with its gains (the paper's Table VI)."""
    last = _rounds_of(comparison)

    def lines(found: SessionVerdicts) -> Lines:
        metrics = found.cell.metrics
        for source, key, gains in (
            ("measured", "ifrepair", "gains"),
            ("without leaks", WITHOUT, "gains_without_leaks"),
        ):
            yield source, [*filled([*map(per_cent, metrics[key])], last + 1), *filled(metrics[gains], last)]

    published = Beside(
        {model: [*filled(row[:5], last + 1), *filled(row[5:], last)] for model, row in paper().ifrepair.items()},
        lambda cell: [*apart_in_size(cell, TASKS), *apart_in_options(cell, SETTING)],
        "all tasks of dataset.part=single, protocol.harness=official, protocol.feedback=paper, "
        "protocol.context=single, protocol.rejudge=true and such a judge",
    )
    columns = [Column(f"ifrepair_{number}", f"IFRepair@{number}", PER_CENT) for number in range(last + 1)]
    columns += [Column(f"gain_{number}", f"Δ{number}", "+.1f") for number in range(1, last + 1)]
    return beside_table(
        comparison, columns, lines, published, name="repair_rounds", group=REPAIR,
        title="IFRepair by round, % (as MultiCodeIF's Table VI)",
        note="Without leaks: without code quality, scenario, code context and exemplar, whose published answers are "
        "whole solutions. Δk: the gain of round k in points, over tasks decided at it and before.",
    )  # fmt: skip


def round_categories(comparison: Comparison[Kept]) -> Table:
    """IFRepair by category after every round (the paper's Figure 12)."""
    last = _rounds_of(comparison)
    columns = [Column("category", "Category"), Column("tasks", "Tasks", "d")]
    columns += [Column(f"ifrepair_{number}", f"IFRepair@{number}", PER_CENT) for number in range(last + 1)]
    rows = []
    for found in comparison.in_order():
        shares, sizes = (values[BY_CATEGORY] for values in (found.cell.metrics, found.cell.metrics["n"]))
        for name in (each for each in categories_of([found]) if each in shares):
            values = filled([*map(per_cent, shares[name])], last + 1)
            rows.append((found, [words(name), sizes[name][0], *values]))
    return named_table(
        comparison, columns, rows, name="repair_round_categories", group=REPAIR,
        title="IFRepair by category and round, % (as MultiCodeIF's Figure 12)",
        note="Of tasks with a constraint of the category: those with all constraints met. Tasks: those decided at "
        "round 0.",
    )  # fmt: skip


def levels(comparison: Comparison[Any]) -> Table:
    """SSR and HSR by level under both harnesses (the paper's Table V)."""
    last = max(len(found.cell.metrics["hsr"]) for found in comparison.cells)
    names = ("ssr", "hsr")

    def lines(found: SessionVerdicts) -> Lines:
        metrics = found.cell.metrics
        for harness in HARNESSES:
            values: list[float | None] = []
            for key in (f"{name}_{harness}" for name in names):
                values += [*filled([*map(per_cent, metrics[key])], last), per_cent(metrics[f"avg_{key}"])]
            yield harness, values

    def printed(row: Sequence[float]) -> list[float | None]:
        return [*filled(row[:4], last), row[4], *filled(row[5:9], last), row[9]]

    published = Beside(
        {model: printed(row) for model, row in paper().satisfaction.items()},
        lambda cell: [
            *apart_in_size(cell, CHAINS, chains=True),
            *([] if _is_single(cell) else ["protocol.context=full"]),
        ],
        "all chains of dataset.part=levels and protocol.context=single",
    )
    columns = []
    for name in names:
        columns += [Column(f"{name}_L{level}", f"{name.upper()} L{level}", PER_CENT) for level in range(1, last + 1)]
        columns.append(Column(f"{name}_average", f"{name.upper()} Avg.", PER_CENT))
    return beside_table(
        comparison, columns, lines, published, name="levels_satisfaction", group=LEVELS,
        title="SSR and HSR by level, % (as MultiCodeIF's Table V)",
        note=f"{BOTH} Avg.: the unweighted mean over the levels. The paper's L1 is of the single-level tasks.",
    )  # fmt: skip


def _rounds_of(comparison: Comparison[Any]) -> int:
    return max(len(found.cell.metrics["gains"]) for found in comparison.cells)


def _is_single(cell: LoadedCell) -> bool:
    """Whether every level is asked by itself."""
    return (cell.config.get("protocol") or {}).get("context") == "single"


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


def means(comparison: Comparison[Any]) -> Iterator[Table]:
    """A table for every dataset that several models under one setup have."""
    for models in models_of(comparison):
        mark = f"_{models.dataset}" if len(comparison.datasets) > 1 else ""
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
