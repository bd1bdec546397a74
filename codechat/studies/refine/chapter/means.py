"""The paper's aggregates over its models: means by dataset and type, and all turns together (Fig. 7)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from codechat.base.domain import CHANGES, SCOPES
from codechat.report.data import Column, Drawing, Table, Value, columns_of, with_interval
from codechat.report.drawing import EDGE, SPREAD, Look, bars, from_zero, name_groups, panels, spread, strips
from codechat.report.metrics.statistics import TaskRatio, phi
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter import outcomes
from codechat.studies.refine.chapter.outcomes import MEAN, Outcomes, Pick, RefineComparison, Together, change, passing

GROUP = "models"
ALL = "all together"  # in place of a dataset's name: turns are pooled, not averaged
RATES = {"regression": "Regression", "self_correction": "Self-correction"}
OVERALL = ("overall", "all")
TYPES = (OVERALL, *(("scope", name) for name in SCOPES), *(("change", name) for name in CHANGES))
COUNTS = ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated")
MEANS_NOTE = (
    "Means are unweighted, over the models and then over the datasets; a model without such a turn is left out of the "
    "mean. Intervals: 95 %, resampled by task for all models alike; the models themselves are not resampled."
)
Rows = Iterator[tuple[Value, ...]]


def tables(setups: Sequence[Together]) -> Iterator[Table]:
    """All of them, if a setup has several models."""
    if setups:
        yield from (table(setups) for table in (by_dataset, by_type, by_turns, association))


def rate_of(rate: str, breakdown: str, name: str) -> Pick:
    """What gives a cell's regression or self-correction for a type of instruction; `overall` is for all."""

    def pick(found: Outcomes) -> TaskRatio:
        rates = getattr(found, rate)
        figure: TaskRatio = rates.overall if breakdown == "overall" else getattr(rates, f"by_{breakdown}")[name]
        return figure

    return pick


def described(setups: Sequence[Together]) -> str:
    """What is averaged or pooled, in words."""
    return "; ".join(
        f"{each.noun} ({', '.join(each.models)}) on {' and '.join(each.datasets)}, "
        f"{', '.join(filter(None, (f'{each.turns} turns', each.setting)))}"
        for each in setups
    )


def sizes(setups: Sequence[Together]) -> str:
    """How many models on which datasets; how many setups if there are several."""
    return f"{len(setups)} setups" if len(setups) > 1 else f"{setups[0].noun} on {' and '.join(setups[0].datasets)}"


def _table(
    setups: Sequence[Together], columns: Sequence[Column], rows: Callable[[Together], Rows], *, note: str, **about: str
) -> Table:
    """The rows of every setup, with its setting if there are several."""
    several = len(setups) > 1
    named = (Column("setting", "Setting"),) if several else ()
    found = tuple((each.setting, *row) if several else row for each in setups for row in rows(each))
    note = f"{note} Over {described(setups)}."
    return Table(columns=(*named, *columns), rows=found, strong=frozenset(), note=note, group=GROUP, **about)


def by_dataset(setups: Sequence[Together]) -> Table:
    """Pass@1 at both ends and MST, averaged over the models (the paper's RQ1 and Table V)."""
    lengths = {each.turns for each in setups}
    last = "N−1" if len(lengths) > 1 else str(lengths.pop() - 1)
    columns = (
        *columns_of(over="Over"), Column("models", "Models", "d"),
        *with_interval("pass_first", "Pass@1 turn 0", ".3f"), *with_interval("pass_last", f"Pass@1 turn {last}", ".3f"),
        *with_interval("delta_pct", f"Δ0→{last} %", "+.1f"), *with_interval("mst", "MST", ".3f"),
    )  # fmt: skip
    return _table(
        setups, columns, _means, name="models_by_dataset",
        title=f"Means over the models, {sizes(setups)} (paper, RQ1 and Table V)",
        note=f"Δ is the change of the mean Pass@1. {MEANS_NOTE}",
    )  # fmt: skip


def _means(models: Together) -> Rows:
    for name in models.blocks(MEAN):
        first, last = (models.mean(partial(passing, turn=turn), name) for turn in (0, -1))
        shown = (first, last, change(first, last), models.mean(outcomes.sustained_turns, name))
        yield (name, len(models.models), *(value for each in shown for value in each.measured))


def by_type(setups: Sequence[Together]) -> Table:
    """Regression and self-correction by scope and change, averaged over the models (the paper's RQ2)."""
    columns: list[Column] = [*columns_of(dataset="Dataset", breakdown="Breakdown", type="Type")]
    for rate, title in RATES.items():
        columns += with_interval(rate, title, ".3f")
        columns += columns_of(".3f", **{f"{rate}_least": "least", f"{rate}_most": "most"})
    return _table(
        setups, columns, _types, name="models_by_type",
        title=f"Regression and self-correction, means over the models, {sizes(setups)} (paper, RQ2)",
        note=f"Least and most: the lowest and the highest rate of a model on a dataset. {MEANS_NOTE}",
    )  # fmt: skip


def _types(models: Together) -> Rows:
    for name in models.blocks(MEAN):
        for breakdown, kind in TYPES:
            row: list[Value] = [name, breakdown, kind]
            for rate in RATES:
                pick = rate_of(rate, breakdown, kind)
                known = [value for found in models.on(name) if (value := pick(found).rate) is not None]
                row += [*models.mean(pick, name).measured, min(known, default=None), max(known, default=None)]
            yield tuple(row)


def by_turns(setups: Sequence[Together]) -> Table:
    """Regression and self-correction over all turns together, by model and by type (the paper's Figs. 4, 5 and 7)."""
    columns: list[Column] = [*columns_of(breakdown="Breakdown", type="Type")]
    for item, before in zip(RATES.items(), ("passed", "failed"), strict=True):
        columns += [*with_interval(*item, ".3f"), Column(f"{before}_before", f"{before.capitalize()} before", "d")]
    return _table(
        setups, columns, _together, name="models_together",
        title=f"Regression and self-correction, all turns together, {sizes(setups)} (paper, Fig. 7)",
        note="Shares of the turns of all datasets together, so that each dataset counts by its turns. Intervals: 95 %, "
        "resampled by task.",
    )  # fmt: skip


def _together(models: Together) -> Rows:
    yield from _pooled_rows(models, TYPES, ())
    for model in models.models:
        for _, *values in _pooled_rows(models, [OVERALL], [model]):
            yield ("model", model, *values[1:])


def _pooled_rows(models: Together, types: Sequence[tuple[str, str]], only: Sequence[str]) -> Rows:
    for kind in types:
        row: list[Value] = [*kind]
        for rate in RATES:
            pick = rate_of(rate, *kind)
            row += [*models.pooled(pick, only), size(models.counted(pick, only))]
        yield tuple(row)


def association(setups: Sequence[Together]) -> Table:
    """Phi between correctness and adherence over the turns of all models (paper, VI-B)."""
    columns = (
        *columns_of(over="Over"), *columns_of("d", models="Models", turns="Judged turns"), Column("phi", "Phi", "+.3f"),
        *columns_of("d", **{key: key.replace("_", ", ").capitalize() for key in COUNTS}, undecided="Undecided"),
    )  # fmt: skip
    return _table(
        setups, columns, _phi, name="models_phi",
        title=f"Correctness and adherence, all models together, {sizes(setups)} (paper, VI-B)",
        note="Over the judged follow-up turns of all models: the counts are added, then Phi is computed of them.",
    )  # fmt: skip


def _phi(models: Together) -> Rows:
    for name in models.blocks(ALL):
        metrics = [found.cell.metrics for found in models.on(name)]
        counts = [sum(each["phi"][key] for each in metrics) for key in COUNTS]
        undecided = sum(each["undecided"] for each in metrics)
        yield (name, len(models.models), sum(counts), phi(*counts).value, *counts, undecided)


MOST_LETTERS = 30  # of names that stand upright side by side below a narrow panel
WHOLE: dict[str, Any] = {
    "color": "#111111", "marker": "D", "linestyle": "none", "label": "all models together", "markersize": 8,
    "elinewidth": 1.8, "capsize": 4, "zorder": 4, **EDGE,
}  # fmt: skip
PARTS: dict[str, Sequence[str]] = {"by model": (), "by scope": SCOPES, "by change": CHANGES}
MEANINGS = {
    "self_correction": ("Self-correction", "mended failing code", "paper, Fig. 7"),
    "regression": ("Regression", "broke passing code", "paper, Figs. 4 and 5, over all datasets"),
}


def drawings(setups: Sequence[Together]) -> Iterator[Drawing]:
    """A figure per rate, if a setup has several models."""
    for rate, (name, did, where) in MEANINGS.items() if setups else ():
        yield Drawing(
            f"models_{rate}", f"{name} over all turns together ({where})",
            f"The share of turns that {did}: by model, scope and change. Black points and the dashed line are all "
            f"models together; whiskers: 95 % by task. Over {described(setups)}.",
            GROUP, partial(_draw, setups=setups, rate=rate),
        )  # fmt: skip


def _draw(comparison: RefineComparison, look: Look, setups: Sequence[Together], rate: str) -> Any:
    places = [(setup, part) for setup in setups for part in PARTS]
    several = len(setups) > 1
    titles = [f"{setup.setting}, {part}" if several else part.capitalize() for setup, part in places]
    figure, axes = panels(titles, width=3.9, height=3.4, columns=3)
    for panel, (setup, part) in zip(axes, places, strict=True):
        kinds = [(part.removeprefix("by "), name) for name in PARTS[part]]
        if kinds:
            _by_type(panel, look, setup, {name: rate_of(rate, *kind) for kind in kinds for name in kind[1:]})
        else:
            _by_model(panel, look, setup, rate_of(rate, *OVERALL))
            panel.set_ylabel(f"{MEANINGS[rate][0]} rate")
    return from_zero(figure, axes)


def _by_model(panel: Any, look: Look, setup: Together, pick: Pick) -> None:
    for place, model in enumerate(setup.models):
        bars(panel, [(place, *setup.pooled(pick, [model]))], **_style(look, setup, model))
    whole, _ = setup.pooled(pick)
    if whole is not None:
        panel.axhline(whole, color=WHOLE["color"], linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    name_groups(panel, setup.models, MOST_LETTERS)


def _by_type(panel: Any, look: Look, setup: Together, picks: Mapping[str, Pick]) -> None:
    strips(panel, len(picks))
    entrants = [(WHOLE, []), *((_style(look, setup, model), [model]) for model in setup.models)]
    for number, (style, models) in enumerate(entrants):
        aside = spread(number, len(entrants), SPREAD)
        found = enumerate(setup.pooled(pick, models) for pick in picks.values())
        bars(panel, [(place + aside, *measured) for place, measured in found], **style)
    name_groups(panel, list(picks), MOST_LETTERS)


def _style(look: Look, setup: Together, model: str) -> dict[str, Any]:
    label = next(found.cell.label for (name, _), found in setup.cells.items() if name == model)
    return {**look.point(label), "label": model}
