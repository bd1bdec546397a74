"""Points with their intervals, by group: the entrants of a group side by side."""

from collections.abc import Sequence
from typing import Any

from codechat.report.drawing.style import Look, legend
from codechat.report.study import Verdicts

MOST_LETTERS = 60  # of names that stand upright side by side below a panel


def points(panel: Any, look: Look, names: Sequence[str], entrants: Sequence[Verdicts], value: Any) -> None:
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
    """Set all panels to one scale from zero and add the legend; None if nothing is drawn."""
    tops = [panel.dataLim.ymax for panel in axes if panel.lines]
    if not tops:
        return None
    height = min(max(1.06 * max(tops), 0.05), 1.02)
    for panel in axes:
        panel.set_ylim(-0.025 * height, height)  # a point at zero stays whole
    legend(figure, axes)
    return figure
