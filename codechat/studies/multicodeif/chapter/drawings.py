"""The figures of MultiCodeIF's paper: model by category, means over models, open against closed, category by round."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from codechat.report.comparison import Comparison
from codechat.report.data import Drawing
from codechat.report.drawing import Look, bars, legend, panels, spread, strips, wrapped
from codechat.report.metrics.measures import FEW, Series, interval_of, size_text, sizes_text
from codechat.report.metrics.sums import size
from codechat.studies.multicodeif.chapter import published
from codechat.studies.multicodeif.chapter.published import ALL, LEVELS, REPAIR, Kept, Models, words
from codechat.studies.multicodeif.metrics import BY_CATEGORY, FIXED

SIZES = f"n: of how many; *: fewer than {FEW}. What is almost wholly undecided is left out."
COLOURS: Mapping[published.Weights, str] = {"closed": "#0072B2", "open": "#D55E00"}
DODGE = 0.5  # of a category: how far its points are spread
LIGHT, LETTERS = 0.42, "#111111"  # the part of the blues in use, on which letters can be read, also turned over
WIDEST_HEADS = 26  # letters of the columns of a heat map that stand upright


def drawings(comparison: Comparison[Any]) -> Iterator[Drawing]:
    """Every figure that there is something for."""
    yield Drawing(
        "figure_5_constraints", "Constraints by type (paper, Fig. 5)",
        "How many constraints of each type the first requests of a dataset's tasks hold, by category.", REPAIR, _sizes,
    )  # fmt: skip
    yield Drawing(
        "figure_6_categories", "Accuracy by model and category (paper, Fig. 6)",
        f"First replies: constraints met, of the decided ones. {SIZES}", REPAIR, _by_model,
    )  # fmt: skip
    for models in published.models_of(comparison):
        mark = f"_{models.dataset}" if len(comparison.datasets) > 1 else ""
        over = f"{len(models.cells)} models, {models.dataset}"
        points = f"with intervals by task; small points: the models. {SIZES}"
        yield Drawing(
            f"figure_7_means{mark}", f"Mean accuracy by category (paper, Fig. 7): {over}",
            f"Unweighted means over the models {points}", REPAIR, partial(_means, models=models),
        )  # fmt: skip
        yield Drawing(
            f"figure_8_weights{mark}", f"Closed against open weights (paper, Fig. 8): {over}",
            f"Unweighted means over the models of each kind {points}", REPAIR, partial(_weights, models=models),
        )  # fmt: skip
    yield Drawing(
        "figure_12_rounds", "IFRepair by category and round (paper, Fig. 12)",
        f"Tasks with all constraints met after at most so many repairs, of the decided ones. {SIZES}",
        REPAIR, _by_round,
    )  # fmt: skip


def _sizes(comparison: Comparison[Any], look: Look) -> Any:
    """A panel per dataset: a bar for each type, in the order of categories; None if there is one type alone."""
    known = {dataset: published.sizes_of(comparison, dataset) for dataset in comparison.datasets}
    most = max(sum(map(len, found.values())) for found in known.values())
    if most < published.FEWEST:
        return None
    titles = [dataset if len(known) > 1 else "" for dataset in known]
    figure, axes = panels(titles, width=8.0, height=1.2 + 0.26 * most, columns=1, one_scale=False)
    for panel, found in zip(axes, known.values(), strict=True):
        rows = [(category, name, count) for category, each in found.items() for name, count in sorted(each.items())]
        order = [*found]
        for place, (category, _, count) in enumerate(rows):
            panel.barh(-place, count, color=f"C{order.index(category) % 10}", height=0.8)
            panel.text(count, -place, f" {count}", va="center", fontsize=8)
        panel.set_yticks([-place for place in range(len(rows))],
                         [f"{words(category)}: {words(name)}" for category, name, _ in rows], fontsize=8)  # fmt: skip
        panel.set(xlabel="Constraints", ylim=(-len(rows) + 0.5, 0.5), xlim=(0, 1.12 * max(count for *_, count in rows)))
        panel.locator_params(axis="x", integer=True)
        panel.grid(visible=False, axis="y")
    return figure


def by_level(comparison: Comparison[Any]) -> Drawing:
    """SSR and HSR by level under the published harness (the paper's Figure 9)."""
    return Drawing(
        "figure_9_levels", "SSR and HSR by level (paper, Fig. 9)",
        "By the published harness, with intervals by chain: constraints met, and levels with all met.", LEVELS,
        _by_level,
    )  # fmt: skip


def _by_level(comparison: Comparison[Any], look: Look) -> Any:
    """Two panels a dataset: a curve for each entrant; None if nothing was decided."""
    kinds = (("ssr_official", "SSR"), ("hsr_official", "HSR"))
    places = [(dataset, key, title) for dataset in comparison.datasets for key, title in kinds]
    many = len(comparison.datasets) > 1
    figure, axes = panels([f"{title}, {dataset}" if many else title for dataset, _, title in places], 4.6, 3.4, 2)
    for panel, (dataset, key, title) in zip(axes, places, strict=True):
        longest = 0
        for number, found in enumerate(cells := comparison.on(dataset)):
            rates, ends = found.cell.metrics[key], interval_of(found.cell.metrics, Series(key, title))
            longest = max(longest, len(rates))
            shift = spread(number, len(cells), 0.3)
            shown = [(place + shift, *point) for place, point in enumerate(zip(rates, ends, strict=True))]
            bars(panel, shown, label=found.cell.label, marker="o", markersize=4, capsize=2, color=f"C{number % 10}")
        panel.set_xticks(range(longest), [f"L{place + 1}" for place in range(longest)])
        panel.set(ylim=(0, 1.02), xlim=(-0.5, longest - 0.5))
    if not any(panel.lines for panel in axes):
        return None
    legend(figure, axes)
    return figure


def _by_model(comparison: Comparison[Kept], look: Look) -> Any:
    """A map per dataset: a row for each entrant, a column for each category and for all tasks."""
    figure, axes = _maps(comparison, width=10.0)
    for panel, dataset in zip(axes, comparison.datasets, strict=True):
        cells = comparison.on(dataset)
        names = [
            name for name in (*published.categories_of(cells), ALL) if any(size(found.kept(name)) for found in cells)
        ]
        kept = [[found.kept(name) for name in names] for found in cells]
        points = [[(figure.rate, size(figure)) for figure in row] for row in kept]
        _heat(panel, points, [found.cell.label for found in cells], [words(name) for name in names])
    return figure


def _by_round(comparison: Comparison[Kept], look: Look) -> Any:
    """A map per entrant and dataset: a row for each category, a column for each round; None if nothing is repaired."""
    cells = [found for found in comparison.in_order() if found.cell.metrics["gains"]]
    if not cells:
        return None
    several = len(comparison.datasets) > 1
    titles = [f"{found.cell.label}\n{found.cell.dataset}" if several else found.cell.label for found in cells]
    figure, axes = panels([wrapped(title) for title in titles], width=4.4, height=3.6, columns=3, one_scale=False)
    for panel, found in zip(axes, cells, strict=True):
        metrics, sizes = found.cell.metrics, found.cell.metrics["n"]
        names = [name for name in published.categories_of([found]) if name in metrics[BY_CATEGORY]]
        rows = [(metrics[BY_CATEGORY][name], sizes[BY_CATEGORY][name]) for name in names]
        whole = FIXED if FIXED in metrics else "ifrepair"  # older cells have the other alone
        rows.append((metrics[whole], sizes[whole]))
        points = [list(zip(*row, strict=True)) for row in rows]
        _heat(panel, points, [*map(words, names), ALL], [f"R{number}" for number in range(len(points[-1]))])
    return figure


def types(comparison: Comparison[Any]) -> Drawing:
    """A map of the rates by type and entrant: there are too many types for points with intervals."""
    caption = f"Constraints met, of the decided ones. {SIZES}"
    return Drawing(f"{comparison.protocol}_types", "By type", caption, comparison.protocol, _by_type)


def _by_type(comparison: Comparison[Any], look: Look) -> Any:
    """A map per dataset: a row for each entrant, a column for each type; None if there is one type alone."""
    names = sorted({name for found in comparison.cells for name in found.cell.metrics["by_type"]["accuracy"]})
    if len(names) < published.FEWEST:
        return None
    figure, axes = _maps(comparison, width=4.0 + 0.42 * len(names))
    for panel, dataset in zip(axes, comparison.datasets, strict=True):
        cells = comparison.on(dataset)
        both = [[each["by_type"]["accuracy"] for each in (c.cell.metrics, c.cell.metrics["n"])] for c in cells]
        points = [[(rates.get(name), sizes.get(name)) for name in names] for rates, sizes in both]
        _heat(panel, points, [found.cell.label for found in cells], [words(name) for name in names])
    return figure


def _maps(comparison: Comparison[Any], width: float) -> Any:
    """A figure with a panel per dataset, high enough for the entrants."""
    titles = [dataset if len(comparison.datasets) > 1 else "" for dataset in comparison.datasets]
    entrants = max(len(comparison.on(dataset)) for dataset in comparison.datasets)
    return panels(titles, width, height=1.7 + 0.5 * entrants, columns=1, one_scale=False)


def _heat(panel: Any, points: Sequence[Sequence[Any]], rows: Sequence[str], columns: Sequence[str]) -> None:
    """Shares as shades, each with its number, and of how many it is."""
    rates = [[rate for rate, _ in row] for row in points]
    texts = [["–" if rate is None else f"{rate:.3f}\n{size_text(of)}" for rate, of in row] for row in points]
    _heat_map(panel, rates, texts, rows=rows, columns=columns, size=7.5)


def _means(comparison: Comparison[Any], look: Look, models: Models) -> Any:
    """A point for each category, the highest first."""
    return _compared(look, models, {"mean": (models.cells, "#3B3B3B")})


def _weights(comparison: Comparison[Any], look: Look, models: Models) -> Any:
    """Two points for each category; None unless there are models of both kinds."""
    groups = {f"{kind} weights": (models.of(kind), colour) for kind, colour in COLOURS.items()}
    return _compared(look, models, groups) if all(cells for cells, _ in groups.values()) else None


def _compared(look: Look, models: Models, groups: Mapping[str, tuple[Sequence[Kept], str]]) -> Any:
    names = [name for name in models.categories if any(size(each.kept(name)) for each in models.cells)]
    heights = {name: mean.value if (mean := models.mean(name, models.cells)) else 0.0 for name in names}
    names.sort(key=heights.__getitem__, reverse=True)
    figure, (panel,) = panels([""], width=9.0, height=4.2)
    strips(panel, len(names))
    for number, (label, (cells, colour)) in enumerate(groups.items()):
        aside = spread(number, len(groups), DODGE)
        found = [(place + aside, models.mean(name, cells)) for place, name in enumerate(names)]
        known = [(place, mean.value, mean.ends) for place, mean in found if mean is not None]
        bars(panel, known, color=colour, marker="D", linestyle="none", markersize=7, capsize=3, label=label)
        for place, name in enumerate(names):
            rates = [rate for each in cells if (rate := each.kept(name).rate) is not None]
            points = {"marker": "o", "markersize": 3.5, "alpha": 0.6, "linestyle": "none"}
            panel.plot([place + aside + 0.14] * len(rates), rates, color=colour, **points)
    sizes = {name: [size(each.kept(name)) for each in models.cells] for name in names}
    heads = [f"{words(name)}\n{sizes_text([size for size in sizes[name] if size])}" for name in names]
    panel.set_xticks(range(len(names)), heads, rotation=30, ha="right")
    panel.set(xlim=(-0.5, len(names) - 0.5), ylim=(-0.025, 1.02), ylabel="Accuracy")
    panel.grid(visible=False, axis="x")
    panel.tick_params(axis="x", length=0)
    if len(groups) > 1:
        panel.legend(loc="upper right")
    return figure


def _heat_map(
    panel: Any,
    rates: Sequence[Sequence[float | None]],
    texts: Sequence[Sequence[str]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    size: float = 8.5,
) -> None:
    """Shares as shades from white to a light blue at 1, each with a text that is dark on all of them."""
    shades = [[float("nan") if rate is None else rate for rate in row] for row in rates]
    panel.imshow(shades, cmap="Blues", vmin=0, vmax=1 / LIGHT, aspect="auto")
    for y, row in enumerate(rates):
        for x in range(len(row)):
            panel.text(x, y, texts[y][x], ha="center", va="center", fontsize=size, color=LETTERS)
    aslant = {"rotation": 30, "ha": "right"} if sum(map(len, columns)) > WIDEST_HEADS else {}
    panel.set_xticks(range(len(columns)), columns, **aslant)
    panel.set_yticks(range(len(rows)), rows)
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)
