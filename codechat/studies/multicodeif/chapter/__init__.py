"""The chapters of constraints on code: the tables and figures of MultiCodeIF's paper, next to the published values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.report.chapters import Chapter, register
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Column, Drawing, Headline, Interval, Section, Table, Value
from codechat.report.generic.overview import charts_of, rivals_of, section_of, standing
from codechat.report.generic.published import Asked, labels_table, per_cent
from codechat.report.generic.tables import named_table
from codechat.report.metrics import Measures
from codechat.studies.multicodeif.chapter import drawings, published
from codechat.studies.multicodeif.chapter.published import PER_CENT, Kept, Lines, Models, filled, paper, words
from codechat.studies.multicodeif.metrics import BY_CATEGORY, FIXED, LEVELS, REPAIR, WITHOUT

HARNESSES = ("guarded", "official")
BOTH = "Guarded and official: both harnesses on the same replies."
SETTING = {"harness": "official", "feedback": "paper", "context": "single", "rejudge": True}
"""The options of the paper's rounds of repair."""


def categories(comparison: Comparison[Kept]) -> Table:
    """The accuracy of first replies by category, under both harnesses (the paper's Table IV)."""
    names = published.categories_of(comparison.cells)

    def lines(found: SessionVerdicts) -> Lines:
        metrics = found.cell.metrics
        for harness in HARNESSES:
            shares = [metrics["by_category"][harness].get(name) for name in names]
            undecided = 1 - metrics["n"][harness] / metrics["completed"]
            yield harness, [per_cent(share) for share in (*shares, metrics[harness], undecided)]

    printed = {model: dict(zip((*paper().categories, ""), row, strict=True)) for model, row in paper().accuracy.items()}
    columns = [Column(name, words(name).capitalize(), PER_CENT) for name in names]
    columns += [Column("average", "Avg.", PER_CENT), Column("undecided", "Undecided", PER_CENT)]
    return published.beside_table(
        comparison, columns, lines, name="repair_categories", group=published.REPAIR,
        title="Accuracy of first replies by category, % (as MultiCodeIF's Table IV)",
        note=f"{BOTH} Avg.: of all decided tasks. Undecided: tasks that are in no rate.",
        published={model: [*(row.get(name) for name in (*names, "")), None] for model, row in printed.items()},
        apart=lambda cell: [
            *published.apart_in_size(cell, published.TASKS), *published.apart_in_options(cell, {})
        ],
        needs="all tasks of dataset.part=single, and a judge that decides what no rule does",
    )  # fmt: skip


def constraints(comparison: Comparison[Any]) -> Table:
    """How many constraints of each type the tasks have (what the paper's Figure 5 draws)."""
    columns = (Column("dataset", "Dataset"), Column("category", "Category"), Column("type", "Type"))
    rows = tuple(
        (dataset, words(category), words(name), size)
        for dataset in comparison.datasets
        for category, each in published.sizes_of(comparison, dataset).items()
        for name, size in sorted(each.items())
    )
    return Table(
        "repair_constraints", "Constraints by category and type (as MultiCodeIF's Figure 5)",
        (*columns, Column("n", "Constraints", "d")), rows,
        "Of the first replies of completed sessions, of the cell that has most. The paper prints no numbers for this "
        "figure but the sum, 1,526 single tasks.", published.REPAIR,
    )  # fmt: skip


def rounds(comparison: Comparison[Kept]) -> Table:
    """IFRepair after every round with its gains (the paper's Table VI)."""
    last = _rounds_of(comparison)

    def lines(found: SessionVerdicts) -> Lines:
        metrics = found.cell.metrics
        whole = FIXED if FIXED in metrics else "ifrepair"  # older cells have the other alone
        kinds = (("measured", whole, "gains"), ("without leaks", WITHOUT, "gains_without_leaks"))
        for source, key, gains in kinds:
            yield source, [*filled([*map(per_cent, metrics[key])], last + 1), *filled(metrics[gains], last)]

    columns = [Column(f"ifrepair_{number}", f"IFRepair@{number}", PER_CENT) for number in range(last + 1)]
    columns += [Column(f"gain_{number}", f"Δ{number}", "+.1f") for number in range(1, last + 1)]
    return published.beside_table(
        comparison, columns, lines, name="repair_rounds", group=published.REPAIR,
        title="IFRepair by round, % (as MultiCodeIF's Table VI)",
        note="Without leaks: without code quality, scenario, code context and exemplar, whose published answers are "
        "whole solutions. Of the tasks decided at the first reply: what is undecided later is not shown to be met. Δk: "
        "the gain of round k in points.",
        published={m: [*filled(row[:5], last + 1), *filled(row[5:], last)] for m, row in paper().ifrepair.items()},
        apart=lambda cell: [
            *published.apart_in_size(cell, published.TASKS), *published.apart_in_options(cell, SETTING)
        ],
        needs="all tasks of dataset.part=single, protocol.harness=official, protocol.feedback=paper, "
        "protocol.context=single, protocol.rejudge=true and such a judge",
    )  # fmt: skip


def round_categories(comparison: Comparison[Kept]) -> Table:
    """IFRepair by category after every round (the paper's Figure 12)."""
    last = _rounds_of(comparison)
    columns = [Column("category", "Category"), Column("tasks", "Tasks", "d")]
    columns += [Column(f"ifrepair_{number}", f"IFRepair@{number}", PER_CENT) for number in range(last + 1)]
    rows = []
    for found in comparison.in_order():
        shares, sizes = (values[BY_CATEGORY] for values in (found.cell.metrics, found.cell.metrics["n"]))
        for name in (each for each in published.categories_of([found]) if each in shares):
            values = filled([*map(per_cent, shares[name])], last + 1)
            rows.append((found, [words(name), sizes[name][0], *values]))
    return named_table(
        comparison, columns, rows, name="repair_round_categories", group=published.REPAIR,
        title="IFRepair by category and round, % (as MultiCodeIF's Figure 12)",
        note="Shown to have all constraints met, of the category's tasks that are decided at round 0.",
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

    def apart(cell: LoadedCell) -> list[str]:
        single = (cell.config.get("protocol") or {}).get("context") == "single"
        size = published.apart_in_size(cell, published.CHAINS, chains=True)
        return [*size, *([] if single else ["protocol.context=full"])]

    columns = []
    for name in names:
        columns += [Column(f"{name}_L{level}", f"{name.upper()} L{level}", PER_CENT) for level in range(1, last + 1)]
        columns.append(Column(f"{name}_average", f"{name.upper()} Avg.", PER_CENT))
    return published.beside_table(
        comparison, columns, lines, name="levels_satisfaction", group=published.LEVELS,
        title="SSR and HSR by level, % (as MultiCodeIF's Table V)",
        note=f"{BOTH} Avg.: the unweighted mean over the levels. The paper's L1 is of the single-level tasks.",
        published={
            model: [*filled(row[:4], last), row[4], *filled(row[5:9], last), row[9]]
            for model, row in paper().satisfaction.items()
        },
        apart=apart, needs="all chains of dataset.part=levels and protocol.context=single",
    )  # fmt: skip


def _rounds_of(comparison: Comparison[Any]) -> int:
    return max(len(found.cell.metrics["gains"]) for found in comparison.cells)


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
    """A table for every dataset that several models with one setup have."""
    for models in published.models_of(comparison):
        mark = f"_{models.dataset}" if len(comparison.datasets) > 1 else ""
        setting = f", {models.setting}" if models.setting else ""
        names = [each.cell.model for each in models.cells]
        text = f"{', '.join(names)}; unweighted means."
        if unknown := [name for name in names if paper().weights_of(name) is None]:
            text += f" Open or closed weights are known by the name; not of {', '.join(unknown)}."
        yield Table(
            f"repair_means{mark}",
            f"Means over {len(models.cells)} models, {models.dataset}{setting}, % (as MultiCodeIF's Figures 7 and 8)",
            COLUMNS, tuple(tuple(_row(models, name)) for name in (*models.categories, published.ALL)),
            f"First replies, over {text} A model without a decided task of a category is left out. Least, most: of a "
            f"model. {FIGURE_7}", published.REPAIR,
        )  # fmt: skip


def _row(models: Models, name: str) -> Iterator[Value]:
    yield words(name)
    if mean := models.mean(name, models.cells):
        ends = Interval.of(tuple(100 * end for end in mean.ends)) if mean.ends else None
        yield from (mean.models, per_cent(mean.value), ends, per_cent(mean.least), per_cent(mean.most))
    else:
        yield from (0, None, None, None, None)
    for weights in (models.of("closed"), models.of("open")):
        mean = models.mean(name, weights)
        yield per_cent(mean.value) if mean else None
    whole = any(published.is_whole(each.cell, published.TASKS) for each in models.cells)
    yield dict(zip(paper().categories, paper().means, strict=True)).get(name) if whole else None


def claim(comparison: Comparison[Any]) -> Headline:
    """Who leads by the harness that most models share, with the counts of the whole comparison."""
    harnesses = sorted({_harness(cell) for cell in comparison.loaded})
    shared = [_harness(cell) for cell in rivals_of(comparison.loaded)]
    leading = max(harnesses, key=shared.count)  # the first of equals
    head = standing(replace(comparison, loaded=tuple(cell for cell in comparison.loaded if _harness(cell) == leading)))
    said = f" All of these with protocol.harness={leading}." if len(harnesses) > 1 else ""
    return replace(head, text=f"{head.text}{said}", facts=standing(comparison).facts)


def _harness(cell: LoadedCell) -> str:
    return str((cell.config.get("protocol") or {}).get("harness", "guarded"))


class _PaperChapter(Chapter):
    """A chapter whose tables and figures of the paper come before the generic ones."""

    leads = False

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        asked = {"constraint": Asked("Right verdicts", "verdicts on constraints that are right")}
        yield from labels_table(
            comparison, asked, "Category", name=f"{comparison.protocol}_labels", group=f"{comparison.protocol}_paper",
            title="People's labels of verdicts on constraints",
        )  # fmt: skip
        yield from super().tables(comparison)

    def groups(self, comparison: Comparison[Any]) -> dict[str, str]:
        paper_group = f"{comparison.protocol}_paper"
        return {
            paper_group: "The paper's tables and figures",
            comparison.protocol: "Every figure, with its interval",
        }

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        shown = tuple(part for part in measures.breakdowns if part.by != "type")  # too many for one figure
        super().write_figures(replace(measures, breakdowns=shown), metrics, title, folder)

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield from (each for each in super().drawings(comparison) if each.name != f"{comparison.protocol}_by_type")
        yield drawings.types(comparison)

    def sections(self, comparison: Comparison[Any]) -> list[Section]:
        """The generic section; the charts begin at zero, so gains, which may be losses, are left to the tables."""
        series = tuple(each for each in comparison.measures.series if each.unit == "share")
        charts = charts_of(replace(comparison, measures=replace(comparison.measures, series=series)))
        return [section_of(comparison, tuple(self.groups(comparison)), claim=claim(comparison), charts=charts)]

    def headline(self, comparison: Comparison[Any], tables: Sequence[Table]) -> Headline:
        return claim(comparison)


@register(REPAIR.protocol)
class RepairChapter(_PaperChapter):
    reads = Kept
    fates = ("met at every turn", "first unmet at turn")

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        yield from (categories(comparison), constraints(comparison), *means(comparison))
        yield from (rounds(comparison), round_categories(comparison))
        yield from super().tables(comparison)

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield from drawings.drawings(comparison)
        yield from super().drawings(comparison)


@register(LEVELS.protocol)
class LevelsChapter(_PaperChapter):
    fates = ("met at every level", "first unmet at turn")

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        yield levels(comparison)
        yield from super().tables(comparison)

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield drawings.by_level(comparison)
        yield from super().drawings(comparison)
