"""What a panel shows: curves over the turns, a line per entrant, or points by group, the entrants side by side."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codechat.report.drawing.style import Look, legend, panels, share_range
from codechat.report.study import Study, V

Ends = Sequence[float] | None
Point = tuple[float, float | None, Ends]  # where it stands, such as a turn; the value; its interval
MOST_BANDS = 4
DODGE = 0.5  # of a turn: how far the whiskers of one turn are spread
SPREAD = 0.76  # of a group: how far its points are spread
MOST_LETTERS = 60  # of names that stand upright side by side below a panel


def spread(number: int, count: int, width: float) -> float:
    """How far aside the one of so many stands, if they share a width around one place."""
    return width * ((number + 0.5) / count - 0.5)


def known(points: Iterable[Point]) -> list[tuple[float, float, Sequence[float]]]:
    """The points that have a value; the interval of one without is the value alone."""
    return [(place, value, ends or (value, value)) for place, value, ends in points if value is not None]


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
    heights = [end for panel, dataset in places for end in lines(panel, values, look, study.on(dataset), steps=steps)]
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
    turns: set[float] = set()
    for number, found in enumerate(entrants):
        shown = known(values(found))
        if not shown:
            continue
        line = look.line(found.cell.label)
        x, y, ends = zip(*shown, strict=True)
        low, high = zip(*ends, strict=True)
        panel.plot(x, y, **line, drawstyle="steps-mid" if steps else "default")
        if len(entrants) <= MOST_BANDS:
            step = "mid" if steps else None
            panel.fill_between(x, low, high, color=line["color"], alpha=0.14, linewidth=0, step=step)
        else:
            aside = [turn + spread(number, len(entrants), DODGE) for turn in x]
            panel.vlines(aside, low, high, color=line["color"], alpha=0.4, linewidth=1.1, zorder=1.5)
        turns |= {*x}
        heights += [end for both in ends for end in both]
    panel.set(xlabel="Turn", xticks=sorted(turns)[:: max(1, round(len(turns) / 12))])
    return heights


def points(panel: Any, look: Look, names: Sequence[str], entrants: Sequence[V], value: Callable[[V, str], Any]) -> None:
    """A point with its interval per entrant and name, the entrants of a name side by side on a shaded strip.

    `value` gives both for an entrant and a name, or None and None.
    """
    for place in range(0, len(names), 2):
        panel.axvspan(place - 0.5, place + 0.5, color="#F6F6F6", linewidth=0, zorder=0)
    for number, found in enumerate(entrants):
        aside = spread(number, len(entrants), SPREAD)
        bars(panel, [(place + aside, *value(found, name)) for place, name in enumerate(names)],
             **look.point(found.cell.label))  # fmt: skip
    long = sum(map(len, names)) > MOST_LETTERS
    panel.set_xticks(range(len(names)), names, **({"rotation": 30, "ha": "right", "fontsize": 8.5} if long else {}))
    panel.set_xlim(-0.5, len(names) - 0.5)
    panel.grid(visible=False, axis="x")
    panel.tick_params(axis="x", length=0)


def bars(panel: Any, shown: Iterable[Point], **style: Any) -> None:
    """The points that have a value, with whiskers; nothing if none has."""
    if found := known(shown):
        x, values, ends = zip(*found, strict=True)
        panel.errorbar(x, values, yerr=whiskers(values, ends), **style)


def whiskers(values: Sequence[float], ends: Sequence[Sequence[float]]) -> list[list[float]]:
    """Distances from values down and up to the ends of their intervals."""
    pairs = list(zip(values, ends, strict=True))
    return [[max(v - low, 0.0) for v, (low, _) in pairs], [max(high - v, 0.0) for v, (_, high) in pairs]]


def from_zero(figure: Any, axes: Sequence[Any], numbers: Sequence[Any] = ()) -> Any:
    """Set all panels to one scale from zero and add the legend; None if nothing is drawn.

    The panels show shares, but for those of `numbers`, which may exceed 1: each of them has a scale of its own.
    """
    drawn = [panel for panel in axes if panel.lines]
    if not drawn:
        return None
    tops = [panel.dataLim.ymax for panel in drawn if panel not in numbers]
    share = min(max(1.06 * max(tops, default=1.0), 0.05), 1.02)
    for panel in axes:
        height = max(1.06 * panel.dataLim.ymax, 0.05) if panel in numbers and panel in drawn else share
        panel.set_ylim(-0.025 * height, height)  # a point at zero stays whole
    legend(figure, axes)
    return figure
