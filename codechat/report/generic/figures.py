"""Figures of whatever a protocol measures: its series over the turns, its breakdowns by group."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codechat.metrics import Breakdown, Measures, Series
from codechat.metrics.measures import interval_of, value_of
from codechat.report.data import Drawing
from codechat.report.drawing.curves import Point, curves, lines, numbered
from codechat.report.drawing.marks import from_zero, points
from codechat.report.drawing.style import Look, legend, panels, save, share_range, styled
from codechat.report.generic.tables import groups_in
from codechat.report.study import LoadedCell, Study, Verdicts

FEW = 4  # groups that fit a narrow panel
INTERVAL = "bands or whiskers: 95 % by task"


def drawings_of(study: Study[Any]) -> Iterator[Drawing]:
    """A figure per series, which the page draws by itself, and one per kind of groups."""
    protocol = study.protocol
    for series in study.measures.series:
        title = f"{series.label[:1].upper()}{series.label[1:]}, turn by turn"
        caption = f"{series.help}; {INTERVAL}." if series.help else f"{INTERVAL}."
        caption = caption[:1].upper() + caption[1:]
        yield Drawing(f"{protocol}_{series.key}", title, caption, protocol, partial(_series, series), on_page=False)
    for by in dict.fromkeys(part.by for part in study.measures.breakdowns):
        caption = f"{INTERVAL[:1].upper()}{INTERVAL[1:]}."
        yield Drawing(f"{protocol}_by_{by}", f"By {by}", caption, protocol, partial(_breakdown, by))


def points_of(metrics: Mapping[str, Any], series: Series) -> list[Point]:
    """A series of a cell's metrics, turn by turn."""
    return numbered(value_of(metrics, series) or [], interval_of(metrics, series), series.first_turn)


def write_cell_figures(measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """Write a cell's own figures: `turns`, all series over the turns, and `by_<group>`; none if there is nothing."""
    cell = LoadedCell(folder, "", {}, metrics, title, "", measures.protocol, "", 0, 0, "")
    study = Study(measures, (Verdicts(cell),))
    look = Look(study)
    with styled():
        known = [each for each in measures.series if any(value is not None for _, value, _ in points_of(metrics, each))]
        if known:
            figure, axes = panels([each.label for each in known], 3.6, 2.7, 3, one_scale=False)
            ends = [lines(*place, look, study.cells) for place in zip(axes, map(_points_of, known), strict=True)]
            shares = [place for place, series in enumerate(known) if series.unit == "share"]
            for place in shares:
                axes[place].set_ylim(share_range([end for each in shares for end in ends[each]]))
            legend(figure, axes)
            save(figure, folder, "turns")
        for by in dict.fromkeys(part.by for part in measures.breakdowns):
            figure = _breakdown(by, study, look)
            if figure is not None:
                save(figure, folder, f"by_{by}")


def _series(series: Series, study: Study[Any], look: Look) -> Any:
    return curves(study, look, _points_of(series), series.label, shares=series.unit == "share")


def _points_of(series: Series) -> Callable[[Verdicts], list[Point]]:
    return lambda found: points_of(found.cell.metrics, series)


def _breakdown(by: str, study: Study[Any], look: Look) -> Any:
    """A panel per dataset and measure; None if there is no value, or one group alone, which is all there is."""
    parts = [part for part in study.measures.breakdowns if part.by == by]
    places = [(dataset, part) for dataset in study.datasets for part in parts]
    many = len(study.datasets) > 1
    titles = [f"{part.label}, {dataset}" if many else part.label for dataset, part in places]
    groups = groups_in(parts, [found.cell.metrics for found in study.cells])
    if len(groups) < 2:
        return None
    few = len(groups) <= FEW
    figure, axes = panels(titles, width=3.6, height=2.7, columns=3) if few else panels(titles, height=3.3)
    for panel, (dataset, part) in zip(axes, places, strict=True):
        cells = list(study.on(dataset))
        names = groups_in(parts, [found.cell.metrics for found in cells])
        points(panel, look, names, cells, partial(_one, part))
    return from_zero(figure, axes)


def _one(part: Breakdown, found: Verdicts, name: str) -> tuple[float | None, Sequence[float] | None]:
    metrics = found.cell.metrics
    return (value_of(metrics, part) or {}).get(name), (interval_of(metrics, part) or {}).get(name)
