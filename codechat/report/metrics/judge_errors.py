"""How often a judge errs, according to people's labels of a sample of its decisions.

The sample seldom has the verdicts in their true proportion. So the first estimate is, for each verdict, the share of
decisions in which the instruction was in truth followed. Sensitivity and specificity follow from these shares and from
how often the judge gives each verdict in the cells that the sample was drawn from.

For intervals the tasks are resampled, and the shares vary as the number of labels demands.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isnan
from typing import Any

from codechat.base.seeding import generator
from codechat.report.metrics.statistics import RESAMPLES, Figure, Interval, TaskBootstrap, percentile_interval

FEWEST = 10
"""The number of labels of each verdict that an estimate needs."""
FEWEST_TRUE = 5
"""The number of labels that say followed, and of those that say not followed, which an estimate needs."""

Judged = Mapping[str, Figure]
"""By scope: how many changes were judged adhered, and how many were judged."""
Bootstraps = Mapping[str, TaskBootstrap]
"""Resamples of the tasks of every dataset."""


@dataclass(frozen=True, slots=True)
class Label:
    """The labels of a judged change: `followed` is 1 or 0, or the mean if several people labelled it.

    `cell` is the id of the cell whose judge decided it.
    """

    dataset: str
    task: str
    scope: str
    adhered: bool
    followed: float
    cell: str = ""


@dataclass(frozen=True)
class JudgeLabels:
    """The labels of one judge's decisions, and by dataset all decisions of the cells that were labelled."""

    judge: str
    judged: Mapping[str, Judged]
    labels: tuple[Label, ...]

    @cached_property
    def sizes(self) -> Mapping[tuple[str, bool], int]:
        """The number of decisions of each scope and verdict (adhered or not), labelled or not."""
        found: dict[tuple[str, bool], int] = defaultdict(int)
        for own in self.judged.values():
            for scope, figure in own.items():
                hits, total = summed(figure)
                found[scope, True] += hits
                found[scope, False] += total - hits
        return found

    @cached_property
    def weights(self) -> Mapping[tuple[str, bool], float]:
        """By scope and verdict, for how many decisions each label stands: those of its kind, shared by their labels."""
        counts = Counter((one.scope, one.adhered) for one in self.labels)
        return {kind: self.sizes[kind] / count for kind, count in counts.items()}


@dataclass(frozen=True)
class Errors:
    """A judge's errors in one scope, or in all; `refusal` is the reason if nothing can be corrected by them.

    `labels` and `followed` are counts of labels, by verdict (adhered, violated). `drawn` holds sensitivity and
    specificity in every resample, None if there is but one task.
    """

    labels: tuple[int, int]
    followed: tuple[float, float]
    sensitivity: float | None = None
    specificity: float | None = None
    drawn: tuple[Any, Any] | None = None
    refusal: str = ""

    @property
    def intervals(self) -> tuple[Interval | None, Interval | None]:
        """The 95 % intervals of sensitivity and of specificity."""
        sensitivity, specificity = self.drawn or (None, None)
        return ends(sensitivity), ends(specificity)


def estimate(known: JudgeLabels, scopes: Sequence[str], bootstraps: Bootstraps) -> Errors:
    """The errors in some scopes together."""
    import numpy as np

    labels = [one for one in known.labels if one.scope in scopes]
    split = [[one for one in labels if one.adhered is verdict] for verdict in (True, False)]
    followed = [sum(one.followed for one in own) for own in split]
    counted = Errors((len(split[0]), len(split[1])), (followed[0], followed[1]))
    if refusal := _too_few(counted):
        return replace(counted, refusal=refusal)
    with np.errstate(invalid="ignore", divide="ignore"):  # resamples without any decision have no value
        sensitivity, specificity, drawn = _estimate(known, scopes, bootstraps, split)
    refusal = _not_identified(sensitivity, specificity, drawn)
    return replace(counted, sensitivity=sensitivity, specificity=specificity, drawn=drawn, refusal=refusal)


def _estimate(
    known: JudgeLabels, scopes: Sequence[str], bootstraps: Bootstraps, split: Sequence[Sequence[Label]]
) -> tuple[float, float, tuple[Any, Any] | None]:
    """Sensitivity, specificity, and both in every resample; `split` holds the labels by verdict."""
    weights = [[known.weights[one.scope, one.adhered] for one in labels] for labels in split]
    shares = [
        sum(weight * one.followed for weight, one in zip(own, labels, strict=True)) / sum(own)
        for own, labels in zip(weights, split, strict=True)
    ]
    sizes = [sum(known.sizes[scope, verdict] for scope in scopes) for verdict in (True, False)]
    sensitivity, specificity = errors_of(sizes[0] / sum(sizes), *shares)
    adhered = _adhered(known, scopes, bootstraps)
    drawn = None
    if adhered is not None:
        uncertain = [
            _uncertain(
                share, own, _residual(labels, own, share, bootstraps), deviates(f"{' '.join(sorted(scopes))} {verdict}")
            )
            for verdict, labels, own, share in zip((True, False), split, weights, shares, strict=True)
        ]
        drawn = errors_of(adhered, *uncertain)
    return sensitivity, specificity, drawn


def _residual(labels: Sequence[Label], weights: Sequence[float], share: float, bootstraps: Bootstraps) -> Any:
    """By how much the share of followed changes differs in every resample, whose tasks have other labels."""
    found: Any = 0.0
    for dataset in dict.fromkeys(one.dataset for one in labels):
        parts: dict[str, float] = defaultdict(float)
        for one, weight in zip(labels, weights, strict=True):
            if one.dataset == dataset:
                parts[one.task] += weight * (one.followed - share)
        found = found + bootstraps[dataset].weighted(parts)
    return found / sum(weights)


def _adhered(known: JudgeLabels, scopes: Sequence[str], bootstraps: Bootstraps) -> Any:
    """The share that is judged adhered in the labelled cells, in every resample; None if there is only one task."""
    hits, totals = 0.0, 0.0
    for dataset, own in known.judged.items():
        sums = bootstraps[dataset].sums([own[scope] for scope in scopes if scope in own])
        if sums is None:
            return None
        hits, totals = hits + sums[:, :, 0].sum(axis=1), totals + sums[:, :, 1].sum(axis=1)
    return hits / totals


def ends(drawn: Any) -> Interval | None:
    """The 95 % interval of the values in the resamples, missing ones dropped; None if none is left."""
    return None if drawn is None else percentile_interval(each for each in drawn.tolist() if not isnan(each))


def errors_of(adhered: Any, if_adhered: Any, if_violated: Any) -> tuple[Any, Any]:
    """Sensitivity and specificity, from the share judged adhered and, by verdict, the share really followed."""
    caught, missed = adhered * if_adhered, (1 - adhered) * if_violated
    wrong, right = adhered * (1 - if_adhered), (1 - adhered) * (1 - if_violated)
    return caught / (caught + missed), right / (wrong + right)


def _too_few(errors: Errors) -> str:
    """The labels that are missing, in words; empty if there are enough."""
    for place, verdict in enumerate(("adhered", "violated")):
        if errors.labels[place] < FEWEST:
            return f"too few labels: {errors.labels[place]} of changes judged {verdict}, and {FEWEST} are needed"
    followed = sum(errors.followed)
    for count, words in ((followed, "followed"), (sum(errors.labels) - followed, "not followed")):
        if count < FEWEST_TRUE:
            return f"too few labels: {count:g} say {words}, and {FEWEST_TRUE} are needed"
    return ""


def _not_identified(sensitivity: float, specificity: float, drawn: tuple[Any, Any] | None) -> str:
    """The reason why errors like these show nothing about the truth, in words; empty if they do."""
    interval = None if drawn is None else ends(sum(drawn) - 1)
    if sensitivity + specificity <= 1 or (interval is not None and interval[0] <= 0):
        shares = f"sensitivity {sensitivity:.2f} + specificity {specificity:.2f}"
        return f"not identified: {shares} may be 1, so that the verdicts may say nothing about what was followed"
    return ""


def _uncertain(share: float, weights: Sequence[float], residual: Any, normal: Any) -> Any:
    """The share of followed changes in every resample, varied on the arcsine's scale (Anscombe, 1948).

    The residuals carry the similarity of labels of one task, with each other and with the verdicts. If only few
    labels differ from the others the residuals carry little, and normal deviates take over.
    """
    import numpy as np

    size = sum(weights) ** 2 / sum(weight**2 for weight in weights)
    rare = size * min(share, 1 - share)
    trusted = rare / (rare + 0.5)
    plain = (share * (1 - share) / size) ** 0.5
    moved = normal * (1 - trusted) ** 0.5 + (residual / plain * trusted**0.5 if plain else 0.0)
    middle = np.arcsin(((size * share + 3 / 8) / (size + 3 / 4)) ** 0.5)
    angle = middle + moved / (4 * size + 2) ** 0.5
    return np.sin(np.clip(angle, 1e-6, np.pi / 2 - 1e-6)) ** 2  # a share of 0 by both verdicts would divide by 0


@lru_cache(maxsize=32)
def deviates(purpose: str) -> Any:
    """Normal deviates, one per resample."""
    import numpy as np

    stream = generator(0, "", f"labels {purpose}")
    return np.array([stream.gauss(0, 1) for _ in range(RESAMPLES)])


def summed(figure: Figure) -> tuple[int, int]:
    """The counts of adhered and of all decisions, summed over the tasks."""
    counts = figure.by_task.values()
    return sum(hits for hits, _ in counts), sum(total for _, total in counts)
