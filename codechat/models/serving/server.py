"""A server as its model and weights describe it: two models of a cell with the same ones share a server."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from codechat.base.files import content_hash
from codechat.models import ModelConfig
from codechat.models.endpoints import Weights

VLLM = "vllm"


@dataclass(frozen=True, slots=True)
class Server:
    """A model as it is loaded. `weights_gb` are the gigabytes that its weights take; None if that is not known."""

    name: str
    weights: Weights
    weights_gb: float | None = None

    @property
    def known_as(self) -> str:
        """A name of the model and its weights, in place of an address; the same on every port and machine."""
        return f"vllm:{self.name}"

    @property
    def slug(self) -> str:
        """A name for files, which no other server has."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.").lower()[:60]
        return f"{readable}-{content_hash([self.name, self.weights.identity()])[:6]}"

    @property
    def described(self) -> str:
        """The model and how it is loaded, for people."""
        chosen = ", ".join(f"{name} {value}" for name, value in self.weights.identity().items())
        return f"{self.name} ({chosen})" if chosen else self.name

    def arguments(self) -> list[str]:
        """The arguments of `vllm serve` that say what is loaded."""
        given: Mapping[str, Any] = self.weights.identity()
        flags = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        return [self.name, "--served-model-name", self.name, *flags]


def server_of(config: ModelConfig) -> Server | None:
    """The server that codechat may start for a model; None for a model that is not served on this machine."""
    weights = getattr(config, "weights", None)
    if getattr(config, "served_by", None) != VLLM or weights is None or not is_local(getattr(config, "base_url", "")):
        return None
    size: float | None = getattr(config, "weights_gb", None)
    if size is not None and weights.quantization == "fp8":
        size /= 2  # of the memory of weights published with 16 bits
    return Server(config.name, weights, size)


@dataclass(frozen=True, slots=True)
class Need:
    """A model of a cell that may be served on this machine; `place` is its key in the config."""

    place: str
    config: ModelConfig
    server: Server
    base_url: str


def needs_in(models: Mapping[str, ModelConfig]) -> list[Need]:
    """The models that codechat may start a server for, by their places."""
    found = ((place, config, server_of(config)) for place, config in models.items())
    return [
        Need(place, config, server, str(getattr(config, "base_url", "")))
        for place, config, server in found
        if server is not None
    ]


def is_local(base_url: str) -> bool:
    """Whether an address is on loopback."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def port_of(base_url: str) -> int:
    """The port of an address."""
    parts = urlsplit(base_url)
    return parts.port or (443 if parts.scheme == "https" else 80)
