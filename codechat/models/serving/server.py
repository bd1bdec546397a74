"""A model server: its model and weights, and questions to it. Models of a cell with equal weights share a server."""

import http.client
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from codechat.base.files import content_hash
from codechat.models import ModelConfig
from codechat.models.endpoints import VLLM, Weights, is_near
from codechat.models.gguf import GgufConfig
from codechat.models.openai import OpenAIConfig

PATIENCE_S = 2.0
CACHE = re.compile(r"^vllm:cache_config_info\{([^}]*)\}", re.MULTILINE)
LABEL = re.compile(r'\b(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Server:
    """A model with its weights. `weights_gb`: gigabytes of the loaded weights; None if unknown.

    `program`: what serves it; `file`: its weights, if they are a file of this machine.
    """

    name: str
    weights: Weights
    weights_gb: float | None = None
    program: str = VLLM
    file: Path | None = field(default=None, compare=False)

    @property
    def known_as(self) -> str:
        """The name in the response cache's keys, in place of an address: the same on every port and machine."""
        return f"{self.program}:{self.name}"

    @property
    def slug(self) -> str:
        """A unique name for files."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.").lower()[:60]
        return f"{readable}-{content_hash([self.name, self.weights.identity()])[:6]}"

    @property
    def described(self) -> str:
        """The model and the options of its weights, for people."""
        chosen = ", ".join(f"{name} {value}" for name, value in self.weights.identity().items())
        return f"{self.name} ({chosen})" if chosen else self.name


def server_of(config: ModelConfig) -> Server | None:
    """The server that codechat may start for a model; None if the model is not served on this machine."""
    if not isinstance(config, OpenAIConfig) or config.served_by is None:
        return None
    if not is_near(config.base_url, private=False):
        return None
    if isinstance(config, GgufConfig):
        file = config.file()
        return Server(config.name, config.loaded_weights(), file.stat().st_size / 1e9, config.served_by, file)
    size = config.weights_gb
    if size is not None and config.weights.quantization == "fp8":
        size /= 2  # published with 16 bits
    return Server(config.name, config.weights, size)


@dataclass(frozen=True, slots=True)
class Need:
    """A model of a cell that may be served on this machine; `place` is the model's key in the config."""

    place: str
    config: ModelConfig
    server: Server
    base_url: str


def needs_in(models: Mapping[str, ModelConfig]) -> list[Need]:
    """The models, given by place, that codechat may start a server for."""
    return [
        Need(place, config, server, str(getattr(config, "base_url", "")))
        for place, config in models.items()
        if (server := server_of(config)) is not None
    ]


MOST_BYTES = 10_000_000
"""Bytes of a page that are read."""
BUSY = 0
"""Stands for the status of a server that takes the connection and is silent: it is up, and busy."""


def port_of(base_url: str) -> int:
    parts = urlsplit(base_url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def answers(base_url: str) -> bool:
    """Whether an OpenAI-compatible server answers at an address, or a busy one would; a key is not needed."""
    page = page_of(base_url, urlsplit(base_url).path + "/models")
    return page is not None and page[0] != http.HTTPStatus.NOT_FOUND


def kv_tokens(base_url: str) -> int | None:
    """The tokens that fit the KV cache of the vLLM at an address; None if unknown."""
    page = page_of(base_url, "/metrics")
    labels = CACHE.search(page[1]) if page is not None and page[0] == http.HTTPStatus.OK else None
    sizes = dict(LABEL.findall(labels[1])) if labels is not None else {}
    try:
        return int(sizes["num_gpu_blocks"]) * int(sizes["block_size"])
    except (KeyError, ValueError):
        return None


def page_of(base_url: str, path: str) -> tuple[int, str] | None:
    """Status and text of a page; `BUSY` without a byte for `PATIENCE_S`, None without an answer."""
    parts = urlsplit(base_url)
    connection = http.client.HTTPConnection(parts.hostname or "", port_of(base_url), timeout=PATIENCE_S)
    silent = None
    try:
        connection.connect()
        silent = BUSY, ""
        connection.request("GET", f"{path}?{parts.query}" if parts.query else path)
        response = connection.getresponse()
        return response.status, response.read(MOST_BYTES).decode("utf-8", "replace")
    except TimeoutError:
        return silent
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def local_url(port: int) -> str:
    """The address, up to /v1, of a server on this machine."""
    return f"http://127.0.0.1:{port}/v1"


def free_port(wanted: int) -> int:
    """The wanted port if it is free on loopback, else another free port."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no port of this machine is free")
