"""Curves over the turns: Pass@1 (paper, Fig. 3), adherence (Fig. 6), survival, regression by turn position."""

from collections.abc import Callable, Sequence
from typing import Any

from codechat.report.figures.style import Look, legend, panels, share_range
from codechat.report.outcomes import Outcomes, Study
from codechat.report.study import Cells, F

Ends = Sequence[float] | None
Point = tuple[int, float | None, Ends]  # turn, share, interval


def pass_at_1(study: Study, look: Look) -> Any:
    """Pass@1 over the turns."""
    return drawn(study, look, _passes, "Pass@1")


def adherence(study: Study, look: Look) -> Any:
    """The share of instructions followed, from turn 1."""
    return drawn(study, look, _adherence, "Instruction adherence rate")


def survival(study: Study, look: Look) -> Any:
    """The share of sessions that have passed at every turn so far, as steps."""
    return drawn(study, look, _survival, "Passing since turn 0", steps=True)


def regression_by_turn(study: Study, look: Look) -> Any:
    """The share of passing code that breaks, by the position of the turn."""
    return drawn(study, look, _regression, "Regression rate")


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


def drawn(
    study: Cells[F],
    look: Look,
    values: Callable[[F], list[Point]],
    name: str,
    *,
    steps: bool = False,
    shares: bool = True,
) -> Any:
    """One panel per dataset; a curve per entrant with its interval as a band, or as whiskers where bands would hide.

    `shares` lie between 0 and 1. None where there is no value at all.
    """
    figure, axes = panels(study.datasets)
    heights: list[float] = []
    for panel, dataset in zip(axes, study.datasets, strict=True):
        entrants = list(study.on(dataset))
        turns: set[int] = set()
        for number, found in enumerate(entrants):
            known = [(turn, share, ends or (share, share)) for turn, share, ends in values(found) if share is not None]
            if not known:
                continue
            line = look.line(found.cell.label)
            panel.plot(*list(zip(*known, strict=True))[:2], **line, drawstyle="steps-mid" if steps else "default")
            if len(entrants) <= MOST_BANDS:
                _band(panel, known, line["color"], steps=steps)
            else:
                _whiskers(panel, known, line["color"], DODGE * ((number + 0.5) / len(entrants) - 0.5))
            turns |= {turn for turn, _, _ in known}
            heights += [end for _, _, ends in known for end in ends]
        panel.set(xlabel="Turn", xticks=sorted(turns)[:: max(1, round(len(turns) / 12))])
        panel.set_ylabel(name)
    if not heights:
        return None
    if shares:
        for panel in axes:
            panel.set_ylim(share_range(heights))
    legend(figure, axes)
    return figure


MOST_BANDS = 4
DODGE = 0.5  # of a turn: how far the whiskers of one turn are spread
Known = tuple[int, float, Sequence[float]]


def _band(panel: Any, points: Sequence[Known], colour: str, *, steps: bool) -> None:
    turns, _, ends = zip(*points, strict=True)
    low, high = zip(*ends, strict=True)
    panel.fill_between(turns, low, high, color=colour, alpha=0.14, linewidth=0, step="mid" if steps else None)


def _whiskers(panel: Any, points: Sequence[Known], colour: str, shift: float) -> None:
    turns, _, ends = zip(*points, strict=True)
    low, high = zip(*ends, strict=True)
    panel.vlines([turn + shift for turn in turns], low, high, color=colour, alpha=0.4, linewidth=1.1, zorder=1.5)
