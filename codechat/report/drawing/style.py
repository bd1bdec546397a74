"""How figures look: colours that colour-blind readers tell apart, the same for a model everywhere, stable files."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codechat.files import write_atomically
from codechat.report.study import Study

# Okabe and Ito's palette without its yellow, which is too light for a line, and a dark grey and a wine red of Tol's.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#3B3B3B", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
NARROWEST = 0.25  # the smallest part of an axis of shares that is shown
EDGE = {"markeredgecolor": "white", "markeredgewidth": 0.6}
DPI = 160
LIGHTEST = 0.5  # how much white the last of a model's variants has

SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "axes.edgecolor": "#666666",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # the same data give the same file: fixed ids, and letters as shapes, so that no font matters
    "svg.hashsalt": "codechat",
    "svg.fonttype": "path",
}


class Look:
    """Colour, marker and dash of every entrant. A model has one colour; its variants are shades of it."""

    def __init__(self, study: Study[Any]) -> None:
        self._colour = {model: COLOURS[number % len(COLOURS)] for number, model in enumerate(study.models)}
        self._of: dict[str, tuple[str, str, Any]] = {}
        for place, model in enumerate(study.models):
            labels = [label for label in study.labels if next(iter(study.entrant(label).values())).cell.model == model]
            for number, label in enumerate(labels):
                colour = _lighter(self._colour[model], LIGHTEST * number / max(len(labels) - 1, 1))
                marker = MARKERS[(place + number) % len(MARKERS)]
                self._of[label] = (colour, marker, DASHES[number % len(DASHES)])

    def model(self, model: str) -> str:
        """A model's colour."""
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


def _lighter(colour: str, share: float) -> str:
    """The colour mixed with white."""
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02X}" for part in parts)


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save under the house style, whatever the user's own matplotlib settings."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(dict(SETTINGS))
        mpl.rcParams["text.parse_math"] = False  # a `$` in a name of a cell is a dollar
        yield


def panels(
    titles: Sequence[str], width: float = 5.0, height: float = 3.6, columns: int = 2, *, one_scale: bool = True
) -> tuple[Any, list[Any]]:
    """A figure with one panel per title, side by side."""
    from matplotlib.figure import Figure

    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(max(width * columns, 6.0), height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharey=one_scale, squeeze=False)
    axes = list(grid.flat)
    for unused in axes[len(titles) :]:
        unused.set_visible(False)
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(title, loc="left", fontweight="bold")
        panel.yaxis.set_tick_params(labelleft=True)
    return figure, axes[: len(titles)]


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
    """Write the figure as PNG and SVG; the same figure gives the same bytes. Returns both paths.

    The canvases are asked themselves: `savefig` draws a figure whose layout is found twice for each kind. The layout
    is found for the PNG and kept for the SVG.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.set_dpi(DPI)
    image, drawing = io.BytesIO(), io.BytesIO()
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(image, metadata={"Software": None})
    figure.set_layout_engine("none")
    canvas = FigureCanvasSVG(figure)
    canvas.print_svg(drawing, metadata={"Date": None, "Creator": "codechat"})
    paths = folder / f"{name}.png", folder / f"{name}.svg"
    for path, blob in zip(paths, (image, drawing), strict=True):
        write_atomically(path, blob.getvalue())
    return paths
