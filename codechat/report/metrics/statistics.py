"""The statistics that protocols share: rates, trends, association, intervals by resampling tasks, confidence sequences.

Confidence sequences are intervals that hold at every moment of a study, so that the data may decide when it ends. The
tasks of a dataset are a finite population, drawn without replacement (betting: Waudby-Smith and Ramdas, JRSS B 86
(2024), section 5.2; NeurIPS 2020). A mean is excluded once a gambler who bets on higher numbers, or one who bets on
lower ones, has multiplied the stake by 2/α: for the true mean, in at most α of all studies, at any end (Ville's
inequality). The stake is divided over constant fractions, since no single fraction is best for all effects.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean
from typing import Any, Literal

from pydantic import BaseModel

from codechat.base.seeding import generator
from codechat.report.metrics.mann_kendall import original_test

RESAMPLES = 2_000
CHUNK = 50  # resamples computed at once
AT_ONCE = 20_000  # draws of tasks made at once, where few tasks allow more resamples than that
TAILS = (0.025, 0.975)  # of a 95 % interval
CANCELLED = 1e-10  # a p below has less than six right digits if it is computed as a difference from 1
ALPHA = 0.05  # of a test, and of a confidence sequence
FRACTIONS = (1 / 12, 1 / 5, 1 / 2)  # of what can be lost, staked at every draw
STOPPED = "stopped"  # the key in metrics.json for the end of a cell with `stop.*`, and the protocol of its chapter

Interval = tuple[float, float]


class Trend(BaseModel):
    """The original Mann-Kendall test, two-sided, α = 0.05 (paper III-F2)."""

    s: int
    var_s: float
    z: float
    p: float
    trend: Literal["increasing", "decreasing", "no trend"]


class PhiTable(BaseModel):
    """Correctness against adherence: the association and the 2x2 counts behind it (paper VI-B)."""

    value: float | None
    pass_adhered: int
    pass_violated: int
    fail_adhered: int
    fail_violated: int


def rate(hits: float, total: float) -> float | None:
    """`hits / total`, or None if `total` is 0."""
    return hits / total if total else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def mean_of_all(values: Sequence[float | None]) -> float | None:
    """The mean of the values; None if one of them is missing, or if there is none."""
    return None if None in values else mean_of(values)


def sustained(verdicts: Iterable[bool | None]) -> int:
    """The passing turns from turn 0 on: a session's part in MST (paper III-F3); unscored turns are left out."""
    scored = [verdict for verdict in verdicts if verdict is not None]
    return [*scored, False].index(False)


def percent_change(first: float | None, last: float | None) -> float | None:
    """The change from `first` to `last` in per cent of `first`; None if `first` is 0 or either is missing."""
    if not first or last is None:
        return None
    return 100 * (last - first) / first


def mann_kendall(series: Iterable[float | None]) -> Trend | None:
    """The trend of a series, missing values dropped; None below two values, because the test is not defined."""
    values = [value for value in series if value is not None]
    if len(values) < 2:
        return None
    if len(set(values)) == 1:  # what the test says of it, without a quarter of a second to load it
        return Trend(s=0, var_s=0.0, z=0.0, p=1.0, trend="no trend")
    result = original_test()(values, alpha=0.05)
    z, p = float(result.z), float(result.p)
    if p < CANCELLED:  # the library's 2 · (1 − Φ(|z|)) has lost its digits, and is 0 from z = 8.3 on
        p = math.erfc(abs(z) / math.sqrt(2))
    return Trend(s=round(result.s), var_s=float(result.var_s), z=z, p=p, trend=result.trend)


def phi(pass_adhered: int, pass_violated: int, fail_adhered: int, fail_violated: int) -> PhiTable:
    """The Phi coefficient of a 2x2 table; its value is None if a row or a column is empty."""
    rows = (pass_adhered + pass_violated) * (fail_adhered + fail_violated)
    columns = (pass_adhered + fail_adhered) * (pass_violated + fail_violated)
    return PhiTable(
        value=rate(pass_adhered * fail_violated - pass_violated * fail_adhered, math.sqrt(rows * columns)),
        pass_adhered=pass_adhered,
        pass_violated=pass_violated,
        fail_adhered=fail_adhered,
        fail_violated=fail_violated,
    )


_COUNTS: dict[tuple[int, int], tuple[int, int]] = {}  # equal ones are shared: ten thousand tasks have some dozens


@dataclass
class TaskRatio:
    """A ratio of two counts, kept by task so that tasks can be resampled."""

    by_task: dict[str, tuple[int, int]] = field(default_factory=dict)

    def count(self, task_id: str, hits: int, total: int = 1) -> None:
        """Add `hits` out of `total` from one session of the task."""
        old_hits, old_total = self.by_task.get(task_id, (0, 0))
        counts = (old_hits + hits, old_total + total)
        self.by_task[task_id] = _COUNTS.setdefault(counts, counts)

    @classmethod
    def union(cls, ratios: Iterable["TaskRatio"]) -> "TaskRatio":
        """The counts of several ratios as one."""
        whole = cls()
        for ratio in ratios:
            for task, counts in ratio.by_task.items():
                whole.count(task, *counts)
        return whole

    @property
    def rate(self) -> float | None:
        """The ratio over all tasks."""
        return rate(sum(hits for hits, _ in self.by_task.values()), sum(total for _, total in self.by_task.values()))

    def of_width(self, ends: Interval | None) -> Interval | None:
        """An interval of this share for readers: Wilson's over its tasks if all agree."""
        return of_width(ends, self.rate, sum(total > 0 for _, total in self.by_task.values()))


def wilson(hits: float, total: float) -> Interval | None:
    """Wilson's 95 % score interval of a share, which holds for few trials and for shares of 0 and 1; None of none."""
    if not total:
        return None
    share, z2 = hits / total, NormalDist().inv_cdf(TAILS[1]) ** 2
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    reach = math.sqrt(z2 * (share * (1 - share) / total + z2 / (4 * total * total))) / (1 + z2 / total)
    return (middle - reach if hits else 0.0, middle + reach if hits < total else 1.0)


def of_width(ends: Interval | None, share: float | None, tasks: int) -> Interval | None:
    """The interval of a share for readers: Wilson's over the tasks if all agree, since all resamples are alike then."""
    if ends is not None and ends[0] == ends[1] == share and share in (0, 1):
        return wilson(share * tasks, tasks) or ends
    return ends


class TaskBootstrap:
    """95 % percentile intervals from 2,000 resamples of the tasks with replacement; none of a single task.

    A task's sessions stay together, because they are not independent. The draws come from one byte stream of
    the project's own generator and all sums are sums of integers, so every machine gets the same intervals.
    """

    def __init__(self, tasks: Iterable[str], seed: int) -> None:
        self._tasks = sorted(set(tasks))
        self._weights = _draw(len(self._tasks), seed) if len(self._tasks) > 1 else None

    def ratios(self, ratio: TaskRatio) -> list[float | None]:
        """The ratio in every resample; None if its denominator is zero there. A single task has no resample but itself:
        an interval of no width would look certain."""
        sums = self._sums(ratio)
        if sums is None:
            return [None] * RESAMPLES if self._tasks else []
        return [rate(*counts) for counts in zip(*sums.tolist(), strict=True)]

    def interval(self, ratio: TaskRatio) -> Interval | None:
        """The central 95 % of `ratios`; None of a single task."""
        import numpy as np

        sums = self._sums(ratio)
        if sums is None:
            return None
        hits, totals = sums
        known = totals > 0
        return _central(np.sort(hits[known] / totals[known]).tolist())

    def shown(self, ratio: TaskRatio) -> Interval | None:
        """The interval of a share for readers: `interval`, or Wilson's if all tasks agree."""
        return ratio.of_width(self.interval(ratio))

    def _sums(self, ratio: TaskRatio) -> Any:
        """The counts of hits and of all in every resample, of shape (2, resamples); None of a single task."""
        if self._weights is None:
            return None
        import numpy as np

        # Sums of integers below 2**53 are exact in floats, whose products are many times faster.
        tallies = np.array([ratio.by_task.get(task, (0, 0)) for task in self._tasks], dtype=np.float64)
        chunks = (self._weights[rows].astype(np.float64) for rows in _rows(len(self._tasks)))
        return np.concatenate([chunk @ tallies for chunk in chunks]).T


def _rows(tasks: int) -> Iterator[slice]:
    """The resamples in parts: some at a time, since of ten thousand tasks all would take hundreds of megabytes."""
    several = max(CHUNK, AT_ONCE // tasks)
    return (slice(row, min(row + several, RESAMPLES)) for row in range(0, RESAMPLES, several))


def _draw(tasks: int, seed: int) -> Any:
    """How often each task was drawn: an integer array of shape (resamples, tasks), of the narrowest type possible."""
    import numpy as np

    stream = generator(seed, "", "bootstrap")
    drawn_often = np.zeros((RESAMPLES, tasks), dtype=np.uint8)
    for rows in _rows(tasks):
        shape = (rows.stop - rows.start, tasks)
        words = np.frombuffer(stream.randbytes(4 * math.prod(shape)), dtype="<u4").astype(np.int64).reshape(shape)
        drawn = ((words * tasks) >> 32) + tasks * np.arange(shape[0])[:, None]
        counts = np.bincount(drawn.ravel(), minlength=math.prod(shape)).reshape(shape)
        if counts.max() > np.iinfo(drawn_often.dtype).max:
            drawn_often = drawn_often.astype(np.int64)
        drawn_often[rows] = counts
    return drawn_often


def percentile_interval(values: Iterable[float | None]) -> Interval | None:
    """The central 95 % of the values, missing ones dropped; None if none is left."""
    return _central(sorted(value for value in values if value is not None))


def _central(ordered: Sequence[float]) -> Interval | None:
    """The central 95 % of ordered values, linear between the closest ranks (Hyndman and Fan's type 7, as NumPy)."""
    if not ordered:
        return None

    def quantile(share: float) -> float:
        position = share * (len(ordered) - 1)
        below = math.floor(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (position - below)

    low, high = map(quantile, TAILS)
    return low, high


def in_order(tasks: Iterable[str], seed: int) -> list[str]:
    """Task ids in the random order of a seed, which a subset of the tasks keeps, so that cells can be paired."""
    return sorted(tasks, key=lambda task: (generator(seed, task, "order of tasks").random(), task))


def mean_interval(drawn: Sequence[int], top: int, size: int, alpha: float = ALPHA) -> Interval:
    """The interval of the mean of `size` whole numbers from 0 to `top`, some of which were drawn in random order."""

    def lowest(values: Sequence[int]) -> int:
        seen, lost = sum(values), math.log(2 / alpha)  # the capital grows as the total falls
        totals = range(seen, seen + top * (size - len(values)))
        return seen + bisect_left(totals, True, key=lambda t: log_capital(values, t, size).max(initial=0.0) < lost)

    low, high = lowest(drawn), top * size - lowest([top - each for each in drawn])
    if low > high:  # one of the α studies in which the sequence misses
        low = high = round(size * sum(drawn) / len(drawn))
    return low / size, high / size


def difference_interval(a: Sequence[int], b: Sequence[int], top: int, size: int, alpha: float = ALPHA) -> Interval:
    """The interval of the mean difference A − B of numbers from 0 to `top`, over the tasks drawn in both."""
    low, high = mean_interval([top + x - y for x, y in zip(a, b, strict=False)], 2 * top, size, alpha)
    return low - top, high - top


def log_capital(values: Any, total: Any, size: int) -> Any:
    """The logarithm of the capital of the gambler on higher numbers after each draw (last axis), if `total` is true."""
    import numpy as np

    values = np.asarray(values, dtype=np.int64)
    left = np.asarray(total)[..., None] - np.cumsum(values, axis=-1) + values
    gains = np.where(left > 0, values * (size - np.arange(values.shape[-1])) / np.maximum(left, 1), 1.0) - 1
    capitals = [np.cumsum(np.log1p(fraction * gains), axis=-1) for fraction in FRACTIONS]
    impossible = np.logical_or.accumulate((left < 0) | ((left == 0) & (values > 0)), axis=-1)
    return np.where(impossible, np.inf, np.logaddexp.reduce(capitals, axis=0) - math.log(len(FRACTIONS)))
