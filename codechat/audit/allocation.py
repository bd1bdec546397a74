"""How many labels to draw of each verdict and scope, so that the corrected adherence has the narrowest interval.

Of n labels the variance of the corrected share is least if each group has as many as its size times the standard
deviation of what people will say in it (Neyman, 1934). In a group that is judged adhered, or violated, that follows
from how often the judge errs, which is guessed, or known from a pilot.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from codechat.metrics.corrected import ALL, Correction, rogan_gladen
from codechat.metrics.judge_errors import FEWEST
from codechat.metrics.statistics import rate

GUESS = (0.8, 0.8)
"""Sensitivity and specificity of a judge of whom nothing is known."""
RAREST = 0.02
"""No smaller share of followed instructions, or of others, is expected: what looks sure is labelled a little, too."""


class Group(NamedTuple):
    """The decisions of a scope with one verdict."""

    scope: str
    adhered: bool


def allocation(sizes: Mapping[Group, int], number: int, pilot: Correction | None = None) -> dict[Group, int]:
    """How many of `number` labels each group has; `sizes` says how many decisions it holds.

    Every group has the number that an estimate of its scope needs, if there are decisions and labels enough.
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
    """The standard deviation of what people will say of a decision."""
    sensitivity, specificity = _errors(group.scope, pilot)
    size = {verdict: sizes.get(Group(group.scope, verdict), 0) for verdict in (True, False)}
    adhered = rate(size[True], sum(size.values())) or 0.0
    followed = min(1 - RAREST, max(RAREST, rogan_gladen(adhered, sensitivity, specificity)))
    says = (sensitivity, 1 - specificity) if group.adhered else (1 - sensitivity, specificity)
    right, wrong = says[0] * followed, says[1] * (1 - followed)
    share = min(1 - RAREST, max(RAREST, right / (right + wrong)))
    return math.sqrt(share * (1 - share))


def _errors(scope: str, pilot: Correction | None) -> tuple[float, float]:
    """The judge's sensitivity and specificity by the pilot's labels of a scope, else of all, else as guessed."""
    found = [pilot.errors(name) for name in (scope, ALL)] if pilot is not None else []
    known = [(each.sensitivity, each.specificity) for each in found if not each.refusal]
    return next(((a, b) for a, b in known if a is not None and b is not None), GUESS)
