"""Several samples of every task: the chance that any or all of k of them pass, and the sources of their variance.

Estimates from n samples are unbiased: means over all choices of k of the n, of which c pass.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, lcm
from statistics import fmean, variance

from codechat.report.metrics.statistics import TaskRatio

FEW = 5
MANY = 10
Part = tuple[int, int]  # a sum, and what it is divided by


def sizes(samples: int) -> list[int]:
    """The numbers k to show if a task has so many samples: up to five, then ten, and all."""
    return sorted({*range(1, min(samples, FEW) + 1), *([MANY] if samples >= MANY else []), samples})


def any_of(samples: int, passed: int, k: int) -> Part:
    """pass@k as a ratio: the choices of k samples of which at least one passes, and all such choices."""
    return comb(samples, k) - comb(samples - passed, k), comb(samples, k)


def all_of(samples: int, passed: int, k: int) -> Part:
    """pass^k as a ratio: the choices of k samples that all pass, and all such choices."""
    return comb(passed, k), comb(samples, k)


def mean_over_tasks(parts: Mapping[str, Part]) -> TaskRatio:
    """The mean of the tasks' ratios with equal weights; a task without a choice of k is left out. The ratios get one
    denominator, so that all sums are sums of whole numbers."""
    known = {task: part for task, part in parts.items() if part[1]}
    whole = lcm(*(total for _, total in known.values()))
    return TaskRatio({task: (hits * (whole // total), whole) for task, (hits, total) in known.items()})


@dataclass(frozen=True, slots=True)
class Components:
    """The variance of one session's value, split by its source; a negative estimate is 0.

    `task` is the variance between tasks, `within` between samples of a task. `within` is `agenda` + `sample`: due to
    the drawn instructions, and due to the model's randomness; both are None if the samples do not separate them.
    `per_draw` is the number of samples that share a draw of the agenda: their mean has the agenda's whole variance.
    """

    tasks: int
    task: float
    within: float
    agenda: float | None = None
    sample: float | None = None
    per_draw: float = 1.0

    def standard_error(self, tasks: int, samples: float) -> float | None:
        """The standard error of a mean over these tasks with these samples each, which share draws as the measured ones
        do; None if it is estimated as 0."""
        within = self.within / samples
        if self.agenda is not None and self.sample is not None:
            within = self.agenda / max(1.0, samples / self.per_draw) + self.sample / samples
        return float(((self.task + within) / tasks) ** 0.5) or None


Sampled = Sequence[tuple[Hashable, float]]  # of one task: by what its agenda was drawn, and its value


def components(tasks: Iterable[Sampled], *, one_source: str = "") -> Components | None:
    """The components by the analysis of variance; None if fewer than two tasks, or no task with two samples.

    Samples of a task with equal draws have the same agenda, so that they differ by the model's randomness alone. If
    samples can differ by `one_source` only (`agenda` or `sample`), that gets all the variance between them.
    """
    values = [each for each in tasks if each]
    if len(values) < 2 or all(len(each) < 2 for each in values):
        return None
    squares = sum(_squares([value for _, value in each]) for each in values)
    within = squares / sum(len(each) - 1 for each in values)
    agenda, sample = _apart(values, squares, within, one_source)
    means = [fmean(value for _, value in each) for each in values]
    if agenda is None or sample is None:
        noise = within * fmean(1 / len(each) for each in values)
    else:
        within = agenda + sample  # the mean square is less where samples share draws
        noise = fmean(agenda * _clumped(each) / len(each) ** 2 + sample / len(each) for each in values)
    per_draw = fmean(_clumped(each) / len(each) for each in values)
    return Components(len(values), max(0.0, variance(means) - noise), within, agenda, sample, per_draw)


def _apart(
    values: Sequence[Sampled], squares: float, within: float, one_source: str
) -> tuple[float | None, float | None]:
    """The variance due to the agenda's draw and that due to the model, if they can be separated."""
    spread = sum(len(each) - _clumped(each) / len(each) for each in values)
    if one_source == "agenda":
        return (squares / spread, 0.0) if spread else (None, None)
    if one_source:
        return 0.0, within
    inner, free = 0.0, 0
    for each in values:
        by_draw: dict[Hashable, list[float]] = defaultdict(list)
        for draw, value in each:
            by_draw[draw].append(value)
        inner += sum(_squares(alike) for alike in by_draw.values())
        free += sum(len(alike) - 1 for alike in by_draw.values())
    if not free or not spread:
        return None, None
    sample = inner / free
    agenda = (squares - sum(len(each) - 1 for each in values) * sample) / spread
    return max(0.0, agenda), sample


def _clumped(sampled: Sampled) -> int:
    """The sum over the draws of the squared number of samples."""
    return sum(count**2 for count in Counter(draw for draw, _ in sampled).values())


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def sign_flips(differences: Sequence[int]) -> float | None:
    """The exact two-sided p of the paired permutation test, in which every difference might have had the other sign.
    With a difference of 1, 0 or −1 per task it is McNemar's exact test. None without a task."""
    if not differences:
        return None
    import numpy as np

    sizes = [abs(each) for each in differences if each]
    chances = np.zeros(2 * sum(sizes) + 1)
    middle = sum(sizes)
    chances[middle] = 1.0
    for size in sizes:
        moved = np.zeros_like(chances)
        moved[size:] += chances[: len(chances) - size] / 2
        moved[: len(chances) - size] += chances[size:] / 2
        chances = moved
    far = abs(sum(differences))
    return min(1.0, float(chances[: middle - far + 1].sum() + chances[middle + far :].sum())) if far else 1.0
