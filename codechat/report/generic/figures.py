"""Figures of whatever a protocol measures: its series over the turns, its breakdowns by group."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Drawing
from codechat.report.drawing import (
    Look,
    Point,
    curves,
    from_zero,
    known,
    legend,
    lines,
    name_groups,
    panels,
    points,
    save,
    share_range,
    styled,
)
from codechat.report.generic.tables import groups_in
from codechat.report.metrics import Breakdown, Measures, Series
from codechat.report.metrics.measures import FEW, interval_of, size_of, sizes_text, value_of

NARROW = 4  # groups that fit a narrow panel
MOST = 16  # groups, beyond which a breakdown is left to its table
INTERVAL = "bands or whiskers: 95 % by task"


def drawings_of(comparison: Comparison[Any]) -> Iterator[Drawing]:
    """A figure per series, which the page draws by itself, and one per kind of groups."""
    protocol = comparison.protocol
    for series in comparison.measures.series:
        title = f"{series.label[:1].upper()}{series.label[1:]}, turn by turn"
        caption = f"{series.help}; {INTERVAL}." if series.help else f"{INTERVAL}."
        caption = caption[:1].upper() + caption[1:]
        draw = partial(curves, values=points_of(series), name=series.label, shares=series.unit == "share")
        yield Drawing(f"{protocol}_{series.key}", title, caption, protocol, draw, on_page=False)
    for by in dict.fromkeys(part.by for part in comparison.measures.breakdowns):
        caption = f"{INTERVAL[:1].upper()}{INTERVAL[1:]}. n: of how many, from the least to the most of an entrant; "
        caption += f"*: fewer than {FEW}."
        yield Drawing(f"{protocol}_by_{by}", f"By {by}", caption, protocol, partial(_breakdown, by))


def points_of(series: Series) -> Callable[[SessionVerdicts], list[Point]]:
    """What gives a cell's values of a series, turn by turn, with their intervals."""

    def points_in(found: SessionVerdicts) -> list[Point]:
        values, ends = (read(found.cell.metrics, series) for read in (value_of, interval_of))
        pairs = zip(values or (), ends or [None] * len(values or ()), strict=True)
        return [(turn, *both) for turn, both in enumerate(pairs, series.first_turn)]

    return points_in


def write_cell_figures(measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """Write a cell's own figures: `turns`, all series over the turns, and `by_<group>`; none if there is nothing."""
    cell = LoadedCell(folder, "", {}, metrics, title, "", measures.protocol, "", 0, 0, "")
    comparison = Comparison(measures, (SessionVerdicts(cell),))
    look = Look(comparison)
    with styled():
        shown = [each for each in measures.series if known(points_of(each)(comparison.cells[0]))]
        if shown:
            figure, axes = panels([each.label for each in shown], 3.6, 2.7, 3, one_scale=False)
            ends = [lines(*place, look, comparison.cells) for place in zip(axes, map(points_of, shown), strict=True)]
            shares = [place for place, series in enumerate(shown) if series.unit == "share"]
            for place in shares:
                axes[place].set_ylim(share_range([end for each in shares for end in ends[each]]))
            legend(figure, axes)
            save(figure, folder, "turns")
        for by in dict.fromkeys(part.by for part in measures.breakdowns):
            figure = _breakdown(by, comparison, look)
            if figure is not None:
                save(figure, folder, f"by_{by}")


def _breakdown(by: str, comparison: Comparison[Any], look: Look) -> Any:
    """A panel per dataset and measure that has a value.

    None if there is no value, if one group alone has all there is, or if there are too many to tell apart.
    """
    parts = [part for part in comparison.measures.breakdowns if part.by == by]
    cells_on = {dataset: [found.cell.metrics for found in comparison.on(dataset)] for dataset in comparison.datasets}
    places = [(place, part) for place, known in cells_on.items() for part in parts if groups_in([part], known)]
    many = len(comparison.datasets) > 1
    titles = [f"{part.label}, {dataset}" if many else part.label for dataset, part in places]
    groups = groups_in(parts, [found.cell.metrics for found in comparison.cells])
    if not 2 <= len(groups) <= MOST:
        return None
    size: dict[str, Any] = {"width": 3.6, "height": 2.7, "columns": 3} if len(groups) <= NARROW else {"height": 3.3}
    figure, axes = panels(titles, **size, one_scale=all(part.unit == "share" for part in parts))
    for panel, (dataset, part) in zip(axes, places, strict=True):
        cells = comparison.on(dataset)
        metrics = [found.cell.metrics for found in cells]
        names = groups_in([part], metrics) or groups_in(parts, metrics)
        points(panel, look, names, cells, partial(_one, part))
        counts = [size_of(found.cell.metrics, part) or {} for found in cells]
        if any(counts):
            sizes = [[each[name] for each in counts if each.get(name)] for name in names]
            name_groups(panel, [f"{name}\n{sizes_text(each)}" for name, each in zip(names, sizes, strict=True)])
    numbers = [panel for panel, (_, part) in zip(axes, places, strict=True) if part.unit != "share"]
    return from_zero(figure, axes, numbers)


def _one(part: Breakdown, found: SessionVerdicts, name: str) -> tuple[float | None, Sequence[float] | None]:
    metrics = found.cell.metrics
    return (value_of(metrics, part) or {}).get(name), (interval_of(metrics, part) or {}).get(name)
