"""What a cell used: tokens and, where prices are known, money. Every protocol's metrics call `spending_of`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from codechat.config import Config
from codechat.domain import Usage
from codechat.models import ModelConfig
from codechat.records import SessionRecord, UsageRecord

Payer = Literal["model", "applicability", "adherence"]
"""Who pays for a call: the model under test, or the judge in one of its two roles."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. Cached input tokens are part of the input tokens, at their own price."""

    input: float
    output: float
    cached_input: float

    def cost(self, usage: UsageRecord | Usage) -> float:
        """The price of what was used, in US dollars."""
        fresh = usage.input_tokens - usage.cached_input_tokens
        paid = fresh * self.input + usage.cached_input_tokens * self.cached_input + usage.output_tokens * self.output
        return paid / 1_000_000


@dataclass(frozen=True, slots=True)
class Tariff:
    """The price of each payer's model, None where it is not known; `unpriced` names the endpoints without a price."""

    model: Price | None = None
    applicability: Price | None = None
    adherence: Price | None = None
    unpriced: tuple[str, ...] = ()

    def of(self, payer: Payer) -> Price | None:
        """The price of a payer's model."""
        return {"model": self.model, "applicability": self.applicability, "adherence": self.adherence}[payer]


def tariff_of(model: ModelConfig, judge: Config, *, baseline: bool) -> Tariff:
    """The prices in the configs of the model under test and of the models that judge, wherever the judge keeps them.

    A judge's model serves the role that its option is named for, and both roles where it is named otherwise. A baseline
    asks nobody, so that it needs no price.
    """
    places = dict(models_in(judge, "judge"))
    roles: dict[str, list[Price | None]] = {"applicability": [], "adherence": []}
    for place, config in places.items():
        named = place.rpartition(".")[2]
        for role in [named] if named in roles else roles:
            roles[role].append(_price(config))
    unpriced = [
        place
        for place, config in {"model": model, **places}.items()
        if config.prices is None and not (baseline and config is model)
    ]
    return Tariff(_price(model), _only(roles["applicability"]), _only(roles["adherence"]), tuple(unpriced))


def models_in(config: Config, place: str) -> Iterator[tuple[str, ModelConfig]]:
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, ModelConfig):
            yield f"{place}.{name}", value
        elif isinstance(value, Config):
            yield from models_in(value, f"{place}.{name}")


def _price(config: ModelConfig) -> Price | None:
    prices = config.prices
    if prices is None:
        return None
    cached = prices.input if prices.cached_input is None else prices.cached_input
    return Price(prices.input, prices.output, cached)


def _only(prices: list[Price | None]) -> Price | None:
    """The price that all agree on."""
    return prices[0] if prices and all(price == prices[0] for price in prices) else None


@dataclass(frozen=True, slots=True)
class Effort:
    """What a cell took in all its processes, errored sessions included: from its journal, as records do not hold it.

    `adherence` are the judge's tokens of completed sessions that went into adherence, where the two roles of the judge
    have different prices. `spent` is what each payer's calls used, without the replies that the response cache gave.
    """

    wall_s: float = 0.0
    retries: int = 0
    rate_limited: int = 0
    cached_replies: int = 0
    tariff: Tariff = Tariff()
    adherence: Usage = field(default_factory=Usage)
    spent: dict[Payer, Usage] = field(default_factory=dict)


class Tokens(BaseModel):
    """Tokens of the model under test and of the judges."""

    model: UsageRecord
    judge: UsageRecord


class Costs(BaseModel):
    """US dollars; None where no price is known, which is not the same as free."""

    model: float | None = None
    judge: float | None = None


def spending_of(tokens: Tokens, effort: Effort) -> dict[str, Any]:
    """The part of metrics.json that every protocol has: values of its keys `retries` to `wall_s`.

    `cost_usd` is the price of `tokens`, which are those of completed sessions; `spent_usd` is what was paid: with the
    sessions that errored, without what the response cache gave.
    """
    return {
        "retries": effort.retries,
        "rate_limited": effort.rate_limited,
        "cached_replies": effort.cached_replies,
        "tokens": tokens,
        "cost_usd": Costs(model=_cost(effort.tariff.model, tokens.model), judge=_judging(tokens.judge, effort)),
        "spent_usd": spent_usd(effort.spent, effort.tariff),
        "wall_s": effort.wall_s,
    }


def spent_usd(spent: dict[Payer, Usage], tariff: Tariff) -> Costs:
    """The price of what each payer used; null for the judge where it has a model without a price."""
    judge = [_cost(tariff.of(payer), spent.get(payer, Usage())) for payer in ("applicability", "adherence")]
    known = [cost for cost in judge if cost is not None]
    return Costs(
        model=_cost(tariff.model, spent.get("model", Usage())), judge=sum(known) if len(known) == len(judge) else None
    )


def _judging(used: UsageRecord, effort: Effort) -> float | None:
    """The judge's cost: null unless both its roles have a price, as what it used is not all priced then."""
    choosing, following = effort.tariff.applicability, effort.tariff.adherence
    if choosing is None or following is None:
        return None
    if choosing == following:
        return choosing.cost(used)
    spent = effort.adherence
    rest = Usage(
        used.input_tokens - spent.input_tokens,
        used.output_tokens - spent.output_tokens,
        used.cached_input_tokens - spent.cached_input_tokens,
    )
    return choosing.cost(rest) + following.cost(spent)


def _cost(price: Price | None, usage: UsageRecord | Usage) -> float | None:
    return None if price is None else price.cost(usage)


def tokens_of(sessions: Iterable[SessionRecord]) -> Tokens:
    """The tokens of all turns, those spent on checking candidates at a skipped turn included."""
    total = Tokens(model=UsageRecord(), judge=UsageRecord())
    for session in sessions:
        add_tokens(total, session)
    return total


def add_tokens(total: Tokens, session: SessionRecord) -> None:
    """Add a session's tokens to the total, for who reads sessions one by one."""
    for turn in session.turns:
        for sum_, used in ((total.model, turn.usage), (total.judge, turn.judge_usage)):
            sum_.input_tokens += used.input_tokens
            sum_.output_tokens += used.output_tokens
            sum_.cached_input_tokens += used.cached_input_tokens
