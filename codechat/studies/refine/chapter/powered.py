"""The share of instructions that were followed, from all of a judge's verdicts and people's labels of a few of them.

Prediction-powered inference with power tuning (PPI++: Angelopoulos, Duchi and Zrnic, arXiv 2311.01453, section 6 and
example 6.1): the labels' mean, plus λ times the difference between the mean verdict of all decisions and of the
labelled ones, with λ = cov(label, verdict) / ((1 + n/N) var(verdict)). It is right in large samples however the judge
errs, since the labels are of the same cell and verdicts only reduce noise: if they carry no information, λ is near 0
and the labels' mean is left. The labels must be a random draw of the cell's decisions with known chances: each label
is weighted by the decisions that it represents. The variance is computed from the linear terms, summed by task:
changes of one task resemble each other, and two cells on the same tasks are compared task by task.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from codechat.report.comparison import JudgeLabels
from codechat.report.metrics.statistics import Interval, TaskRatio

REACH = 1.959964
"""The normal quantile of a 95 % interval."""
FEWEST = 10
"""The number of labels of each verdict that an estimate needs."""
NO_CODE = "no code"
"""The scope of replies without code, which no judge needs to see: certainly not followed."""

Judged = Mapping[str, TaskRatio]
"""By scope: how many changes were judged adhered, and how many were judged."""


@dataclass(frozen=True, slots=True)
class Powered:
    """An estimated share. `parts` has by task its linear terms, whose sum is 0 and whose squares are the variance."""

    value: float
    parts: Mapping[str, float]
    weight: float

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval, symmetric on the scale of log odds; None of a single task, or of a share of 0 or 1."""
        odds = self.value * (1 - self.value)
        if len(self.parts) < 2 or not odds:
            return None
        reach = _reach(self.parts) / odds
        low, high = (1 / (1 + (1 / self.value - 1) * math.exp(sign * reach)) for sign in (1, -1))
        return low, high


def powered(known: JudgeLabels, cells: Collection[str], judged: Judged) -> Powered | str:
    """The share of followed instructions in some of the labelled cells, or the reason why there is none. `judged` holds
    by scope what the judge decided there. Only labels of these cells and scopes count."""
    labels = [one for one in known.labels if one.cell in cells and one.scope in judged]
    for verdict, word in ((True, "adhered"), (False, "violated")):
        count = sum(one.adhered is verdict for one in labels)
        if count < FEWEST:
            return f"too few labels of this cell: {count} of changes judged {word}, and {FEWEST} are needed"
    seen = TaskRatio.union(figure for scope, figure in judged.items() if scope != NO_CODE).by_task
    every = TaskRatio.union(judged.values()).by_task
    hits, asked = (sum(counts[place] for counts in seen.values()) for place in (0, 1))
    whole = sum(total for _, total in every.values())
    weights = [known.weights[one.scope, one.adhered] for one in labels]
    shares = [weight / sum(weights) for weight in weights]
    said = sum(share * one.followed for share, one in zip(shares, labels, strict=True))
    mean = sum(share * one.adhered for share, one in zip(shares, labels, strict=True))
    together = sum(share * one.followed * one.adhered for share, one in zip(shares, labels, strict=True))
    tuned = (together - said * mean) / ((1 + len(labels) / asked) * mean * (1 - mean))
    rest = said - tuned * mean
    value = (hits * tuned + asked * rest) / whole
    parts: dict[str, float] = defaultdict(float)
    for task, (_, total) in every.items():
        own, of = seen.get(task, (0, 0))
        parts[task] += (own * tuned + of * rest - value * total) / whole
    few = (len(labels) / (len(labels) - 2)) ** 0.5  # two numbers are taken from the labels themselves
    for share, one in zip(shares, labels, strict=True):
        parts[one.task] += few * asked / whole * share * (one.followed - tuned * one.adhered - rest)
    return Powered(min(1.0, max(0.0, value)), parts, tuned)


def powered_difference(a: Powered, b: Powered) -> tuple[float, Interval | None]:
    """A minus B with its 95 % interval, paired by task."""
    parts = {task: a.parts.get(task, 0.0) - b.parts.get(task, 0.0) for task in {*a.parts, *b.parts}}
    value = a.value - b.value
    return value, (value - _reach(parts), value + _reach(parts)) if len(parts) > 1 else None


def powered_mean(shares: Sequence[Powered]) -> Powered:
    """The unweighted mean of the shares of several datasets, which have no task in common."""
    parts = {f"{n}/{task}": part / len(shares) for n, each in enumerate(shares) for task, part in each.parts.items()}
    return Powered(fmean(each.value for each in shares), parts, fmean(each.weight for each in shares))


def _reach(parts: Mapping[str, float]) -> float:
    """Half the width of an interval."""
    variance = sum(sorted(part * part for part in parts.values()))  # sorted: the order changes a sum's last digits
    return REACH * math.sqrt(variance * len(parts) / (len(parts) - 1))
