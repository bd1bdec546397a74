"""Cells that differ in one choice alone, side by side: what the agenda, the session length or the judge changes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codechat.domain import SCOPES
from codechat.report.data import Column, Table, Value
from codechat.report.outcomes import Outcomes, Study, as_interval

# What can vary, with the words for it, and how a cell is called in such a table.
AXES: Mapping[str, str] = {"agenda": "Agenda distribution (D)", "turns": "Session length (N)", "judge": "Judge"}


@dataclass(frozen=True)
class Series:
    """Cells of one model and dataset that differ in the axis alone. `fixed` tells what they share; `cells` by value."""

    axis: str
    model: str
    dataset: str
    fixed: str
    cells: Sequence[tuple[str | int, Outcomes]]


def series(study: Study, axis: str) -> list[Series]:
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
            result.append(Series(axis, cell.model, cell.dataset, fixed, _named(axis, members)))
    return sorted(result, key=lambda found: (found.dataset, found.model, found.fixed))


def _named(axis: str, members: Sequence[Outcomes]) -> list[tuple[str | int, Outcomes]]:
    """The cells under the axis's value, or under their whole variant where two share a value."""
    values: list[str | int] = [getattr(found.cell, axis) for found in members]
    names = [
        value if values.count(value) == 1 else found.cell.variant for value, found in zip(values, members, strict=True)
    ]
    ordered = sorted(zip(names, members, strict=True), key=lambda pair: (isinstance(pair[0], str), pair[0]))
    return list(ordered)


def ablation(study: Study, axis: str) -> Table | None:
    """The table of an axis; None where nothing varies along it."""
    found = series(study, axis)
    if not found:
        return None
    fixed = any(one.fixed for one in found)
    value = Column(axis, {"agenda": "Agenda", "turns": "N", "judge": "Judge"}[axis])
    columns = (
        Column("dataset", "Dataset"), Column("model", "Model"), *([Column("fixed", "Fixed")] if fixed else []), value,
        Column("completed", "Sessions", "d"),
        Column("pass_first", "Pass@1 first", ".3f"), Column("pass_last", "last", ".3f"),
        Column("delta_pct", "Δ %", "+.1f"), Column("delta_pct_ci", "95 % interval", "+.1f"),
        Column("mst", "MST", ".3f"), Column("mst_ci", "95 % interval", ".3f"), Column("mst_share", "MST / N", ".3f"),
        Column("regression", "Regression", ".3f"), Column("regression_ci", "95 % interval", ".3f"),
        *(Column(f"regression_{scope}", scope, ".3f") for scope in SCOPES),
        Column("adherence", "Adherence", ".3f"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for one in found:
        for name, cell in one.cells:
            rows.append((one.dataset, one.model, *([one.fixed] if fixed else []), str(name), *_values(cell)))
    return Table(
        f"ablation_{axis}", f"{AXES[axis]}, side by side", columns, tuple(rows), group="ablations",
        note="Cells of one model and dataset that differ in this choice alone. MST grows with N by itself: compare "
        "MST / N, the share of a session that is sustained. Intervals: 95 %, resampled by task.",
    )  # fmt: skip


def _values(found: Outcomes) -> tuple[Value, ...]:
    metrics = found.cell.metrics
    intervals = metrics["ci"]
    return (
        metrics["completed"],
        metrics["pass_at_1"][0],
        metrics["pass_at_1"][-1],
        metrics["delta_pct"],
        as_interval(intervals["delta_pct"]),
        metrics["mst"],
        as_interval(intervals["mst"]),
        None if metrics["mst"] is None else metrics["mst"] / found.length,
        metrics["regression"]["overall"],
        as_interval(intervals["regression"]["overall"]),
        *(metrics["regression"]["by_scope"][scope] for scope in SCOPES),
        found.adherence.rate,
    )
