"""Who keeps code working longest: the leaderboard and MST per dataset (paper, Table V)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from codechat.metrics.statistics import percent_change, percentile_interval
from codechat.report.chapters.refine.outcomes import Outcomes, RefineStudy
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic.tables import Naming

MEAN_NOTE = (
    "Means are unweighted over the datasets; an entrant that lacks one of them, or has sessions of two lengths, has no "
    "mean. Intervals: 95 %, 2,000 resamples by task, the datasets resampled apart."
)


def mean_mst(study: RefineStudy, label: str) -> tuple[float | None, Interval | None]:
    """The unweighted mean of MST over all datasets of the study with its interval (contract, section 2)."""
    cells = study.entrant(label)
    values = [found.cell.metrics["mst"] for found in cells.values()]
    whole = len(cells) == len(study.datasets) and len({found.cell.turns for found in cells.values()}) == 1
    alike = len(cells) > 1 and any(found.cell.mark for found in cells.values())  # other tasks of one name
    if not whole or alike or any(value is None for value in values):
        return None, None
    if len(cells) == 1:
        return next(iter(cells.values())).measured("mst")
    drawn = [found.resamples.ratios(found.figure(found.sustained)) for found in cells.values()]
    means = [_mean(row) for row in zip(*drawn, strict=True)]
    return _mean(values), Interval.of(percentile_interval(means))


def ranked(study: RefineStudy) -> dict[str, int | None]:
    """The entrants in reading order with their ranks, which are by mean MST among sessions of the same length.

    Longest sessions first; those without a mean come last and have no rank.
    """
    means = {label: mean_mst(study, label)[0] for label in study.labels}
    turns = {label: next(iter(study.entrant(label).values())).cell.turns for label in means}
    order = sorted(means, key=lambda label: (means[label] is None, -turns[label], -(means[label] or 0.0), label))
    ranks: dict[str, int | None] = {}
    for label in order:
        rivals = [other for other in ranks if turns[other] == turns[label]]
        ranks[label] = None if means[label] is None else len(rivals) + 1
    return ranks


def leaderboard(study: RefineStudy) -> Table:
    """One row per entrant, its headline figures as means over the datasets."""
    naming = Naming(study, with_dataset=False)
    last = study.last_turn
    columns = (
        Column("rank", "Rank", "d"),
        *naming.columns,
        *with_interval("mst", f"MST@{study.length or 'N'}", ".3f"),
        *columns_of(".3f", pass_first="Pass@1 turn 0", pass_last=f"Pass@1 turn {last}"),
        Column("delta_pct", f"Δ0→{last} %", "+.1f"),
        *columns_of(".3f", regression="Regression", self_correction="Self-correction", adherence="Adherence"),
        *columns_of("d", completed="Completed", errored="Errored"),
    )
    rows: list[tuple[Value, ...]] = []
    for label, rank in ranked(study).items():
        cells = study.entrant(label)
        mean, interval = mean_mst(study, label)
        named = naming.of(next(iter(cells.values())))
        counts = (sum(found.cell.metrics[key] for found in cells.values()) for key in ("completed", "errored"))
        rows.append((rank, *named, mean, interval, *_means(cells, whole=rank is not None), *counts))
    return Table(
        "leaderboard", "Leaderboard", columns, tuple(rows), group="leaderboard",
        note="Ranked by Mean Sustainable Turns among sessions of one length; Δ is the change of the mean Pass@1. "
        + MEAN_NOTE,
    )  # fmt: skip


def _means(cells: Mapping[str, Outcomes], *, whole: bool) -> Sequence[float | None]:
    if not whole:
        return [None] * 6
    metrics = [found.cell.metrics for found in cells.values()]
    first, last = (_mean([m["pass_at_1"][turn] for m in metrics]) for turn in (0, -1))
    rates = [_mean([m[key]["overall"] for m in metrics]) for key in ("regression", "self_correction")]
    return [first, last, percent_change(first, last), *rates, _mean([found.adherence.rate for found in cells.values()])]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def mst(study: RefineStudy) -> Table:
    """MST per entrant and dataset, and the mean (Table V)."""
    naming = Naming(study, with_dataset=False)
    figures = [*((f"mst_{dataset}", dataset) for dataset in study.datasets), ("mst_mean", "Mean")]
    columns = [*naming.columns, *(each for item in figures for each in with_interval(*item, ".3f"))]
    rows: list[tuple[Value, ...]] = []
    for label in ranked(study):
        cells = study.entrant(label)
        values = [cells[name].measured("mst") if name in cells else (None, None) for name in study.datasets]
        named = naming.of(next(iter(cells.values())))
        rows.append((*named, *(value for both in (*values, mean_mst(study, label)) for value in both)))
    best: set[tuple[int, int]] = set()
    for place in range(len(naming.columns), len(columns), 2):
        known = {number: value for number, row in enumerate(rows) if isinstance(value := row[place], float)}
        best |= {(number, place) for number, value in known.items() if value == max(known.values()) and len(rows) > 1}
    return Table(
        "table_5_mst", f"Mean Sustainable Turns, MST@{study.length or 'N'} (paper, Table V)", tuple(columns),
        tuple(rows), group="leaderboard", note=f"Bold: the highest of its column. {MEAN_NOTE}", strong=frozenset(best),
    )  # fmt: skip
