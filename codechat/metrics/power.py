"""The power of a comparison of two models, from the variance of the sessions in pilot cells.

A figure of a cell is a ratio of two sums over its sessions, or a change from one such ratio to another. Near its value
it behaves as a mean over sessions of each one's contribution (the linear term of its Taylor series). So the variance of
these contributions, between tasks and between samples of a task, gives that of the figure for any number of tasks and
samples.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import ceil
from statistics import NormalDist, covariance, fmean, variance

from codechat.metrics.outline import SessionOutline
from codechat.metrics.repeats import components
from codechat.metrics.statistics import rate

POWER = 0.8
ALPHA = 0.05  # two-sided
NORMAL = NormalDist()
FIGURES = ("mst", "delta", "adherence", "regression")
MEASURED = ("pass_at_1", "iar", "mst", "regression")  # by a protocol whose cells can be pilots
UNITS = {"mst": "turns", "delta": "percentage points", "adherence": "share", "regression": "share"}

Parts = Mapping[str, Sequence[float]]  # by task each sample's part in a figure, which has the mean 0


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a session's contribution to a figure.

    `task` is the variance between tasks, `within` that between samples of a task; `shared` is the part of the
    former that two models have in common, because a task is hard for both. With one sample of each task `within` is
    None, and `task` is the variance of a session as a whole.
    """

    task: float
    within: float | None
    shared: float

    def standard_error(self, tasks: int, samples: int, *, paired: bool) -> float | None:
        """The standard error of the difference of two models with so many tasks and samples of each.

        The tasks are the same for both if `paired`. None if the pilot does not show the effect of more than one
        sample.
        """
        if self.within is None and samples > 1:
            return None
        own = self.task + (self.within or 0.0) / samples
        return float((2 * max(0.0, own - (self.shared if paired else 0.0)) / tasks) ** 0.5)

    def detectable(self, tasks: int, samples: int, *, paired: bool) -> float | None:
        """The smallest difference that is found with the power `POWER`."""
        error = self.standard_error(tasks, samples, paired=paired)
        return None if error is None else error * (NORMAL.inv_cdf(1 - ALPHA / 2) + NORMAL.inv_cdf(POWER))

    def power(self, difference: float, tasks: int, samples: int, *, paired: bool) -> float | None:
        """The chance that a difference of this size is found."""
        error = self.standard_error(tasks, samples, paired=paired)
        if error is None:
            return None
        reach = NORMAL.inv_cdf(1 - ALPHA / 2)
        size = abs(difference) / error if error else float("inf")
        return NORMAL.cdf(size - reach) + NORMAL.cdf(-size - reach)

    def tasks_for(self, difference: float, samples: int, *, paired: bool) -> int | None:
        """The number of tasks that find a difference of this size with the power `POWER`."""
        one = self.detectable(1, samples, paired=paired)
        return None if one is None else max(2, ceil((one / difference) ** 2))


def spread_of(pilots: Sequence[Parts]) -> Spread | None:
    """The variance in the pilot cells, one for each model: the mean over the models, and over pairs of them.

    With a single model two like it are assumed, for which the tasks are equally hard. None if there are too few
    sessions.
    """
    found: list[tuple[float, float | None]] = []
    for parts in pilots:
        split = components([[(place, part) for place, part in enumerate(own)] for own in parts.values()])
        single = [own[0] for own in parts.values() if own]
        if split is not None:
            found.append((split.task, split.within))
        elif len(single) > 1:
            found.append((variance(single), None))
    if not found:
        return None
    withins = [within for _, within in found if within is not None]
    within = fmean(withins) if len(withins) == len(found) else None
    task = fmean(task + (own or 0.0) * (within is None) for task, own in found)
    common = [own for pair in combinations(pilots, 2) if (own := _shared(*pair)) is not None]
    if common:
        return Spread(task, within, max(0.0, fmean(common)))
    return Spread(task, within, task if within is not None else 0.0)


def _shared(a: Parts, b: Parts) -> float | None:
    """The covariance of two models' task means, each over the samples of a task."""
    both = [task for task in a if a[task] and b.get(task)]
    if len(both) < 2:
        return None
    return covariance([fmean(a[task]) for task in both], [fmean(b[task]) for task in both])


def parts_of(sessions: Iterable[SessionOutline]) -> dict[str, dict[str, list[float]]]:
    """By figure and task the contribution of each session to the figure; a figure without a value is left out."""
    rows = [(session.task_id, _counts(session)) for session in sessions]
    found: dict[str, dict[str, list[float]]] = {}
    for figure, places in {"mst": ("mst",), "adherence": ("adherence",), "regression": ("regression",),
                           "delta": ("first", "last")}.items():  # fmt: skip
        rates = [rate(sum(c[p][0] for _, c in rows), sum(c[p][1] for _, c in rows)) for p in places]
        if any(value is None for value in rates) or (figure == "delta" and not rates[0]):
            continue
        parts: dict[str, list[float]] = defaultdict(list)
        for task, counts in rows:
            linear = [(counts[p][0] - (value or 0.0) * counts[p][1]) / fmean(c[p][1] for _, c in rows)
                      for p, value in zip(places, rates, strict=True)]  # fmt: skip
            if figure == "delta":
                first, last = rates[0] or 1.0, rates[1] or 0.0
                linear = [100 * (linear[1] - linear[0] * last / first) / first]
            parts[task].append(linear[0])
        found[figure] = parts
    return found


def _counts(session: SessionOutline) -> dict[str, tuple[int, int]]:
    """By figure the numerator and the denominator that a session adds."""
    passed = [turn.passed for turn in session.turns]
    scored = [verdict for verdict in passed if verdict is not None]
    after = [(before.passed, turn) for before, turn in pairwise(session.turns) if turn.answered]
    risky = [turn.passed for was, turn in after if was and turn.passed is not None]
    judged = [turn.adhered for turn in session.turns[1:] if turn.adhered is not None]
    return {
        "mst": ([*scored, False].index(False), 1),
        "first": (int(bool(passed[0])), int(passed[0] is not None)) if passed else (0, 0),
        "last": (int(bool(passed[-1])), int(passed[-1] is not None)) if passed else (0, 0),
        "adherence": (sum(judged), len(judged)),
        "regression": (risky.count(False), len(risky)),
    }
