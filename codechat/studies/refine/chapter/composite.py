"""Several instructions in a request (`agenda.composite`): adherence and regression by their number and by pairs."""

from collections.abc import Iterator, Mapping
from typing import Any

from codechat.report import drawing
from codechat.report.data import Column, Drawing, Interval, Table, Value, columns_of, with_interval
from codechat.report.drawing import SPREAD, Look, bars, from_zero, name_groups, panels, spread, strips
from codechat.report.generic.tables import named_table
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter.outcomes import Measured, Outcomes, RefineComparison

GROUP = "composite"
GROUPS = {GROUP: "What several instructions in one request change"}
FIGURES = {
    "regression": "Regression",
    "adherence": "Instructions followed",
    "all_followed": "All instructions of a request followed",
}


def _is_in(comparison: RefineComparison) -> bool:
    """Whether a cell has a request with several instructions."""
    return any(_composite(found) for found in comparison.cells)


def tables(comparison: RefineComparison) -> Iterator[Table]:
    """By number of instructions, and by pair of scopes; none if every request has one instruction."""
    if _is_in(comparison):
        yield _by_number(comparison)
        yield _by_pair(comparison)


def drawings(comparison: RefineComparison) -> Iterator[Drawing]:
    """The figures of `tables` by number of instructions."""
    if _is_in(comparison):
        yield Drawing(
            "composite", "Regression and adherence by the number of instructions in a request",
            "Each cell at the number of instructions that most of its requests have: the share of turns that broke "
            "passing code, of instructions that were followed, and of turns that followed each of their instructions; "
            "whiskers: 95 % by task.",
            GROUP, _draw,
        )  # fmt: skip


def _by_number(comparison: RefineComparison) -> Table:
    columns = (
        Column("instructions", "Instructions", "d"), Column("turns", "Turns", "d"),
        *with_interval("adherence", FIGURES["adherence"], ".3f"),
        *with_interval("all_followed", "all of a request", ".3f"),
        *with_interval("regression", FIGURES["regression"], ".3f"), Column("passed_before", "Passed before", "d"),
    )  # fmt: skip
    rows = [(found, row) for found in comparison.in_order() for row in _numbers(found)]
    return named_table(
        comparison, columns, rows, name="composite", title="Requests with several instructions", group=GROUP,
        note="A request has fewer instructions than the agenda asks for where no further one applies without "
        "contradicting another. Intervals: 95 %, resampled by task.",
    )  # fmt: skip


def _numbers(found: Outcomes) -> Iterator[tuple[Value, ...]]:
    composite = _composite(found)
    for number in composite["turns"] if composite else ["1"]:
        turns = composite["turns"][number] if composite else size(found.adherence)
        passed = composite["regression"].get(number, {}).get("n") if composite else size(found.regression.overall)
        rates = (value for name in ("adherence", "all_followed", "regression") for value in _rate(found, name, number))
        yield (int(number), turns, *rates, passed)


def _by_pair(comparison: RefineComparison) -> Table:
    columns = (
        *columns_of(pair="Scopes"), *with_interval("regression", "Regression", ".3f"),
        Column("passed_before", "Passed before", "d"),
    )  # fmt: skip
    rows = [
        (found, (pair.replace("+", " + "), *_measured(figure), figure["n"]))
        for found in comparison.in_order()
        for pair, figure in (_composite(found).get("regression_by_pair") or {}).items()
    ]
    return named_table(
        comparison, columns, rows, name="composite_pairs", title="Regression by pair of scopes", group=GROUP,
        note="A turn with three or more instructions counts once for each pair of scopes among them. Intervals: 95 %, "
        "resampled by task.",
    )  # fmt: skip


def _draw(comparison: RefineComparison, look: Look) -> Any:
    cells = list(comparison.in_order())
    usual = [_usual(found) for found in cells]
    numbers = sorted(set(usual))
    figure, axes = panels([drawing.wrapped(title) for title in FIGURES.values()], 3.6, 3.3, 3)
    for panel, name in zip(axes, FIGURES, strict=True):
        strips(panel, len(numbers))
        for place, number in enumerate(numbers):
            alike = [found for found, own in zip(cells, usual, strict=True) if own == number]
            for aside, found in enumerate(alike):
                x = place + spread(aside, len(alike), SPREAD)
                bars(panel, [(x, *_rate(found, name, number))], **look.point(found.cell.label))
        name_groups(panel, numbers)
        panel.set_xlabel("Instructions in a request")
    return from_zero(figure, axes)


def _usual(found: Outcomes) -> str:
    turns: Mapping[str, int] = _composite(found).get("turns") or {"1": 1}
    return max(turns, key=lambda number: turns[number])


def _rate(found: Outcomes, name: str, number: str) -> Measured:
    if composite := _composite(found):
        return _measured(composite[name].get(number))
    return found.counted(found.regression.overall if name == "regression" else found.adherence)


def _measured(figure: Mapping[str, Any] | None) -> Measured:
    return (None, None) if figure is None else (figure["value"], Interval.of(figure["ci"]))


def _composite(found: Outcomes) -> Mapping[str, Any]:
    return found.cell.metrics.get("composite") or {}
