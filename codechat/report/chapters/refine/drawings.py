"""The figures of the refinement's chapter, in reading order."""

from collections.abc import Iterable
from functools import partial

from codechat.metrics import REFINE
from codechat.metrics.statistics import Figure
from codechat.report.chapters.refine import rates
from codechat.report.chapters.refine.ablations import AXES, ablation_figure
from codechat.report.chapters.refine.outcomes import Outcomes
from codechat.report.data import Drawing
from codechat.report.drawing.curves import Point, curves
from codechat.report.generic.figures import points_of


def _points(found: Outcomes, series: Iterable[Figure], first: int) -> list[Point]:
    return [(turn, *found.counted(figure)) for turn, figure in enumerate(series, first)]


def _passes(found: Outcomes) -> list[Point]:
    return points_of(found.cell.metrics, REFINE.series[0])


def _adherence(found: Outcomes) -> list[Point]:
    return _points(found, found.adherence_at, 1)


def _survival(found: Outcomes) -> list[Point]:
    return _points(found, map(found.surviving, range(found.length)), 0)


def _regression(found: Outcomes) -> list[Point]:
    return _points(found, found.regression_at, 1)


DRAWINGS = (
    Drawing(
        "figure_3_pass_at_1", "Pass@1 over the turns (paper, Fig. 3)",
        "The share of sessions whose code passes the whole test suite at each turn; bands or whiskers: 95 % by task.",
        "trend", partial(curves, values=_passes, name="Pass@1")),
    Drawing(
        "survival", "Survival: sessions still passing since turn 0",
        "The share of sessions that have passed at every turn so far; bands or whiskers: 95 % by task.",
        "trend", partial(curves, values=_survival, name="Passing since turn 0", steps=True)),
    Drawing(
        "figure_4_regression_by_scope", "Regression by scope (paper, Fig. 4)",
        "The share of turns that broke passing code, by the scope of the instruction; whiskers: 95 % by task.",
        "breaks", partial(rates.regression, breakdown="by_scope")),
    Drawing(
        "figure_5_regression_by_change", "Regression by change (paper, Fig. 5)",
        "The share of turns that broke passing code, by the change asked for; whiskers: 95 % by task.",
        "breaks", partial(rates.regression, breakdown="by_change")),
    Drawing(
        "regression_heat_map", "Regression by scope and change",
        "The regression rate of each cell of the taxonomy; n: turns whose code had passed before.",
        "breaks", rates.heat_map),
    Drawing(
        "regression_by_turn", "Regression by turn position",
        "The share of passing code that each turn breaks; bands or whiskers: 95 % by task.",
        "breaks", partial(curves, values=_regression, name="Regression rate")),
    Drawing(
        "breaking_instructions", "The most breaking instructions",
        "Over all cells, ordered by the lower end of the interval; one label counts broken turns of those met.",
        "breaks", rates.instructions),
    Drawing(
        "figure_7_self_correction", "Self-correction (paper, Fig. 7)",
        "The share of turns that mended failing code: by model, scope and change; whiskers: 95 % by task.",
        "breaks", rates.self_correction),
    Drawing(
        "figure_6_adherence", "Instruction adherence over the turns (paper, Fig. 6)",
        "The share of judged turns that did what was asked, correctness aside; bands or whiskers: 95 % by task.",
        "adherence", partial(curves, values=_adherence, name="Instruction adherence rate")),
    Drawing(
        "pass_against_adherence", "Pass@1 against adherence",
        "Each entrant's Pass@1 at the last turn against its adherence over all turns; whiskers: 95 % by task.",
        "adherence", rates.pass_against_adherence),
    *(
        Drawing(
            f"ablation_{axis}", f"{words}, side by side",
        "Cells that differ in this choice alone; whiskers: 95 % by task.",
        "ablations", partial(ablation_figure, axis=axis),
        )
        for axis, words in AXES.items()
    ),
)  # fmt: skip
