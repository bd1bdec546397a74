"""How many labels to draw of each verdict and scope, so that the corrected adherence has the narrowest interval.

With n labels the variance of the corrected share is least if each group gets labels in proportion to its size times the
standard deviation of people's answers in it (Neyman, 1934). In a group that was judged adhered, or violated, that
deviation follows from how often the judge errs, which is guessed or known from a pilot.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from codechat.report.metrics.corrected import ALL, Correction, rogan_gladen
from codechat.report.metrics.judge_errors import FEWEST
from codechat.report.metrics.statistics import rate

GUESS = (0.8, 0.8)
"""The sensitivity and specificity assumed of a judge if no labels of its decisions are known."""
RAREST = 0.02
"""The smallest share of followed, or not followed, instructions to expect: groups that look sure get labels too."""


class Group(NamedTuple):
    """The decisions of a scope with one verdict."""

    scope: str
    adhered: bool


def allocation(sizes: Mapping[Group, int], number: int, pilot: Correction | None = None) -> dict[Group, int]:
    """The number of labels of each group, `number` in all; `sizes` says how many decisions a group has.

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


def _deviation(group: Group, sizes: Mapping[Group, int], pilot: Correction | None) -> float:
    """The standard deviation of people's answers (followed or not) in a group."""
    sensitivity, specificity = _errors(group.scope, pilot)
    size = {verdict: sizes.get(Group(group.scope, verdict), 0) for verdict in (True, False)}
    adhered = rate(size[True], sum(size.values())) or 0.0
    followed = min(1 - RAREST, max(RAREST, rogan_gladen(adhered, sensitivity, specificity)))
    says = (sensitivity, 1 - specificity) if group.adhered else (1 - sensitivity, specificity)
    right, wrong = says[0] * followed, says[1] * (1 - followed)
    share = min(1 - RAREST, max(RAREST, right / (right + wrong)))
    return math.sqrt(share * (1 - share))


def _errors(scope: str, pilot: Correction | None) -> tuple[float, float]:
    """The judge's sensitivity and specificity: by a pilot's labels of the scope, else of all scopes, else guessed."""
    found = [pilot.errors(name) for name in (scope, ALL)] if pilot is not None else []
    known = [(each.sensitivity, each.specificity) for each in found if not each.refusal]
    return next(((a, b) for a, b in known if a is not None and b is not None), GUESS)
