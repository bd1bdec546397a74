"""Questions to servers on this machine, each answered at once or not at all."""

import http.client
import re
import socket
from urllib.parse import urlsplit

from codechat.models.serving.server import port_of

PATIENCE_S = 2.0
CACHE = re.compile(r"^vllm:cache_config_info\{([^}]*)\}", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


def answers(base_url: str) -> bool:
    """Whether an OpenAI-compatible server answers at an address, with or without a key, whatever it serves."""
    found = _get(base_url, urlsplit(base_url).path + "/models")
    return found is not None and found[0] != http.HTTPStatus.NOT_FOUND


def refuses(base_url: str) -> bool:
    """Whether no program listens at an address of this machine."""
    try:
        socket.create_connection((urlsplit(base_url).hostname or "", port_of(base_url)), PATIENCE_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def is_healthy(port: int) -> bool:
    """Whether the server on a port says that it is ready."""
    found = _get(local_url(port), "/health")
    return found is not None and found[0] == http.HTTPStatus.OK


def kv_tokens(base_url: str) -> int | None:
    """The tokens of conversations that the vLLM at an address has memory for; None if it does not say."""
    found = _get(base_url, "/metrics")
    labels = CACHE.search(found[1]) if found is not None and found[0] == http.HTTPStatus.OK else None
    sizes = dict(LABEL.findall(labels[1])) if labels is not None else {}
    try:
        return int(sizes["num_gpu_blocks"]) * int(sizes["block_size"])
    except (KeyError, ValueError):
        return None


def _get(base_url: str, path: str) -> tuple[int, str] | None:
    """Status and text of a page; None if nothing answers in time."""
    host = urlsplit(base_url).hostname or ""
    connection = http.client.HTTPConnection(host, port_of(base_url), timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def local_url(port: int) -> str:
    """The address up to /v1 of a server on this machine."""
    return f"http://127.0.0.1:{port}/v1"


def free_port(wanted: int) -> int:
    """The wanted port if it is free on loopback, else another that is."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no port of this machine is free")
