"""A cell's tokens and, if prices are known, costs. Every protocol's metrics call `spending_of`.

Payers are names of roles. In metrics.json the judges of instructions are summed as `judge` (contract); the model under
test is `model`, and every further role of a protocol has its own name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codechat.base.domain import Usage
from codechat.base.records import SessionRecord
from codechat.models.prices import Price

JUDGE = "judge"
"""The name under which the tokens of the judges of instructions are summed."""
CHOOSING = "applicability"
"""The judge that chooses candidates. Its records leave out the surplus checks of a lookahead."""

Tokens = dict[str, Usage]
"""Tokens by payer; the judges of instructions are summed as `judge`."""
Costs = dict[str, float | None]
"""US dollars by payer; None if no price is known, which is not the same as free."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """The price of each payer's model, None if it is not known, in the order in which costs are listed. `judges` are
    the payers that judge instructions; `unpriced` lists the places of models without a price."""

    prices: Mapping[str, Price | None] = field(default_factory=dict)
    judges: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()

    def price(self, payer: str) -> Price | None:
        return self.prices.get(payer)

    def sum_name(self, payer: str) -> str:
        """The name under which metrics.json sums a payer."""
        return JUDGE if payer in self.judges else payer

    @property
    def has_one_price(self) -> bool:
        """Whether all judges of instructions have one price."""
        return len({self.price(payer) for payer in self.judges}) <= 1


@dataclass(frozen=True, slots=True)
class Effort:
    """A cell's effort over all its processes, errored sessions included; from its journal, because records lack it.

    `spent` has each payer's tokens, replies of the response cache excluded. `judged` has the tokens of each judge
    of instructions in completed sessions, if the judges have different prices.
    """

    wall_s: float = 0.0
    retries: int = 0
    rate_limited: int = 0
    cached_replies: int = 0
    tariff: Tariff = Tariff()
    judged: Mapping[str, Usage] = field(default_factory=dict)
    spent: Mapping[str, Usage] = field(default_factory=dict)


def spending_of(tokens: Tokens, effort: Effort) -> dict[str, Any]:
    """The part of metrics.json that every protocol has, as JSON: its keys `retries` to `wall_s`.

    `cost_usd` is the price of `tokens`, which are of completed sessions; `spent_usd` is the amount paid: with errored
    sessions, without replies of the response cache.
    """
    tariff = effort.tariff
    return {
        "retries": effort.retries,
        "rate_limited": effort.rate_limited,
        "cached_replies": effort.cached_replies,
        "tokens": {name: used.counts() for name, used in tokens.items()},
        "cost_usd": {
            name: _judging(used, effort) if name == JUDGE and tariff.judges else _cost(tariff.price(name), used)
            for name, used in tokens.items()
        },
        "spent_usd": spent_usd(effort.spent, tariff),
        "wall_s": effort.wall_s,
    }


def spent_usd(spent: Mapping[str, Usage], tariff: Tariff) -> Costs:
    """The price of each payer's tokens; None for the judges if one of them has a model without a price."""
    parts: dict[str, list[float | None]] = {"model": [], JUDGE: []}
    for payer in dict.fromkeys(["model", *tariff.prices, *spent]):
        parts.setdefault(tariff.sum_name(payer), []).append(_cost(tariff.price(payer), spent.get(payer, Usage())))
    return {name: _sum(costs) for name, costs in parts.items()}


def _sum(costs: list[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _judging(used: Usage, effort: Effort) -> float | None:
    """The cost of judging; None unless every judge has a price."""
    tariff = effort.tariff
    if any(tariff.price(payer) is None for payer in tariff.judges):
        return None
    if tariff.has_one_price:
        return _cost(tariff.price(tariff.judges[0]), used)
    parts = {payer: effort.judged.get(payer, Usage()) for payer in tariff.judges if payer != CHOOSING}
    if CHOOSING in tariff.judges:
        for usage in parts.values():
            used -= usage
        parts[CHOOSING] = used
    return _sum([_cost(tariff.price(payer), usage) for payer, usage in parts.items()])


def _cost(price: Price | None, usage: Usage) -> float | None:
    return None if price is None else price.cost(usage)


def no_tokens() -> Tokens:
    return {"model": Usage(), JUDGE: Usage()}


def tokens_of(sessions: Iterable[SessionRecord]) -> Tokens:
    """The tokens of all turns, including candidate checks at skipped turns."""
    total = no_tokens()
    for session in sessions:
        add_tokens(total, session)
    return total


def add_tokens(total: Tokens, session: SessionRecord) -> None:
    """Add a session's tokens to a total."""
    for turn in session.turns:
        for name, used in (("model", turn.usage), (JUDGE, turn.judge_usage), *turn.usage_of_roles()):
            total[name] = total.get(name, Usage()) + used
