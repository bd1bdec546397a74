"""Ablations: what the agenda, the session length or the judge does to MST, Δ and regression."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codechat.report.figures.rates import whiskers
from codechat.report.figures.style import MARKERS, Look, legend
from codechat.report.outcomes import Outcomes, Study
from codechat.report.tables.ablations import AXES, Series, series

Value = tuple[float | None, Sequence[float] | None]


def _mst(found: Outcomes) -> Value:
    return found.cell.metrics["mst"], found.cell.metrics["ci"]["mst"]


def _share(found: Outcomes) -> Value:
    mst, ends = _mst(found)
    return (None, None) if mst is None else (mst / found.length, [end / found.length for end in ends] if ends else None)


def _delta(found: Outcomes) -> Value:
    return found.cell.metrics["delta_pct"], found.cell.metrics["ci"]["delta_pct"]


def _regression(found: Outcomes) -> Value:
    return found.cell.metrics["regression"]["overall"], found.cell.metrics["ci"]["regression"]["overall"]


MEASURES: Mapping[str, Callable[[Outcomes], Value]] = {
    "MST": _mst,
    "MST / N": _share,
    "Δ Pass@1, %": _delta,
    "Regression rate": _regression,
}


def ablation(study: Study, look: Look, axis: str) -> Any:
    """One row of panels per dataset, one column per measure; None where nothing varies along the axis."""
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


def _draw(panel: Any, members: Sequence[Series], look: Look, measure: Callable[[Outcomes], Value]) -> None:
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
