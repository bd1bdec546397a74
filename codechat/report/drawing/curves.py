"""Curves over the turns: one panel per dataset, a line per entrant."""

from collections.abc import Callable, Sequence
from typing import Any

from codechat.report.drawing.style import Look, legend, panels, share_range
from codechat.report.study import Study, V

Ends = Sequence[float] | None
Point = tuple[int, float | None, Ends]  # turn, value, interval
Known = tuple[int, float, Sequence[float]]
MOST_BANDS = 4
DODGE = 0.5  # of a turn: how far the whiskers of one turn are spread


def numbered(values: Sequence[float | None], ends: Sequence[Ends] | None, first: int = 0) -> list[Point]:
    """The points of a series whose first value is that of turn `first`."""
    return [(turn, *both) for turn, both in enumerate(zip(values, ends or [None] * len(values), strict=True), first)]


def curves(
    study: Study[V],
    look: Look,
    values: Callable[[V], list[Point]],
    name: str,
    *,
    steps: bool = False,
    shares: bool = True,
) -> Any:
    """One panel per dataset, all on one scale. `shares` lie between 0 and 1. None if there is no value at all."""
    figure, axes = panels(study.datasets)
    places = zip(axes, study.datasets, strict=True)
    heights = [
        end for panel, dataset in places for end in lines(panel, values, look, list(study.on(dataset)), steps=steps)
    ]
    if not heights:
        return None
    for panel in axes:
        panel.set_ylabel(name)
        if shares:
            panel.set_ylim(share_range(heights))
    legend(figure, axes)
    return figure


def lines(
    panel: Any, values: Callable[[V], list[Point]], look: Look, entrants: Sequence[V], *, steps: bool = False
) -> list[float]:
    """A curve per entrant with its interval as a band, or as whiskers if there are many; gives the intervals' ends."""
    heights: list[float] = []
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
    return heights


def _band(panel: Any, points: Sequence[Known], colour: str, *, steps: bool) -> None:
    turns, _, ends = zip(*points, strict=True)
    low, high = zip(*ends, strict=True)
    panel.fill_between(turns, low, high, color=colour, alpha=0.14, linewidth=0, step="mid" if steps else None)


def _whiskers(panel: Any, points: Sequence[Known], colour: str, shift: float) -> None:
    turns, _, ends = zip(*points, strict=True)
    low, high = zip(*ends, strict=True)
    panel.vlines([turn + shift for turn in turns], low, high, color=colour, alpha=0.4, linewidth=1.1, zorder=1.5)
