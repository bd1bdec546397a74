"""Confidence sequences without replacement: against every total by hand, at their ends, and how often they miss."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from codechat.report.metrics.statistics import FRACTIONS, difference_interval, in_order, log_capital, mean_interval


def capital(values: list[int], total: int, size: int) -> list[float]:
    """The gambler's capital after every draw, by exact fractions."""
    stakes, seen, found = [Fraction(1)] * len(FRACTIONS), 0, []
    for place, value in enumerate(values):
        mean = Fraction(total - seen, size - place)
        gain = Fraction(value) / mean - 1 if mean else Fraction(0)
        stakes = [stake * (1 + Fraction(share) * gain) for stake, share in zip(stakes, FRACTIONS, strict=True)]
        found.append(float(sum(stakes) / len(stakes)))
        seen += value
    return found


def test_the_capital_is_that_of_exact_fractions() -> None:
    values = [3, 0, 2, 3, 1, 3, 3]
    for total in (16, 20, 27):
        expected = capital(values, total, 12)
        assert np.exp(log_capital(np.array(values), total, 12)) == pytest.approx(expected)


def test_an_interval_holds_the_totals_that_no_gambler_refutes() -> None:
    values, top, size = [3, 3, 2, 3, 3, 3, 1, 3, 3, 3, 3, 2], 3, 20
    won = math.log(40)
    kept = [
        total
        for total in range(sum(values), sum(values) + top * (size - len(values)) + 1)
        if log_capital(np.array(values), total, size).max() < won
        and log_capital(top - np.array(values), top * size - total, size).max() < won
    ]
    assert mean_interval(values, top, size) == (kept[0] / size, kept[-1] / size)
    assert kept == list(range(kept[0], kept[-1] + 1))
    assert kept[0] > sum(values)  # not what logic alone says


def test_the_interval_never_grows_and_ends_at_the_mean() -> None:
    values = np.random.default_rng(4).integers(0, 11, 60).tolist()
    ends = [mean_interval(values[:count], 10, 60) for count in range(1, 61)]
    assert all(later[0] >= sooner[0] and later[1] <= sooner[1] for sooner, later in pairwise(ends))
    assert ends[-1] == (sum(values) / 60, sum(values) / 60)
    assert difference_interval([5, 4], [3, 4], 10, 2) == (1.0, 1.0)


def test_it_misses_in_few_studies_at_any_moment() -> None:
    luck = np.random.default_rng(0)
    populations = luck.choice([0, 1, 9, 10], p=[0.2, 0.1, 0.2, 0.5], size=(600, 80))
    values = luck.permuted(populations, axis=1)
    totals = values.sum(axis=1)
    up = log_capital(values, totals, 80).max(axis=1) >= math.log(40)
    down = log_capital(10 - values, 800 - totals, 80).max(axis=1) >= math.log(40)
    assert (up | down).mean() <= 0.05
    shifted = log_capital(values, totals - 120, 80).max(axis=1) >= math.log(40)  # a mean that is 1.5 too low
    assert shifted.mean() > 0.8


def test_some_of_the_tasks_keep_the_order_of_all() -> None:
    tasks = [f"t/{number}" for number in range(50)]
    whole = in_order(tasks, 3)
    assert sorted(whole) == sorted(tasks) != whole
    assert in_order(tasks[10:], 3) == [task for task in whole if task in tasks[10:]]
    assert whole != in_order(tasks, 4)
    assert whole == in_order(reversed(tasks), 3)
