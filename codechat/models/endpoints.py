"""Endpoints' descriptions of themselves, which distinguish checkpoints with one name.

A model behind an endpoint asks for its description once, before its first call, and passes it to the running cell's
`ENDPOINT_LISTENER`, which refuses another checkpoint than at the cell's beginning. A cached reply counts as a reply of
the endpoint that gave it.
"""

import ipaddress
import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from codechat.base.config import Config, result_option
from codechat.base.files import canonical_json
from codechat.base.texts import read_json, writable
from codechat.models import ModelConfig

IDENTIFYING = ("id", "root")
"""Facts that differ between checkpoints: the model's id, and the place that the weights were loaded from."""
VLLM, LLAMA_CPP = "vllm", "llama_cpp"
"""The programs that codechat starts; an endpoint's fact of that name is its version."""
AGENT = "agent"
"""The fact of an endpoint that a coding agent talks to: the agent's version."""
ARGUMENTS = "arguments"
"""The fact with the arguments of codechat's start."""
SLOTS = "slots"
"""The fact of a server that keeps few conversations: how many."""
TEMPERATURE = "temperature"
"""The fact of an endpoint that refused the configured temperature: what is sent to it instead, or none."""
LONGEST = 400
LARGEST = 2**63
"""Numbers of this size are no facts; NaN is none either."""
ASKED_JUST_NOW_S = 60.0
"""vLLM gives the time of the question as the time of creation, which is no fact."""
Fact = str | int | float | bool


class Weights(Config):
    """The weights behind the model's name."""

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
        """The weights in the response cache's keys; `info` is `EndpointInfo.weights` of their endpoint."""
        chosen = self.identity()
        revision = chosen.pop("revision", None)
        parts = [revision, canonical_json(chosen) if chosen else None, info]
        return "\n".join(each for each in parts if each is not None)


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    """An endpoint's description of a model.

    `facts`: the plain fields of its entry in the list of models (`id`, `root`, `created`, `max_model_len`, …).
    """

    base_url: str
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def text(self) -> str:
        """The facts as JSON, equal for equal facts."""
        return json.dumps(self.facts, sort_keys=True, ensure_ascii=False)

    def weights(self, name: str) -> str:
        """The identifying facts, for the response cache's keys; empty if the name is the only fact."""
        info = {key: self.facts[key] for key in IDENTIFYING if self.facts.get(key) not in (None, name)}
        return json.dumps(info, sort_keys=True) if info else ""


def info_of(base_url: str, name: str, listed: Any, now: float) -> EndpointInfo:
    """The description in the answer to GET /models, asked at `now` (seconds since 1970).

    It is the entry with the model's name, or the only entry, since such servers answer to any name.
    """
    try:
        entries = [entry for entry in listed["data"] if isinstance(entry, Mapping)]
    except (KeyError, TypeError):
        entries = []
    named = [entry for entry in entries if entry.get("id") == name] or (entries if len(entries) == 1 else [{}])
    facts = {name: fact for name, fact in _plain(named[0]).items() if name != "object"}
    created = facts.get("created")
    if isinstance(created, int | float) and abs(created - now) < ASKED_JUST_NOW_S:
        del facts["created"]
    return EndpointInfo(base_url, facts)


def facts_of(text: str | None) -> Mapping[str, Fact]:
    """The facts in an `EndpointInfo.text`; none without a text."""
    try:
        value = read_json(text or "{}")
    except ValueError:
        return {}
    return _plain(value) if isinstance(value, Mapping) else {}


def _plain(fields: Mapping[Any, Any]) -> dict[str, Fact]:
    """The plain values, as records can hold them."""
    return {
        writable(str(key))[:LONGEST]: writable(value)[:LONGEST] if isinstance(value, str) else value
        for key, value in fields.items()
        if isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) < LARGEST)
    }


class EndpointListener(Protocol):
    """Keeps a cell's record of its endpoints; `config` is the asked model's."""

    def places(self, config: ModelConfig) -> list[str]:
        """The model's places in the cell's config, such as `judge.adherence`."""

    def known(self, config: ModelConfig) -> EndpointInfo | None:
        """The recorded description of the endpoint at the config's address; None without a record."""

    async def on_connect(self, config: ModelConfig, info: EndpointInfo) -> None:
        """Called before an endpoint's first reply. Raises `UserError` if its weights differ from the cell's."""

    async def on_fingerprint(self, config: ModelConfig, fingerprint: str) -> None:
        """Called with the `Reply.fingerprint` of each reply."""


ENDPOINT_LISTENER: ContextVar[EndpointListener | None] = ContextVar("endpoint_listener", default=None)
"""The running cell's listener, set by the engine; None outside of cells."""


@runtime_checkable
class Describable(Protocol):
    """A model behind an endpoint that describes itself."""

    async def describe(self) -> EndpointInfo | None:
        """The endpoint's description; None if it does not answer at once."""


def address_of(config: ModelConfig) -> str | None:
    """The model's address, or a provider's name if its library knows the address; None without an endpoint."""
    address = getattr(config, "base_url", None) or getattr(config, "provider", None)
    return address if isinstance(address, str) else None


def is_near(base_url: str, *, private: bool = True) -> bool:
    """Whether an address is this machine's own, or, if `private`, one of a private network."""
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or (private and address.is_private)


def at_address(config: ModelConfig, address: str) -> ModelConfig:
    """The config of the same model at another address, which is a result of `address_of`."""
    is_provider = address == getattr(config, "provider", None)
    return config.model_copy(update={"base_url": None if is_provider else address})


def key_of(config: ModelConfig, option: str) -> str:
    """The whole key of a model's option, for messages: `judge.adherence.base_url`; outside of cells the option."""
    listener = ENDPOINT_LISTENER.get()
    places = listener.places(config) if listener is not None else []
    return " and ".join(f"{place}.{option}" for place in places) or option
