"""Several samples of a task: estimates worked out by hand, tests against other implementations, variance recovered."""

import itertools
import math
import random
from fractions import Fraction
from statistics import fmean, stdev
from typing import Any

import pytest

from codechat.report.generic.paired import Agreement
from codechat.report.metrics.repeats import (
    Components,
    all_of,
    any_of,
    components,
    mean_over_tasks,
    sign_flips,
    sizes,
)
from codechat.report.metrics.statistics import TaskBootstrap


def test_pass_at_k_and_pass_to_the_k_by_hand() -> None:
    """Of 3 samples 2 pass: every pair has one that passes; one pair of the three passes whole."""
    assert any_of(3, 2, 1) == (2, 3)
    assert any_of(3, 2, 2) == (3, 3)
    assert all_of(3, 2, 2) == (1, 3)
    assert all_of(3, 2, 3) == (0, 1)
    assert any_of(2, 1, 3) == (0, 0)  # no choice of 3 of 2


@pytest.mark.parametrize("samples", [2, 3, 5, 7])
def test_estimates_are_the_means_over_all_choices(samples: int) -> None:
    luck = random.Random(samples)
    values = [luck.randrange(5) for _ in range(samples)]
    passed = sum(value > 2 for value in values)
    for k in range(1, samples + 1):
        choices = list(itertools.combinations(values, k))
        assert Fraction(*any_of(samples, passed, k)) == Fraction(sum(max(c) > 2 for c in choices), len(choices))
        assert Fraction(*all_of(samples, passed, k)) == Fraction(sum(min(c) > 2 for c in choices), len(choices))


def test_the_estimates_are_unbiased() -> None:
    """Over all outcomes of 4 samples that pass with 3/10 each, the mean estimate is the chance of k samples."""
    p = Fraction(3, 10)
    for k in (1, 2, 3, 4):
        weights = [math.comb(4, c) * p**c * (1 - p) ** (4 - c) for c in range(5)]
        assert sum(w * Fraction(*any_of(4, c, k)) for c, w in enumerate(weights)) == 1 - (1 - p) ** k
        assert sum(w * Fraction(*all_of(4, c, k)) for c, w in enumerate(weights)) == p**k


def test_a_mean_over_tasks_gives_each_the_same_weight() -> None:
    figure = mean_over_tasks({"a": (1, 3), "b": (1, 2), "c": (0, 0)})
    assert figure.by_task == {"a": (2, 6), "b": (3, 6)}
    assert figure.rate == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_an_interval_resamples_tasks_with_all_their_samples() -> None:
    """Two tasks, one that always passes and one that never does: a resample has 0, 1 or 2 of the first."""
    figure = mean_over_tasks({"a": (3, 3), "b": (0, 3)})
    drawn = TaskBootstrap(["a", "b"], 0).ratios(figure)
    assert {*drawn} == {0.0, 0.5, 1.0}
    assert drawn.count(0.5) / len(drawn) == pytest.approx(1 / 2, abs=0.05)
    assert TaskBootstrap(["a", "b"], 0).interval(figure) == (0.0, 1.0)


def test_the_sizes_that_are_shown() -> None:
    assert [sizes(n) for n in (1, 3, 7, 12)] == [[1], [1, 2, 3], [1, 2, 3, 4, 5, 7], [1, 2, 3, 4, 5, 10, 12]]


def test_components_by_hand() -> None:
    """Tasks (1, 1), (1, 0), (0, 0): within (0 + ½ + 0) / 3 = 1/6; means 1, ½, 0 vary by ¼; ¼ − 1/6 · ½ = 1/6."""
    tasks = [[(0, 1.0), (1, 1.0)], [(0, 1.0), (1, 0.0)], [(0, 0.0), (1, 0.0)]]
    found = components(tasks)
    assert found is not None
    assert (found.tasks, found.agenda, found.sample) == (3, None, None)
    assert (found.task, found.within) == (pytest.approx(1 / 6), pytest.approx(1 / 6))
    assert found.standard_error(3, 2) ** 2 == pytest.approx((1 / 6 + 1 / 12) / 3)
    sampled, by_agenda = components(tasks, one_source="sample"), components(tasks, one_source="agenda")
    assert sampled is not None
    assert by_agenda is not None
    assert (sampled.agenda, sampled.sample) == (0, pytest.approx(1 / 6))
    assert (by_agenda.agenda, by_agenda.sample) == (pytest.approx(1 / 6), 0)


def test_components_need_two_tasks_and_two_samples() -> None:
    assert components([[(0, 1.0), (1, 0.0)]]) is None
    assert components([[(0, 1.0)], [(0, 0.0)]]) is None


@pytest.mark.parametrize("uneven", [False, True])
def test_components_are_found_again(uneven: bool) -> None:
    """Tasks vary by 4, agendas by 2, samples by 1; two agendas with three samples each, some of them lost."""
    luck, tasks = random.Random(5), []
    for _ in range(4000):
        task, own = luck.gauss(0, 2), []
        for draw in (0, 1):
            agenda = luck.gauss(0, math.sqrt(2))
            own += [(draw, task + agenda + luck.gauss(0, 1)) for _ in range(3) if not uneven or luck.random() < 0.7]
        tasks.append(own)
    found = components(tasks)
    assert found is not None
    assert found.task == pytest.approx(4, rel=0.08)
    assert found.agenda == pytest.approx(2, rel=0.08)
    assert found.sample == pytest.approx(1, rel=0.05)


def simulated(luck: random.Random, tasks: int, draws: int, per_draw: int, *, sample: float = 1.0) -> list[list[Any]]:
    """Values of tasks that vary by 0.5, agendas by 2, and samples by `sample`, of which `per_draw` share a draw."""
    found = []
    for _ in range(tasks):
        task, own = luck.gauss(0, math.sqrt(0.5)), []
        for draw in range(draws):
            agenda = task + luck.gauss(0, math.sqrt(2))
            own += [(draw, agenda + luck.gauss(0, math.sqrt(sample))) for _ in range(per_draw)]
        found.append(own)
    return found


@pytest.mark.parametrize(
    ("draws", "per_draw", "sample", "source"),
    [(2, 3, 1.0, ""), (3, 2, 1.0, ""), (2, 4, 0.5, ""), (2, 3, 0.0, "agenda"), (4, 2, 0.0, "agenda")],
)
def test_the_error_of_samples_that_share_draws(draws: int, per_draw: int, sample: float, source: str) -> None:
    """The told standard error of the mean is the spread of the means of many simulated studies."""
    luck, means, errors, ones, withins = random.Random(17), [], [], [], []
    for _ in range(400):
        values = simulated(luck, 60, draws, per_draw, sample=sample)
        found = components(values, one_source=source)
        assert found is not None
        means.append(fmean(value for own in values for _, value in own))
        errors.append((found.standard_error(60, draws * per_draw) or 0.0) ** 2)
        ones.append((found.standard_error(60, 1) or 0.0) ** 2)
        withins.append(found.within)
    told = math.sqrt(fmean(errors))
    assert told == pytest.approx(stdev(means), rel=0.1)
    assert told == pytest.approx(math.sqrt((0.5 + 2 / draws + sample / draws / per_draw) / 60), rel=0.03)
    assert math.sqrt(fmean(ones)) == pytest.approx(math.sqrt((0.5 + 2 + sample) / 60), rel=0.03)
    assert fmean(withins) == pytest.approx(2 + sample, rel=0.03)


def test_the_standard_error_is_that_of_the_mean() -> None:
    assert Components(100, 4.0, 2.0).standard_error(100, 2) == pytest.approx(math.sqrt(5 / 100))
    assert Components(100, 4.0, 2.0).standard_error(100, math.inf) == pytest.approx(math.sqrt(4 / 100))
    assert Components(20, 0.0, 2.0).standard_error(20, 10) == pytest.approx(math.sqrt(0.2 / 20))
    assert Components(20, 0.0, 2.0).standard_error(20, math.inf) is None, "an estimate of 0 makes no mean certain"
    assert Components(20, 0.0, 0.0).standard_error(20, 1) is None


def test_sign_flips_of_single_samples_are_mcnemars_exact_test() -> None:
    for only_a, only_b in ((9, 1), (3, 3), (0, 4), (12, 5)):
        p = sign_flips([1] * only_a + [-1] * only_b + [0] * 7)
        assert p == pytest.approx(Agreement(2, only_a, only_b, 3).p)
    assert sign_flips([]) is None
    assert sign_flips([0, 0]) == 1.0


def test_sign_flips_against_all_signs() -> None:
    luck = random.Random(2)
    for _ in range(20):
        differences = [luck.randint(-6, 6) for _ in range(8)]
        far = abs(sum(differences))
        sums = [
            abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in itertools.product((1, -1), repeat=8)
        ]
        assert sign_flips(differences) == pytest.approx(sum(each >= far for each in sums) / len(sums))


def test_the_expected_table_of_a_pair() -> None:
    found = Agreement.expected([(1.0, 0.5), (0.5, 0.5), (0.0, 0.0)])
    assert found == Agreement(0.75, 0.75, 0.25, 1.25)
    assert found.risk_difference == pytest.approx(0.5 / 3)
    assert found.odds_ratio == 3
