"""Cells that differ in one choice alone, side by side: what agenda, session length, judge or prompts change."""

import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from codechat.domain import SCOPES
from codechat.report.data import Column, Table, Value, columns_of, with_interval
from codechat.report.drawing.plots import bars, spread
from codechat.report.drawing.style import DASHES, Look, legend
from codechat.report.variants import RESCORED
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy

# What can vary, with the words for it, and how a cell is called in such a table.
AXES: Mapping[str, str] = {
    "agenda": "Agenda distribution (D)",
    "turns": "Session length (N)",
    "judge": "Judge",
    "prompts": "Prompts of the model",
}

NAMES: Mapping[str, str] = {"agenda": "Agenda", "turns": "N", "judge": "Judge", "prompts": "Prompts"}


@dataclass(frozen=True)
class Series:
    """Cells of one model and dataset that differ in an axis alone, by its value. `fixed` says what they share."""

    model: str
    dataset: str
    fixed: str
    cells: Sequence[tuple[str | int, Outcomes]]


def series(study: RefineStudy, axis: str) -> list[Series]:
    """All series of two or more cells along an axis: they differ in nothing else."""
    groups: dict[tuple[str, ...], list[tuple[str | int, Outcomes]]] = defaultdict(list)
    for found in study.cells:
        cell = found.cell
        on = {key: words for key, words in cell.differences.items() if _is_on(axis, key)}
        fixed = ", ".join(words for key, words in cell.differences.items() if key not in on)
        # under the choice, or under the options' own words if it does not say it all
        chosen = on.keys() <= {axis, "agenda.turns", RESCORED}
        words = ", ".join(on.values()).removeprefix(f"{axis} ").removesuffix(f" {axis}")
        value = getattr(cell, axis) if chosen and axis != "prompts" else words
        groups[cell.dataset, cell.model, fixed].append((value, found))
    result = []
    for (dataset, model, fixed), members in sorted(groups.items()):
        if len({value for value, _ in members}) > 1:
            cells = sorted(members, key=lambda pair: (isinstance(pair[0], str), pair[0]))
            result.append(Series(model, dataset, fixed, cells))
    return result


def _is_on(axis: str, key: str) -> bool:
    """Whether an option belongs to the choice of an axis; what tells only twins apart does not."""
    if axis == "prompts":
        return key.startswith("protocol.prompts")
    if axis == "turns" or key == "agenda.turns":
        return axis == "turns" and key == "agenda.turns"
    return key.partition(".")[0] == axis or (axis == "judge" and key == RESCORED)


def ablation_table(study: RefineStudy, axis: str) -> Table | None:
    """The table of an axis; None if nothing varies along it."""
    found = series(study, axis)
    if not found:
        return None
    fixed = any(one.fixed for one in found)
    columns = (
        *columns_of(dataset="Dataset", model="Model", **({"fixed": "Fixed"} if fixed else {}), **{axis: NAMES[axis]}),
        Column("completed", "Sessions", "d"), *columns_of(".3f", pass_first="Pass@1 first", pass_last="last"),
        *with_interval("delta_pct", "Δ %", "+.1f"),
        *with_interval("mst", "MST", ".3f"), Column("mst_share", "MST / N", ".3f"),
        *with_interval("regression", "Regression", ".3f"),
        *columns_of(".3f", **{f"regression_{scope}": scope for scope in SCOPES}, adherence="Adherence"),
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
    share = None if mst is None else mst / found.cell.turns
    return share, ends and [end / found.cell.turns for end in ends]


MEASURES: Mapping[str, Callable[[Outcomes], Measured]] = {
    "MST": lambda found: found.measured("mst"),
    "MST / N": _share,
    "Δ Pass@1, %": lambda found: found.measured("delta_pct"),
    "Regression rate": lambda found: found.measured("regression.overall"),
    "Adherence rate": lambda found: found.counted(found.adherence),
}
ONLY_ALONG: Mapping[str, str] = {"MST / N": "turns", "Adherence rate": "judge"}
"""Measures that are drawn along one axis alone: the others do not change them by themselves."""


def ablation_figure(study: RefineStudy, look: Look, axis: str) -> Any:
    """One row of panels per dataset, one column per measure; None if nothing varies along the axis."""
    from matplotlib.figure import Figure

    found = series(study, axis)
    if not found:
        return None
    datasets = sorted({one.dataset for one in found})
    measures = [name for name in MEASURES if ONLY_ALONG.get(name, axis) == axis]
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
    width = 0.6 if not numeric else 0.25 * min((b - a for a, b in pairwise(sorted(places.values()))), default=1.0)
    for number, one in enumerate(members):
        aside = spread(number, len(members), width)
        label = one.model + (f" ({one.fixed})" if one.fixed else "")
        twins = [each for each in members if each.model == one.model]
        dash = DASHES[twins.index(one) % len(DASHES)] if numeric else "none"
        bars(
            panel, [(places[name] + aside, *measure(cell)) for name, cell in one.cells],
            **{**look.line(one.cells[0][1].cell.label), "label": label, "linestyle": dash},
            capsize=2.5, elinewidth=1.2,
        )  # fmt: skip
    if numeric:
        panel.set_xticks(sorted(places.values()))
    else:
        labels = [textwrap.fill(str(name), 18) for name in names]
        panel.set_xticks(range(len(names)), labels, rotation=30, ha="right", rotation_mode="anchor", fontsize=8.5)
        panel.grid(visible=False, axis="x")
        panel.set_xlim(-0.5, len(names) - 0.5)
