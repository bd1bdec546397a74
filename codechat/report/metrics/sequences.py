"""Intervals that hold at every moment of a study, so that it may end when one of them says enough.

The tasks of a dataset are a finite population; they are run in a random order, without replacement. The interval of
their mean is a confidence sequence by betting (Waudby-Smith and Ramdas, Estimating means of bounded random variables by
betting, JRSS B 86 (2024), section 5.2; their Confidence sequences for sampling without replacement, NeurIPS 2020, has
the setting): a mean is left out once a gambler, who bets that the numbers are higher than it says, has multiplied the
stake by 2/α, or one who bets that they are lower. If a mean is the true one, both games are fair, and by Ville's
inequality it is ever left out in at most α of all studies, whenever one looks and for whatever reason one stops.

Each gambler divides the stake over a few constant fractions, since none of them is the best for all effects. A game's
capital is monotone in the mean, so both ends are found by bisection over the totals that the population can have.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from codechat.base.seeding import generator
from codechat.report.metrics.outline import TurnOutline
from codechat.report.metrics.statistics import Interval

ALPHA = 0.05
FRACTIONS = (1 / 12, 1 / 5, 1 / 2)
"""The shares of what may be lost at most that a gambler stakes at every draw."""

STOPPED = "stopped"
"""The key in metrics.json of what a cell that may end early says of its end, and the name of such cells' chapter."""


def in_order(tasks: Iterable[str], seed: int) -> list[str]:
    """Task ids in the random order of a seed. Of some of the tasks it is the same order, so cells can be paired."""
    return sorted(tasks, key=lambda task: (generator(seed, task, "order of tasks").random(), task))


def mean_interval(drawn: Sequence[int], top: int, size: int, alpha: float = ALPHA) -> Interval:
    """The interval of the mean of `size` whole numbers from 0 to `top`, of which some were drawn in random order."""
    low = _lowest_total(drawn, top, size, alpha)
    high = top * size - _lowest_total([top - each for each in drawn], top, size, alpha)
    if low > high:  # one of the α studies in which the sequence misses: nothing is left
        low = high = round(size * sum(drawn) / len(drawn))
    return low / size, high / size


def difference_interval(a: Sequence[int], b: Sequence[int], top: int, size: int, alpha: float = ALPHA) -> Interval:
    """The interval of the mean difference A − B of numbers from 0 to `top`, paired by task."""
    shifted = [top + mine - its for mine, its in zip(a, b, strict=True)]
    low, high = mean_interval(shifted, 2 * top, size, alpha)
    return low - top, high - top


def _lowest_total(drawn: Sequence[int], top: int, size: int, alpha: float) -> int:
    """The smallest total of the population against which the gambler for higher numbers has not won."""
    import numpy as np

    values = np.array(drawn, dtype=np.int64)
    seen = int(values.sum())
    low, high = seen, seen + top * (size - len(drawn))
    threshold = math.log(2 / alpha)
    while low < high:
        middle = (low + high) // 2
        if log_capital(values, middle, size).max(initial=0.0) >= threshold:
            low = middle + 1
        else:
            high = middle
    return low


def log_capital(values: Any, total: Any, size: int) -> Any:
    """The logarithm of the capital after each draw of a gambler who bets that the numbers are above their mean.

    `values` are whole numbers by draw (last axis) and perhaps by study, `total` is the population's, one or by study.
    The mean of what is left is known before each draw, which is all that a fair game without replacement needs.
    """
    import numpy as np

    before = np.cumsum(values, axis=-1) - values
    left = np.asarray(total)[..., None] - before
    numbers = size - np.arange(values.shape[-1])
    gains = np.where(left > 0, values * numbers / np.maximum(left, 1), 1.0) - 1
    capitals = [np.cumsum(np.log1p(fraction * gains), axis=-1) for fraction in FRACTIONS]
    capital = np.logaddexp.reduce(capitals, axis=0) - math.log(len(FRACTIONS))
    impossible = (left < 0) | ((left == 0) & (values > 0))
    return np.where(np.logical_or.accumulate(impossible, axis=-1), np.inf, capital)


def sustained_turns(turns: Sequence[TurnOutline]) -> int:
    """The passing turns from turn 0 on: a session's part in MST."""
    scored = [turn.passed for turn in turns if turn.passed is not None]
    return [*scored, False].index(False)


def passes_at(turns: Sequence[TurnOutline], turn: int) -> int:
    """Whether the code passes at a turn: a session's part in Pass@1."""
    return int(turn < len(turns) and turns[turn].passed is True)
