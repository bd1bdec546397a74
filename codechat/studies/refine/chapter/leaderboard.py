"""Who keeps code working longest: the leaderboard and MST per dataset (paper, Table V)."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from codechat.metrics.corrected import Share
from codechat.metrics.judge_errors import ends
from codechat.metrics.statistics import percent_change, percentile_interval
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic.tables import Naming
from codechat.studies.refine.chapter import corrected
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy
from codechat.studies.refine.chapter.together import MEAN, Together, sustained, together

LEVEL = 1e-9  # what rounding errors can make of equal means
INTERVALS = "Intervals: 95 %, 2,000 resamples by task."
MEAN_NOTE = (
    "Means are unweighted over the datasets; an entrant that lacks one of them, or has sessions of two lengths, has no "
    f"mean. {INTERVALS[:-1]}, the datasets resampled apart."
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
    """The entrants in reading order with their ranks by mean MST; those without a mean come last and have no rank."""
    turns = {label: next(iter(study.entrant(label).values())).cell.turns for label in study.labels}
    return ranks({label: mean_mst(study, label)[0] for label in turns}, turns)


def ranks(values: Mapping[str, float | None], turns: Mapping[str, int]) -> dict[str, int | None]:
    """Ranks by value among sessions of the same length, longest first; equal values share the better rank."""
    order = sorted(values, key=lambda label: (values[label] is None, -turns[label], -(values[label] or 0.0), label))
    found: dict[str, int | None] = {}
    for label in order:
        value = values[label]
        rivals = [each for other in found if turns[other] == turns[label] and (each := values[other]) is not None]
        found[label] = None if value is None else 1 + sum(each - value > LEVEL for each in rivals)
    return found


def leaderboard(study: RefineStudy) -> Table:
    """A row per entrant on each dataset; if there are several, first the means of those that have all of them."""
    naming = Naming(study, with_dataset=False)
    last, several = study.last_turn, len(study.datasets) > 1
    pooled = any(found.cell.samples > 1 for found in study.cells)
    columns = (
        *columns_of("d", rank="Rank"), *naming.columns, *columns_of(**({"dataset": "Dataset"} if several else {})),
        *columns_of(**({"samples": "Samples"} if pooled else {})),
        *with_interval("mst", f"MST@{study.length or 'N'}", ".3f"),
        *columns_of(".3f", pass_first="Pass@1 turn 0", pass_last=f"Pass@1 turn {last}"),
        Column("delta_pct", f"Δ0→{last} %", "+.1f"),
        *columns_of(".3f", regression="Regression", self_correction="Self-correction", adherence="Adherence"),
        *(with_interval("adherence_corrected", "corrected", ".3f") if corrected.asked(study) else ()),
        *columns_of("d", completed="Completed", errored="Errored"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    if several:
        whole = {label: study.entrant(label) for label, rank in ranked(study).items() if rank is not None}
        means = {label: (cells, *mean_mst(study, label)) for label, cells in whole.items()}
        rows += _block(means, naming, (MEAN,), pooled=pooled)
    for dataset in study.datasets:
        own = {found.cell.label: ({dataset: found}, *found.measured("mst")) for found in study.on(dataset)}
        rows += _block(own, naming, (dataset,) if several else (), pooled=pooled)
    note = "Ranked by Mean Sustainable Turns among sessions of one length; equal values share a rank. "
    note += "Δ is the change of the mean Pass@1. " + MEAN_NOTE if several else INTERVALS
    return Table("leaderboard", "Leaderboard", columns, tuple(rows), group="leaderboard", note=note)


Entry = tuple[Mapping[str, Outcomes], float | None, Interval | None]


def _block(
    entries: Mapping[str, Entry], naming: Naming, dataset: tuple[str, ...], *, pooled: bool
) -> Iterator[tuple[Value, ...]]:
    """The rows of entrants that are ranked among themselves: an entrant's cells by dataset, its MST, the interval.

    `pooled`: with the number of samples.
    """
    firsts = {label: next(iter(cells.values())) for label, (cells, _, _) in entries.items()}
    turns = {label: found.cell.turns for label, found in firsts.items()}
    for label, rank in ranks({label: mst for label, (_, mst, _) in entries.items()}, turns).items():
        cells, mst, interval = entries[label]
        counts = (sum(found.cell.metrics[key] for found in cells.values()) for key in ("completed", "errored"))
        named = (*naming.of(firsts[label]), *dataset, *([_samples(cells)] if pooled else []))
        followed = corrected_mean(cells) if any(found.cell.labels is not None for found in cells.values()) else ()
        yield (rank, *named, mst, interval, *_means(cells), *followed, *counts)


def corrected_mean(cells: Mapping[str, Outcomes]) -> tuple[float | None, Interval | None]:
    """The mean of the corrected adherence over datasets, with its interval; labels that they share count once."""
    shares = [found.corrected(corrected.everything) for found in cells.values()]
    known = [share for share in shares if isinstance(share, Share)]
    if len(known) < len(shares):
        return None, None
    drawn = None if any(share.drawn is None for share in known) else sum(share.drawn for share in known) / len(known)
    return fmean(share.value for share in known), Interval.of(ends(drawn))


def _samples(cells: Mapping[str, Outcomes]) -> str:
    """How many samples of a task there are, on the datasets one after another if they differ."""
    return ", ".join(dict.fromkeys(str(found.cell.samples) for found in cells.values()))


def _means(cells: Mapping[str, Outcomes]) -> Sequence[float | None]:
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
    order = ranked(study)
    figures = figures if any(order.values()) else figures[:-1]
    columns = [*naming.columns, *(each for item in figures for each in with_interval(*item, ".3f"))]
    rows: list[tuple[Value, ...]] = []
    for label in order:
        cells = study.entrant(label)
        values = [cells[name].measured("mst") if name in cells else (None, None) for name in study.datasets]
        named = naming.of(next(iter(cells.values())))
        both = [*values, mean_mst(study, label)][: len(figures)]
        rows.append((*named, *(value for each in both for value in each)))
    models = [_mean_row(study, naming, setup)[: len(columns)] for setup in together(study)]
    best: set[tuple[int, int]] = set()
    for place in range(len(naming.columns), len(columns), 2):
        known = {number: value for number, row in enumerate(rows) if isinstance(value := row[place], float)}
        best |= {(number, place) for number, value in known.items() if value == max(known.values()) and len(rows) > 1}
    return Table(
        "table_5_mst", f"Mean Sustainable Turns, MST@{study.length or 'N'} (paper, Table V)", tuple(columns),
        (*rows, *models), group="leaderboard", note=f"Bold: the highest of its column. {MEAN_NOTE}",
        strong=frozenset(best),
    )  # fmt: skip


def _mean_row(study: RefineStudy, naming: Naming, models: Together) -> tuple[Value, ...]:
    """The last row of Table V: the mean over the models of a setup."""
    _, *named = naming.of(next(iter(models.cells.values())))
    names = [*study.datasets, MEAN]
    known = {*models.datasets, *([MEAN] if models.datasets == study.datasets else [])}
    values = [models.mean(sustained, name).measured if name in known else (None, None) for name in names]
    return (f"mean of {models.noun}", *named, *(value for each in values for value in each))
