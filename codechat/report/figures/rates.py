"""Rates by type of instruction (paper, Figs. 4, 5 and 7), their heat map, the most breaking instructions, adherence."""

import textwrap
from collections.abc import Sequence
from typing import Any

from codechat.domain import CHANGES, SCOPES
from codechat.metrics.statistics import Figure
from codechat.report.figures.style import Look, legend, panels, share_range
from codechat.report.outcomes import Outcomes, Study
from codechat.report.statistics.shares import wilson
from codechat.report.study import Found
from codechat.report.tables.breaks import breaking, total, types

Ends = Sequence[float] | None
MOST_INSTRUCTIONS = 15
MOST_LETTERS = 60  # of names that stand upright side by side below a panel


def regression_by_scope(study: Study, look: Look) -> Any:
    """The regression rate by scope."""
    return _by_type(study, look, "by_scope")


def regression_by_change(study: Study, look: Look) -> Any:
    """The regression rate by change."""
    return _by_type(study, look, "by_change")


def _by_type(study: Study, look: Look, breakdown: str) -> Any:
    names = types(breakdown)
    figure, axes = panels(study.datasets, height=3.3)
    for panel, dataset in zip(axes, study.datasets, strict=True):
        points(panel, look, names, list(study.on(dataset)), lambda found, name: _regression(found, breakdown, name))
        panel.set_ylabel("Regression rate")
    return from_zero(figure, axes)


def _regression(found: Outcomes, breakdown: str, name: str) -> tuple[float | None, Ends]:
    metrics = found.cell.metrics
    return metrics["regression"][breakdown][name], metrics["ci"]["regression"][breakdown][name]


def self_correction(study: Study, look: Look) -> Any:
    """The self-correction rate over all turns, by scope and by change: a row of three panels per dataset."""
    parts = [("all turns", ("all turns",)), ("by scope", SCOPES), ("by change", CHANGES)]
    titles = [f"{dataset}, {name}" for dataset in study.datasets for name, _ in parts]
    figure, axes = panels(titles, width=3.9, height=3.0, columns=3)
    for number, panel in enumerate(axes):
        dataset, (name, names) = study.datasets[number // 3], parts[number % 3]
        breakdown = name.replace(" ", "_")
        points(
            panel, look, names, list(study.on(dataset)), lambda found, key, part=breakdown: _mended(found, part, key)
        )
        panel.set_ylabel("Self-correction rate" if number % 3 == 0 else "")
    return from_zero(figure, axes)


def _mended(found: Outcomes, breakdown: str, name: str) -> tuple[float | None, Ends]:
    rates = found.self_correction
    figure: Figure = rates.overall if breakdown == "all_turns" else getattr(rates, breakdown)[name]
    return figure.rate, found.interval(figure)


def points(panel: Any, look: Look, names: Sequence[str], entrants: Sequence[Found], value: Any) -> None:
    """A point with its interval per entrant and name, the entrants of a name side by side on a shaded strip.

    `value` gives both for an entrant and a name, or None and None.
    """
    spread = 0.76
    for place in range(0, len(names), 2):
        panel.axvspan(place - 0.5, place + 0.5, color="#F6F6F6", linewidth=0, zorder=0)
    for number, found in enumerate(entrants):
        shift = spread * ((number + 0.5) / len(entrants) - 0.5)
        known = [(place, *value(found, name)) for place, name in enumerate(names)]
        known = [(place + shift, share, ends or (share, share)) for place, share, ends in known if share is not None]
        if not known:
            continue
        x, shares, ends = zip(*known, strict=True)
        bars = whiskers(shares, ends)
        panel.errorbar(x, shares, yerr=bars, **look.point(found.cell.label))
    long = sum(map(len, names)) > MOST_LETTERS
    panel.set_xticks(range(len(names)), names, **({"rotation": 30, "ha": "right", "fontsize": 8.5} if long else {}))
    panel.set_xlim(-0.5, len(names) - 0.5)
    panel.grid(visible=False, axis="x")
    panel.tick_params(axis="x", length=0)


def whiskers(values: Sequence[float], ends: Sequence[Sequence[float]]) -> list[list[float]]:
    """Distances from values down and up to the ends of their intervals."""
    pairs = list(zip(values, ends, strict=True))
    return [[max(v - low, 0.0) for v, (low, _) in pairs], [max(high - v, 0.0) for v, (_, high) in pairs]]


def from_zero(figure: Any, axes: Sequence[Any]) -> Any:
    """Set all panels to one scale from zero and add the legend; None where nothing is drawn."""
    tops = [panel.dataLim.ymax for panel in axes if panel.lines]
    if not tops:
        return None
    height = min(max(1.06 * max(tops), 0.05), 1.02)
    for panel in axes:
        panel.set_ylim(-0.025 * height, height)  # a point at zero stays whole
    legend(figure, axes)
    return figure


def heat_map(study: Study, look: Look) -> Any:
    """The regression rate by scope and change: one map per entrant and dataset, all on one scale."""
    cells = [found for dataset in study.datasets for found in study.on(dataset)]
    titles = [_wrapped(f"{found.cell.label}\n{found.cell.dataset}") for found in cells]
    figure, axes = panels(titles, width=2.7, height=2.7, columns=4)
    rates = [[[found.regression.by_cell[f"{s}/{c}"] for c in CHANGES] for s in SCOPES] for found in cells]
    known = [cell.rate for found in rates for row in found for cell in row if cell.rate is not None]
    if not known:
        return None
    top = max([*known, 0.05])
    image = None
    for panel, found, title in zip(axes, rates, titles, strict=True):
        shares = [[float("nan") if cell.rate is None else cell.rate for cell in row] for row in found]
        image = panel.imshow(shares, cmap="Blues", vmin=0, vmax=top, aspect="auto")
        for y, row in enumerate(found):
            for x, cell in enumerate(row):
                text = "–" if cell.rate is None else f"{cell.rate:.2f}\nn={total(cell)}"
                dark = cell.rate is not None and cell.rate > 0.6 * top
                panel.text(x, y, text, ha="center", va="center", fontsize=8, color="white" if dark else "#222222")
        panel.set_title(title, loc="left", fontsize=9)
        panel.set_xticks(range(len(CHANGES)), CHANGES)
        panel.set_yticks(range(len(SCOPES)), SCOPES)
        panel.grid(visible=False)
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0)
    figure.colorbar(image, ax=axes, label="Regression rate", shrink=0.8, pad=0.02)
    return figure


def _wrapped(text: str) -> str:
    return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, 26))


def instructions(study: Study, look: Look) -> Any:
    """The instructions that break most, by the lower end of the interval of their regression rate."""
    from matplotlib.figure import Figure as Drawing
    from matplotlib.lines import Line2D

    colours = {"cosmetic": "#56B4E9", "structural": "#E69F00", "semantic": "#882255"}
    top = [seen for seen in breaking(study) if seen.broke][:MOST_INSTRUCTIONS]
    if not top:
        return None
    figure = Drawing(figsize=(8.6, 1.3 + 0.42 * len(top)), layout="constrained")
    panel = figure.subplots()
    for place, seen in enumerate(top):
        share = seen.broke / seen.met
        ends = wilson(seen.broke, seen.met) or (share, share)
        colour = colours[seen.instruction.scope]
        panel.errorbar([share], [place], xerr=whiskers([share], [ends]), color=colour, marker="o", capsize=2.5)
        panel.annotate(f"{seen.broke} of {seen.met}", (ends[1], place), xytext=(6, 0), textcoords="offset points",
                       va="center", fontsize=8, color="#555555")  # fmt: skip
    labels = [textwrap.shorten(seen.instruction.text, 64, placeholder="…") for seen in top]
    panel.set_yticks(range(len(top)), labels, fontsize=9)
    panel.invert_yaxis()
    furthest = max((wilson(seen.broke, seen.met) or (0.0, 1.0))[1] for seen in top)
    panel.set(xlabel="Regression rate (95 % Wilson interval)", xlim=(0, 1.18 * furthest))
    panel.grid(visible=False, axis="y")
    handles = [Line2D([], [], color=colour, marker="o", label=scope) for scope, colour in colours.items()]
    figure.legend(handles=handles, loc="outside upper right", ncols=3)
    return figure


def pass_against_adherence(study: Study, look: Look) -> Any:
    """Pass@1 at the last turn against the adherence rate over all turns: one point per entrant."""
    figure, axes = panels(study.datasets, height=4.0)
    widths: list[float] = []
    heights: list[float] = []
    for panel, dataset in zip(axes, study.datasets, strict=True):
        for found in study.on(dataset):
            metrics = found.cell.metrics
            x, y = found.adherence.rate, metrics["pass_at_1"][-1]
            if x is None or y is None:
                continue
            sides = found.interval(found.adherence) or (x, x)
            ends = metrics["ci"]["pass_at_1"][-1] or (y, y)
            widths += sides
            heights += ends
            panel.errorbar(
                [x], [y], xerr=whiskers([x], [sides]), yerr=whiskers([y], [ends]), **look.point(found.cell.label)
            )
        panel.set(xlabel="Instruction adherence rate, all turns")
        panel.set_ylabel("Pass@1 at the last turn")
    if not heights:
        return None
    for panel in axes:
        panel.set(xlim=share_range(widths), ylim=share_range(heights))
    legend(figure, axes)
    return figure
