"""The providers' list prices, as data in `conf/prices/`: each list with its source and the day it was of.

They are never looked up in the network. A model has them if its config says no `prices`, and it is asked at one of the
list's hosts under a listed name, with or without a date at its end.
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
    """A model's list prices; `caches_from` is the least length of what its provider caches, if not as the list says.

    `keeps` is the longest time for which the provider can be asked to keep it, at no price, in the provider's word.
    """

    caches_from: int | None = run_option(None, "tokens from which a common beginning is cached")
    keeps: str | None = run_option(None, "how long that can be kept")


class PriceList(BaseModel):
    """One provider's prices on a day, read at `source`; `hosts` are where they are paid."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    day: datetime.date
    hosts: list[str]
    caches_from: int
    models: dict[str, Listed]


class Known(NamedTuple):
    """A model's prices, where they come from in words, and the shortest beginning, in tokens, that is cached.

    `keeps` is how long it can be kept, if that can be asked for.
    """

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
        found = each.models.get(config.name) or each.models.get(DATED.sub("", config.name))
        if host in each.hosts and found is not None:
            source = f"{each.source}, {each.day}"
            least = each.caches_from if found.caches_from is None else found.caches_from
            return Known(found, source, least, found.keeps)
    return None


def prices_of(config: ModelConfig) -> Prices | None:
    """The prices of a model: its own, else those of a list; None if neither has any."""
    listed = None if config.prices is not None else listed_prices(config)
    return listed.prices if listed is not None else config.prices
