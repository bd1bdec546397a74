"""How requests travel: connections that are kept and shared out, and the proxies that the environment names."""

import asyncio

import httpx2
import pytest
from servers.openai_server import Call, OpenAIServer

from codechat.calls.transport import Spread, proxy_of

ASK = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{scheme}_proxy", raising=False)
        monkeypatch.delenv(f"{scheme}_proxy".upper(), raising=False)


async def test_connections_are_kept_and_no_more_are_made_than_needed() -> None:
    crowd = asyncio.Barrier(3)

    async def three_at_once(call: Call) -> str:
        await crowd.wait()
        return "x"

    with OpenAIServer(three_at_once) as server:
        async with httpx2.AsyncClient(transport=Spread(server.base_url), timeout=30) as client:
            for _ in range(4):
                asked = [client.post(f"{server.base_url}/chat/completions", json=ASK) for _ in range(3)]
                assert {response.status_code for response in await asyncio.gather(*asked)} == {200}
            assert len(server.connections) == 3
        assert len(server.calls) == 12


async def test_a_request_that_failed_gives_its_pool_back() -> None:
    spread = Spread("http://127.0.0.1:9/v1")
    async with httpx2.AsyncClient(transport=spread, timeout=5) as client:
        for _ in range(3):
            with pytest.raises(httpx2.ConnectError):
                await client.get("http://127.0.0.1:9/v1/models")
    assert len(spread.pools) == 1


async def test_a_proxy_of_the_environment_carries_what_leaves_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server, httpx2.AsyncClient(transport=Spread("http://api.invalid/v1"), timeout=5) as client:
        assert (await client.get("http://api.invalid/v1/models")).status_code == 204
    assert seen == [b"GET http://api.invalid/v1/models HTTP/1.1"]


async def test_no_proxy_stands_before_this_machines_own_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    with OpenAIServer(lambda call: "x") as server:
        async with httpx2.AsyncClient(transport=Spread(server.base_url), timeout=5) as client:
            assert (await client.get(f"{server.base_url}/models")).status_code == 200


@pytest.mark.parametrize(
    ("environment", "address", "proxy"),
    [
        ({}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1"}, "https://api.example/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.example:8443/v1", "http://p:1"),
        ({"https_proxy": "http://p:1"}, "http://api.example/v1", None),
        ({"all_proxy": "http://p:1"}, "http://api.example/v1", "http://p:1"),
        ({"https_proxy": "http://p:1", "no_proxy": "api.example"}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": "example"}, "https://api.example:8443/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": "*"}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": "other.example"}, "https://api.example/v1", "http://p:1"),
    ],
)
def test_proxies_are_named_as_everywhere(
    environment: dict[str, str], address: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(address) == proxy
