"""What a cell may spend, over all its processes."""

from dataclasses import dataclass

from codechat.errors import UserError
from codechat.journal import Ledger
from codechat.metrics.spending import Tariff, spent_usd


@dataclass(frozen=True, slots=True)
class Budget:
    """US dollars and tokens of model and judges together; None is no limit. What the response cache gave is free."""

    usd: float | None
    tokens: int | None
    tariff: Tariff

    def __post_init__(self) -> None:
        """Raises `UserError` for a budget in dollars where an endpoint's price is not known."""
        if self.usd is not None and self.tariff.unpriced:
            place = self.tariff.unpriced[0]
            raise UserError(
                f"budget_usd needs the prices of {', '.join(self.tariff.unpriced)}",
                f"set dollars per million tokens, e.g. {place}.prices='{{input: 1.25, output: 10}}' "
                "(0 where it costs nothing), or use budget_tokens",
            )

    def spent_usd(self, ledger: Ledger) -> float | None:
        """What was paid so far, as far as prices are known; None where none is."""
        costs = spent_usd(ledger.spent, self.tariff)
        known = [cost for cost in (costs.model, costs.judge) if cost is not None]
        return sum(known) if known else None

    def reached(self, ledger: Ledger) -> str:
        """Which budget is used up, in words; empty while none is."""
        if self.tokens is not None and ledger.tokens >= self.tokens:
            return f"the budget of {self.tokens:,} tokens (budget_tokens) is reached"
        if self.usd is not None and (self.spent_usd(ledger) or 0.0) >= self.usd:
            return f"the budget of ${self.usd:,.2f} (budget_usd) is reached"
        return ""
