"""The power of a comparison of two models, from the variance of the sessions in pilot cells.

A figure of a cell is a ratio of two sums over its sessions, or a change from one such ratio to another. Near its value
it behaves as a mean of the sessions' contributions (the linear term of its Taylor series). So the variance of these
contributions, between tasks and between samples of a task, gives the figure's variance for any tasks and samples.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from statistics import NormalDist, fmean, variance

from codechat.report.metrics.outline import SessionOutline, transitions
from codechat.report.metrics.repeats import components
from codechat.report.metrics.statistics import rate, sustained

POWER = 0.8
ALPHA = 0.05  # two-sided
NORMAL = NormalDist()
FIGURES = ("mst", "delta", "adherence", "regression")
MEASURED = ("pass_at_1", "iar", "mst", "regression")  # by a protocol whose cells can be pilots
UNITS = {"mst": "turns", "delta": "percentage points", "adherence": "share", "regression": "share"}

FEW_TASKS = 20  # below, intervals by resampling become too short, and a pilot hardly shows the variance between tasks
NOTHING = 1e-12  # a variance that is rounding alone

Seeds = Hashable  # of a cell and of its agenda
Parts = Mapping[str, Mapping[Seeds, float]]  # by task and seeds each session's part in a figure, which has the mean 0


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a session's contribution to a figure.

    `task` is the variance between tasks, `within` the variance between samples of a task. `shared` is the part of
    `task` that two models have in common, because a task is hard for both; `seeded` is the part of `within` in common,
    because sessions of equal seeds have the same agenda. With one sample of each task `within` is None, and `task` and
    `shared` cover the whole variance of a session.
    """

    task: float
    within: float | None
    shared: float
    seeded: float = 0.0

    def standard_error(self, tasks: int, samples: int, *, paired: bool) -> float | None:
        """The standard error of the difference of two models with this number of tasks and samples of each.

        If `paired`, both have the same tasks and seeds. None if the pilot cannot show it: it has one sample and more
        are asked for, or nothing varied. A negative estimate of `task` removes at most half of the samples' part.
        """
        if self.within is None and samples > 1:
            return None
        between, within = self.task, self.within or 0.0
        if paired:
            between, within = between - self.shared, within - self.seeded
        variance = 2 * max(between + within / samples, within / samples / 2) / tasks
        return variance**0.5 if variance > NOTHING else None

    def detectable(self, tasks: int, samples: int, *, paired: bool) -> float | None:
        """The smallest difference that is found with the power `POWER`."""
        error = self.standard_error(tasks, samples, paired=paired)
        return None if error is None else error * (NORMAL.inv_cdf(1 - ALPHA / 2) + NORMAL.inv_cdf(POWER))

    def power(self, difference: float, tasks: int, samples: int, *, paired: bool) -> float | None:
        """The chance that a difference of this size is found."""
        error = self.standard_error(tasks, samples, paired=paired)
        if error is None:
            return None
        reach, size = NORMAL.inv_cdf(1 - ALPHA / 2), abs(difference) / error
        return NORMAL.cdf(size - reach) + NORMAL.cdf(-size - reach)

    def tasks_for(self, difference: float, samples: int, *, paired: bool) -> int | None:
        """The number of tasks that find a difference of this size with the power `POWER`."""
        one = self.detectable(1, samples, paired=paired)
        return None if one is None else max(2, ceil((one / difference) ** 2))


def spread_of(pilots: Sequence[Parts]) -> Spread | None:
    """The variance in the pilot cells, one for each model: the mean over the models, and over pairs of them. With a
    single model, two equal models are assumed, with tasks equally hard for both. None if there are too few sessions."""
    found = _mean([_sources([[*own.values()] for own in parts.values()]) for parts in pilots])
    if found is None:
        return None
    task, within = found
    apart = _mean([_sources(_differences(*pair)) for pair in combinations(pilots, 2)])
    if apart is None:
        return Spread(task, within, task if within is not None else 0.0)
    if within is None or apart[1] is None:  # a session as a whole
        task, within, apart = task + (within or 0.0), None, (apart[0] + (apart[1] or 0.0), None)
    return Spread(task, within, task - apart[0] / 2, (within or 0.0) - (apart[1] or 0.0) / 2)


Sources = tuple[float, float | None]  # the variance between tasks, and within; None if only their sum is known


def _sources(tasks: Sequence[Sequence[float]]) -> Sources | None:
    """The variance of values by task and sample; None if there are too few."""
    known = [own for own in tasks if own]
    split = components([[*enumerate(own)] for own in known], one_source="sample")
    if split is not None:  # the estimate between tasks may be negative: cut at 0, a mean of many would be too high
        return variance(map(fmean, known)) - split.within * fmean(1 / len(own) for own in known), split.within
    return (variance(own[0] for own in known), None) if len(known) > 1 else None


def _mean(found: Iterable[Sources | None]) -> Sources | None:
    """The means; if one of them does not separate its sources, only the means of the sums."""
    known = [each for each in found if each is not None]
    withins = [within for _, within in known if within is not None]
    whole = len(withins) < len(known)
    between = [task + (within or 0.0) * whole for task, within in known]
    return (fmean(between), None if whole else fmean(withins)) if known else None


def _differences(a: Parts, b: Parts) -> list[list[float]]:
    """By task the differences of two models' sessions of equal seeds; in order if no seed is common to both."""
    both = [(a[task], b[task]) for task in a if task in b]
    if any(one.keys() & other.keys() for one, other in both):
        return [[one[seed] - other[seed] for seed in one if seed in other] for one, other in both]
    return [[x - y for x, y in zip(one.values(), other.values(), strict=False)] for one, other in both]


def parts_of(sessions: Mapping[Seeds, Sequence[SessionOutline]]) -> dict[str, Parts]:
    """By figure, task and seeds the contribution of each session to the figure; one without a value is left out. Under
    one pair of seeds a task has one session."""
    rows = [(seeds, session, _counts(session)) for seeds, found in sessions.items() for session in found]
    found: dict[str, Parts] = {}
    for figure, places in {"mst": ("mst",), "adherence": ("adherence",), "regression": ("regression",),
                           "delta": ("first", "last")}.items():  # fmt: skip
        sums = [[sum(counts[place][part] for *_, counts in rows) for part in (0, 1)] for place in places]
        rates = [rate(*both) for both in sums]
        if None in rates or (figure == "delta" and not rates[0]):
            continue
        parts: dict[str, dict[Seeds, float]] = defaultdict(dict)
        for seeds, session, counts in rows:
            linear = [(counts[p][0] - (value or 0.0) * counts[p][1]) * len(rows) / total
                      for p, value, (_, total) in zip(places, rates, sums, strict=True)]  # fmt: skip
            if figure == "delta":
                first, last = rates[0] or 1.0, rates[1] or 0.0
                linear = [100 * (linear[1] - linear[0] * last / first) / first]
            parts[session.task_id][seeds] = linear[0]
        found[figure] = parts
    return found


def _counts(session: SessionOutline) -> dict[str, tuple[int, int]]:
    """By figure the numerator and the denominator that a session adds."""
    passed = [turn.passed for turn in session.turns]
    after = [(before.passed, turn) for before, turn in transitions(session.turns) if turn.answered]
    risky = [turn.passed for was, turn in after if was and turn.passed is not None]
    judged = [turn.adhered for turn in session.turns[1:] if turn.adhered is not None]
    return {
        "mst": (sustained(passed), 1),
        "first": (int(bool(passed[0])), int(passed[0] is not None)) if passed else (0, 0),
        "last": (int(bool(passed[-1])), int(passed[-1] is not None)) if passed else (0, 0),
        "adherence": (sum(judged), len(judged)),
        "regression": (risky.count(False), len(risky)),
    }
