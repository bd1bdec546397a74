"""What tokens cost: cached ones at a price of their own, and a role without a known price nothing that could be summed."""

import pytest

from codechat.base.domain import Usage
from codechat.report.metrics.spending import Price


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(1_000_000, 0, 0), 3.0), (Usage(1_000_000, 0, 1_000_000), 0.5), (Usage(1_000_000, 0, 400_000), 2.0),
        (Usage(0, 1_000_000, 0), 7.0), (Usage(2_000_000, 500_000, 1_000_000), 7.0), (Usage(0, 0, 0), 0.0),
    ],
)  # fmt: skip
def test_cached_tokens_are_paid_at_their_own_price_and_no_other(usage: Usage, dollars: float) -> None:
    assert Price(input=3.0, output=7.0, cached_input=0.5).cost(usage) == pytest.approx(dollars)
