"""The way of an agent to its endpoint: what it pays, what it repeats, and what it keeps from the agent."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from codechat.base.domain import Usage
from codechat.base.errors import InfrastructureError, Stopped, UserError
from codechat.models.agent import AgentConfig
from codechat.models.agent import gateway as gateways
from codechat.models.agent.gateway import VOLATILE, Gateway, Meter
from codechat.models.calls import BRAKE, HELD_SLOTS, Brake, HeldSlots, retry
from codechat.models.calls.purse import PURSE, Purse
from codechat.testing import (
    CUT_SHORT,
    RESET,
    Answer,
    Behaviour,
    Call,
    Fault,
    OpenAIServer,
    error,
    overflow,
    rate_limited,
    stall,
)
from codechat.testing.streams import EVENTS, events

KEY = "sk-this-is-a-secret"
CHAT: dict[str, Any] = {"model": "dearer", "messages": [{"role": "user", "content": "two words"}]}
RESPONSES: dict[str, Any] = {"model": "m", "input": [{"role": "user", "content": "two words", "id": "msg_1"}]}
MESSAGES: dict[str, Any] = {**CHAT, "max_tokens": 9}
SPENT = Usage(2, 3)


class Server(OpenAIServer):
    """With the messages API; every answer has three words."""

    def reads(self, path: str, body: bytes) -> dict[str, Any] | Fault | None:
        name = path.partition("?")[0]
        return json.loads(body) if name.endswith("/messages") else super().reads(path, body)

    def serves(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault | None:
        return Fault(200, {"input_tokens": 2}) if path.endswith("/count_tokens") else None

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        if "/messages" not in call.path:
            return super().writes(call, answer)
        usage = {"input_tokens": 1, "cache_read_input_tokens": 1, "output_tokens": 3}
        content = [{"type": "text", "text": answer.text}]
        return {"id": "m", "type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}

    def streams(self, call: Call, written: dict[str, Any]) -> str:
        if "/messages" not in call.path:
            return super().streams(call, written)
        usage = {**written["usage"], "output_tokens": 1}
        start = {**written, "content": [], "stop_reason": None, "usage": usage}
        delta = {"delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 0, "output_tokens": 3}}
        each = [
            {"type": "message_start", "message": start},
            {"type": "message_delta", **delta},
            {"type": "message_stop"},
        ]
        return events(each, named=True)


@pytest.fixture(autouse=True)
def _setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    step = HELD_SLOTS.set(HeldSlots("session", "step", "model"))
    yield
    HELD_SLOTS.reset(step)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def config_of(server: OpenAIServer, limits: Mapping[str, Any] | None = None, **more: Any) -> AgentConfig:
    options = {"name": "m", "command": ["x"], "base_url": server.base_url, "api_key_env": "THE_KEY"}
    return AgentConfig.model_validate({**options, "limits_of_turn": limits or {}, **more})


class Agent:
    """What runs in the box: it knows the listener's port alone."""

    def __init__(self, listener: socket.socket, session: aiohttp.ClientSession) -> None:
        self.port, self.session = listener.getsockname()[1], session

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.session.post(url, json=body, headers=headers) as response:
            return response.status, await response.text()

    async def raw(self, request: str) -> bytes:
        """All that is answered to the bytes of requests, until the connection is closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request.encode())
        try:
            return await asyncio.wait_for(reader.read(), 3)
        finally:
            writer.close()


class Turn:
    def __init__(self, meter: Meter, agent: Agent, gateway: Gateway) -> None:
        self.meter, self.post, self.raw, self.gateway = meter, agent.post, agent.raw, gateway

    async def over(self) -> str:
        return await asyncio.wait_for(self.meter.over(), 5)


@contextlib.asynccontextmanager
async def turn(
    config: AgentConfig, listener: socket.socket, log: Path, gateway: Gateway | None = None
) -> AsyncIterator[Turn]:
    gateway = gateway or Gateway(config)
    try:
        async with gateway.metering(listener, log) as meter, aiohttp.ClientSession() as session:
            yield Turn(meter, Agent(listener, session), gateway)
    finally:
        await gateway.aclose()


def says(words: str = "x y z") -> Behaviour:
    return lambda _: words


def fails(times: int, fault: Fault) -> Behaviour:
    return lambda call: fault if call.number < times else "x y z"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES), ("/v1/messages?beta=true", MESSAGES)],
)
async def test_every_api_is_metered(
    path: str, body: dict[str, Any], streamed: bool, listener: socket.socket, tmp_path: Path
) -> None:
    headers = {"x-api-key" if "messages" in path else "authorization": "Bearer x", "anthropic-beta": "b", "x-own": "1"}
    with Server(says()) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            status, text = await agent.post(path, {**body, "stream": streamed}, **headers)
    assert status == 200 and text.startswith((":", "data", "event") if streamed else "{")
    meter, (call,) = agent.meter, server.calls
    assert (meter.usage.input_tokens, meter.usage.output_tokens) == (2, 3)
    assert meter.usage.cached_input_tokens == ("messages" in path)
    assert (meter.requests, meter.unmetered, meter.replayed) == (1, 0, 0)
    assert call.path == path and call.body["model"] == "m" and call.headers["anthropic-beta"] == "b"
    assert KEY in call.headers["x-api-key" if "messages" in path else "authorization"]
    assert "x-own" not in call.headers and call.headers["host"] in server.base_url


async def test_what_generates_nothing_is_not_counted(listener: socket.socket, tmp_path: Path) -> None:
    with Server(says()) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            assert await agent.post("/v1/messages/count_tokens", MESSAGES) == (200, '{"input_tokens": 2}')
            assert b"test-model" in await agent.raw("GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            server.models_fault = error(404, "no list")
            assert b" 404 " in await agent.raw("GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert (agent.meter.requests, agent.meter.unmetered) == (0, 0) and not agent.meter.is_over.is_set()


async def test_an_answer_without_usage_is_unmetered(listener: socket.socket, tmp_path: Path) -> None:
    def refuses(call: Call) -> Fault | str:
        options = "stream_options" in call.body
        return error(400, "stream_options is not supported", param="stream_options") if options else "x y z"

    with Server(refuses) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            for _ in range(2):
                assert (await agent.post("/v1/chat/completions", {**CHAT, "stream": True}))[0] == 200
    assert (agent.meter.requests, agent.meter.unmetered, len(server.calls)) == (2, 2, 3)


REFUSED = (
    "POST /v1/embeddings", "POST /v1/../v1/responses", "POST /v1/responses/x", "GET /v1/responses", "PUT /v1/models",
    "GET http://example.org/v1/models", "CONNECT example.org:443", "POST /api/event_logging", "HEAD /", "GET /v1//models",
    "GET /v1/models?a=b%0d%0a", "OPTIONS *",
)  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
async def test_other_requests_are_not_forwarded(line: str, listener: socket.socket, tmp_path: Path) -> None:
    with Server(says()) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            answer = await agent.raw(
                f"{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
            )
            assert answer[:12] in (b"HTTP/1.1 404", b"HTTP/1.1 400", b"HTTP/1.0 400")
    assert not server.calls and not server.probes


@pytest.mark.parametrize(
    "fault", [rate_limited(0), error(503, "busy"), RESET, CUT_SHORT, Fault(200, "data: {}\n\n", EVENTS)]
)
async def test_transient_failures_never_reach_the_agent(fault: Fault, listener: socket.socket, tmp_path: Path) -> None:
    with Server(fails(2, fault)) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            assert (await agent.post("/v1/responses", {**RESPONSES, "stream": True}))[0] == 200
    assert (agent.meter.retries, agent.meter.requests, agent.meter.usage) == (2, 1, SPENT)
    assert agent.meter.rate_limited == (2 if fault.status == 429 else 0)


async def test_the_turn_ends_when_no_retry_helps(listener: socket.socket, tmp_path: Path) -> None:
    with Server(fails(9, error(500, f"broken {KEY}"))) as server:
        async with turn(config_of(server, max_retries=1), listener, tmp_path / "log") as agent:
            with pytest.raises(aiohttp.ClientConnectionError):
                await agent.post("/v1/responses", RESPONSES)
            with pytest.raises(InfrastructureError, match="broken \\*\\*\\*") as raised:
                await agent.over()
            with pytest.raises(aiohttp.ClientConnectionError):
                await agent.post("/v1/responses", RESPONSES)
    assert raised.value.retries == 1 and len(server.calls) == 2


@pytest.mark.parametrize("status", [401, 404, 400])
async def test_a_refused_first_call_is_the_users_mistake(status: int, listener: socket.socket, tmp_path: Path) -> None:
    with Server(fails(1, error(status, f"no {KEY}"))) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            with pytest.raises(aiohttp.ClientConnectionError):
                await agent.post("/v1/responses", RESPONSES)
            with pytest.raises(UserError) as raised:
                await agent.over()
    assert KEY not in str(raised.value)


async def test_nobody_at_the_address(listener: socket.socket, tmp_path: Path) -> None:
    with Server(says()) as server:
        config = config_of(server)
    async with turn(config, listener, tmp_path / "log") as agent:
        with pytest.raises(aiohttp.ClientConnectionError):
            await agent.post("/v1/responses", RESPONSES)
        with pytest.raises(UserError, match="nothing answers"):
            await agent.over()


async def test_a_refused_conversation_is_the_agents(listener: socket.socket, tmp_path: Path) -> None:
    faults = [None, error(400, f"this message is odd {KEY}"), overflow(), error(400, "unsafe", "content_filter")]
    with Server(lambda call: faults[call.number] or "x y z") as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            told = [await agent.post("/v1/chat/completions", CHAT) for _ in range(3)]
            assert [status for status, _ in told] == [200, 400, 400]
            assert (
                "odd ***" in told[1][1] and "maximum context length" in told[2][1] and not agent.meter.is_over.is_set()
            )
            with pytest.raises(aiohttp.ClientConnectionError):  # a filter misfires: no failure of the agent
                await agent.post("/v1/chat/completions", CHAT)
            with pytest.raises(InfrastructureError, match="unsafe"):
                await agent.over()
    assert (agent.meter.requests, agent.meter.unmetered) == (4, 0)


async def test_the_key_is_in_no_answer_and_no_log(listener: socket.socket, tmp_path: Path) -> None:
    with Server(says(f"the key is {KEY}")) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            told = await agent.post("/v1/chat/completions", CHAT)
    assert "the key is ***" in told[1]
    assert KEY not in told[1] + (tmp_path / "log").read_text()


PRICES = {"input": 1e6, "output": 1e6}


@pytest.mark.parametrize(
    ("limits", "end", "requests"),
    [({"requests": 2}, "requests", 3), ({"tokens": 12}, "tokens", 3), ({"usd": 9}, "cost", 2)],
)
async def test_a_limit_ends_the_turn(
    limits: dict[str, Any], end: str, requests: int, listener: socket.socket, tmp_path: Path
) -> None:
    with Server(says()) as server:
        for _ in range(2):  # the second time from the log
            async with turn(config_of(server, limits, prices=PRICES), listener, tmp_path / "log") as agent:
                with pytest.raises(aiohttp.ClientConnectionError):
                    while True:
                        await agent.post("/v1/responses", RESPONSES)
                assert await agent.over() == end
            assert agent.meter.requests == requests
    assert len(server.calls) == requests - (end == "requests")


def test_dollars_need_prices(listener: socket.socket) -> None:
    with pytest.raises(UserError, match="prices"):
        Gateway(config_of(Server(says()), {"usd": 1}))


async def test_a_pulled_brake_ends_the_turn_once_its_call_is_kept(listener: socket.socket, tmp_path: Path) -> None:
    BRAKE.set(brake := Brake())

    begun = threading.Event()

    async def slow(call: Call) -> str:
        begun.set()
        await asyncio.sleep(0.1)
        return "x y z"

    with Server(slow) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            asking = asyncio.create_task(agent.post("/v1/responses", RESPONSES))
            await asyncio.to_thread(begun.wait)
            brake.pull("interrupted", interrupted=True)
            with pytest.raises(Stopped, match="interrupted"):
                await agent.over()
            with pytest.raises(aiohttp.ClientConnectionError):
                await asking
    assert len((tmp_path / "log").read_text().splitlines()) == 1


async def test_a_budget_ends_a_turn_that_spends_it(listener: socket.socket, tmp_path: Path) -> None:
    BRAKE.set(brake := Brake())

    def watch() -> None:
        if sum(each.output_tokens for each in purse.spent.values()) >= 6:
            brake.pull("the budget is reached")

    PURSE.set(purse := Purse(lambda _: True, watch))
    with Server(says()) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            await agent.post("/v1/responses", RESPONSES)
            assert purse.spent == {"model": SPENT}
            with pytest.raises(Stopped, match="budget"):
                await asyncio.gather(agent.over(), agent.post("/v1/responses", RESPONSES), return_exceptions=False)
    assert purse.spent == {"model": Usage()} and len(server.calls) == 2


async def test_an_answer_is_not_paid_twice(listener: socket.socket, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Server(lambda call: f"x y {call.number}") as server:
        async with turn(config_of(server), listener, log) as agent:
            first = [await agent.post("/v1/responses", RESPONSES) for _ in range(2)]
            first.append(await agent.post("/v1/responses", {**RESPONSES, "stream": True}))
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:2]) + lines[2][:40])  # as a kill leaves it
        again = {**RESPONSES, "input": [{**RESPONSES["input"][0], "id": "msg_2"}], "prompt_cache_key": "other"}
        async with turn(config_of(server), listener, log) as agent:
            second = [await agent.post("/v1/responses", again) for _ in range(2)]
            second.append(await agent.post("/v1/responses", {**RESPONSES, "stream": True}))
    assert second[:2] == first[:2] and "x y 3" in second[2][1]
    meter = agent.meter
    assert (meter.requests, meter.replayed, meter.usage, len(server.calls)) == (3, 2, Usage(6, 9), 4)
    assert [json.loads(line)[0] for line in log.read_text().splitlines()] == [json.loads(line)[0] for line in lines]


async def test_an_agent_that_wants_a_stream_hears_of_slow_answers(
    listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "WAIT_S", 0.05)
    faults = [None, None, stall(0.12), error(400, "late")]

    async def slow(call: Call) -> Fault | str:
        await asyncio.sleep(0.12)
        return faults[call.number] or "x y z"

    streamed = {**RESPONSES, "stream": True}
    with Server(slow) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            assert (await agent.post("/v1/responses", RESPONSES))[1].startswith("{")
            assert (await agent.post("/v1/responses", streamed))[1].startswith(": wait\n\n: wait\n\n: keep-alive")
            with pytest.raises(aiohttp.ClientPayloadError):
                await agent.post("/v1/responses", streamed)


@pytest.mark.parametrize("body", ["[]", "x", "{", '{"stream_options": 1, "stream": true}', '{"a": NaN}'])
async def test_a_body_that_is_no_request(body: str, listener: socket.socket, tmp_path: Path) -> None:
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    with Server(says()) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            assert (await agent.raw(head + body)).startswith(b"HTTP/1.1 400")
            assert not agent.meter.is_over.is_set()
    assert not server.calls


async def test_large_bodies_and_many_connections(
    listener: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "MOST_BYTES", 1000)
    monkeypatch.setattr(gateways, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(gateways, "KEPT_OPEN_S", 0.1)
    with Server(says()) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            assert (await agent.post("/v1/responses", {**RESPONSES, "x": "y" * 1000}))[0] == 413
            idle = [await asyncio.open_connection("127.0.0.1", listener.getsockname()[1]) for _ in range(8)]
            asking = [asyncio.create_task(agent.post("/v1/responses", RESPONSES)) for _ in range(20)]
            assert {status for status, _ in await asyncio.gather(*asking)} == {200}
            for _, writer in idle:
                writer.close()
    assert server.most_in_flight <= 4 and agent.meter.requests == 20


async def test_a_hostile_request_harms_nobody(listener: socket.socket, tmp_path: Path) -> None:
    body = json.dumps(RESPONSES)
    head = f"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
    with Server(says()) as server:
        async with turn(config_of(server), listener, tmp_path / "log") as agent:
            odd = "anthropic-beta: é\r\nanthropic-x: a\tb\r\nOpenAI-Beta: {key}\r\nx-api-key: a\r\nAuthorization: b\r\n"
            pipelined = f"{head}{odd}\r\n{body}{head}connection: close\r\n\r\n{body}"
            assert (await agent.raw(pipelined)).count(b"HTTP/1.1 200") == 2
            assert b" 400 " in await agent.raw("\0\1\2\r\n\r\n")
            _, slow = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
            slow.write(head.encode() + b"\r\n{")
            began = time.monotonic()
        assert time.monotonic() - began < 4, "the end of a turn does not wait for a request that never ends"
        slow.close()
    first = server.calls[0].headers
    assert (first["authorization"], first["x-api-key"], first["openai-beta"]) == (f"Bearer {KEY}", KEY, "{key}")
    assert "anthropic-beta" not in first and "anthropic-x" not in first
    assert agent.meter.requests == 2 and not isinstance(agent.meter._end, Exception)


async def test_a_connection_of_an_earlier_turn_is_closed(listener: socket.socket, tmp_path: Path) -> None:
    request = "POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
    with Server(says()) as server:
        config = config_of(server)
        gateway = Gateway(config)
        async with turn(config, listener, tmp_path / "1", gateway) as agent:
            stray = asyncio.create_task(agent.raw(request))
            await asyncio.sleep(0)
        late = asyncio.create_task(agent.raw(request))
        await asyncio.sleep(0.05)
        async with turn(config, listener, tmp_path / "2", gateway) as agent:
            for each in (stray, late):
                with contextlib.suppress(ConnectionError):
                    assert not await each
            assert (await agent.post("/v1/responses", RESPONSES))[0] == 200
    assert agent.meter.requests == 1


def test_what_differs_when_a_turn_is_repeated() -> None:
    text = "Chunk ID: c4f93b in 0.0312 seconds at 09:15, 2026-11-29; 01a225f2-3881-7610-86c2-4567ec3a5c87; 12 of 3.5"
    assert VOLATILE.sub("*", text) == "Chunk ID: * in * seconds at *, *; *; 12 of 3.5"
    began = time.process_time()
    VOLATILE.sub("*", "a" * 1_000_000 + "-aaaa" * 200_000 + "1" * 1_000_000 + "1.1" * 300_000)
    assert time.process_time() - began < 2


def test_no_key_no_turn(monkeypatch: pytest.MonkeyPatch, listener: socket.socket, tmp_path: Path) -> None:
    monkeypatch.delenv("THE_KEY")

    async def begin() -> None:
        async with turn(config_of(Server(says())), listener, tmp_path / "log"):
            pass

    with pytest.raises(UserError, match="THE_KEY"):
        asyncio.run(begin())
