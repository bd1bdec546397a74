"""Figures of whatever a protocol measures: its series over the turns, its breakdowns by group."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codechat.metrics import Breakdown, Measures, Series
from codechat.metrics.measures import interval_of, value_of
from codechat.report.data import FigureFile
from codechat.report.figures.curves import Point, drawn
from codechat.report.figures.rates import from_zero, points, whiskers
from codechat.report.figures.style import COLOURS, Look, panels, save, share_range, styled
from codechat.report.measured.found import Group, Measured
from codechat.report.measured.tables import groups_in

FEW = 4  # groups that fit a narrow panel
INTERVAL = "bands or whiskers: 95 % by task"


def figures_of(group: Group, folder: Path) -> Iterator[FigureFile]:
    """Draw and write everything that there is something for."""
    protocol = group.measures.protocol
    with styled():
        series = {each.key for each in group.measures.series}
        for key, title, told, figure in _drawn(group, Look(group.study)):
            if figure is not None:
                name, caption = f"{protocol}_{key}", f"{told}; {INTERVAL}." if told else f"{INTERVAL}."
                png, svg = save(figure, folder, name)
                caption = caption[:1].upper() + caption[1:]
                yield FigureFile(name, title, caption, png, svg, protocol, on_page=key not in series)


def _drawn(group: Group, look: Look) -> Iterator[tuple[str, str, str, Any]]:
    """Of each figure its key, its title, what it shows, and the figure, None where there is nothing."""
    measures = group.measures
    for series in measures.series:
        curve, shares = partial(_curve_of, series), series.unit == "share"
        figure = drawn(group.study, look, curve, series.label, shares=shares)
        yield series.key, f"{series.label[:1].upper()}{series.label[1:]}, turn by turn", series.help, figure
    for by in dict.fromkeys(part.by for part in measures.breakdowns):
        yield f"by_{by}", f"By {by}", "", _breakdown(group, look, by)


def _curve_of(series: Series, found: Measured) -> list[Point]:
    return _curve(found.cell.metrics, series)


def _curve(metrics: Mapping[str, Any], series: Series) -> list[Point]:
    values = value_of(metrics, series) or []
    ends = interval_of(metrics, series) or [None] * len(values)
    return [(turn, *both) for turn, both in enumerate(zip(values, ends, strict=True), series.first_turn)]


def _breakdown(group: Group, look: Look, by: str) -> Any:
    """A panel per dataset and measure; None where there is no value, or one group alone, which is all there is."""
    study = group.study
    parts = [part for part in group.measures.breakdowns if part.by == by]
    places = [(dataset, part) for dataset in study.datasets for part in parts]
    many = len(study.datasets) > 1
    titles = [f"{part.label}, {dataset}" if many else part.label for dataset, part in places]
    groups = groups_in(parts, [found.cell.metrics for found in study.cells])
    if len(groups) < 2:
        return None
    few = len(groups) <= FEW
    figure, axes = panels(titles, width=3.6, height=2.7, columns=3) if few else panels(titles, height=3.3)
    for panel, (dataset, part) in zip(axes, places, strict=True):
        cells = list(study.on(dataset))
        names = groups_in(parts, [found.cell.metrics for found in cells])
        points(panel, look, names, cells, partial(_one, part))
    return from_zero(figure, axes)


def _one(part: Breakdown, found: Measured, name: str) -> tuple[float | None, Sequence[float] | None]:
    metrics = found.cell.metrics
    return (value_of(metrics, part) or {}).get(name), (interval_of(metrics, part) or {}).get(name)


def write_cell_figures(measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """`turns`, all series over the turns, and `by_<group>`, as SVG and PNG; none where there is nothing to draw."""
    curves = {series: _curve(metrics, series) for series in measures.series}
    shown = {series: known for series, curve in curves.items() if (known := [p for p in curve if p[1] is not None])}
    with styled():
        if shown:
            save(_turns(shown, title), folder, "turns")
        for by in dict.fromkeys(part.by for part in measures.breakdowns):
            parts = [part for part in measures.breakdowns if part.by == by]
            names = groups_in(parts, [metrics])
            if len(names) > 1:
                save(_groups(parts, metrics, names, f"{title}, by {by}"), folder, f"by_{by}")


def _turns(curves: Mapping[Series, list[Point]], title: str) -> Any:
    """A panel per series; shares have one scale."""
    from matplotlib.figure import Figure

    columns = min(3, len(curves))
    rows = -(-len(curves) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.7 * rows + 0.4), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    shares = [end for series, curve in curves.items() if series.unit == "share" for end in _ends(curve)]
    for number, (panel, (series, curve)) in enumerate(zip(axes, curves.items(), strict=False)):
        colour = COLOURS[number % len(COLOURS)]
        turns, values, _ = zip(*curve, strict=True)
        low, high = _ends(curve)[::2], _ends(curve)[1::2]
        panel.plot(turns, values, color=colour, marker="o")
        panel.fill_between(turns, low, high, color=colour, alpha=0.15, linewidth=0)
        panel.set_title(series.label, loc="left", fontsize=10)
        panel.set(xlabel="Turn", xticks=turns[:: max(1, round(len(turns) / 10))])
        if series.unit == "share":
            panel.set_ylim(share_range(shares))
    for unused in axes[len(curves) :]:
        unused.set_visible(False)
    figure.suptitle(textwrap.fill(title, 30 * columns), x=0.01, ha="left", fontsize=10)
    return figure


def _ends(curve: Sequence[Point]) -> list[float]:
    """Low and high of every point, one after the other; the value itself where there is no interval."""
    return [end for _, value, ends in curve if value is not None for end in (ends or (value, value))]


def _groups(parts: Sequence[Breakdown], metrics: Mapping[str, Any], names: Sequence[str], title: str) -> Any:
    """A panel per measure, a row per group, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.0 + 1.9 * len(parts), 1.4 + 0.32 * len(names)), layout="constrained")
    axes = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
    for number, (panel, part) in enumerate(zip(axes, parts, strict=True)):
        values, ends = value_of(metrics, part) or {}, interval_of(metrics, part) or {}
        known = [(place, values[name], ends.get(name) or (values[name],) * 2)
                 for place, name in enumerate(names) if values.get(name) is not None]  # fmt: skip
        if known:
            at, found, sides = zip(*known, strict=True)
            panel.errorbar(
                found, at, xerr=whiskers(found, sides), color=COLOURS[number % len(COLOURS)], linestyle="none",
                marker="o", capsize=2.5, elinewidth=1.2,
            )  # fmt: skip
        if part.unit == "share":
            panel.set_xlim(-0.04, 1.04)
        panel.set_title(textwrap.fill(part.label, 20), loc="left", fontsize=9)
        panel.grid(visible=False, axis="y")
        panel.tick_params(axis="x", labelsize=8)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    figure.suptitle(textwrap.fill(title, 16 * len(parts) + 16), x=0.01, ha="left", fontsize=10)
    return figure
