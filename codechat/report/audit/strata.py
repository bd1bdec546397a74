"""Seeded samples in which every stratum has its share."""

import math
from collections.abc import Sequence
from typing import TypeVar

from codechat.base.seeding import generator

T = TypeVar("T")
Stratum = tuple[str, str, str]


def draw_by_stratum(decisions: Sequence[T], names: Sequence[Stratum], size: int, seed: int, purpose: str) -> list[T]:
    """A sample in which every stratum has its share (largest remainder), so that its accuracy is unbiased.

    `names` holds each decision's stratum.
    """
    strata: dict[Stratum, list[T]] = {}
    for one, name in zip(decisions, names, strict=True):
        strata.setdefault(name, []).append(one)
    size = min(size, len(decisions))
    shares = {name: size * len(members) / len(decisions) for name, members in strata.items()}
    counts = {name: math.floor(share) for name, share in shares.items()}
    by_remainder = sorted(strata, key=lambda name: (counts[name] - shares[name], name))
    for name in by_remainder[: size - sum(counts.values())]:
        counts[name] += 1
    return [
        one
        for name in sorted(strata)
        for one in generator(seed, "/".join(name), purpose).sample(strata[name], counts[name])
    ]


def shuffled(drawn: list[T], seed: int) -> list[T]:
    """The drawn decisions in random order, so that no stratum is labelled only by tired people."""
    generator(seed, "", "audit/order").shuffle(drawn)
    return drawn
