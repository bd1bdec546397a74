"""The providers' list prices, as data in `conf/prices/`: each list with its source and day.

They apply to a model without `prices` in its config, at one of the list's hosts, under a listed name with or without a
date at its end.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from codechat.base.config import run_option
from codechat.base.domain import Usage
from codechat.base.environment import data_folder
from codechat.base.files import from_yaml
from codechat.models import ModelConfig, Prices
from codechat.models.endpoints import address_of

FOLDER = "prices"
DATED = re.compile(r"-(\d{4}-?\d{2}-?\d{2}|latest)$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. Cached and cache-written input tokens are part of the input, at their own prices.
    `tiers` are the prices of other tiers than the standard one; a tier without its own is priced as standard."""

    input: float
    output: float
    cached_input: float
    cache_write: float | None = None  # None: as input
    tiers: Mapping[str, "Price"] = field(default_factory=dict, hash=False)

    def cost(self, usage: Usage) -> float:
        """The price of some tokens in US dollars, by the tier that served them."""
        return sum(self.tiers.get(tier, self)._cost(part) for tier, part in usage.by_tier())

    def _cost(self, usage: Usage) -> float:
        fresh = usage.input_tokens - usage.cached_input_tokens
        paid = fresh * self.input + usage.cached_input_tokens * self.cached_input + usage.output_tokens * self.output
        if self.cache_write is not None:
            paid += usage.cache_write_tokens * (self.cache_write - self.input)
        return paid / 1_000_000


class Listed(Prices):
    """A model's list prices. `caches_from`: least tokens of a cached prefix; None: as in the list. `keeps`: longest
    retention of a cached prefix without charge, in the provider's word."""

    caches_from: int | None = run_option(None, "tokens from which a common beginning is cached")
    keeps: str | None = run_option(None, "how long that can be kept")


class PriceList(BaseModel):
    """One provider's prices on a day, read at `source`, for its `hosts`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    day: datetime.date
    hosts: list[str]
    caches_from: int
    models: dict[str, Listed]


class Known(NamedTuple):
    """A model's prices, their source in words, the least tokens of a cached prefix, and its longest retention."""

    prices: Prices
    source: str
    caches_from: int
    keeps: str | None


@cache
def price_lists() -> tuple[PriceList, ...]:
    """All lists."""
    files = sorted((data_folder("conf") / FOLDER).glob("*.yaml"))
    return tuple(PriceList.model_validate(from_yaml(file.read_text(encoding="utf-8"))) for file in files)


def listed_prices(config: ModelConfig) -> Known | None:
    """The list prices of a model by its name and address; None if no list has it."""
    host = urlsplit(address_of(config) or "").hostname
    for each in price_lists():
        listed = each.models.get(config.name) or each.models.get(DATED.sub("", config.name))
        if host in each.hosts and listed is not None:
            least = each.caches_from if listed.caches_from is None else listed.caches_from
            return Known(listed, f"{each.source}, {each.day}", least, listed.keeps)
    return None


def prices_of(config: ModelConfig) -> Prices | None:
    """The prices of a model's config, else its list prices; None if unknown."""
    listed = None if config.prices is not None else listed_prices(config)
    return listed.prices if listed is not None else config.prices


def price_of(config: ModelConfig) -> Price | None:
    """The price of a model's tokens; None if unknown."""
    prices = prices_of(config)
    return None if prices is None else _priced(prices)


def _priced(prices: Prices) -> Price:
    cached = prices.input if prices.cached_input is None else prices.cached_input
    tiers: dict[str, Price] = {tier: _priced(each) for tier, each in prices.tiers.items()}
    return Price(prices.input, prices.output, cached, prices.cache_write, tiers)
