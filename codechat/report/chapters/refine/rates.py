"""Rates by type of instruction (paper, Figs. 4, 5 and 7), their heat map, the most breaking instructions, adherence."""

import textwrap
from collections.abc import Sequence
from functools import partial
from typing import Any

from codechat.domain import CHANGES, SCOPES
from codechat.metrics.statistics import Figure
from codechat.report.chapters.refine.breaks import breaking, total, types, wilson
from codechat.report.chapters.refine.outcomes import Outcomes, RefineStudy
from codechat.report.drawing.marks import from_zero, points, whiskers
from codechat.report.drawing.style import Look, legend, panels, share_range

Ends = Sequence[float] | None
MOST_INSTRUCTIONS = 15


def regression(study: RefineStudy, look: Look, breakdown: str) -> Any:
    """The regression rate by scope or by change."""
    figure, axes = panels(study.datasets, height=3.3)
    for panel, dataset in zip(axes, study.datasets, strict=True):
        points(panel, look, types(breakdown), list(study.on(dataset)), partial(_regression, breakdown))
        panel.set_ylabel("Regression rate")
    return from_zero(figure, axes)


def _regression(breakdown: str, found: Outcomes, name: str) -> tuple[float | None, Ends]:
    metrics = found.cell.metrics
    return metrics["regression"][breakdown][name], metrics["ci"]["regression"][breakdown][name]


def self_correction(study: RefineStudy, look: Look) -> Any:
    """The self-correction rate over all turns, by scope and by change: a row of three panels per dataset."""
    parts = [("all turns", ("all turns",)), ("by scope", SCOPES), ("by change", CHANGES)]
    titles = [f"{dataset}, {name}" for dataset in study.datasets for name, _ in parts]
    figure, axes = panels(titles, width=3.9, height=3.0, columns=3)
    for number, panel in enumerate(axes):
        dataset, (name, names) = study.datasets[number // 3], parts[number % 3]
        breakdown = name.replace(" ", "_")
        points(panel, look, names, list(study.on(dataset)), partial(_mended, breakdown))
        panel.set_ylabel("Self-correction rate" if number % 3 == 0 else "")
    return from_zero(figure, axes)


def _mended(breakdown: str, found: Outcomes, name: str) -> tuple[float | None, Ends]:
    rates = found.self_correction
    figure: Figure = rates.overall if breakdown == "all_turns" else getattr(rates, breakdown)[name]
    return found.counted(figure)


def heat_map(study: RefineStudy, look: Look) -> Any:
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


def instructions(study: RefineStudy, look: Look) -> Any:
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


def pass_against_adherence(study: RefineStudy, look: Look) -> Any:
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
