"""How often a judge errs, in the parts of the estimate: by hand."""

from math import asin, sin

import numpy as np
import pytest

from codechat.report.metrics.judge_errors import _uncertain, ends


def test_resamples_without_a_value_are_left_out_of_an_interval() -> None:
    assert ends(None) is None
    assert ends(np.array([np.nan, np.nan])) is None
    known = [float(number) for number in range(1, 101)]
    assert ends(np.array([np.nan, *known, np.nan])) == ends(np.array(known)) == pytest.approx((3.475, 97.525))


def angle(size: float, share: float, moved: float) -> float:
    return asin(((size * share + 3 / 8) / (size + 3 / 4)) ** 0.5) + moved / (4 * size + 2) ** 0.5


def test_labels_that_differ_often_are_trusted_more_than_normal_deviates() -> None:
    """Ten labels of equal weight, two of them followed: the residuals count 2 / (2 + 1/2) of the variance."""
    residual, normal = np.array([0.0, 0.1, 0.0]), np.array([0.0, 0.0, 1.0])
    plain = (0.2 * 0.8 / 10) ** 0.5
    moved = [0.0, 0.1 / plain * 0.8**0.5, 0.2**0.5]
    expected = [sin(angle(10, 0.2, each)) ** 2 for each in moved]
    assert _uncertain(0.2, [1.0] * 10, residual, normal) == pytest.approx(expected)
    assert _uncertain(0.8, [1.0] * 10, residual * 0, normal)[2] == pytest.approx(sin(angle(10, 0.8, moved[2])) ** 2)


def test_labels_that_all_agree_leave_it_to_the_deviates() -> None:
    drawn = _uncertain(1.0, [1.0] * 10, np.array([0.0, 5.0]), np.array([1.0, 1.0]))
    assert drawn[0] == drawn[1] == pytest.approx(sin(min(angle(10, 1, 1), np.pi / 2 - 1e-6)) ** 2)


def test_unequal_weights_are_worth_fewer_labels() -> None:
    """Weights 3 and 1 of four labels: (3 + 1 + 1 + 1)² / (9 + 1 + 1 + 1) = 3 labels."""
    drawn = _uncertain(0.5, [3.0, 1.0, 1.0, 1.0], np.array([0.0]), np.array([1.0]))
    assert drawn[0] == pytest.approx(sin(angle(3, 0.5, (0.5 / 2) ** 0.5)) ** 2)
