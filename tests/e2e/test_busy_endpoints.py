"""An endpoint that takes connections and does not answer is busy, not absent: it is waited for, and then errored."""

import asyncio
import contextlib
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Message
from codechat.base.errors import InfrastructureError, Stopped, UserError
from codechat.models import MODELS, Request, remote
from codechat.models.calls import BRAKE, Brake
from codechat.models.endpoints import Describable
from codechat.models.serving import server, vllm
from codechat.testing import Fault, OpenAIServer
from support.processes import codechat, started

QUESTION = Request((Message("user", "Write x."),), "T/0", 0)
HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 40\r\n\r\n"
LISTED = {"object": "list", "data": [{"id": "m"}]}


@contextlib.contextmanager
def port(first: bytes | None = b"") -> Iterator[str]:
    """The address of a port that takes connections and sends these bytes alone; None: it closes them."""
    kept = list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken, _ = listening.accept()
                    if first is None:
                        taken.close()
                        continue
                    taken.sendall(first)
                    kept.append(taken)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in kept:
                each.close()


def refused() -> str:
    """The address of a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


def model_at(base_url: str, **options: Any) -> Any:
    given = {"kind": "openai", "name": "m", "base_url": base_url, "cache": False, "max_retries": 1}
    return MODELS.build(MODELS.validate(given | options))


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.models.calls.retry.FIRST_WAIT_S", 0.001)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"", r"m at http://\S+ is busy: it accepts connections and gave no answer"),
        (HEADERS, "is busy: it accepts connections and gave no answer"),
        (HEADERS + b'{"data"', "is busy: it accepts connections and gave no answer"),
        (None, "m at .*: the connection broke"),
    ],
)
async def test_a_port_that_takes_connections_is_waited_for_then_errored(first: bytes | None, told: str) -> None:
    with port(first) as base_url:
        model = model_at(base_url, timeout_s=0.3, call_timeout_s=0.7)
        began = time.monotonic()
        with pytest.raises(InfrastructureError, match=told) as caught:
            await model.complete(QUESTION)
        assert time.monotonic() - began < 5
        assert "start the server" not in str(caught.value) and caught.value.retries == 1
        await model.aclose()


@pytest.mark.parametrize(
    "address", [refused, lambda: "http://no-such-name.invalid/v1"], ids=["refused", "no such name"]
)
async def test_who_takes_no_connection_is_absent_at_once(address: Callable[[], str]) -> None:
    base_url = address()
    model = model_at(base_url)
    with pytest.raises(UserError, match=r"nothing answers at .*\n.*start the server"):
        await asyncio.wait_for(model.complete(QUESTION), 5)
    await model.aclose()


async def test_a_server_that_is_busy_for_a_while_is_waited_for_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remote, "QUIET_S", 0.2)
    monkeypatch.setattr(remote, "SAY_EVERY_S", 0.5)
    with OpenAIServer(lambda _: "x") as running:
        running.models_fault = Fault(200, LISTED, stall_s=1.0)
        model = model_at(running.base_url)
        with caplog.at_level(logging.WARNING, "codechat"):
            replies = await asyncio.gather(*(model.complete(QUESTION) for _ in range(3)))
        assert [reply.text for reply in replies] == ["x"] * 3 and running.probes == 1
        said = [record.getMessage() for record in caplog.records]
        assert 2 <= len(said) <= 4 and "m at http://" in said[0]
        assert "accepts connections and has not answered for 0 s: waiting, at most 600 s" in said[0]
        await asyncio.sleep(0.6)
        assert len(caplog.records) == len(said), "the remarks end with the wait"
        await model.aclose()


async def test_callers_share_one_wait_and_a_later_one_begins_anew() -> None:
    with port() as base_url:
        model = model_at(base_url, timeout_s=0.4, call_timeout_s=0.4, max_retries=0)
        began = time.monotonic()
        ends = await asyncio.gather(*(model.complete(QUESTION) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(end, InfrastructureError) and "is busy" in str(end) for end in ends)
        assert time.monotonic() - began < 6, "20 waits one after another take 8 s"
        with pytest.raises(InfrastructureError, match="is busy"):
            await model.complete(QUESTION)
        await model.aclose()


async def test_an_interruption_ends_the_wait_at_once() -> None:
    brake = Brake()
    token = BRAKE.set(brake)
    with port() as base_url:
        model = model_at(base_url)
        calls = [asyncio.ensure_future(model.complete(QUESTION)) for _ in range(3)]
        await asyncio.sleep(0.2)
        brake.pull("interrupted", interrupted=True)
        ends = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 2)
        assert [type(end) for end in ends] == [Stopped] * 3
        await model.aclose()
    BRAKE.reset(token)


async def test_a_first_look_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "DESCRIBE_TIMEOUT_S", 0.2)
    for first in (b"", HEADERS, None):
        with port(first) as base_url:
            model = model_at(base_url)
            assert isinstance(model, Describable)
            assert await asyncio.wait_for(model.describe(), 2) is None
            await model.aclose()


@pytest.mark.parametrize("provider", ["anthropic", "google", "bedrock"])
async def test_a_busy_server_of_a_provider_is_no_mistake(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("DEFAULT_REGION", "us-east-1"), ("ACCESS_KEY_ID", "x"), ("SECRET_ACCESS_KEY", "y")):
        monkeypatch.setenv(f"AWS_{name}", value)
    for first, told in ((b"", "gave no answer|connection broke"), (None, "connection broke")):
        with port(first) as base_url:
            given = {"kind": "provider", "provider": provider, "timeout_s": 0.5, "max_retries": 0}
            model = model_at(base_url.removesuffix("/v1"), **given)
            with pytest.raises(InfrastructureError, match=told):
                await model.complete(QUESTION)
            await model.aclose()


def words(base_url: str, runs: str, *more: str) -> list[str]:
    cell = ["model=openai", f"model.base_url={base_url}", "model.name=m", "dataset.limit=2", "agenda.turns=2"]
    return [*cell, "judge=rules", "tracking=none", f"runs_dir={runs}", "sandbox.allow_weak=true", *more]


def test_a_cell_at_a_busy_server_is_errored_and_at_an_absent_one_a_mistake(tmp_path: Path) -> None:
    with port() as base_url:
        done = codechat(tmp_path, *words(base_url, "busy", "model.timeout_s=0.3", "model.call_timeout_s=0.4"))
        assert done.returncode == 3 and "is busy: it accepts connections" in done.stderr
        assert codechat(tmp_path, *words(base_url, "dry", "dry_run=true")).returncode == 0
    done = codechat(tmp_path, *words(refused(), "absent"))
    assert done.returncode == 2 and "nothing answers" in done.stderr


def test_ctrl_c_ends_a_cell_that_waits_for_a_busy_server(tmp_path: Path) -> None:
    with port() as base_url, started(tmp_path, *words(base_url, "runs")) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("runs/*/journal.db")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.5)
        interrupted = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130 and "Resume:" in err
        assert time.monotonic() - interrupted < 10, "the grace of calls under way is not waited for"


@pytest.mark.parametrize(("first", "there"), [(b"", True), (HEADERS, True), (None, False)])
def test_a_silent_port_is_no_free_one(first: bytes | None, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.3)
    looks: list[Callable[[str], bool]] = [server.answers, lambda url: vllm.is_ready(server.port_of(url))]
    with port(first) as base_url:
        assert [look(base_url) for look in looks] == [there] * 2
        assert server.kv_tokens(base_url) is None
    assert not any(look(refused()) for look in looks)
