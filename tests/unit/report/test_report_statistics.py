"""The report's statistics against published examples and second implementations."""

import random
import warnings

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from codechat.report.data import Interval
from codechat.report.generic.paired import Agreement, SignedRanks, difference, holm, signed_ranks
from codechat.report.metrics.statistics import TaskBootstrap, TaskRatio, wilson


def test_mcnemar_on_a_table_worked_out_by_hand() -> None:
    pairs = Agreement.of([True] * 12 + [False] * 4, [True] * 3 + [False] * 9 + [True] + [False] * 3)
    assert pairs == Agreement(both=3, only_a=9, only_b=1, neither=3)
    assert pairs.p == pytest.approx(2 * (1 + 10) / 2**10)
    assert pairs.risk_difference == 8 / 16
    assert pairs.odds_ratio == 9


def test_mcnemar_on_a_published_table() -> None:
    """Agresti's approval ratings: 150 and 86 changed their minds; the normal test gives z² = 17.36."""
    pairs = Agreement(794, 150, 86, 570)
    assert pairs.p == pytest.approx(stats.binomtest(86, 236).pvalue)
    assert pairs.p == pytest.approx(3.7e-5, rel=0.05)
    assert pairs.odds_ratio == pytest.approx(1.744, abs=0.001)


def test_pairs_that_never_differ_prove_nothing() -> None:
    assert Agreement(5, 0, 0, 5).p == 1.0
    assert Agreement(5, 0, 0, 5).odds_ratio is None
    assert signed_ranks([1, 2], [1, 2]) == SignedRanks(None, None)


def test_signed_ranks_on_darwins_maize() -> None:
    """Heights of crossed and self-fertilised plants: 24 of 120 ranks speak against crossing, p = 0.041."""
    differences = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]
    found = signed_ranks(differences, [0] * 15)
    assert found.p == pytest.approx(0.041259765625)
    assert found.rank_biserial == pytest.approx((96 - 24) / 120)
    swapped = signed_ranks([0] * 15, differences)
    assert (swapped.p, swapped.rank_biserial) == (found.p, pytest.approx(-0.6))


def test_signed_ranks_with_ties_leave_equal_pairs_out() -> None:
    """Ranks by hand: |1| four times has rank 2.5, |3| has 5; in favour 2.5 · 3 + 5 = 12.5 of 15."""
    found = signed_ranks([3, 3, 3, 5, 1, 4], [2, 2, 2, 2, 2, 4])
    assert found.rank_biserial == pytest.approx(2 * 12.5 / 15 - 1)
    # normal approximation with tie correction, by hand: mean 7.5, variance 5·6·11/24 − (4³ − 4)/48
    z = (12.5 - 7.5) / (5 * 6 * 11 / 24 - 60 / 48) ** 0.5
    assert found.p == pytest.approx(2 * stats.norm.sf(z))


def test_holm_on_a_textbook_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.02, None, 0.03]) == [pytest.approx(0.04), None, pytest.approx(0.04)]
    assert holm([None]) == [None]
    assert holm([]) == []


def test_holm_is_statsmodels_to_the_last_bit() -> None:
    rng = random.Random(0)
    for size in range(1, 60):
        tests = [rng.choice((rng.random(), rng.random() ** 6, 0.01, 0.0, 1.0)) for _ in range(size)]
        assert holm(tests) == multipletests(tests, method="holm")[1].tolist()


def test_wilson_on_newcombes_published_examples() -> None:
    for hits, total, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson(hits, total) == pytest.approx(Interval(low, high), abs=5e-5)
    assert wilson(0, 0) is None


def test_intervals_by_task_agree_with_scipys_bootstrap() -> None:
    draws = random.Random(5)
    values = {f"t{number}": draws.randint(0, 10) for number in range(60)}
    figure = TaskRatio({task: (value, 1) for task, value in values.items()})
    own = TaskBootstrap(values, 1).interval(figure)
    other = stats.bootstrap((list(values.values()),), np.mean, n_resamples=9999, method="percentile", rng=1)
    assert own == pytest.approx((other.confidence_interval.low, other.confidence_interval.high), abs=0.12)


def test_paired_intervals_agree_with_scipys_and_are_narrower_than_unpaired_ones() -> None:
    draws = random.Random(6)
    hard = [draws.randint(0, 8) for _ in range(80)]
    a, b = [value + draws.randint(0, 2) for value in hard], [value + draws.randint(0, 1) for value in hard]
    tasks = [f"t{number}" for number in range(80)]
    figures = [TaskRatio({task: (value, 1) for task, value in zip(tasks, side, strict=True)}) for side in (a, b)]
    resamples = TaskBootstrap(tasks, 3)
    own = difference(*(resamples.ratios(figure) for figure in figures))
    assert own is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = stats.bootstrap(
            (a, b), lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis),
            paired=True, n_resamples=9999, method="percentile", rng=1,
        ).confidence_interval  # fmt: skip
    assert tuple(own) == pytest.approx((other.low, other.high), abs=0.05)
    unpaired = difference(resamples.ratios(figures[0]), TaskBootstrap(tasks, 4).ratios(figures[1]))
    assert unpaired is not None
    assert own.high - own.low < 0.5 * (unpaired.high - unpaired.low)


def test_differences_leave_out_what_cannot_be_computed() -> None:
    assert difference([1.0, None], [None, 2.0]) is None
