"""The shared statistics against hand calculations."""

import math
from statistics import NormalDist

import pymannkendall
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from codechat.base.seeding import generator
from codechat.report.data import Column
from codechat.report.generic import LINE_SPECS
from codechat.report.generic.paired import signed_ranks
from codechat.report.metrics.repeats import sign_flips
from codechat.report.metrics.statistics import (
    RESAMPLES,
    TaskBootstrap,
    TaskRatio,
    mann_kendall,
    percent_change,
    percentile_interval,
    phi,
    rate,
)


def test_phi_of_the_papers_table() -> None:
    table = phi(16668, 3955, 13497, 4898)
    assert table.value == pytest.approx(0.089, abs=0.0005)


def test_phi_is_one_on_the_diagonal_and_null_without_variation() -> None:
    assert phi(3, 0, 0, 5).value == 1.0
    assert phi(0, 3, 5, 0).value == -1.0
    assert phi(3, 0, 5, 0).value is None
    assert phi(0, 0, 0, 0).value is None


def by_hand(values: list[float]) -> tuple[int, float, float, float]:
    """S, Var(S) corrected for ties, z and the two-sided p, straight from the definitions."""
    n = len(values)
    s = sum((values[j] > values[i]) - (values[j] < values[i]) for i in range(n) for j in range(i + 1, n))
    ties = [values.count(value) for value in set(values)]
    var_s = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    z = 0.0 if s == 0 else (s - math.copysign(1, s)) / math.sqrt(var_s)
    return s, var_s, z, 2 * (1 - NormalDist().cdf(abs(z)))


def test_mann_kendall_of_ten_falling_values() -> None:
    result = mann_kendall([0.9, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4])
    assert result is not None
    assert (result.s, result.var_s, result.trend) == (-45, 125.0, "decreasing")
    assert result.z == pytest.approx(-44 / math.sqrt(125))
    assert result.p == pytest.approx(8.303e-5, rel=1e-3)


def test_mann_kendall_with_ties() -> None:
    # pairs: 3 rise, 11 fall, 1 tied; Var(S) = (6*5*17 - 2*1*9) / 18 = 492 / 18
    result = mann_kendall([0.8, 0.9, 0.7, 0.7, 0.5, 0.6])
    assert result is not None
    assert result.s == 2 - 12
    assert result.var_s == pytest.approx(492 / 18)
    assert result.z == pytest.approx(-9 / math.sqrt(492 / 18))
    assert result.trend == "no trend"


@given(st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.75, 1.0]), min_size=2, max_size=12))
def test_mann_kendall_equals_the_definition(values: list[float]) -> None:
    result = mann_kendall(values)
    assert result is not None
    s, var_s, z, p = by_hand(values)
    assert (result.s, result.var_s) == (s, pytest.approx(var_s))
    assert (result.z, result.p) == (pytest.approx(z), pytest.approx(p))
    significant = abs(z) > NormalDist().inv_cdf(0.975)
    assert result.trend == ("no trend" if not significant else "increasing" if z > 0 else "decreasing")


@given(st.lists(st.integers(0, 12).map(lambda hits: hits / 12), min_size=2, max_size=20))
def test_mann_kendall_is_pymannkendalls_original_test(values: list[float]) -> None:
    found, expected = mann_kendall(values), pymannkendall.original_test(values, alpha=0.05)
    assert found is not None
    assert (found.s, found.var_s, found.z, found.trend) == (expected.s, expected.var_s, expected.z, expected.trend)
    assert found.p == expected.p


@pytest.mark.parametrize("turns", [30, 40, 60, 200])
def test_the_p_of_a_long_trend_keeps_its_digits(turns: int) -> None:
    """A difference from 1 is 0 from 8.3 standard deviations on."""
    found = mann_kendall([1 - turn / turns for turn in range(turns)])
    assert found is not None and found.trend == "decreasing"
    assert 0 < found.p == pytest.approx(2 * stats.norm.sf(abs(found.z)), rel=1e-9)


def test_no_p_of_a_pair_is_lost_to_cancellation() -> None:
    assert sign_flips([1] * 200) == pytest.approx(2.0**-199)
    assert signed_ranks([1.0 + each % 7 for each in range(400)], [0.0] * 400).p == pytest.approx(1.26e-67, rel=0.01)
    assert Column("p", "p", "p").text(3e-17) == "<0.0001"
    assert f"{3e-17:{LINE_SPECS['p']}}" == "3e-17"


def test_mann_kendall_drops_nulls_and_is_null_below_two_values() -> None:
    assert mann_kendall([None, 0.9, None, 0.8, 0.7]) == mann_kendall([0.9, 0.8, 0.7])
    assert mann_kendall([]) is mann_kendall([0.5]) is mann_kendall([None, 0.5, None]) is None


def test_mann_kendall_of_a_flat_series_is_no_trend() -> None:
    result = mann_kendall([1.0] * 10)
    assert result is not None
    assert (result.s, result.z, result.p, result.trend) == (0, 0.0, 1.0, "no trend")


def test_rates_and_changes_are_null_without_a_denominator() -> None:
    assert rate(0, 0) is None
    assert rate(0, 3) == 0.0
    assert percent_change(0.0, 0.5) is percent_change(None, 0.5) is percent_change(0.5, None) is None
    assert percent_change(0.8, 0.6) == pytest.approx(-25)


def test_the_percentile_interval_is_linear_between_ranks() -> None:
    assert percentile_interval([float(value) for value in range(101)]) == (2.5, 97.5)
    assert percentile_interval([10.0, 0.0]) == pytest.approx((0.25, 9.75))
    assert percentile_interval([3.0, None]) == (3.0, 3.0)
    assert percentile_interval([None]) is None


def test_a_resample_without_the_denominator_is_left_out() -> None:
    figure = TaskRatio()
    figure.count("a", 1)
    bootstrap = TaskBootstrap(["a", "b"], seed=0)
    ratios = bootstrap.ratios(figure)
    assert len(ratios) == 2_000
    assert 400 < ratios.count(None) < 600  # "b" twice: a quarter of the draws
    assert bootstrap.interval(figure) == (1.0, 1.0)


def test_the_interval_of_a_mean_is_about_the_textbooks() -> None:
    figure = TaskRatio()
    for number in range(400):
        figure.count(f"task {number}", number % 2)
    interval = TaskBootstrap(figure.by_task, seed=3).interval(figure)
    assert interval == (pytest.approx(0.5 - 1.96 * 0.025, abs=0.006), pytest.approx(0.5 + 1.96 * 0.025, abs=0.006))


@pytest.mark.parametrize("tasks", [2, 30, 300])  # all resamples at once, and in parts
def test_tasks_are_drawn_one_after_the_other_from_one_stream(tasks: int) -> None:
    names = [f"{number:03}" for number in range(tasks)]
    figure, stream = TaskRatio(), generator(5, "", "bootstrap")
    for number, name in enumerate(names):
        figure.count(name, number % 2, number % 3)
    expected = []
    for _ in range(RESAMPLES):
        drawn = [int.from_bytes(stream.randbytes(4), "little") * tasks >> 32 for _ in names]
        counts = [figure.by_task[names[place]] for place in drawn]
        expected.append(rate(sum(hits for hits, _ in counts), sum(total for _, total in counts)))
    bootstrap = TaskBootstrap(names, seed=5)
    assert bootstrap.ratios(figure) == expected
    assert bootstrap.interval(figure) == percentile_interval(expected)
