"""Prediction-powered shares: by hand, with a judge that says nothing and one that is always right, of two cells."""

import re
from math import sqrt

import pytest

from codechat.report.comparison import JudgeLabels, Label
from codechat.report.metrics.statistics import TaskRatio
from codechat.studies.refine.chapter.powered import NO_CODE, REACH, Powered, powered, powered_difference, powered_mean

TASKS = [f"t/{number}" for number in range(20)]


def figure(hits: int, total: int) -> TaskRatio:
    found = TaskRatio()
    for number in range(total):
        found.count(TASKS[number % len(TASKS)], number < hits)
    return found


def labels(adhered: tuple[int, int], violated: tuple[int, int], cell: str = "a") -> list[Label]:
    """By verdict, how many labels say followed of how many."""
    return [
        Label(TASKS[number % len(TASKS)], "cosmetic", verdict, float(number < followed), cell)
        for verdict, (followed, count) in ((True, adhered), (False, violated))
        for number in range(count)
    ]


def found(known: JudgeLabels, cell: str, judged: dict[str, TaskRatio]) -> Powered:
    share = powered(known, {cell}, judged)
    assert isinstance(share, Powered), share
    return share


def known(*drawn: Label) -> JudgeLabels:
    return JudgeLabels("judge", {("cosmetic", True): 120, ("cosmetic", False): 80}, drawn)


def test_by_hand() -> None:
    """120 of 200 are judged adhered; 18 of 20 labels of these say followed, and 4 of 20 of the others.

    Each label stands for 6 and for 4 decisions. The weighted mean of the labels is 0.6 · 0.9 + 0.4 · 0.2 = 0.62, that
    of their verdicts 0.6 as in all, so that nothing is moved, whatever λ is.
    """
    share = found(known(*labels((18, 20), (4, 20))), "a", {"cosmetic": figure(120, 200)})
    assert share.value == pytest.approx(0.62)
    assert share.weight == pytest.approx((0.54 - 0.62 * 0.6) / (1 + 40 / 200) / 0.24)
    assert sum(share.parts.values()) == pytest.approx(0, abs=1e-9)
    assert share.interval is not None
    low, high = share.interval
    assert 0.45 < low < 0.62 < high < 0.78


def test_an_interval_is_that_of_the_parts_and_symmetric_in_log_odds() -> None:
    share = Powered(0.62, {"a": 0.01, "b": -0.01}, 1.0)
    assert share.interval is not None
    low, high = share.interval
    assert high - low == pytest.approx(2 * REACH * sqrt(2 * 0.01**2 * 2), rel=0.01)
    assert low / (1 - low) * high / (1 - high) == pytest.approx((0.62 / 0.38) ** 2)
    assert Powered(0.62, {"a": 0.01}, 1.0).interval is None
    assert Powered(1.0, {"a": 0.0, "b": 0.0}, 1.0).interval is None


def test_all_verdicts_correct_a_draw_that_has_too_many_of_one() -> None:
    """Of this cell 160 of 200 are judged adhered; the labels, 20 of each verdict, have the weights of the sample."""
    share = found(known(*labels((18, 20), (4, 20))), "a", {"cosmetic": figure(160, 200)})
    assert share.value == pytest.approx(0.62 + share.weight * (0.8 - 0.6))


def test_a_judge_that_says_nothing_has_no_weight() -> None:
    share = found(known(*labels((10, 20), (10, 20))), "a", {"cosmetic": figure(190, 200)})
    assert share.weight == pytest.approx(0)
    assert share.value == pytest.approx(0.5)


def test_a_judge_that_is_always_right_leaves_the_noise_of_the_tasks() -> None:
    judged = figure(120, 200)
    share = found(known(*labels((20, 20), (0, 20))), "a", {"cosmetic": judged})
    exact = [(hits - 0.6 * total) / 200 for hits, total in judged.by_task.values()]
    width = 2 * REACH * sqrt(sum(part * part for part in exact) * 20 / 19)
    assert share.value == pytest.approx(0.6)
    assert share.interval is not None
    assert share.interval[1] - share.interval[0] == pytest.approx(width, rel=0.45)


def test_replies_without_code_follow_nothing() -> None:
    plain = found(known(*labels((18, 20), (4, 20))), "a", {"cosmetic": figure(120, 200)})
    with_some = found(known(*labels((18, 20), (4, 20))), "a", {"cosmetic": figure(120, 200), NO_CODE: figure(0, 50)})
    assert with_some.value == pytest.approx(plain.value * 200 / 250)


def test_labels_of_other_cells_do_not_count() -> None:
    both = known(*labels((18, 20), (4, 20)), *labels((10, 10), (1, 9), "b"))
    told = powered(both, {"b"}, {"cosmetic": figure(120, 200)})
    assert isinstance(told, str) and re.findall(r"\d+", told) == ["9", "10"] and "violated" in told
    assert found(both, "a", {"cosmetic": figure(120, 200)}).value == pytest.approx(0.62, abs=0.05)


def test_a_difference_is_paired_by_task() -> None:
    both = known(*labels((18, 20), (4, 20)), *labels((18, 20), (4, 20), "b"))
    a, b = (found(both, cell, {"cosmetic": figure(120, 200)}) for cell in "ab")
    value, interval = powered_difference(a, b)
    assert value == 0
    assert interval == (0, 0)  # the same labels of the same tasks
    other = Powered(0.5, {task: -part for task, part in b.parts.items()}, 0.0)
    value, interval = powered_difference(a, other)
    assert value == pytest.approx(0.12)
    assert interval is not None
    assert interval[0] + interval[1] == pytest.approx(2 * value)
    assert powered_difference(Powered(0.5, {"t": 0.0}, 0.0), Powered(0.4, {"t": 0.0}, 0.0))[1] is None


def test_a_mean_of_datasets_has_the_tasks_of_all() -> None:
    """Two independent shares of equal variance: the mean's interval is narrower by the root of two."""
    share = found(known(*labels((18, 20), (4, 20))), "a", {"cosmetic": figure(120, 200)})
    mean = powered_mean([share, Powered(0.5, share.parts, 0.2)])
    assert mean.value == pytest.approx((0.62 + 0.5) / 2)
    assert len(mean.parts) == 2 * len(share.parts)
    assert sum(part * part for part in mean.parts.values()) == pytest.approx(
        sum(part * part for part in share.parts.values()) / 2
    )
