"""Whether two cells of a protocol differ: every pair on the tasks that both completed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Generic

from codechat.metrics.statistics import Figure
from codechat.report.data import Column, Table, Value, columns_of, with_interval
from codechat.report.generic.paired import Agreement, difference, holm, signed_ranks
from codechat.report.study import Study, V, resamples_of

NAMES = (*columns_of(dataset="Dataset", a="A", b="B"), *columns_of("d", tasks="Tasks"))
TESTED = columns_of("p", p="p", p_holm="p (Holm)")
Rows = list[tuple[bool | None, ...]]


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
        return min(self.a.length, self.b.length)

    @property
    def names(self) -> tuple[Value, ...]:
        """The values of the naming columns."""
        return (self.a.cell.dataset, self.a.cell.label, self.b.cell.label, len(self.tasks))

    @cached_property
    def verdicts(self) -> tuple[Rows, Rows]:
        """The verdicts of A and of B, a tuple per task."""
        found = (dict(zip(side.tasks, side.passed, strict=True)) for side in (self.a, self.b))
        a, b = ([verdicts[task][: self.turns] for task in self.tasks] for verdicts in found)
        return a, b

    @property
    def is_scored(self) -> bool:
        """Whether both have a turn that is scored."""
        return all(any(verdict is not None for row in side for verdict in row) for side in self.verdicts)

    def resampled(self, values: Sequence[int | bool | None]) -> list[float | None]:
        """The mean of one value per task, in every resample of the pair's tasks; tasks without a value are left out."""
        counted = zip(self.tasks, values, strict=True)
        figure = Figure({task: (int(value), 1) for task, value in counted if value is not None})
        return resamples_of(self.tasks, self.a.cell.dataset).ratios(figure)


def pairs(study: Study[V]) -> list[Pair[V]]:
    """Pairs on one dataset that can be compared: two models under the same settings, or one model under two."""
    found = [
        Pair(a, b)
        for dataset in study.datasets
        for a, b in combinations(study.on(dataset), 2)
        if a.cell.model == b.cell.model or a.cell.settings == b.cell.settings
    ]
    return [pair for pair in found if pair.tasks]


def paired_columns(key: str, label: str, difference_key: str) -> tuple[Column, ...]:
    """The columns of what `paired_rows` gives, after the names."""
    return (
        *NAMES,
        *columns_of(".3f", **{f"{key}_{side}": f"{label} {side.upper()}" for side in "ab"}),
        *with_interval(difference_key, "A − B", "+.3f"),
        *TESTED,
        Column("rank_biserial", "Rank-biserial r", "+.2f"),
    )


def paired_rows(
    compared: list[Pair[V]], figure_of: Callable[[Sequence[bool | None]], tuple[int, int]]
) -> Iterator[tuple[Value, ...]]:
    """For each pair the figure of A, that of B, their difference with its interval, and the signed-rank test.

    `figure_of` gives what one task's verdicts add to the figure: a sum, and a number to divide it by.
    """
    sides = [
        [Figure(dict(zip(pair.tasks, map(figure_of, side), strict=True))) for side in pair.verdicts]
        for pair in compared
    ]
    tests = [signed_ranks(*_shares(*both)) for both in sides]
    corrected = adjusted(compared, [test.p for test in tests])
    for pair, both, test, p_holm in zip(compared, sides, tests, corrected, strict=True):
        a, b = (figure.rate for figure in both)
        interval = difference(*map(resamples_of(pair.tasks, pair.a.cell.dataset).ratios, both))
        minus = None if a is None or b is None else a - b
        yield (*pair.names, a, b, minus, interval, test.p, p_holm, test.rank_biserial)


def _shares(a: Figure, b: Figure) -> tuple[list[float], list[float]]:
    """The figure of A and of B, task by task, for the tasks that both have one of."""
    tasks = [task for task in a.by_task if a.by_task[task][1] and b.by_task[task][1]]
    one, other = ([hits / total for hits, total in map(side.by_task.__getitem__, tasks)] for side in (a, b))
    return one, other


def differences(study: Study[V], compared: list[Pair[V]]) -> Table:
    """The share of scored turns that pass, A minus B, and whose code passes at the last turn."""
    columns = (
        *paired_columns("passing", "Passing turns", "difference"),
        *columns_of("d", only_a="Last turn: only A passes", only_b="only B"),
        *columns_of("p", last_p="p", last_p_holm=TESTED[1].title),
    )
    ends = [Agreement.of(*([row[-1] for row in side] for side in pair.verdicts)) for pair in compared]
    corrected = adjusted(compared, [end.p for end in ends])
    rows = [
        (*values, end.only_a, end.only_b, end.p, p_holm)
        for values, end, p_holm in zip(paired_rows(compared, _passing), ends, corrected, strict=True)
    ]
    return Table(
        f"{study.protocol}_pairs", f"{study.measures.name}: paired differences", columns, tuple(rows),
        group=study.protocol, strong=clear(columns, rows),
        note=f"A turn passes where {study.measures.passed}. On the tasks and turns that both completed. "
        "Intervals: 95 %, paired bootstrap by task. p: Wilcoxon's signed-rank test on the tasks' shares of passing "
        "turns, and McNemar's exact test on the last turn; Holm-corrected over all pairs of a dataset; "
        "bold: below 0.05.",
    )  # fmt: skip


def _passing(verdicts: Sequence[bool | None]) -> tuple[int, int]:
    """Turns that pass, of those that are scored."""
    return verdicts.count(True), len(verdicts) - verdicts.count(None)


def adjusted(compared: Sequence[Pair[Any]], p_values: Sequence[float | None]) -> list[float | None]:
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
    places = [place for place, column in enumerate(columns) if column.title == TESTED[1].title]
    return frozenset(
        (index, place)
        for index, row in enumerate(rows)
        for place in places
        if isinstance(p := row[place], float) and p < 0.05
    )
