"""The paper's aggregates as tables: means over the models by dataset and type, and all their turns together."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from codechat.domain import CHANGES, SCOPES
from codechat.metrics.statistics import Figure, phi
from codechat.report.data import Column, Table, Value, columns_of, with_interval
from codechat.studies.refine.chapter.breaks import total
from codechat.studies.refine.chapter.outcomes import Outcomes
from codechat.studies.refine.chapter.together import MEAN, Pick, Together, change, passing, sustained

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

    def pick(found: Outcomes) -> Figure:
        rates = getattr(found, rate)
        figure: Figure = rates.overall if breakdown == "overall" else getattr(rates, f"by_{breakdown}")[name]
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
    """The rows of every setup; under its setting if there are several. The note ends with what was averaged."""
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
        shown = (first, last, change(first, last), models.mean(sustained, name))
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
    yield from _pooled(models, TYPES, ())
    for model in models.models:
        for _, *values in _pooled(models, [OVERALL], [model]):
            yield ("model", model, *values[1:])


def _pooled(models: Together, types: Sequence[tuple[str, str]], only: Sequence[str]) -> Rows:
    for kind in types:
        row: list[Value] = [*kind]
        for rate in RATES:
            pick = rate_of(rate, *kind)
            row += [*models.pooled(pick, only), total(models.counted(pick, only))]
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
