"""The figures that a cell leaves of itself: its series over the turns, its breakdowns by group."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.metrics import Breakdown, Measures, Series
from codechat.metrics.measures import interval_of, value_of
from codechat.report.drawing.curves import Point
from codechat.report.drawing.points import whiskers
from codechat.report.drawing.style import COLOURS, save, share_range, styled
from codechat.report.generic.figures import points_of
from codechat.report.generic.tables import groups_in


def write_cell_figures(measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """`turns`, all series over the turns, and `by_<group>`, as SVG and PNG; none if there is nothing to draw."""
    curves = {series: points_of(metrics, series) for series in measures.series}
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
    """Low and high of every point, one after the other; the value itself if there is no interval."""
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
