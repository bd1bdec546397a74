"""The refinement's figures: curves, rates by type of instruction (paper, Figs. 3 to 7), the most breaking ones."""

import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

from codechat.base.domain import CHANGES, SCOPES
from codechat.report.data import Drawing, Ends, Interval
from codechat.report.drawing import (
    Look,
    Point,
    curves,
    from_zero,
    heat_map,
    legend,
    panels,
    points,
    points_of,
    share_range,
    whiskers,
    wrapped,
)
from codechat.report.metrics.statistics import TaskRatio
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter.comparisons import AXES, ablation_figure
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineComparison
from codechat.studies.refine.chapter.tables import breaking, wilson
from codechat.studies.refine.metrics import REFINE

MOST_INSTRUCTIONS = 15
SCOPE_COLOURS = {"cosmetic": "#56B4E9", "structural": "#E69F00", "semantic": "#882255"}
TYPES = {"by_scope": SCOPES, "by_change": CHANGES, "all_turns": ("all turns",)}


def _curve(name: str, figure: Callable[[Outcomes, int], TaskRatio], first: int, *, steps: bool = False) -> Any:
    """What draws the curve of a figure that each cell has one of for every turn from `first` on."""

    def values(found: Outcomes) -> list[Point]:
        return [(turn, *found.counted(figure(found, turn))) for turn in range(first, found.cell.turns)]

    return partial(curves, values=values, name=name, steps=steps)


def regression(comparison: RefineComparison, look: Look, breakdown: str) -> Any:
    """The regression rate by scope or by change."""
    figure, axes = panels(comparison.datasets, height=3.3)
    for panel, dataset in zip(axes, comparison.datasets, strict=True):
        points(panel, look, TYPES[breakdown], comparison.on(dataset), partial(_regression, breakdown))
        panel.set_ylabel("Regression rate")
    return from_zero(figure, axes)


def _regression(breakdown: str, found: Outcomes, name: str) -> tuple[float | None, Ends]:
    metrics = found.cell.metrics
    return metrics["regression"][breakdown][name], metrics["ci"]["regression"][breakdown][name]


def self_correction(comparison: RefineComparison, look: Look) -> Any:
    """The self-correction rate over all turns, by scope and by change: a row of three panels per dataset."""
    parts = ("all_turns", "by_scope", "by_change")
    places = [(dataset, name) for dataset in comparison.datasets for name in parts]
    titles = [f"{dataset}, {name.replace('_', ' ')}" for dataset, name in places]
    figure, axes = panels(titles, width=3.9, height=3.0, columns=3)
    for panel, (dataset, name) in zip(axes, places, strict=True):
        points(panel, look, TYPES[name], comparison.on(dataset), partial(_mended, name))
        panel.set_ylabel("Self-correction rate" if name == "all_turns" else "")
    return from_zero(figure, axes)


def _mended(breakdown: str, found: Outcomes, name: str) -> tuple[float | None, Ends]:
    rates = found.self_correction
    figure: TaskRatio = rates.overall if breakdown == "all_turns" else getattr(rates, breakdown)[name]
    return found.counted(figure)


def scope_by_change(comparison: RefineComparison, look: Look) -> Any:
    """The regression rate by scope and change: one map per entrant and dataset, all on one scale."""
    cells = [found for dataset in comparison.datasets for found in comparison.on(dataset)]
    titles = [wrapped(f"{found.cell.label}\n{found.cell.dataset}") for found in cells]
    figure, axes = panels(titles, width=2.7, height=2.7, columns=4)
    rates = [[[found.regression.by_cell[f"{s}/{c}"] for c in CHANGES] for s in SCOPES] for found in cells]
    known = [cell.rate for found in rates for row in found for cell in row if cell.rate is not None]
    if not known:
        return None
    top = max([*known, 0.05])
    image = None
    for panel, found, title in zip(axes, rates, titles, strict=True):
        shares = [[cell.rate for cell in row] for row in found]
        texts = [["–" if cell.rate is None else f"{cell.rate:.2f}\nn={size(cell)}" for cell in row] for row in found]
        image = heat_map(panel, shares, texts, rows=SCOPES, columns=CHANGES, top=top, size=8)
        panel.set_title(title, loc="left", fontsize=9)
    figure.colorbar(image, ax=axes, label="Regression rate", shrink=0.8, pad=0.02)
    return figure


def instructions(comparison: RefineComparison, look: Look) -> Any:
    """The instructions that break most, by the lower end of the interval of their regression rate."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    top = [seen for seen in breaking(comparison) if seen.broke][:MOST_INSTRUCTIONS]
    if not top:
        return None
    figure = Canvas(figsize=(8.6, 1.3 + 0.42 * len(top)), layout="constrained")
    panel = figure.subplots()
    highs = []
    for place, seen in enumerate(top):
        share = seen.broke / seen.met
        ends = wilson(seen.broke, seen.met) or (share, share)
        highs.append(ends[1])
        panel.errorbar([share], [place], xerr=whiskers([share], [ends]), color=SCOPE_COLOURS[seen.instruction.scope],
                       marker="o", capsize=2.5)  # fmt: skip
        panel.annotate(f"{seen.broke} of {seen.met}", (ends[1], place), xytext=(6, 0), textcoords="offset points",
                       va="center", fontsize=8, color="#555555")  # fmt: skip
    labels = [textwrap.shorten(seen.instruction.text, 64, placeholder="…") for seen in top]
    panel.set_yticks(range(len(top)), labels, fontsize=9)
    panel.invert_yaxis()
    panel.set(xlabel="Regression rate (95 % Wilson interval)", xlim=(0, 1.18 * max(highs)))
    panel.grid(visible=False, axis="y")
    handles = [Line2D([], [], color=colour, marker="o", label=scope) for scope, colour in SCOPE_COLOURS.items()]
    figure.legend(handles=handles, loc="outside upper right", ncols=3)
    return figure


def pass_against_adherence(comparison: RefineComparison, look: Look) -> Any:
    """Pass@1 at the last turn against the adherence rate over all turns: one point per entrant."""
    figure, axes = panels(comparison.datasets, height=4.0)
    widths: list[float] = []
    heights: list[float] = []
    for panel, dataset in zip(axes, comparison.datasets, strict=True):
        for found in comparison.on(dataset):
            metrics = found.cell.metrics
            (x, sides), y = found.counted(found.adherence), metrics["pass_at_1"][-1]
            if x is None or y is None:
                continue
            sides = sides or Interval(x, x)
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


DRAWINGS = (
    Drawing("figure_3_pass_at_1", "Pass@1 over the turns (paper, Fig. 3)",
        "The share of sessions whose code passes the whole test suite at each turn; bands or whiskers: 95 % by task.",
        "trend", partial(curves, values=points_of(REFINE.series[0]), name="Pass@1")),
    Drawing("survival", "Survival: sessions still passing since turn 0",
        "The share of sessions that have passed at every turn so far; bands or whiskers: 95 % by task.",
        "trend", _curve("Passing since turn 0", Outcomes.surviving, 0, steps=True)),
    Drawing("figure_4_regression_by_scope", "Regression by scope (paper, Fig. 4)",
        "The share of turns that broke passing code, by the scope of the instruction; whiskers: 95 % by task.",
        "breaks", partial(regression, breakdown="by_scope")),
    Drawing("figure_5_regression_by_change", "Regression by change (paper, Fig. 5)",
        "The share of turns that broke passing code, by the change asked for; whiskers: 95 % by task.",
        "breaks", partial(regression, breakdown="by_change")),
    Drawing("regression_heat_map", "Regression by scope and change",
        "The regression rate of each cell of the taxonomy; n: turns whose code had passed before.",
        "breaks", scope_by_change),
    Drawing("regression_by_turn", "Regression by turn position",
        "The share of passing code that each turn breaks; bands or whiskers: 95 % by task.",
        "breaks", _curve("Regression rate", lambda found, turn: found.regression_at[turn], 1)),
    Drawing("breaking_instructions", "The most breaking instructions",
        "Over all cells, ordered by the lower end of the interval; one label counts broken turns of those met.",
        "breaks", instructions),
    Drawing("figure_7_self_correction", "Self-correction, dataset by dataset (paper, Fig. 7)",
        "The share of turns that mended failing code: by model, scope and change; whiskers: 95 % by task.",
        "breaks", self_correction),
    Drawing("figure_6_adherence", "Instruction adherence over the turns (paper, Fig. 6)",
        "The share of judged turns that did what was asked, correctness aside; bands or whiskers: 95 % by task.",
        "adherence", _curve("Instruction adherence rate", lambda found, turn: found.adherence_at[turn], 1)),
    Drawing("pass_against_adherence", "Pass@1 against adherence",
        "Each entrant's Pass@1 at the last turn against its adherence over all turns; whiskers: 95 % by task.",
        "adherence", pass_against_adherence),
    *(
        Drawing(f"ablation_{axis}", f"{words}, side by side",
                "Cells that differ in this choice alone; whiskers: 95 % by task.",
                "ablations", partial(ablation_figure, axis=axis))
        for axis, words in AXES.items()
    ),
)  # fmt: skip
