"""Endpoints' descriptions of themselves, so that two checkpoints under one name are not taken for one.

A model behind an endpoint asks for its description once, before its first call, and hands it to the running cell's
`ENDPOINT_LISTENER`, which refuses another checkpoint than the cell was begun with. Replies of the response cache count
as those of the endpoint that gave them.
"""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from codechat.base.config import Config, result_option
from codechat.base.files import canonical_json
from codechat.models import ModelConfig

IDENTIFYING = ("id", "root")
"""Facts that differ between checkpoints: the model's id, and the place that the weights were loaded from."""
VLLM, ARGUMENTS = "vllm", "arguments"
"""Facts about a vLLM: its version, and the options that codechat started it with."""
LONGEST = 400
ASKED_JUST_NOW_S = 60.0
"""Servers such as vLLM give the time of the question as the time of creation: that says nothing."""

Fact = str | int | float | bool


class Weights(Config):
    """The weights that the model's name means."""

    revision: str | None = result_option(
        None,
        "keeps several checkpoints of one model apart: a branch, tag or commit of the weights' repository if codechat "
        "starts the server, else a name of your own; null: none",
        min_length=1,
    )
    dtype: str | None = result_option(
        None, "type of the numbers that the server computes with, e.g. bfloat16; null: the model's own", min_length=1
    )
    quantization: str | None = result_option(
        None, "how the server makes the weights smaller as it loads them, e.g. fp8; null: as published", min_length=1
    )
    max_model_len: int | None = result_option(
        None, "tokens of the longest conversation that the server takes; null: the model's own", ge=1
    )

    def key(self, info: str) -> str:
        """The weights as a part of the response cache's keys; `info` is `EndpointInfo.weights` of their endpoint."""
        chosen = self.identity()
        revision = chosen.pop("revision", None)
        parts = [revision, canonical_json(chosen) if chosen else None]
        return "\n".join([*(each for each in parts if each is not None), info]) if any(parts) else info


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    """An endpoint's description of the model that it was asked for.

    `facts` has the plain fields of its entry in the list of models (`id`, `root`, `created`, `max_model_len`, …);
    empty if it says nothing.
    """

    base_url: str
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def text(self) -> str:
        """The facts as JSON, the same for the same facts."""
        return json.dumps(self.facts, sort_keys=True, ensure_ascii=False)

    def weights(self, name: str) -> str:
        """The weights as a key of the response cache; empty if nothing but the model's name is said of them."""
        info = {key: self.facts[key] for key in IDENTIFYING if self.facts.get(key) not in (None, name)}
        return json.dumps(info, sort_keys=True) if info else ""


def info_of(base_url: str, name: str, listed: Any, now: float) -> EndpointInfo:
    """The description in the answer to GET /models, asked at `now` (seconds since 1970).

    It is the entry of the model's name; if only one other is listed, that one, since such servers answer to any name.
    """
    try:
        entries = [entry for entry in listed["data"] if isinstance(entry, Mapping)]
    except (KeyError, TypeError):
        return EndpointInfo(base_url)
    own = [entry for entry in entries if entry.get("id") == name] or (entries if len(entries) == 1 else [])
    if not own:
        return EndpointInfo(base_url)
    facts = {
        str(key): value[:LONGEST] if isinstance(value, str) else value
        for key, value in own[0].items()
        if isinstance(value, Fact) and key != "object"
    }
    created = facts.get("created")
    if isinstance(created, int | float) and abs(created - now) < ASKED_JUST_NOW_S:
        del facts["created"]
    return EndpointInfo(base_url, facts)


class EndpointListener(Protocol):
    """Keeps a cell's record of the endpoints that answer; `config` is that of the model that is asked."""

    def places(self, config: ModelConfig) -> list[str]:
        """The model's places in the cell's config, such as `judge.adherence`."""

    def known(self, config: ModelConfig) -> EndpointInfo | None:
        """The description that an endpoint at the config's address gave to this cell before; None without one."""

    async def on_connect(self, config: ModelConfig, info: EndpointInfo) -> None:
        """An endpoint is about to answer. Raises `UserError` if it serves other weights than the cell began with."""

    async def on_fingerprint(self, config: ModelConfig, fingerprint: str) -> None:
        """A reply has this `Reply.fingerprint`."""


ENDPOINT_LISTENER: ContextVar[EndpointListener | None] = ContextVar("endpoint_listener", default=None)
"""The listener of the cell that runs, set by the engine; None outside of cells."""


@runtime_checkable
class Describable(Protocol):
    """A model behind an endpoint that describes itself."""

    async def describe(self) -> EndpointInfo | None:
        """The endpoint's description; None if it does not answer at once."""


def address_of(config: ModelConfig) -> str | None:
    """The address that the model is asked at; None for a model without an endpoint.

    A provider that is asked at its own address is known by its name.
    """
    address = getattr(config, "base_url", None) or getattr(config, "provider", None)
    return address if isinstance(address, str) else None


def at_address(config: ModelConfig, address: str) -> ModelConfig:
    """The config of the same model asked at another address, as `address_of` gives it."""
    own = address == getattr(config, "provider", None)
    return config.model_copy(update={"base_url": None if own else address})


def key_of(config: ModelConfig, option: str) -> str:
    """The whole key of a model's option, for messages: `judge.adherence.base_url`; only the option outside of cells."""
    listener = ENDPOINT_LISTENER.get()
    places = listener.places(config) if listener is not None else []
    return " and ".join(f"{place}.{option}" for place in places) or option
