"""Cells that differ in one choice alone, side by side: what the agenda, the session length or the judge changes."""

import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codechat.domain import SCOPES
from codechat.report.chapters.refine.outcomes import Outcomes, RefineStudy
from codechat.report.data import Column, Table, Value, columns_of, with_interval
from codechat.report.drawing.marks import whiskers
from codechat.report.drawing.style import MARKERS, Look, legend

# What can vary, with the words for it, and how a cell is called in such a table.
AXES: Mapping[str, str] = {"agenda": "Agenda distribution (D)", "turns": "Session length (N)", "judge": "Judge"}


@dataclass(frozen=True)
class Series:
    """Cells of one model and dataset that differ in an axis alone, by its value. `fixed` says what they share."""

    model: str
    dataset: str
    fixed: str
    cells: Sequence[tuple[str | int, Outcomes]]


def series(study: RefineStudy, axis: str) -> list[Series]:
    """All series of two or more cells along an axis."""
    rest = [name for name in (*AXES, "seed") if name != axis]
    groups: dict[tuple[object, ...], list[Outcomes]] = defaultdict(list)
    for found in study.cells:
        cell = found.cell
        groups[cell.model, cell.dataset, *(getattr(cell, name) for name in rest)].append(found)
    varying = [name for name in rest if len({getattr(found.cell, name) for found in study.cells}) > 1]
    result = []
    for members in groups.values():
        cell = members[0].cell
        if len({getattr(found.cell, axis) for found in members}) > 1:
            fixed = ", ".join(f"{name} {getattr(cell, name)}" for name in varying)
            result.append(Series(cell.model, cell.dataset, fixed, _named(axis, members)))
    return sorted(result, key=lambda found: (found.dataset, found.model, found.fixed))


def _named(axis: str, members: Sequence[Outcomes]) -> list[tuple[str | int, Outcomes]]:
    """The cells under the axis's value, or under their whole variant where two share a value."""
    values: list[str | int] = [getattr(found.cell, axis) for found in members]
    names = [
        value if values.count(value) == 1 else found.cell.variant for value, found in zip(values, members, strict=True)
    ]
    ordered = sorted(zip(names, members, strict=True), key=lambda pair: (isinstance(pair[0], str), pair[0]))
    return list(ordered)


def ablation_table(study: RefineStudy, axis: str) -> Table | None:
    """The table of an axis; None if nothing varies along it."""
    found = series(study, axis)
    if not found:
        return None
    fixed = any(one.fixed for one in found)
    value = Column(axis, {"agenda": "Agenda", "turns": "N", "judge": "Judge"}[axis])
    columns = (
        Column("dataset", "Dataset"), Column("model", "Model"), *([Column("fixed", "Fixed")] if fixed else []), value,
        Column("completed", "Sessions", "d"), *columns_of(".3f", pass_first="Pass@1 first", pass_last="last"),
        *with_interval("delta_pct", "Δ %", "+.1f"),
        *with_interval("mst", "MST", ".3f"), Column("mst_share", "MST / N", ".3f"),
        *with_interval("regression", "Regression", ".3f"),
        *(Column(f"regression_{scope}", scope, ".3f") for scope in SCOPES),
        Column("adherence", "Adherence", ".3f"),
    )  # fmt: skip
    rows = [
        (one.dataset, one.model, *([one.fixed] if fixed else []), str(name), *_values(cell))
        for one in found for name, cell in one.cells
    ]  # fmt: skip
    return Table(
        f"ablation_{axis}", f"{AXES[axis]}, side by side", columns, tuple(rows), group="ablations",
        note="Cells of one model and dataset that differ in this choice alone. MST grows with N by itself: compare "
        "MST / N, the share of a session that is sustained. Intervals: 95 %, resampled by task.",
    )  # fmt: skip


def _values(found: Outcomes) -> tuple[Value, ...]:
    metrics = found.cell.metrics
    return (
        *(metrics["completed"], metrics["pass_at_1"][0], metrics["pass_at_1"][-1]),
        *(*found.measured("delta_pct"), *found.measured("mst"), _share(found)[0]),
        *found.measured("regression.overall"),
        *(metrics["regression"]["by_scope"][scope] for scope in SCOPES),
        found.adherence.rate,
    )


Measured = tuple[float | None, Sequence[float] | None]


def _share(found: Outcomes) -> Measured:
    mst, ends = found.measured("mst")
    return (None, None) if mst is None else (mst / found.length, [end / found.length for end in ends] if ends else None)


MEASURES: Mapping[str, Callable[[Outcomes], Measured]] = {
    "MST": lambda found: found.measured("mst"),
    "MST / N": _share,
    "Δ Pass@1, %": lambda found: found.measured("delta_pct"),
    "Regression rate": lambda found: found.measured("regression.overall"),
}


def ablation_figure(study: RefineStudy, look: Look, axis: str) -> Any:
    """One row of panels per dataset, one column per measure; None if nothing varies along the axis."""
    from matplotlib.figure import Figure

    found = series(study, axis)
    if not found:
        return None
    datasets = sorted({one.dataset for one in found})
    measures = [name for name in MEASURES if axis == "turns" or name != "MST / N"]
    figure = Figure(figsize=(3.7 * len(measures), 3.3 * len(datasets)), layout="constrained")
    grid = figure.subplots(len(datasets), len(measures), squeeze=False)
    for row, dataset in zip(grid, datasets, strict=True):
        members = [one for one in found if one.dataset == dataset]
        for panel, measure in zip(row, measures, strict=True):
            _draw(panel, members, look, MEASURES[measure])
            panel.set_title(f"{dataset}: {measure}", loc="left", fontweight="bold", fontsize=10)
            panel.set_xlabel(AXES[axis])
    legend(figure, list(grid.flat))
    return figure


def _draw(panel: Any, members: Sequence[Series], look: Look, measure: Callable[[Outcomes], Measured]) -> None:
    names = list(dict.fromkeys(name for one in members for name, _ in one.cells))
    numeric = all(isinstance(name, int) for name in names)
    places = {name: float(name) if numeric else float(number) for number, name in enumerate(names)}
    for number, one in enumerate(members):
        shift = 0.0 if numeric else 0.6 * ((number + 0.5) / len(members) - 0.5)
        known = [(places[name], *measure(cell)) for name, cell in one.cells]
        shown = [(place + shift, value, ends or (value, value)) for place, value, ends in known if value is not None]
        if not shown:
            continue
        x, values, ends = zip(*shown, strict=True)
        label = one.model + (f" ({one.fixed})" if one.fixed else "")
        panel.errorbar(
            x, values, yerr=whiskers(values, ends), color=look.model(one.model), marker=MARKERS[number % len(MARKERS)],
            linestyle="-" if numeric else "none", capsize=2.5, elinewidth=1.2, label=label,
        )  # fmt: skip
    if numeric:
        panel.set_xticks(sorted(places.values()))
    else:
        labels = [textwrap.fill(str(name), 14) for name in names]
        panel.set_xticks(range(len(names)), labels, rotation=30, ha="right", rotation_mode="anchor", fontsize=8.5)
        panel.grid(visible=False, axis="x")
        panel.set_xlim(-0.5, len(names) - 0.5)
