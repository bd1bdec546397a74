"""llm-katan, a stranger's server of four protocols (its echo, without weights), with faults to order."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from codechat.base.domain import Message, Reply
from codechat.base.errors import InfrastructureError, UserError
from codechat.models import MODELS, Request
from support.processes import wait_until

PYTHON = Path(os.environ.get("CODECHAT_REAL_PYTHON") or sys.executable)
COMMAND = shutil.which("llm-katan", path=str(PYTHON.parent))
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(COMMAND is None, reason="needs llm-katan: beside the Python that CODECHAT_REAL_PYTHON names"),
]
QUESTION = Request((Message("system", "Be brief."), Message("user", "Write x.")), "T/0", 0)
KEYS = {name: f"llm-katan-{name}-key" for name in ("openai", "anthropic", "vertexai", "bedrock")}
OPENAI = {"kind": "openai", "api_key_env": "OPENAI_KEY"}
WAYS: dict[str, dict[str, Any]] = {  # Anthropic's and Google's keys are wanted in another header than codechat's
    "openai": OPENAI,
    "anthropic": {"provider": "anthropic", "api_key_env": None, "headers": {"x-api-key": "ANTHROPIC_KEY"}},
    "google": {"provider": "google", "api_key_env": "VERTEXAI_KEY", "headers": {"Authorization": "BEARER"}},
    "bedrock": {"provider": "bedrock"},
}  # fmt: skip
Serve = Callable[..., str]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)
    aws = {"AWS_ACCESS_KEY_ID": KEYS["bedrock"], "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    keys = {f"{name.upper()}_KEY": key for name, key in KEYS.items()}
    for name, value in {**aws, **keys, "BEARER": f"Bearer {KEYS['vertexai']}"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts a server with the faults that words order, one for equal words, and returns where it is."""
    folder, begun = tmp_path_factory.mktemp("katan"), dict[tuple[str, ...], tuple[str, subprocess.Popen[bytes]]]()

    def start(*faults: str) -> str:
        if faults not in begun:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            words = [
                "-m",
                "small-1",
                "--backend",
                "echo",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--validate-keys",
            ]
            words += ["--providers", "openai,anthropic,vertexai,bedrock", "--max-concurrent", "4"]
            words += ["--stats-file", str(folder / f"{port}.json"), *faults]
            with (folder / f"{port}.log").open("wb") as log:
                process = subprocess.Popen([str(COMMAND), *words], stdout=log, stderr=log)
            begun[faults] = f"http://127.0.0.1:{port}", process
            wait_until(lambda: _answers(begun[faults][0]), 30)
        return begun[faults][0]

    yield start
    for _, process in begun.values():
        process.terminate()
        process.wait(10)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").is_success
    except httpx.TransportError:
        return False


async def ask(url: str, **options: Any) -> Reply:
    fixed = {"kind": "provider", "name": "small-1", "cache": False, "max_retries": 2, "max_tokens": 64}
    path = "/v1" if options.get("kind") == "openai" else ""
    model = MODELS.build(MODELS.validate({**fixed, "base_url": url + path, **options}))
    try:
        return await model.complete(QUESTION)
    finally:
        await model.aclose()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("way", sorted(WAYS))
async def test_every_protocol_is_spoken(serve: Serve, way: str, stream: bool) -> None:
    if (way, stream) == ("bedrock", True):  # it sends lines of text where Bedrock sends binary events
        with pytest.raises(InfrastructureError, match="event stream") as caught:
            await ask(serve(), **WAYS[way], stream=True)
        assert caught.value.retries == 2
        return
    reply = await ask(serve(), **WAYS[way], stream=stream)
    assert "messages=2 max_tokens=64 temperature=0.0" in reply.text
    assert reply.text.endswith("User: Write x.")
    assert (reply.finish_reason, reply.retries, reply.usage.input_tokens) == ("stop", 0, 4)
    assert reply.usage.output_tokens == len(reply.text.split())


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_a_wrong_key_is_a_mistake(serve: Serve, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_KEY", "ANTHROPIC_KEY", "BEARER", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "Bearer wrong" if name == "BEARER" else "wrong")
    with pytest.raises(UserError, match=r"401|credentials"):
        await ask(serve(), **WAYS[way])


@pytest.mark.parametrize(("fault", "status"), [("--error-rate=1.0", 500), ("--timeout-after=1", 504)])
@pytest.mark.parametrize("way", sorted(WAYS))
async def test_a_failing_server_is_asked_again(serve: Serve, way: str, fault: str, status: int) -> None:
    await _use_up(serve(fault))
    with pytest.raises(InfrastructureError, match=str(status)) as caught:
        await ask(serve(fault), **WAYS[way])
    assert caught.value.retries == 2


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_a_rate_limit_is_waited_for(serve: Serve, way: str) -> None:
    url = serve("--rate-limit-after=1")
    await _use_up(url)
    with pytest.raises(InfrastructureError, match="429") as caught:
        await ask(url, **WAYS[way])
    assert (caught.value.retries, caught.value.rate_limited) == (2, 3)


async def _use_up(url: str) -> None:
    """Take the one request that a server answers, if no test before has."""
    with suppress(InfrastructureError):
        await ask(url, **OPENAI, max_retries=0)


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_a_slow_answer_is_cut_by_the_limit_of_time(serve: Serve, way: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        await ask(serve("--latency-ms=2500"), **WAYS[way], timeout_s=1, max_retries=1)
    assert caught.value.retries == 1
