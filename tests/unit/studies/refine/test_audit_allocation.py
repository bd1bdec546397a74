"""How many labels each verdict and scope has, if they are to correct adherence."""

from itertools import product

import pytest

from codechat.studies.refine.audit import Group, allocation
from codechat.studies.refine.chapter.powered import FEWEST

SIZES = {
    Group("cosmetic", False): 30, Group("cosmetic", True): 270,
    Group("semantic", False): 120, Group("semantic", True): 180,
}  # fmt: skip


def followed(group: Group, errs: float) -> float:
    """The share of followed ones in a group, of a judge that errs so often on either side; never quite none or all."""
    adhered = SIZES[Group(group.scope, True)] / sum(SIZES[Group(group.scope, verdict)] for verdict in (True, False))
    truth = min(0.98, max(0.02, (adhered - errs) / (1 - 2 * errs)))
    says = (1 - errs, errs) if group.adhered else (errs, 1 - errs)
    return min(0.98, max(0.02, says[0] * truth / (says[0] * truth + says[1] * (1 - truth))))


def variance(counts: dict[Group, int], errs: float) -> float:
    return sum(
        (size / 600) ** 2 * (share := followed(group, errs)) * (1 - share) / counts[group]
        for group, size in SIZES.items()
    )


@pytest.mark.parametrize("number", [7, 40, 41, 100, 233, 599, 600, 1000])
def test_every_label_is_given_and_no_group_has_more_than_it_holds(number: int) -> None:
    found = allocation(SIZES, number)
    assert found.keys() == SIZES.keys()
    assert sum(found.values()) == min(number, 600)
    assert all(0 <= found[group] <= size for group, size in SIZES.items())
    if number >= FEWEST * len(SIZES):
        assert min(found.values()) >= FEWEST


def test_no_other_allocation_is_better() -> None:
    found = allocation(SIZES, 200)
    best = variance(found, 0.2)
    for giver, taker in product(SIZES, SIZES):
        if giver != taker and found[giver] - 5 >= FEWEST and found[taker] + 5 <= SIZES[taker]:
            assert variance(found | {giver: found[giver] - 5, taker: found[taker] + 5}, 0.2) > best - 1e-7
    by_share = {group: round(200 * size / 600) for group, size in SIZES.items()}
    assert best < 0.9 * variance(by_share, 0.2)
