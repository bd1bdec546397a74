"""Whether two entrants differ: every pair on the tasks that both completed, with corrected tests and effect sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Generic

from codechat.metrics.statistics import Figure, rate
from codechat.report.data import Column, Interval, Table, Value
from codechat.report.outcomes import Outcomes, Study, resamples_of
from codechat.report.statistics.paired import Agreement, changes, difference, holm, signed_ranks
from codechat.report.statistics.survival import Survival, log_rank
from codechat.report.study import Cells, F

NAMES = (Column("dataset", "Dataset"), Column("a", "A"), Column("b", "B"), Column("tasks", "Tasks", "d"))
P, HOLM = Column("p", "p", "p"), Column("p_holm", "p (Holm)", "p")


@dataclass(frozen=True)
class Pair(Generic[F]):
    """Two cells of one dataset, on the tasks that both completed and the turns that both have."""

    a: F
    b: F

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of both, sorted."""
        return tuple(sorted(set(self.a.tasks) & set(self.b.tasks)))

    @property
    def turns(self) -> int:
        """The turns that both have."""
        return min(self.a.length, self.b.length)

    @property
    def names(self) -> tuple[Value, ...]:
        """The values of the naming columns."""
        return (self.a.cell.dataset, self.a.cell.label, self.b.cell.label, len(self.tasks))

    @cached_property
    def verdicts(self) -> tuple[list[tuple[bool, ...]], list[tuple[bool, ...]]]:
        """The verdicts of A and of B, a tuple per task."""
        found = (dict(zip(side.tasks, side.passed, strict=True)) for side in (self.a, self.b))
        a, b = ([verdicts[task][: self.turns] for task in self.tasks] for verdicts in found)
        return a, b

    @cached_property
    def lasted(self) -> tuple[list[int], list[int]]:
        """The passing turns from turn 0 on of A and of B, a number per task."""
        a, b = ([[*verdicts, False].index(False) for verdicts in side] for side in self.verdicts)
        return a, b

    def resampled(self, values: list[int] | list[bool]) -> list[float | None]:
        """The mean of one value per task, in every resample of the pair's tasks."""
        figure = Figure({task: (int(value), 1) for task, value in zip(self.tasks, values, strict=True)})
        return resamples_of(self.tasks, self.a.cell.dataset).ratios(figure)


def pairs(study: Cells[F]) -> list[Pair[F]]:
    """Pairs on one dataset that can be compared: two models under the same settings, or one model under two."""
    found = [
        Pair(a, b)
        for dataset in study.datasets
        for a, b in combinations(study.on(dataset), 2)
        if a.cell.model == b.cell.model or a.cell.settings == b.cell.settings
    ]
    return [pair for pair in found if pair.tasks]


def differences(compared: list[Pair[Outcomes]]) -> Table:
    """A minus B in MST and in Δ, with the paired bootstrap, the signed-rank test and its effect size."""
    columns = (
        *NAMES,
        Column("mst_a", "MST A", ".3f"),
        Column("mst_b", "MST B", ".3f"),
        Column("mst_difference", "A − B", "+.3f"),
        Column("mst_difference_ci", "95 % interval", "+.3f"),
        P,
        HOLM,
        Column("rank_biserial", "Rank-biserial r", "+.2f"),
        Column("delta_difference", "Δ A − Δ B, points", "+.1f"),
        Column("delta_difference_ci", "95 % interval", "+.1f"),
    )
    tests = [signed_ranks(*pair.lasted) for pair in compared]
    corrected = holm_by_dataset(compared, [test.p for test in tests])
    rows: list[tuple[Value, ...]] = []
    for pair, test, p_holm in zip(compared, tests, corrected, strict=True):
        means = [sum(side) / len(side) for side in pair.lasted]
        interval = difference(*(pair.resampled(side) for side in pair.lasted))
        effect = (test.p, p_holm, test.rank_biserial)
        rows.append((*pair.names, *means, means[0] - means[1], interval, *effect, *_delta(pair)))
    return Table(
        "pairs_mst", "Paired differences of MST and Δ", columns, tuple(rows), group="pairs",
        strong=clear(columns, rows),
        note="On the tasks and turns that both completed. Intervals: 95 %, paired bootstrap by task. p: Wilcoxon's "
        "signed-rank test on the tasks' passing turns, Holm-corrected over all pairs of a dataset; bold: below 0.05. "
        "Rank-biserial r: 1 where every task that differs favours A, −1 where every one favours B.",
    )  # fmt: skip


def _delta(pair: Pair[Outcomes]) -> tuple[float | None, Interval | None]:
    """The difference of the changes in Pass@1 from the first to the last shared turn, in percentage points."""
    ends, drawn = [], []
    for side in pair.verdicts:
        first, last = [row[0] for row in side], [row[-1] for row in side]
        ends.append(changes([rate(sum(first), len(first))], [rate(sum(last), len(last))])[0])
        drawn.append(changes(pair.resampled(first), pair.resampled(last)))
    a, b = ends
    return (None if a is None or b is None else a - b), difference(*drawn)


def turns(compared: list[Pair[Outcomes]]) -> Table:
    """McNemar's test per turn."""
    columns = (
        *NAMES,
        Column("turn", "Turn", "d"),
        Column("both", "Both pass", "d"),
        Column("only_a", "Only A", "d"),
        Column("only_b", "Only B", "d"),
        Column("neither", "Neither", "d"),
        P,
        HOLM,
        Column("risk_difference", "Risk difference", "+.3f"),
        Column("risk_difference_ci", "95 % interval", "+.3f"),
        Column("odds_ratio", "Odds ratio", ".2f"),
    )
    found = list(_agreements(compared))
    p_values = [agreement.p for _, _, agreement, _ in found]
    corrected = holm_by_dataset([pair for pair, *_ in found], p_values)
    rows: list[tuple[Value, ...]] = []
    for (pair, turn, agreement, interval), p, p_holm in zip(found, p_values, corrected, strict=True):
        counts = (agreement.both, agreement.only_a, agreement.only_b, agreement.neither)
        rows.append((*pair.names, turn, *counts, p, p_holm, agreement.risk_difference, interval, agreement.odds_ratio))
    return Table(
        "pairs_turns", "McNemar's test per turn", columns, tuple(rows), group="pairs",
        strong=clear(columns, rows),
        note="Exact and two-sided, on the tasks that both completed; Holm-corrected over all pairs and turns of a "
        "dataset; bold: below 0.05. Risk difference: Pass@1 of A minus that of B, its interval resampled by task. "
        "Odds ratio: tasks that only A passes per task that only B passes; a dash where B has none.",
    )  # fmt: skip


def _agreements(compared: list[Pair[Outcomes]]) -> Iterator[tuple[Pair[Outcomes], int, Agreement, Interval | None]]:
    for pair in compared:
        for turn in range(pair.turns):
            a, b = ([row[turn] for row in side] for side in pair.verdicts)
            yield pair, turn, Agreement.of(a, b), difference(pair.resampled(a), pair.resampled(b))


def survival(study: Study, compared: list[Pair[Outcomes]]) -> Table:
    """The log-rank test: all entrants of a dataset at once, then pair by pair."""
    columns = (
        *NAMES[:3], Column("sessions_a", "Sessions A", "d"), Column("sessions_b", "Sessions B", "d"),
        Column("chi2", "χ²", ".2f"), P, HOLM,
    )  # fmt: skip
    tests = [log_rank([_curve(pair.a), _curve(pair.b)]) for pair in compared]
    corrected = holm_by_dataset(compared, [test.p if test else None for test in tests])
    rows: list[tuple[Value, ...]] = []
    for dataset in study.datasets:
        curves = [_curve(found) for found in study.on(dataset)]
        test = log_rank(curves) if len(curves) > 2 else None
        if test:
            rows.append((dataset, "all entrants", "", None, None, test.chi2, test.p, None))
    for pair, test, p_holm in zip(compared, tests, corrected, strict=True):
        sizes = (len(pair.a.tasks), len(pair.b.tasks))
        rows.append((*pair.names[:3], *sizes, *((test.chi2, test.p, p_holm) if test else (None,) * 3)))
    return Table(
        "pairs_survival", "Log-rank test between survival curves", columns, tuple(rows), group="pairs",
        strong=clear(columns, rows),
        note="A session has failed at the first turn that does not pass; one that passes to the end is censored. Over "
        "the turns that the curves share. The test takes the sessions of two entrants as independent, though they "
        "share their tasks; the paired tests do not. Holm-corrected over all pairs of a dataset; bold: below 0.05.",
    )  # fmt: skip


def _curve(found: Outcomes) -> Survival:
    return Survival(found.sustained, found.length)


def holm_by_dataset(compared: Sequence[Pair[Any]], p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values, corrected over all that stand for pairs of the same dataset."""
    datasets = [pair.a.cell.dataset for pair in compared]
    corrected: list[float | None] = [None] * len(datasets)
    for dataset in set(datasets):
        places = [index for index, name in enumerate(datasets) if name == dataset]
        for index, p in zip(places, holm([p_values[index] for index in places]), strict=True):
            corrected[index] = p
    return corrected


def clear(columns: Sequence[Column], rows: Sequence[Sequence[Value]]) -> frozenset[tuple[int, int]]:
    """Where a corrected p lies below 0.05."""
    places = [place for place, column in enumerate(columns) if column.title == HOLM.title]
    return frozenset(
        (index, place)
        for index, row in enumerate(rows)
        for place in places
        if isinstance(p := row[place], float) and p < 0.05
    )
