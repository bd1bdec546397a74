"""Twins: one model on tasks and on their twins (`dataset.twin`), whose names or words it cannot have met, by task."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from codechat.report import drawing
from codechat.report.comparison import LoadedCell
from codechat.report.data import Column, Drawing, Interval, Table, Value, columns_of, with_interval
from codechat.report.drawing import Look
from codechat.report.generic.paired import Pair, difference, minus
from codechat.report.metrics.statistics import TaskRatio, percentile_interval, sustained
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineComparison

GROUP = "twins"
GROUPS = {GROUP: "How much of the score is memory"}
OF_TWIN = {"twin", "twin_seed", "rewordings"}
SELECTING = {"limit", "tasks", "exclude", "runnable"}
FIGURES = {"pass_first": "Pass@1, turn 0", "mst": "MST"}
SIDES = ("original", "twin")
NOTE = (
    "The same model and settings on tasks and on their twins, whose functions, parameters and examples, or statements, "
    "are changed and whose references pass as well. On the tasks that both completed; twin − original: below 0 where "
    "the twin is harder, as for a model that knows the original by heart. Intervals: 95 %, paired bootstrap by "
    "task."
)


def _pairs(comparison: RefineComparison) -> list[Pair[Outcomes]]:
    """Original (A) and twin (B): cells of one entrant that differ in the twin alone, with a common task."""
    originals = {_place(each.cell): each for each in comparison.in_order() if not each.cell.is_twin}
    twins = [each for each in comparison.in_order() if each.cell.is_twin]
    pairs = [Pair(originals[_place(each.cell)], each) for each in twins if _place(each.cell) in originals]
    return [pair for pair in pairs if pair.tasks]


def _dataset(cell: LoadedCell) -> Mapping[str, Any]:
    return cell.config.get("dataset") or {}


def _place(cell: LoadedCell) -> tuple[str, str, str]:
    """The settings that a twin shares with its original."""
    tasks = {key: value for key, value in _dataset(cell).items() if key not in OF_TWIN | SELECTING}
    return cell.label, cell.setup, json.dumps(tasks, sort_keys=True)


def _figure(pair: Pair[Outcomes], key: str) -> tuple[TaskRatio, TaskRatio]:
    return pair.at(0) if key == "pass_first" else pair.figures(lambda verdicts: (sustained(verdicts), 1))


def tables(comparison: RefineComparison) -> Iterator[Table]:
    """Pass@1 at turn 0 and MST of originals and twins, and the differences, if there are pairs."""
    compared = _pairs(comparison)
    if not compared:
        return
    columns = (
        *columns_of(dataset="Dataset", twin="Twin", model="Model"), Column("tasks", "Tasks", "d"),
        *(column for key, title in FIGURES.items() for column in (
            *columns_of(".3f", **{f"{key}_original": f"{title}: original", f"{key}_twin": "twin"}),
            *with_interval(f"{key}_difference", "twin − original", "+.3f"),
        )),
    )  # fmt: skip
    yield Table(GROUP, "Originals and twins", columns, tuple(map(_row, compared)), group=GROUP, note=NOTE)


def _row(pair: Pair[Outcomes]) -> tuple[Value, ...]:
    values: list[Value] = [pair.a.cell.dataset, pair.b.cell.dataset, pair.b.cell.label, len(pair.tasks)]
    for key in FIGURES:
        original, twin = _figure(pair, key)
        apart = difference(pair.ratios(twin), pair.ratios(original))
        values += [original.rate, twin.rate, minus(twin.rate, original.rate), apart]
    return tuple(values)


def drawings(comparison: RefineComparison) -> Iterator[Drawing]:
    """The figures of `tables`."""
    if _pairs(comparison):
        yield Drawing(
            GROUP, "Originals and twins",
            "Pass@1 at turn 0 and the mean of sustained turns on tasks and on their twins; whiskers: 95 % by task.",
            GROUP, _draw,
        )  # fmt: skip


def _draw(comparison: RefineComparison, look: Look) -> Any:
    compared = _pairs(comparison)
    heads = [f"{pair.b.cell.label}\n{pair.b.cell.dataset}" for pair in compared]
    figure, axes = drawing.panels([*FIGURES.values()], 4.2, 1.2 + 0.4 * len(heads), one_scale=False)
    for panel, key in zip(axes, FIGURES, strict=True):

        def value(row: int, side: str, key: str = key) -> tuple[float | None, Interval | None]:
            shown = _figure(compared[row], key)[SIDES.index(side)]
            return shown.rate, Interval.of(percentile_interval(compared[row].ratios(shown)))

        drawing.rows(panel, heads, SIDES, value)
    return drawing.from_zero(figure, axes, axes[1:])
