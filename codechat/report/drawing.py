"""The style of figures, their kinds of panels, and the figures of any protocol's series and breakdowns.

Colours are safe for colour-blind readers, and the same for a model everywhere. The same data give the same files.
"""

import io
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Literal

from codechat.base.files import write_atomically
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts, V
from codechat.report.data import Drawing, Ends
from codechat.report.metrics import Breakdown, Measures, Series
from codechat.report.metrics.measures import FEW, changes_text, groups_in, interval_of, size_of, sizes_text, value_of

# Okabe and Ito's palette, its light colours darker or left out, with Tol's indigo and wine red and a dark grey. Each
# colour has the shade of a model's last variant. On the page, in the light and turned over in the dark, every shade
# between the two has a contrast of 3 or more.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#C2649A", "#B37700", "#332288", "#3B3B3B", "#882255")
LAST_SHADES = ("#00304B", "#5A2800", "#003D2C", "#5A1F41", "#4D3300", "#8A7FCC", "#8A8A8A", "#C9709C")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
LONGEST = 26  # letters of a line of a narrow panel's title
NARROWEST = 0.25  # the smallest part of an axis of shares that is shown
EDGE = {"markeredgecolor": "white", "markeredgewidth": 0.6}
DPI = 160
STYLE = Path(__file__).with_name("figures.mplstyle")


class Look:
    """Colour, marker and dash of every entrant. A model has one colour, and its variants have shades of it."""

    def __init__(self, comparison: Comparison[Any]) -> None:
        places = {model: number % len(COLOURS) for number, model in enumerate(comparison.models)}
        self._colour = {model: COLOURS[number] for model, number in places.items()}
        self._of: dict[str, tuple[str, str, Any]] = {}
        model_of = {found.cell.label: found.cell.model for found in comparison.cells}
        for place, model in enumerate(comparison.models):
            labels = [label for label in comparison.labels if model_of[label] == model]
            for number, label in enumerate(labels):
                colour = shade(places[model], number / max(len(labels) - 1, 1))
                marker = MARKERS[(place + number) % len(MARKERS)]
                self._of[label] = (colour, marker, DASHES[number % len(DASHES)])

    def model(self, model: str) -> str:
        return self._colour[model]

    def line(self, label: str) -> dict[str, Any]:
        """Arguments of `plot` for an entrant's curve."""
        colour, marker, dash = self._of[label]
        return {"color": colour, "marker": marker, "linestyle": dash, "label": label, **EDGE}

    def point(self, label: str) -> dict[str, Any]:
        """Arguments of `errorbar` for an entrant's points."""
        colour, marker, _ = self._of[label]
        return {
            "color": colour, "marker": marker, "linestyle": "none", "label": label, "markersize": 6,
            "elinewidth": 1.2, "capsize": 2.5, **EDGE,
        }  # fmt: skip


def shade(place: int, share: float) -> str:
    """A colour of the palette, by this share on the way to its last shade."""
    ends = (
        [int(colour[start : start + 2], 16) for start in (1, 3, 5)] for colour in (COLOURS[place], LAST_SHADES[place])
    )
    return "#" + "".join(f"{round(first + (last - first) * share):02X}" for first, last in zip(*ends, strict=True))


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save in the house style, independent of the user's matplotlib settings."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(mpl.rc_params_from_file(STYLE, use_default_template=False))
        mpl.rcParams["axes.prop_cycle"] = f"cycler(color={COLOURS})"
        mpl.rcParams["text.parse_math"] = False  # a `$` in a name of a cell is a dollar
        yield


def panels(
    titles: Sequence[str],
    width: float = 5.0,
    height: float = 3.6,
    columns: int = 2,
    *,
    one_scale: bool = True,
    layout: Literal["constrained"] | None = "constrained",
) -> tuple[Any, list[Any]]:
    """A figure with one panel per title, side by side. Without a `layout` the caller sets the margins."""
    from matplotlib.figure import Figure

    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(max(width * columns, 6.0), height * rows), layout=layout)
    grid = figure.subplots(rows, columns, sharey=one_scale, squeeze=False)
    axes = list(grid.flat)
    for unused in axes[len(titles) :]:
        unused.set_visible(False)
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(title, loc="left", fontweight="bold")
        panel.yaxis.set_tick_params(labelleft=True)
    return figure, axes[: len(titles)]


def wrapped(title: str) -> str:
    """A title in lines that fit a narrow panel."""
    return "\n".join(part for line in title.split("\n") for part in textwrap.wrap(line, LONGEST))


def legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend below all panels, each entrant once."""
    entries: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if not entries:
        return
    longest, per_inch = max(map(len, entries)), 11
    columns = max(1, min(int(figure.get_figwidth() * per_inch / (longest + 6)), len(entries), 5))
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
    figure.set_figheight(figure.get_figheight() + 0.22 * -(-len(entries) // columns))


def share_range(values: Sequence[float]) -> tuple[float, float]:
    """The part of an axis of shares that shows these values: with some room, a quarter at least, within 0 and 1."""
    low, high = min(values), max(values)
    room = max(0.06 * (high - low), (NARROWEST - (high - low)) / 2)
    low, high = low - room, high + room
    # at an end, the room goes to the other side
    low, high = low - max(high - 1, 0), high - min(low, 0)
    return max(low, 0.0) - 0.02, min(high, 1.0) + 0.02


def save(figure: Any, folder: Path, name: str) -> tuple[Path, Path]:
    """Write the figure as PNG and SVG; the same figure gives the same bytes. Returns both paths. `savefig` would
    compute the layout twice for each kind: here the layout of the PNG is kept for the SVG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.set_dpi(DPI)
    png, svg = io.BytesIO(), io.BytesIO()
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(png, metadata={"Software": None})
    figure.set_layout_engine("none")
    canvas = FigureCanvasSVG(figure)
    canvas.print_svg(svg, metadata={"Date": None, "Creator": "codechat"})
    paths = folder / f"{name}.png", folder / f"{name}.svg"
    for path, blob in zip(paths, (png, svg), strict=True):
        write_atomically(path, blob.getvalue())
    return paths


Point = tuple[float, float | None, Ends]  # where it stands, such as a turn; the value; its interval
MOST_BANDS = 4
MOST_LINES = 8  # of a panel: more have a panel each, or a row
OTHERS = "#7A7A7A"
ACROSS = 4  # small panels
ROW: Mapping[str, Any] = {"markersize": 4.5, "linestyle": "none", "elinewidth": 1.0}
DODGE = 0.5  # of a turn: how far the whiskers of one turn are spread
SPREAD = 0.76  # of a group: how far its points are spread
MOST_LETTERS = 60  # of names that stand upright side by side below a panel


def spread(number: int, count: int, width: float) -> float:
    """The offset of item `number` of `count`, if they share a width around one place."""
    return width * ((number + 0.5) / count - 0.5)


def known(points: Iterable[Point]) -> list[tuple[float, float, Sequence[float]]]:
    """The points with a value; without an interval, both ends are the value."""
    return [(place, value, ends or (value, value)) for place, value, ends in points if value is not None]


def curves(
    comparison: Comparison[V],
    look: Look,
    values: Callable[[V], list[Point]],
    name: str,
    *,
    steps: bool = False,
    shares: bool = True,
) -> Any:
    """One panel per dataset, all on one scale; of many entrants a panel each. `shares` lie between 0 and 1. None if
    there is no value."""
    if any(len(comparison.on(dataset)) > MOST_LINES for dataset in comparison.datasets):
        return _multiples(comparison, look, values, name, steps=steps, shares=shares)
    figure, axes = panels(comparison.datasets)
    heights: list[float] = []
    for panel, dataset in zip(axes, comparison.datasets, strict=True):
        heights += lines(panel, values, look, comparison.on(dataset), steps=steps)
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
    """A curve per entrant, its interval as a band, or as whiskers if there are many. Returns the intervals' ends."""
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
            panel.vlines(aside, low, high, color=line["color"], linewidth=0.8, zorder=1.5)
        turns |= {*x}
        heights += [end for both in ends for end in both]
    panel.set(xlabel="Turn", xticks=sorted(turns)[:: max(1, round(len(turns) / 12))])
    return heights


def _multiples(
    comparison: Comparison[V],
    look: Look,
    values: Callable[[V], list[Point]],
    name: str,
    *,
    steps: bool,
    shares: bool,
) -> Any:
    """A small panel per entrant and dataset, on one scale: its curve, and in grey all others' range and median."""
    curves_of = {found.cell.folder: known(values(found)) for found in comparison.cells}
    shown = [found for found in comparison.in_order() if curves_of[found.cell.folder]]
    if not shown:
        return None
    many = len(comparison.datasets) > 1
    names = [f"{found.cell.label}\n{found.cell.dataset}" if many else found.cell.label for found in shown]
    titles = [wrapped(each) for each in names]
    # not `one_scale`, which scales all panels anew with each line: the ends are set below
    figure, axes = panels(titles, 2.9, 2.1, ACROSS, one_scale=False, layout=None)
    step = "mid" if steps else None
    heights: list[float] = []
    by_turn: dict[str, dict[float, list[float]]] = {dataset: {} for dataset in comparison.datasets}
    for found in comparison.cells:
        for turn, value, _ in curves_of[found.cell.folder]:
            by_turn[found.cell.dataset].setdefault(turn, []).append(value)
    places = sorted({turn for values_at in by_turn.values() for turn in values_at})
    for number, (panel, found) in enumerate(zip(axes, shown, strict=True)):
        turns, every = zip(*sorted(by_turn[found.cell.dataset].items()), strict=True)
        panel.fill_between(turns, [*map(min, every)], [*map(max, every)], color=OTHERS, alpha=0.25, linewidth=0)
        panel.plot(turns, [*map(median, every)], color=OTHERS, linewidth=1.0, linestyle=DASHES[1])
        turns, own, ends = zip(*curves_of[found.cell.folder], strict=True)
        low, high = zip(*ends, strict=True)
        colour = look.model(found.cell.model)
        panel.plot(turns, own, color=colour, marker="o", markersize=3, drawstyle="steps-mid" if steps else "default")
        panel.fill_between(turns, low, high, color=colour, alpha=0.14, linewidth=0, step=step)
        heights += [*low, *high]
        panel.set_title(panel.get_title(loc="left"), loc="left", y=1.0, fontsize=8.5, fontweight="bold")
        panel.set_xticks(places[:: max(1, round(len(places) / 5))])
        panel.set_xlim(places[0] - 0.4, places[-1] + 0.4)
        panel.tick_params(labelleft=number % ACROSS == 0, labelbottom=number + ACROSS >= len(shown))
        panel.locator_params(axis="y", nbins=4)
    least, most = min(heights), max(heights)
    room = 0.05 * (most - least) or 0.5
    for panel in axes:
        panel.set_ylim(share_range(heights) if shares else (least - room, most + room))
    figure.supylabel(name, fontsize=10)
    figure.supxlabel("Turn. Grey: from the lowest to the highest of all entrants, and the median (dashed)", fontsize=10)
    # margins in inches: to compute a layout for so many panels takes longer than to draw them
    width, height = figure.get_size_inches()
    edges = {"left": 0.8 / width, "right": 1 - 0.15 / width, "bottom": 0.7 / height, "top": 1 - 0.55 / height}
    figure.subplots_adjust(**edges, wspace=0.15, hspace=0.3 + 0.12 * max(title.count("\n") + 1 for title in titles))
    return figure


def points(panel: Any, look: Look, names: Sequence[str], entrants: Sequence[V], value: Callable[[V, str], Any]) -> None:
    """A point with its interval per entrant and name, the entrants of a name side by side on a shaded strip. `value`
    returns value and interval for an entrant and a name. Many entrants are rows, and the names have colours."""
    if len(entrants) > MOST_LINES:
        rows(panel, [found.cell.label for found in entrants], names,
             lambda row, name: value(entrants[row], name))  # fmt: skip
        return
    strips(panel, len(names))
    for number, found in enumerate(entrants):
        aside = spread(number, len(entrants), SPREAD)
        bars(panel, [(place + aside, *value(found, name)) for place, name in enumerate(names)],
             **look.point(found.cell.label))  # fmt: skip
    name_groups(panel, names)


def rows(panel: Any, heads: Sequence[str], names: Sequence[str], value: Callable[[int, str], Any]) -> None:
    """Points with intervals in rows, a colour and a marker for each name. `value` takes a row's number and a name."""
    for number, name in enumerate(names):
        aside = spread(number, len(names), SPREAD)
        shown = known((row + aside, *value(row, name)) for row in range(len(heads)))
        if shown:
            y, values, ends = zip(*shown, strict=True)
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], **EDGE}
            panel.errorbar(values, y, xerr=whiskers(values, ends), **style, **ROW, label=name)
    for row in range(0, len(heads), 2):
        panel.axhspan(row - 0.5, row + 0.5, color="#F6F6F6", linewidth=0, zorder=0)
    panel.set_yticks(range(len(heads)), heads, fontsize=8)
    panel.set_ylim(len(heads) - 0.5, -0.5)
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0)


def height_of(entrants: int, usual: float) -> float:
    """The height of a panel of points in inches; many entrants are rows."""
    return usual if entrants <= MOST_LINES else 0.9 + 0.24 * entrants


def strips(panel: Any, groups: int) -> None:
    """Shade every other group."""
    for place in range(0, groups, 2):
        panel.axvspan(place - 0.5, place + 0.5, color="#F6F6F6", linewidth=0, zorder=0)


def name_groups(panel: Any, names: Sequence[str], most: int = MOST_LETTERS) -> None:
    """Name the groups below the panel, aslant and smaller if together they have more than `most` letters."""
    aslant = {"rotation": 30, "ha": "right", "fontsize": 8.5} if sum(map(len, names)) > most else {}
    panel.set_xticks(range(len(names)), names, **aslant)
    panel.set_xlim(-0.5, len(names) - 0.5)
    panel.grid(visible=False, axis="x")
    panel.tick_params(axis="x", length=0)


def bars(panel: Any, shown: Iterable[Point], **style: Any) -> None:
    """The points that have a value, with whiskers."""
    if found := known(shown):
        x, values, ends = zip(*found, strict=True)
        panel.errorbar(x, values, yerr=whiskers(values, ends), **style)


def whiskers(values: Sequence[float], ends: Sequence[Sequence[float]]) -> list[list[float]]:
    """Distances from values down and up to the ends of their intervals."""
    pairs = list(zip(values, ends, strict=True))
    return [[max(v - low, 0.0) for v, (low, _) in pairs], [max(high - v, 0.0) for v, (_, high) in pairs]]


def from_zero(figure: Any, axes: Sequence[Any], numbers: Sequence[Any] = ()) -> Any:
    """Set all panels to one scale from zero and add the legend; None if nothing is drawn. The panels show shares,
    except the panels in `numbers`, which may exceed 1 and have a separate scale each."""
    drawn = [panel for panel in axes if panel.lines]
    if not drawn:
        return None
    across = {panel: panel.yaxis_inverted() for panel in drawn}  # the entrants are rows
    tops = {panel: panel.dataLim.xmax if across[panel] else panel.dataLim.ymax for panel in drawn}
    share = max((top for panel, top in tops.items() if panel not in numbers), default=1.0)
    share = min(max(1.06 * share, 0.05), 1.02)
    for panel in axes:
        height = max(1.06 * tops[panel], 0.05) if panel in numbers and panel in drawn else share
        limit = panel.set_xlim if across.get(panel) else panel.set_ylim
        limit(-0.025 * height, height)  # a point at zero stays whole
    if any(across.values()):
        for panel in drawn:
            panel.set(xlabel=panel.get_ylabel(), ylabel="")
    legend(figure, axes)
    return figure


NARROW = 4  # groups that fit a narrow panel
MOST = 16  # groups, beyond which a breakdown is left to its table
INTERVAL = "bands or whiskers: 95 % by task"


def drawings_of(comparison: Comparison[Any]) -> Iterator[Drawing]:
    """A figure per series, which the page draws by itself, and a figure per kind of groups."""
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
    """A function that returns a cell's values of a series, turn by turn, with intervals."""

    def points_in(found: SessionVerdicts) -> list[Point]:
        values, ends = (read(found.cell.metrics, series) for read in (value_of, interval_of))
        pairs = zip(values or (), ends or [None] * len(values or ()), strict=True)
        return [(turn, *both) for turn, both in enumerate(pairs, series.first_turn)]

    return points_in


def write_cell_figures(measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """Write the figures of a single cell, if there are values: `turns` with all series, and `by_<group>`."""
    cell = LoadedCell(folder, "", {}, metrics, title, "", measures.protocol, "", 0, 0, "")
    comparison = Comparison(measures, (SessionVerdicts(cell),))
    look = Look(comparison)
    with styled():
        shown = [each for each in measures.series if known(points_of(each)(comparison.cells[0]))]
        if shown:
            sizes = [changes_text(metrics, each) for each in shown]
            titles = [f"{each.label}\nn {n}" if n else each.label for each, n in zip(shown, sizes, strict=True)]
            figure, axes = panels(titles, 3.6, 2.7, 3, one_scale=False)
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
    """A panel per dataset and measure with values; None if there are less than two groups or more than `MOST`."""
    parts = [part for part in comparison.measures.breakdowns if part.by == by]
    cells_on = {dataset: [found.cell.metrics for found in comparison.on(dataset)] for dataset in comparison.datasets}
    places = [(place, part) for place, known in cells_on.items() for part in parts if groups_in([part], known)]
    many = len(comparison.datasets) > 1
    titles = [f"{part.label}, {dataset}" if many else part.label for dataset, part in places]
    groups = groups_in(parts, [found.cell.metrics for found in comparison.cells])
    if not 2 <= len(groups) <= MOST:
        return None
    most = max(map(len, cells_on.values()))
    size: dict[str, Any] = {"width": 3.6, "height": 2.7, "columns": 3} if len(groups) <= NARROW else {"height": 3.3}
    if most > MOST_LINES:
        size = {"width": 6.0, "height": height_of(most, 0)}
    figure, axes = panels(titles, **size, one_scale=all(part.unit == "share" for part in parts))
    for panel, (dataset, part) in zip(axes, places, strict=True):
        cells, metrics = comparison.on(dataset), cells_on[dataset]
        names = groups_in([part], metrics) or groups_in(parts, metrics)
        points(panel, look, names, cells, partial(_one, part))
        counts = [size_of(found.cell.metrics, part) or {} for found in cells]
        if any(counts) and len(cells) <= MOST_LINES:
            sizes = [[each[name] for each in counts if each.get(name)] for name in names]
            name_groups(panel, [f"{name}\n{sizes_text(each)}" for name, each in zip(names, sizes, strict=True)])
    numbers = [panel for panel, (_, part) in zip(axes, places, strict=True) if part.unit != "share"]
    return from_zero(figure, axes, numbers)


def _one(part: Breakdown, found: SessionVerdicts, name: str) -> tuple[float | None, Sequence[float] | None]:
    metrics = found.cell.metrics
    return (value_of(metrics, part) or {}).get(name), (interval_of(metrics, part) or {}).get(name)
