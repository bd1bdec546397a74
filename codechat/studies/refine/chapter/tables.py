"""The refinement's tables of single cells: the paper's Tables III to VII, the leaderboard, and where code breaks."""

from collections.abc import Iterator, Mapping, Sequence

from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic.tables import Naming, named_table
from codechat.report.metrics.counts import LOADED
from codechat.report.metrics.measures import interval_of
from codechat.report.metrics.statistics import (
    TaskRatio,
    mean_of_all,
    percent_change,
    percentile_interval,
    rate,
    wilson,
)
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter import comparisons
from codechat.studies.refine.chapter.outcomes import (
    MEAN,
    Breaking,
    Measured,
    Outcomes,
    RefineComparison,
    Together,
    together,
)
from codechat.studies.refine.chapter.powered import Powered, powered_mean
from codechat.studies.refine.metrics import REFINE

LEVEL = 1e-9  # what rounding errors can make of equal means
INTERVALS = "Intervals: 95 %, 2,000 resamples by task; Wilson's where all tasks agree on a share."
MEAN_NOTE = (
    "Means are unweighted over the datasets; an entrant that lacks one of them, or has sessions of two lengths, has no "
    f"mean. Twins count in no mean with other tasks. {INTERVALS[:-1]}, the datasets resampled apart."
)
Entry = tuple[Mapping[str, Outcomes], Sequence[Measured]]  # the cells by dataset; kinds of MST, the ranked one first
ALPHA = 0.05
MANN_KENDALL_NOTE = (
    "Mann–Kendall: the original two-sided test, α = 0.05, as in the paper; bold: p < 0.05. "
    "It assumes independent values. These are rates of the same sessions at successive turns, so they depend on each "
    "other, and p comes out smaller than it should; with few turns few p-values are possible, and with four values or "
    "fewer none is below 0.05. Read it as a description of the shape, not as proof; intervals are resampled by task."
)
DATASETS_NOTE = (
    "Of the tasks that the cells ran. Tests are means over the counted tasks, whose kind of tests can be counted. "
    "Original: the tests that the dataset's authors wrote; added: by EvalPlus, or plus_input of your own tasks. "
    "Requirements' tests are left out. A cell of an earlier version kept no counts; run again, it adds them and calls "
    "no model."
)


def common_turns(comparison: RefineComparison) -> int | None:
    """The turns that the sessions of all cells have, if the cells differ in length; else None."""
    return min(found.cell.turns for found in comparison.cells) if comparison.length is None else None


def mean_mst(comparison: RefineComparison, label: str, turns: int | None = None) -> Measured:
    """The unweighted mean of MST over the averaged datasets of the comparison with its interval (contract, section 2).

    With `turns`, of sessions cut after so many turns, so that cells of several lengths have a mean.
    """
    cells = _averaged(comparison, label)
    own = [found.mst(turns) for found in cells.values()]
    values = [value for value, _ in own]
    of_one_length = turns is not None or len({found.cell.turns for found in cells.values()}) == 1
    whole = len(cells) == len(comparison.averaged) and of_one_length
    alike = len(cells) > 1 and any(found.cell.mark for found in cells.values())  # other tasks of one name
    if not whole or alike or any(value is None for value in values):
        return None, None
    if len(cells) == 1:
        return own[0]
    drawn = [found.resamples.ratios(found.sustained_turns(turns)) for found in cells.values()]
    means = [mean_of_all(row) for row in zip(*drawn, strict=True)]
    return mean_of_all(values), Interval.of(percentile_interval(means))


def _averaged(comparison: RefineComparison, label: str) -> Mapping[str, Outcomes]:
    """An entrant's cells on the datasets that a mean is of."""
    return {name: found for name, found in comparison.entrant(label).items() if name in comparison.averaged}


def ranked(comparison: RefineComparison) -> dict[str, int | None]:
    """The entrants in reading order with their ranks by mean MST, of the turns that all have; those without a mean come
    last and have no rank."""
    common = common_turns(comparison)
    return ranks({label: mean_mst(comparison, label, common)[0] for label in comparison.labels})


def ranks(values: Mapping[str, float | None]) -> dict[str, int | None]:
    """Ranks by value, the highest first; equal values share the better rank."""
    order = sorted(values, key=lambda label: (values[label] is None, -(values[label] or 0.0), label))
    found: dict[str, int | None] = {}
    for label in order:
        value = values[label]
        rivals = [each for other in found if (each := values[other]) is not None]
        found[label] = None if value is None else 1 + sum(each - value > LEVEL for each in rivals)
    return found


def leaderboard(comparison: RefineComparison) -> Table:
    """A row per entrant on each dataset; if there are several, first the means of entrants with all datasets."""
    naming = Naming(comparison, with_dataset=False)
    last, several = comparison.last_turn, len(comparison.datasets) > 1
    pooled = any(found.cell.samples > 1 for found in comparison.cells)
    common = common_turns(comparison)
    cuts = dict.fromkeys((common, None))
    columns = (
        *columns_of("d", rank="Rank"), *naming.columns, *columns_of(**({"dataset": "Dataset"} if several else {})),
        *columns_of(**({"samples": "Samples"} if pooled else {})),
        *(with_interval("mst_common", f"MST@{common}", ".3f") if common is not None else ()),
        *with_interval("mst", f"MST@{comparison.length or 'N'}", ".3f"),
        *columns_of(".3f", pass_first="Pass@1 turn 0", pass_last=f"Pass@1 turn {last}"),
        Column("delta_pct", f"Δ0→{last} %", "+.1f"),
        *columns_of(".3f", regression="Regression", self_correction="Self-correction", adherence="Adherence"),
        *(with_interval("adherence_corrected", "corrected", ".3f") if comparisons.has_labels(comparison) else ()),
        *columns_of("d", completed="Completed", errored="Errored"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    if len(comparison.averaged) > 1:
        means = {
            label: (_averaged(comparison, label), [mean_mst(comparison, label, cut) for cut in cuts])
            for label in comparison.labels
        }
        known = {label: entry for label, entry in means.items() if entry[1][0][0] is not None}
        rows += _block(known, naming, (MEAN,), pooled=pooled)
    for dataset in comparison.datasets:
        own = {
            found.cell.label: ({dataset: found}, [found.mst(cut) for cut in cuts]) for found in comparison.on(dataset)
        }
        rows += _block(own, naming, (dataset,) if several else (), pooled=pooled)
    of = "" if common is None else f", of sessions cut after {common} turns, which all have: MST grows with N by itself"
    note = f"Ranked by Mean Sustainable Turns{of}; equal values share a rank. "
    note += "Δ is the change of the mean Pass@1. " + MEAN_NOTE if several else INTERVALS
    return Table("leaderboard", "Leaderboard", columns, tuple(rows), group="leaderboard", note=note)


def _block(
    entries: Mapping[str, Entry], naming: Naming, dataset: tuple[str, ...], *, pooled: bool
) -> Iterator[tuple[Value, ...]]:
    """The rows of entrants ranked among themselves; `pooled`: with samples."""
    for label, rank in ranks({label: figures[0][0] for label, (_, figures) in entries.items()}).items():
        cells, figures = entries[label]
        samples = ", ".join(dict.fromkeys(str(found.cell.samples) for found in cells.values()))
        counts = (sum(found.cell.metrics[key] for found in cells.values()) for key in ("completed", "errored"))
        named = (*naming.of(next(iter(cells.values()))), *dataset, *([samples] if pooled else []))
        followed = corrected_mean(cells) if any(found.cell.labels is not None for found in cells.values()) else ()
        yield (rank, *named, *(value for figure in figures for value in figure), *_means(cells), *followed, *counts)


def corrected_mean(cells: Mapping[str, Outcomes]) -> tuple[float | None, Interval | None]:
    """The mean of the corrected adherence over datasets, with its interval."""
    shares = [comparisons.corrected(found) for found in cells.values()]
    known = [share for share in shares if isinstance(share, Powered)]
    return comparisons.measured(powered_mean(known) if len(known) == len(shares) else None)


def _means(cells: Mapping[str, Outcomes]) -> Sequence[float | None]:
    metrics = [found.cell.metrics for found in cells.values()]
    first, last = (mean_of_all([m["pass_at_1"][turn] for m in metrics]) for turn in (0, -1))
    rates = [mean_of_all([m[key]["overall"] for m in metrics]) for key in ("regression", "self_correction")]
    followed = mean_of_all([found.adherence.rate for found in cells.values()])
    return [first, last, percent_change(first, last), *rates, followed]


def mst(comparison: RefineComparison) -> Table:
    """MST per entrant and dataset, and the mean (Table V)."""
    naming = Naming(comparison, with_dataset=False)
    figures = [*((f"mst_{dataset}", dataset) for dataset in comparison.datasets), ("mst_mean", "Mean")]
    order = ranked(comparison)
    figures = figures if any(order.values()) else figures[:-1]
    columns = [*naming.columns, *(each for item in figures for each in with_interval(*item, ".3f"))]
    rows: list[tuple[Value, ...]] = []
    for label in order:
        cells = comparison.entrant(label)
        values = [cells[name].measured("mst") if name in cells else (None, None) for name in comparison.datasets]
        named = naming.of(next(iter(cells.values())))
        both = [*values, mean_mst(comparison, label)][: len(figures)]
        rows.append((*named, *(value for each in both for value in each)))
    models = [_mean_row(comparison, naming, setup)[: len(columns)] for setup in together(comparison)]
    best: set[tuple[int, int]] = set()
    for place in range(len(naming.columns), len(columns), 2):
        known = {number: value for number, row in enumerate(rows) if isinstance(value := row[place], float)}
        best |= {(number, place) for number, value in known.items() if value == max(known.values()) and len(rows) > 1}
    return Table(
        "table_5_mst", f"Mean Sustainable Turns, MST@{comparison.length or 'N'} (paper, Table V)", tuple(columns),
        (*rows, *models), group="leaderboard", note=f"Bold: the highest of its column. {MEAN_NOTE}",
        strong=frozenset(best),
    )  # fmt: skip


def _mean_row(comparison: RefineComparison, naming: Naming, models: Together) -> tuple[Value, ...]:
    _, *named = naming.of(next(iter(models.cells.values())))
    names = [*comparison.datasets, MEAN]
    known = {*models.datasets, *([MEAN] if models.datasets == comparison.averaged else [])}
    values = [models.mean(Outcomes.sustained_turns, name).measured if name in known else (None, None) for name in names]
    return (f"mean of {models.noun}", *named, *(value for each in values for value in each))


def decay(comparison: RefineComparison) -> Table:
    """Δ of Pass@1 and its trend per model and dataset (Table IV)."""
    last = comparison.last_turn
    columns = (
        *columns_of(".3f", pass_first="Pass@1 turn 0", pass_last=f"Pass@1 turn {last}"),
        *with_interval("delta_pct", f"Δ0→{last} %", "+.1f"),
    )
    rows = [(*_ends(found.cell.metrics["pass_at_1"]), *found.measured("delta_pct")) for found in comparison.in_order()]
    title = "Functional correctness over the turns (paper, Table IV)"
    return _trend_table(comparison, "pass_at_1", columns, rows, name="table_4_decay", title=title, group="trend")


def adherence(comparison: RefineComparison) -> Table:
    """Δ of instruction adherence and its trend per model and dataset (Table VII)."""
    last = comparison.last_turn
    columns = (
        *columns_of(".3f", iar_first="Adherence turn 1", iar_last=f"Adherence turn {last}"),
        Column("iar_delta_pct", f"Δ1→{last} %", "+.1f"),
        *with_interval("iar", "Adherence, all turns", ".3f"),
    )
    rows = [
        (*_ends(found.cell.metrics["iar"]), found.cell.metrics["iar_delta_pct"], *found.counted(found.adherence))
        for found in comparison.in_order()
    ]
    title = "Instruction adherence over the turns (paper, Table VII)"
    return _trend_table(comparison, "iar", columns, rows, name="table_7_adherence", title=title, group="adherence")


def _ends(series: Sequence[float | None]) -> tuple[float | None, float | None]:
    return (series[0], series[-1]) if series else (None, None)


def _trend_table(
    comparison: RefineComparison, series: str, columns: Sequence[Column], rows: Sequence[Sequence[Value]], **about: str
) -> Table:
    """A row per cell, with the Mann–Kendall test of a series."""
    test = (Column("mk_s", "S", "d"), Column("mk_z", "Z", ".2f"), Column("mk_p", "p", "p"), Column("trend", "Trend"))
    arrows = {"decreasing": "↓ decreasing", "increasing": "↑ increasing"}
    tested, strong = [], []
    for number, (found, row) in enumerate(zip(comparison.in_order(), rows, strict=True)):
        trend = found.cell.metrics["mann_kendall"][series] or dict.fromkeys(("s", "z", "p", "trend"))
        direction = trend["trend"] and arrows.get(trend["trend"], trend["trend"])
        tested.append((found, (*row, trend["s"], trend["z"], trend["p"], direction)))
        strong += [(number, len(columns) + 2)] if trend["p"] is not None and trend["p"] < ALPHA else []
    return named_table(comparison, (*columns, *test), tested, strong, note=MANN_KENDALL_NOTE, **about)


def sensitivity(comparison: RefineComparison) -> Table:
    """MST with sessions cut at T turns, and how much each longer cut adds (Table VI)."""
    caps = sorted({int(cap) for found in comparison.cells for cap in found.cell.metrics["mst_at"]})
    columns = [Column(f"mst_at_{cap}", f"T={cap}", ".3f") for cap in caps[:1]]
    for cap in caps[1:]:
        columns += [Column(f"mst_at_{cap}", f"T={cap}", ".3f"), Column(f"change_{cap}_pct", "change %", "+.1f")]
    rows = [(found, _steps(found.cell.metrics["mst_at"], caps)) for found in comparison.in_order()]
    lowest = []
    for number, (_, row) in enumerate(rows):
        changes = [(value, place) for place, value in enumerate(row) if place and place % 2 == 0 and value is not None]
        lowest += [(number, min(changes)[1])] if changes else []
    return named_table(
        comparison, columns, rows, lowest,
        name="table_6_mst_sensitivity", title="Sensitivity of MST to the longest session, T (paper, Table VI)",
        note="Sessions cut after T turns; the change is against the T before it of the same row. Bold: the lowest "
        "change of its row.",
        group="trend",
    )  # fmt: skip


def _steps(mst_at: Mapping[str, float | None], caps: Sequence[int]) -> list[float | None]:
    """MST at every cap, each but the first with the change in per cent from the cap before."""
    values = [mst_at.get(str(cap)) for cap in caps]
    row, before = values[:1], values[0] if values else None
    for value in values[1:]:
        row += [value, percent_change(before, value)]
        before = before if value is None else value
    return row


def turns(comparison: RefineComparison) -> Table:
    """Every curve's values: one row per cell and turn."""
    titles = {"pass_at_1": "Pass@1", "surviving": "Passing since turn 0", "adherence": "Adherence",
              "regression": "Regression"}  # fmt: skip
    columns = [Column("turn", "Turn", "d"), *(each for item in titles.items() for each in with_interval(*item, ".3f"))]
    columns += columns_of("d", adherence_n="Judged", regression_n="Passed before")
    rows = [(found, _turn(found, turn)) for found in comparison.in_order() for turn in range(found.cell.turns)]
    return named_table(
        comparison, columns, rows, name="turns", title="Turn by turn", group="trend",
        note="Intervals: 95 %, resampled by task. Adherence and regression begin with the first follow-up, turn 1. "
        "They are of the replies judged there (none skipped or undecided) and of the code that passed before.",
    )  # fmt: skip


def _turn(found: Outcomes, turn: int) -> tuple[Value, ...]:
    metrics = found.cell.metrics
    values: list[Value] = [turn, metrics["pass_at_1"][turn], Interval.of(interval_of(metrics, REFINE.series[0])[turn])]
    values += found.counted(found.surviving(turn))
    followed = (found.adherence_at, found.regression_at)
    for series in followed:
        values += found.counted(series[turn]) if turn else (None, None)
    return (*values, *(size(series[turn]) if turn else None for series in followed))


def association(comparison: RefineComparison) -> Table:
    """Correctness against adherence: Phi with its 2 × 2 counts (paper, VI-B)."""
    cells = ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated")
    columns = (
        Column("phi", "Phi", "+.3f"),
        *columns_of("d", **{key: key.replace("_", ", ").capitalize() for key in cells}, undecided="Undecided"),
    )
    metrics = [(found, found.cell.metrics) for found in comparison.in_order()]
    rows = [(found, (m["phi"]["value"], *map(m["phi"].get, cells), m["undecided"])) for found, m in metrics]
    return named_table(
        comparison, columns, rows,
        name="phi", title="Correctness and adherence", group="adherence",
        note="Over judged follow-up turns. Phi is 1 where a turn passes exactly when it adheres, 0 where the two are "
        "unrelated; a dash where all turns pass, fail, adhere or violate.",
    )  # fmt: skip


def transitions(comparison: RefineComparison) -> Table:
    """Regression and self-correction by type of instruction, with what they are shares of (the paper's RQ2)."""
    columns = (
        *columns_of(breakdown="Breakdown", type="Type"),
        *with_interval("regression", "Regression", ".3f"),
        Column("passed_before", "Passed before", "d"),
        *with_interval("self_correction", "Self-correction", ".3f"),
        Column("failed_before", "Failed before", "d"),
    )
    rows = [
        (found, _transition(found, place, broken, mended)) for found in comparison.in_order()
        for (place, broken), (_, mended) in zip(found.regression.items(), found.self_correction.items(), strict=True)
    ]  # fmt: skip
    return named_table(
        comparison, columns, rows,
        name="transitions", title="Regression and self-correction by type of instruction", group="breaks",
        note="Regression: turns that broke code that had passed. Self-correction: turns that mended code that had "
        "failed. Skipped turns and turns after a context overflow are left out. Intervals: 95 %, resampled by task.",
    )  # fmt: skip


def _transition(found: Outcomes, place: str, broken: TaskRatio, mended: TaskRatio) -> tuple[Value, ...]:
    breakdown, _, name = place.removeprefix("by_").partition(".")
    rates = (*comparisons.regression(found, place), size(broken), *found.counted(mended), size(mended))
    return (breakdown, name or "all", *rates)


def breaking_table(comparison: RefineComparison) -> Table:
    """How often each instruction broke code that passed, ordered by the lower end of the interval of its rate."""
    merged: dict[str, Breaking] = {}
    for key, seen in (item for found in comparison.cells for item in found.instructions.items()):
        known = merged.setdefault(key, Breaking(seen.instruction))
        known.met += seen.met
        known.broke += seen.broke
    floor = {key: (wilson(seen.broke, seen.met) or (0.0, 1.0))[0] for key, seen in merged.items()}
    order = sorted(merged, key=lambda key: (-floor[key], -merged[key].met, key))
    columns = (
        *columns_of(instruction="Instruction", id="Id", scope="Scope", change="Change"),
        *columns_of("d", passed_before="Passed before", broke="Broke"),
        *with_interval("regression", "Regression", ".3f"),
    )
    rows = [
        (what.text, what.id, what.scope, what.change, seen.met, seen.broke, seen.broke / seen.met,
         Interval.of(wilson(seen.broke, seen.met)))
        for seen in map(merged.__getitem__, order) for what in [seen.instruction]
    ]  # fmt: skip
    return Table(
        "instructions", "The most breaking instructions", columns, tuple(rows), group="breaks",
        note="Over all cells, most breaking first: ordered by the lower end of Wilson's 95 % interval, which treats "
        "turns as independent; turns of one task are not, so the true intervals are wider.",
    )  # fmt: skip


def datasets(comparison: RefineComparison) -> Table | None:
    """A row per dataset, and per choice of tasks if cells of one dataset differ in it; None if no cell kept counts."""
    found: dict[tuple[Value, ...], None] = {}
    for each in comparison.in_order():
        counts = each.cell.metrics.get(LOADED)
        if counts is not None:
            counted, original, added = (counts[key] for key in ("counted", "original_tests", "added_tests"))
            means = (rate(tests, counted) for tests in (original, added, original + added))
            found[each.cell.dataset, counts["tasks"], counted, *means] = None
    if not found:
        return None
    columns = (
        Column("seed_dataset", "Dataset"), *columns_of("d", tasks="Tasks", counted="Counted"),
        *columns_of(",.1f", original_tests="Original tests", added_tests="Added tests", all_tests="All tests"),
    )  # fmt: skip
    return Table(
        "table_3_datasets", "Datasets (paper, Table III)", columns, tuple(found), note=DATASETS_NOTE, group="data"
    )
