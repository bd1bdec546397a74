"""Confidence sequences: intervals that hold at every moment of a study, so that the data may decide when it ends.

The tasks of a dataset are a finite population, drawn without replacement (betting: Waudby-Smith and Ramdas, JRSS B 86
(2024), section 5.2; NeurIPS 2020). A mean is excluded once a gambler who bets on higher numbers, or one who bets on
lower ones, has multiplied the stake by 2/α: for the true mean, in at most α of all studies, whenever they end (Ville's
inequality). The stake is divided over constant fractions, since none is the best for all effects.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from codechat.base.seeding import generator
from codechat.report.metrics.statistics import Interval

ALPHA = 0.05
FRACTIONS = (1 / 12, 1 / 5, 1 / 2)  # of what can be lost, staked at every draw
STOPPED = "stopped"  # the key in metrics.json of what says where a cell ended, and the protocol of such cells' chapter


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
