"""Whether two cells of a protocol differ: every pair on the tasks that both completed.

A task that is hard for one model is often hard for the other, so every test is paired by task. Samples of one task are
no tasks of their own: a test sees their mean, and a resample has all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import lcm
from typing import Generic, NamedTuple

from codechat.report.comparison import Comparison, V, resamples_of
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.metrics.repeats import sign_flips
from codechat.report.metrics.statistics import TaskRatio, percentile_interval, rate


class Agreement(NamedTuple):
    """How two entrants fare on the same tasks at one turn: the counts of a 2x2 table of matched pairs.

    With several samples of a task, the counts that are expected if one sample of each side is drawn.
    """

    both: float
    only_a: float
    only_b: float
    neither: float

    @classmethod
    def of(cls, a: Sequence[bool | None], b: Sequence[bool | None]) -> "Agreement":
        """Count the pairs that have two verdicts; both sequences hold the same tasks in the same order."""
        pairs = list(zip(a, b, strict=True))
        return cls(*(pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))))

    @classmethod
    def expected(cls, shares: Sequence[tuple[float, float]]) -> "Agreement":
        """Of tasks of which these shares of the samples pass, of A and of B."""
        return cls(
            sum(a * b for a, b in shares),
            sum(a * (1 - b) for a, b in shares),
            sum((1 - a) * b for a, b in shares),
            sum((1 - a) * (1 - b) for a, b in shares),
        )

    @property
    def p(self) -> float | None:
        """McNemar's exact test, two-sided: whether the pairs that differ lean to one side; None without a pair."""
        from statsmodels.stats.contingency_tables import mcnemar

        return float(mcnemar([self[:2], self[2:]], exact=True).pvalue) if sum(self) else None

    @property
    def risk_difference(self) -> float | None:
        """The share that passes with A, minus the share that passes with B."""
        return rate(self.only_a - self.only_b, sum(self))

    @property
    def odds_ratio(self) -> float | None:
        """The odds ratio of matched pairs; None if no task speaks for B."""
        return rate(self.only_a, self.only_b)


class SignedRanks(NamedTuple):
    """Wilcoxon's signed-rank test of paired numbers, pairs without a difference left out.

    `p` is two-sided; `rank_biserial` is the effect size for matched pairs: 1 if every difference favours A, -1 if
    every one favours B. Both are None if no pair differs.
    """

    p: float | None
    rank_biserial: float | None


def signed_ranks(a: Sequence[float], b: Sequence[float]) -> SignedRanks:
    """Compare numbers of the same tasks in the same order."""
    from scipy.stats import wilcoxon

    differences = [x - y for x, y in zip(a, b, strict=True) if x != y]
    if not differences:
        return SignedRanks(None, None)
    ranks = len(differences) * (len(differences) + 1) / 2
    in_favour = float(wilcoxon(differences, alternative="greater", method="asymptotic").statistic)
    method = "exact" if len({abs(value) for value in differences}) == len(differences) <= 50 else "asymptotic"
    return SignedRanks(float(wilcoxon(differences, method=method).pvalue), 2 * in_favour / ranks - 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction over all tests of a family; a test that could not be made is None and takes no part."""
    from statsmodels.stats.multitest import multipletests

    known = [p for p in p_values if p is not None]
    corrected = iter(multipletests(known, method="holm")[1] if known else ())
    return [None if p is None else float(next(corrected)) for p in p_values]


def minus(a: float | None, b: float | None) -> float | None:
    """A minus B; None if either is missing."""
    return None if a is None or b is None else a - b


def difference(a: Sequence[float | None], b: Sequence[float | None]) -> Interval | None:
    """The 95 % interval of A minus B. Both hold the figure in the same resamples of the same tasks."""
    return Interval.of(percentile_interval(map(minus, a, b)))


NAMES = (*columns_of(dataset="Dataset", a="A", b="B"), *columns_of("d", tasks="Tasks"))
HOLM = "p (Holm)"
Row = tuple[Value, ...]
Rows = list[list[tuple[bool | None, ...]]]  # by task, then by sample: the verdicts turn by turn
REPEATED = (
    " A task with several samples counts by its mean over them, and the counts of tasks are what is expected of one "
    "sample each; the test at a turn is then the exact permutation test by task, which is McNemar's if there is one."
)


@dataclass(frozen=True)
class Pair(Generic[V]):
    """Two cells of one dataset, on the tasks that both completed and the turns that both have."""

    a: V
    b: V

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of both, sorted."""
        return tuple(sorted(set(self.a.tasks) & set(self.b.tasks)))

    @property
    def turns(self) -> int:
        """The turns that both have."""
        return min(self.a.cell.turns, self.b.cell.turns)

    @property
    def names(self) -> Row:
        """The values of the naming columns."""
        return (self.a.cell.dataset, self.a.cell.label, self.b.cell.label, len(self.tasks))

    @cached_property
    def verdicts(self) -> tuple[Rows, Rows]:
        """The verdicts of A and of B, a list of samples per task."""
        a, b = (
            [[side.passed[place][: self.turns] for place in samples[task]] for task in self.tasks]
            for side, samples in ((side, side.samples) for side in (self.a, self.b))
        )
        return a, b

    @property
    def repeated(self) -> bool:
        """Whether a task has several samples."""
        return any(len(samples) > 1 for side in self.verdicts for samples in side)

    def at(self, turn: int) -> tuple[TaskRatio, TaskRatio]:
        """The samples of A and of B that pass at one turn, of those that are scored."""
        a, b = (
            TaskRatio({
                task: _summed([passing([row[turn]]) for row in samples])
                for task, samples in zip(self.tasks, side, strict=True)
            })
            for side in self.verdicts
        )  # fmt: skip
        return a, b

    def agreement(self, turn: int) -> tuple[Agreement, float | None]:
        """How they fare on the tasks that both have a verdict on at a turn, and the p of the test by task."""
        a, b = (side.by_task for side in self.at(turn))
        both = [(a[task], b[task]) for task in self.tasks if a[task][1] and b[task][1]]
        if not self.repeated:
            found = Agreement.of([bool(mine) for (mine, _), _ in both], [bool(its) for _, (its, _) in both])
            return found, found.p
        whole = lcm(*(mine[1] * its[1] for mine, its in both))
        shares = [(Fraction(*mine), Fraction(*its)) for mine, its in both]
        p = sign_flips([int((mine - its) * whole) for mine, its in shares])
        return Agreement.expected([(float(mine), float(its)) for mine, its in shares]), p

    @property
    def is_scored(self) -> bool:
        """Whether both have a turn that is scored."""
        return all(any(v is not None for samples in side for row in samples for v in row) for side in self.verdicts)

    def ratios(self, figure: TaskRatio) -> list[float | None]:
        """A figure in every resample of the pair's tasks."""
        return resamples_of(self.tasks, self.a.cell.dataset).ratios(figure)


def pairs(comparison: Comparison[V]) -> list[Pair[V]]:
    """Pairs on one dataset that can be compared: two models under the same settings, or one model under two."""
    found = [
        Pair(a, b)
        for dataset in comparison.datasets
        for a, b in combinations(comparison.on(dataset), 2)
        if a.cell.model == b.cell.model or a.cell.settings == b.cell.settings
    ]
    return [pair for pair in found if pair.tasks]


def paired_columns(key: str, label: str, difference_key: str) -> tuple[Column, ...]:
    """The columns of what `paired_row` gives."""
    return (
        *NAMES,
        *columns_of(".3f", **{f"{key}_{side}": f"{label} {side.upper()}" for side in "ab"}),
        *with_interval(difference_key, "A − B", "+.3f"),
        Column("p", "p", "p"),
        Column("rank_biserial", "Rank-biserial r", "+.2f"),
    )


def paired_row(pair: Pair[V], figure_of: Callable[[Sequence[bool | None]], tuple[int, int]]) -> Row:
    """The pair's names, the figure of A, that of B, their difference with its interval, and the signed-rank test.

    `figure_of` gives what one task's verdicts add to the figure: a sum, and a number to divide it by.
    """
    a, b = (
        TaskRatio({
            task: _summed([figure_of(row) for row in samples]) for task, samples in zip(pair.tasks, side, strict=True)
        })
        for side in pair.verdicts
    )  # fmt: skip
    both = [task for task in pair.tasks if a.by_task[task][1] and b.by_task[task][1]]
    test = signed_ranks(*([hits / total for hits, total in map(side.by_task.__getitem__, both)] for side in (a, b)))
    interval = difference(pair.ratios(a), pair.ratios(b))
    return (*pair.names, a.rate, b.rate, minus(a.rate, b.rate), interval, *test)


def _summed(parts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(hits for hits, _ in parts), sum(total for _, total in parts)


def note_on_samples(compared: Sequence[Pair[V]]) -> str:
    """What to know if an entrant has several samples of a task; empty if none has."""
    return REPEATED if any(pair.repeated for pair in compared) else ""


def count_spec(compared: Sequence[Pair[V]]) -> str:
    """The format of the counts of an agreement."""
    return ".1f" if any(pair.repeated for pair in compared) else "d"


def passing(verdicts: Sequence[bool | None]) -> tuple[int, int]:
    """Turns that pass, of those that are scored."""
    return verdicts.count(True), len(verdicts) - verdicts.count(None)


def differences(comparison: Comparison[V], compared: list[Pair[V]]) -> Table:
    """The share of scored turns that pass, A minus B, and whose code passes at the last turn."""
    columns = (
        *paired_columns("passing", "Passing turns", "difference"),
        *columns_of(count_spec(compared), only_a="Last turn: only A passes", only_b="only B"),
        Column("last_p", "p", "p"),
    )
    ends = [pair.agreement(-1) for pair in compared]
    rows = [
        (*paired_row(pair, passing), end.only_a, end.only_b, p) for pair, (end, p) in zip(compared, ends, strict=True)
    ]
    return corrected(Table(
        f"{comparison.protocol}_pairs", f"{comparison.measures.name}: paired differences", columns, tuple(rows),
        group=comparison.protocol,
        note=f"A turn passes where {comparison.measures.passed}. On the tasks and turns that both completed. "
        "Intervals: 95 %, paired bootstrap by task. p: Wilcoxon's signed-rank test on the tasks' shares of passing "
        "turns, and McNemar's exact test on the last turn; Holm-corrected over all pairs of a dataset; "
        f"bold: below 0.05.{note_on_samples(compared)}",
    ))  # fmt: skip


def corrected(table: Table, whole: int = 0) -> Table:
    """The table of tests of pairs, each column of p-values followed by one with Holm's correction.

    The correction is over all rows of a dataset, which is the first column; bold if it is below 0.05. The first
    `whole` rows test all cells of a dataset at once, and are not corrected.
    """
    columns, rows = [*table.columns], [[*row] for row in table.rows]
    for place in reversed([place for place, column in enumerate(columns) if column.spec == "p"]):
        columns.insert(place + 1, Column(f"{columns[place].key}_holm", HOLM, "p"))
        for row, p_holm in zip(rows, [None] * whole + _holm(table.rows[whole:], place), strict=True):
            row.insert(place + 1, p_holm)
    clear = [
        (number, place)
        for place, column in enumerate(columns)
        for number, row in enumerate(rows)
        if column.title == HOLM and isinstance(p := row[place], float) and p < 0.05
    ]
    return replace(table, columns=tuple(columns), rows=tuple(map(tuple, rows)), strong=frozenset(clear))


def _holm(rows: Sequence[Row], place: int) -> list[float | None]:
    """The p-values at a place of the rows, corrected over all of the same dataset."""
    known = [(row[0], p if isinstance(p := row[place], float) else None) for row in rows]
    datasets = dict.fromkeys(dataset for dataset, _ in known)  # one correction each: statsmodels takes 0.1 s for it
    families = {dataset: iter(holm([p for other, p in known if other == dataset])) for dataset in datasets}
    return [next(families[dataset]) for dataset, _ in known]
