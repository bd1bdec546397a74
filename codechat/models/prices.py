"""The providers' list prices, as data in `conf/prices/`: each list with its source and day.

They apply to a model without `prices` in its config, at one of the list's hosts, under a listed name with or without a
date at its end.
"""

import datetime
import re
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from codechat.base.config import run_option
from codechat.base.environment import data_folder
from codechat.base.files import from_yaml
from codechat.models import ModelConfig, Prices
from codechat.models.endpoints import address_of

FOLDER = "prices"
DATED = re.compile(r"-(\d{4}-?\d{2}-?\d{2}|latest)$")


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
