"""How many labels to draw of each verdict and scope, so that corrected adherence has the narrowest interval.

With n labels the variance of the corrected share is least if each group gets labels in proportion to its size times the
standard deviation of people's answers in it (Neyman, 1934). That deviation is known from a pilot, or guessed.
"""

import math
from collections.abc import Mapping
from statistics import fmean
from typing import NamedTuple

from codechat.report.metrics.powered import FEWEST, JudgeLabels
from codechat.report.metrics.statistics import rate

RIGHT = 0.8
"""The share of followed, and of other instructions, that a judge is assumed to decide as people do."""
RAREST = 0.02
"""The smallest share of followed, or not followed, instructions to expect: groups that look sure get labels too."""


class Group(NamedTuple):
    """The decisions of a scope with one verdict."""

    scope: str
    adhered: bool


def allocation(sizes: Mapping[Group, int], number: int, pilot: JudgeLabels | None = None) -> dict[Group, int]:
    """The number of labels of each group, `number` in all; `sizes` holds the number of decisions of each group.

    Every group gets the labels that an estimate of its scope needs, if there are decisions and labels enough.
    """
    wanted = {group: size * _deviation(group, sizes, pilot) for group, size in sizes.items()}
    least = min(FEWEST, number // max(1, len(sizes)))
    found = {group: min(size, least) for group, size in sizes.items()}
    while (left := min(number, sum(sizes.values())) - sum(found.values())) > 0:
        given = {group: found[group] for group in sizes if found[group] < sizes[group]}
        whole = sum(wanted[group] for group in given)
        target = {group: wanted[group] / whole * (left + sum(given.values())) for group in given}
        behind = {group: max(0.0, target[group] - count) for group, count in given.items()}
        shares = {group: left * lack / sum(behind.values()) for group, lack in behind.items()}
        more = {group: min(sizes[group] - found[group], math.floor(share)) for group, share in shares.items()}
        if not any(more.values()):
            order = sorted(given, key=lambda group: (math.floor(shares[group]) - shares[group], group))
            more = dict.fromkeys(order[:left], 1)
        found = {group: count + more.get(group, 0) for group, count in found.items()}
    return found


def _deviation(group: Group, sizes: Mapping[Group, int], pilot: JudgeLabels | None) -> float:
    """The standard deviation of people's answers (followed or not) in a group."""
    labels = pilot.labels if pilot is not None else ()
    answers = [one.followed for one in labels if (one.scope, one.adhered) == group]
    share = _likely(fmean(answers) if len(answers) >= FEWEST else _guess(group, sizes))
    return math.sqrt(share * (1 - share))


def _guess(group: Group, sizes: Mapping[Group, int]) -> float:
    """The share of followed instructions in a group, of a judge that is right in `RIGHT` of all cases."""
    size = {verdict: sizes.get(Group(group.scope, verdict), 0) for verdict in (True, False)}
    adhered = rate(size[True], sum(size.values())) or 0.0
    followed = _likely((adhered + RIGHT - 1) / (2 * RIGHT - 1))
    says = RIGHT if group.adhered else 1 - RIGHT
    return says * followed / (says * followed + (1 - says) * (1 - followed))


def _likely(share: float) -> float:
    return min(1 - RAREST, max(RAREST, share))
