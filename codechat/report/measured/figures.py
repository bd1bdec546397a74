"""Figures of whatever a protocol measures: its series over the turns, its breakdowns by group."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codechat.metrics import Breakdown, Measures, Series
from codechat.metrics.measures import interval_of, value_of
from codechat.report.data import FigureFile
from codechat.report.figures.curves import MOST_BANDS, Point, drawn
from codechat.report.figures.rates import from_zero, points, whiskers
from codechat.report.figures.style import COLOURS, MARKERS, Look, panels, save, share_range, styled
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
    """A panel per dataset and measure; None where there is no value."""
    study = group.study
    parts = [part for part in group.measures.breakdowns if part.by == by]
    places = [(dataset, part) for dataset in study.datasets for part in parts]
    many = len(study.datasets) > 1
    titles = [f"{part.label}, {dataset}" if many else part.label for dataset, part in places]
    few = len(groups_in(parts, [found.cell.metrics for found in study.cells])) <= FEW
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
    """`turns`, all shares over the turns, and `by_<group>`, as SVG and PNG; none where there is nothing to draw."""
    shares = [series for series in measures.series if series.unit == "share"]
    curves = {series: [point for point in _curve(metrics, series) if point[1] is not None] for series in shares}
    with styled():
        if any(curves.values()):
            save(_turns(curves, title), folder, "turns")
        for by in dict.fromkeys(part.by for part in measures.breakdowns):
            parts = [part for part in measures.breakdowns if part.by == by]
            names = groups_in(parts, [metrics])
            if names:
                save(_groups(parts, metrics, names, f"{title}, by {by}"), folder, f"by_{by}")


def _turns(curves: Mapping[Series, list[Point]], title: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    panel = figure.subplots()
    heights: list[float] = []
    turns: set[int] = set()
    shown = {series: curve for series, curve in curves.items() if curve}
    for number, (series, curve) in enumerate(shown.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        at, values, ends = zip(*curve, strict=True)
        low, high = zip(*(each or (value, value) for each, value in zip(ends, values, strict=True)), strict=True)
        panel.plot(at, values, color=colour, marker=marker, label=series.label)
        if len(shown) <= MOST_BANDS:
            panel.fill_between(at, low, high, color=colour, alpha=0.13, linewidth=0)
            values = (*low, *high)
        heights += values
        turns |= {*at}
    panel.set(title=title, xlabel="turn", ylabel="share", ylim=share_range(heights))
    panel.set_xticks(sorted(turns)[:: max(1, round(len(turns) / 16))])
    figure.legend(loc="outside lower center", ncols=min(4, len(shown)))
    return figure


def _groups(parts: Sequence[Breakdown], metrics: Mapping[str, Any], names: Sequence[str], title: str) -> Any:
    """A row per group, a point with its interval per measure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.4 + 0.42 * len(names) * max(1.0, 0.4 * len(parts))), layout="constrained")
    panel = figure.subplots()
    for number, part in enumerate(parts):
        shift = 0.7 * ((number + 0.5) / len(parts) - 0.5)
        values, ends = value_of(metrics, part) or {}, interval_of(metrics, part) or {}
        known = [(place + shift, values[name], ends.get(name) or (values[name],) * 2)
                 for place, name in enumerate(names) if values.get(name) is not None]  # fmt: skip
        if known:
            at, shares, sides = zip(*known, strict=True)
            panel.errorbar(
                shares, at, xerr=whiskers(shares, sides), color=COLOURS[number % len(COLOURS)], linestyle="none",
                marker=MARKERS[number % len(MARKERS)], capsize=2.5, elinewidth=1.2, label=part.label,
            )  # fmt: skip
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.set(title=title)
    panel.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=min(4, len(parts)))
    return figure
