"""Curves over the turns: Pass@1 (paper, Fig. 3), adherence (Fig. 6), survival, regression by turn position."""

from collections.abc import Callable, Sequence
from typing import Any

from codechat.report.figures.style import Look, legend, panels, share_axis
from codechat.report.outcomes import Outcomes, Study

Ends = Sequence[float] | None
Point = tuple[int, float | None, Ends]  # turn, share, interval


def pass_at_1(study: Study, look: Look) -> Any:
    """Pass@1 over the turns."""
    return _curves(study, look, _passes, "Pass@1")


def adherence(study: Study, look: Look) -> Any:
    """The share of instructions followed, from turn 1."""
    return _curves(study, look, _adherence, "Instruction adherence rate")


def survival(study: Study, look: Look) -> Any:
    """The share of sessions that have passed at every turn so far, as steps."""
    return _curves(study, look, _survival, "Passing since turn 0", steps=True)


def regression_by_turn(study: Study, look: Look) -> Any:
    """The share of passing code that breaks, by the position of the turn."""
    return _curves(study, look, _regression, "Regression rate")


def _passes(found: Outcomes) -> list[Point]:
    metrics = found.cell.metrics
    return [
        (turn, rate, ends)
        for turn, (rate, ends) in enumerate(zip(metrics["pass_at_1"], metrics["ci"]["pass_at_1"], strict=True))
    ]


def _adherence(found: Outcomes) -> list[Point]:
    return [(turn, figure.rate, found.interval(figure)) for turn, figure in enumerate(found.adherence_at, 1)]


def _survival(found: Outcomes) -> list[Point]:
    figures = [found.surviving(turn) for turn in range(found.length)]
    return [(turn, figure.rate, found.interval(figure)) for turn, figure in enumerate(figures)]


def _regression(found: Outcomes) -> list[Point]:
    return [(turn, figure.rate, found.interval(figure)) for turn, figure in enumerate(found.regression_at, 1)]


def _curves(
    study: Study, look: Look, values: Callable[[Outcomes], list[Point]], name: str, *, steps: bool = False
) -> Any:
    """One panel per dataset; a curve per entrant with its interval as a band, or as whiskers where bands would hide."""
    figure, axes = panels(study.datasets)
    heights: list[float] = []
    for panel, dataset in zip(axes, study.datasets, strict=True):
        entrants = list(study.on(dataset))
        for found in entrants:
            known = [(turn, share, ends) for turn, share, ends in values(found) if share is not None]
            _curve(panel, known, look.line(found.cell.label), steps=steps, banded=len(entrants) <= MOST_BANDS)
            shown = [share for _, share, _ in known]
            if len(entrants) <= MOST_BANDS:
                shown += [end for _, _, ends in known if ends for end in ends]
            heights += shown
        longest = max(found.length for found in entrants)
        stride = max(1, round(longest / 12))
        panel.set(xlabel="Turn", xticks=range(0, longest, stride))
        panel.set_ylabel(name)
    for panel in axes:
        share_axis(panel, min(heights, default=None), max(heights, default=None))
    legend(figure, axes)
    return figure


MOST_BANDS = 10


def _curve(panel: Any, points: Sequence[Point], line: dict[str, Any], *, steps: bool, banded: bool) -> None:
    if not points:
        return
    turns, shares, ends = zip(*points, strict=True)
    style = {"drawstyle": "steps-post"} if steps else {}
    panel.plot(turns, shares, **line, **style)
    if banded and all(ends):
        low, high = zip(*ends, strict=True)
        how = {"step": "post"} if steps else {}
        panel.fill_between(turns, low, high, color=line["color"], alpha=0.12, linewidth=0, **how)
