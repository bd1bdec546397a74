"""Whether two cells of a protocol differ: every pair on the tasks that both completed.

A task that is hard for one model is often hard for the other, so every test is paired by task. Samples of one task are
not independent: a test uses their mean, and a resample has all of them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import lcm
from typing import Generic, NamedTuple

from codechat.report.comparison import Comparison, V, resamples_of
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.metrics.repeats import sign_flips
from codechat.report.metrics.statistics import ALPHA, TaskRatio, percentile_interval, rate


class Agreement(NamedTuple):
    """The 2x2 table of matched pairs: the results of two entrants on the same tasks at one turn. With several samples
    of a task, the expected counts if one sample of each side is drawn."""

    both: float
    only_a: float
    only_b: float
    neither: float

    @classmethod
    def of(cls, a: Sequence[bool | None], b: Sequence[bool | None]) -> "Agreement":
        """Count the pairs with two verdicts; both sequences hold the same tasks in the same order."""
        return cls.expected([(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None])

    @classmethod
    def expected(cls, shares: Sequence[tuple[float, float]]) -> "Agreement":
        """The expected counts from each task's shares of passing samples, of A and of B."""
        outcomes = [(a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)) for a, b in shares]
        return cls(*map(sum, zip(*outcomes, strict=True))) if outcomes else cls(0, 0, 0, 0)

    @property
    def p(self) -> float | None:
        """The p of McNemar's exact test, two-sided; None without a pair."""
        from statsmodels.stats.contingency_tables import mcnemar

        return float(mcnemar([self[:2], self[2:]], exact=True).pvalue) if sum(self) else None

    @property
    def risk_difference(self) -> float | None:
        """The passing share of A minus the passing share of B."""
        return rate(self.only_a - self.only_b, sum(self))

    @property
    def odds_ratio(self) -> float | None:
        """The odds ratio of matched pairs; None if B is better on no task."""
        return rate(self.only_a, self.only_b)


class SignedRanks(NamedTuple):
    """Wilcoxon's signed-rank test of paired numbers, without equal pairs. `p` is two-sided; `rank_biserial` is the
    effect size: 1 if every difference favours A, -1 if every one favours B. Both are None if no pair differs."""

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
    """Holm's correction over all tests of a family; a missing test is None and does not count. It is statsmodels' to
    the last bit, without the collection of garbage that each call of `multipletests` begins."""
    found: list[float | None] = [None] * len(p_values)
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    least = 0.0
    for number, (p, place) in enumerate(known):
        least = min(max(least, p * (len(known) - number)), 1.0)
        found[place] = least
    return found


def minus(a: float | None, b: float | None) -> float | None:
    """A minus B; None if either is missing."""
    return None if a is None or b is None else a - b


def difference(a: Sequence[float | None], b: Sequence[float | None]) -> Interval | None:
    """The 95 % interval of A minus B, both in the same resamples of the same tasks."""
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
        return tuple(sorted(set(self.a.tasks) & set(self.b.tasks)))

    @property
    def turns(self) -> int:
        return min(self.a.cell.turns, self.b.cell.turns)

    @property
    def family(self) -> str:
        """The question that the pair belongs to: which of the models under these settings, or what these options of a
        model change."""
        a, b = self.a.cell, self.b.cell
        if a.model != b.model:
            return f"models, {a.variant}" if a.variant else "models"
        keys = [key for key in {**a.differences, **b.differences} if a.differences.get(key) != b.differences.get(key)]
        return f"{a.model}: {', '.join(sorted(keys)) or 'settings'}"

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

    def figures(self, part_of: Callable[[Sequence[bool | None]], tuple[int, int]]) -> tuple[TaskRatio, TaskRatio]:
        """A figure of A and of B by task. `part_of` returns the part of one session: a sum, and its divisor."""
        a, b = (
            {task: [part_of(row) for row in samples] for task, samples in zip(self.tasks, side, strict=True)}
            for side in self.verdicts
        )
        return _summed(a), _summed(b)

    def at(self, turn: int) -> tuple[TaskRatio, TaskRatio]:
        """The passing samples of A and of B at one turn, out of the scored ones; −1 is each session's last turn."""
        return self.figures(lambda row: passing(row[turn:][:1]))

    def agreement(self, sides: tuple[TaskRatio, TaskRatio]) -> tuple[Agreement, float | None]:
        """The results `at` a turn on the tasks with verdicts of both, and the p of the test by task."""
        a, b = (side.by_task for side in sides)
        both = [(a[task], b[task]) for task in self.tasks if a[task][1] and b[task][1]]
        if not self.repeated:
            found = Agreement.expected([(hits_a, hits_b) for (hits_a, _), (hits_b, _) in both])
            return found, found.p
        whole = lcm(*(counts_a[1] * counts_b[1] for counts_a, counts_b in both))
        shares = [(Fraction(*counts_a), Fraction(*counts_b)) for counts_a, counts_b in both]
        p = sign_flips([int((share_a - share_b) * whole) for share_a, share_b in shares])
        return Agreement.expected([(float(share_a), float(share_b)) for share_a, share_b in shares]), p

    @property
    def is_scored(self) -> bool:
        """Whether both have a turn that is scored."""
        return all(any(v is not None for samples in side for row in samples for v in row) for side in self.verdicts)

    def ratios(self, figure: TaskRatio) -> list[float | None]:
        """A figure in every resample of the pair's tasks."""
        return resamples_of(self.tasks, self.a.cell.dataset).ratios(figure)


def pairs(comparison: Comparison[V]) -> list[Pair[V]]:
    """The comparable pairs on one dataset: two models under the same settings, or one model under two."""
    every = (Pair(a, b) for dataset in comparison.datasets for a, b in combinations(comparison.on(dataset), 2))
    return [
        pair
        for pair in every
        if pair.tasks and (pair.a.cell.model == pair.b.cell.model or pair.a.cell.settings == pair.b.cell.settings)
    ]


def paired_columns(key: str, label: str, difference_key: str) -> tuple[Column, ...]:
    """The columns of `paired_row`."""
    return (
        *NAMES,
        *columns_of(".3f", **{f"{key}_{side}": f"{label} {side.upper()}" for side in "ab"}),
        *with_interval(difference_key, "A − B", "+.3f"),
        Column("p", "p", "p"),
        Column("rank_biserial", "Rank-biserial r", "+.2f"),
    )


def paired_row(pair: Pair[V], figure_of: Callable[[Sequence[bool | None]], tuple[int, int]]) -> Row:
    """The pair's names, the figures of A and B, the difference with its interval, and the signed-rank test. `figure_of`
    is as in `Pair.figures`."""
    a, b = pair.figures(figure_of)
    both = [task for task in pair.tasks if a.by_task[task][1] and b.by_task[task][1]]
    test = signed_ranks(*([hits / total for hits, total in map(side.by_task.__getitem__, both)] for side in (a, b)))
    interval = difference(pair.ratios(a), pair.ratios(b))
    return (*pair.names, a.rate, b.rate, minus(a.rate, b.rate), interval, *test)


def _summed(parts: Mapping[str, Sequence[tuple[int, int]]]) -> TaskRatio:
    return TaskRatio({task: (sum(hits for hits, _ in each), sum(of for _, of in each)) for task, each in parts.items()})


def note_on_samples(compared: Sequence[Pair[V]]) -> str:
    """The note for entrants with several samples of a task; empty if there are none."""
    return REPEATED if any(pair.repeated for pair in compared) else ""


def count_spec(compared: Sequence[Pair[V]]) -> str:
    """The format of the counts of an agreement."""
    return ".1f" if any(pair.repeated for pair in compared) else "d"


def passing(verdicts: Sequence[bool | None]) -> tuple[int, int]:
    """Passing turns and scored turns."""
    return verdicts.count(True), len(verdicts) - verdicts.count(None)


def differences(comparison: Comparison[V], compared: list[Pair[V]]) -> Table:
    """The share of passing turns, A minus B, and the comparison of the last turn."""
    columns = (
        *paired_columns("passing", "Passing turns", "difference"),
        *columns_of(count_spec(compared), only_a="Last turn: only A passes", only_b="only B"),
        Column("last_p", "p", "p"),
    )
    ends = [pair.agreement(pair.at(-1)) for pair in compared]
    rows = [
        (*paired_row(pair, passing), end.only_a, end.only_b, p) for pair, (end, p) in zip(compared, ends, strict=True)
    ]
    return corrected(Table(
        f"{comparison.protocol}_pairs", f"{comparison.measures.name}: paired differences", columns, tuple(rows),
        group=comparison.protocol,
        note=f"A turn passes where {comparison.measures.passed}. On the tasks and turns that both completed. "
        "Intervals: 95 %, paired bootstrap by task. p: Wilcoxon's signed-rank test on the tasks' shares of passing "
        f"turns, and McNemar's exact test on the last turn; {FAMILIES}; bold: below 0.05.{note_on_samples(compared)}",
    ), [pair.family for pair in compared])  # fmt: skip


FAMILIES = (
    "Holm-corrected within a question, which is a dataset's models under the same settings, or the settings of a model "
    "that differ in the same options (Family; Tests: how many it has)"
)


def corrected(table: Table, families: Sequence[str]) -> Table:
    """The table of tests of pairs, each column of p-values followed by a column with Holm's correction.

    `families` has the question of each row: the correction is over the rows of one dataset, which is the first column,
    and question. Bold if it is below 0.05. The last columns are the question, if there are several, and the number of
    its tests.
    """
    members: dict[tuple[Value, str], list[int]] = defaultdict(list)
    for number, (row, family) in enumerate(zip(table.rows, families, strict=True)):
        members[row[0], family].append(number)
    columns, rows = [*table.columns], [[*row] for row in table.rows]
    for place in reversed([place for place, column in enumerate(columns) if column.spec == "p"]):
        columns.insert(place + 1, Column(f"{columns[place].key}_holm", HOLM, "p"))
        for numbers in members.values():
            tests = [p if isinstance(p := rows[number][place], float) else None for number in numbers]
            for number, p_holm in zip(numbers, holm(tests), strict=True):
                rows[number].insert(place + 1, p_holm)
    several = len({*families}) > 1
    columns += [*columns_of(**({"family": "Family"} if several else {})), Column("tests", "Tests", "d")]
    for (_, family), numbers in members.items():
        for number in numbers:
            rows[number] += [*([family] if several else []), len(numbers)]
    clear = [
        (number, place)
        for place, column in enumerate(columns)
        for number, row in enumerate(rows)
        if column.title == HOLM and isinstance(p := row[place], float) and p < ALPHA
    ]
    return replace(table, columns=tuple(columns), rows=tuple(map(tuple, rows)), strong=frozenset(clear))
