"""What a client sends, and what its answers, statuses and errors are to who asked; without a server."""

import asyncio
from typing import Any

import aiohttp
import httpx2
import pytest

from codechat.base.domain import Usage
from codechat.base.errors import UserError
from codechat.models.calls.batches import (
    REQUEST_KEY,
    Batch,
    BatchPolicy,
    Declined,
    RequestKey,
    Result,
    State,
    Unreached,
)
from codechat.models.calls.transport import BatchClient, Client, _translate_errors, proxy_of

ADDRESS = "http://127.0.0.1:9/v1"


class Carried:
    """Carries nothing: notes requests, and answers what it is told."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.requests, self._answers, self.closed = list[httpx2.Request](), list(answers), 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aclose(self) -> None:
        self.closed += 1


def answering(*answers: httpx2.Response | Exception) -> tuple[BatchClient, Carried]:
    client, carried = BatchClient(f"{ADDRESS}/", lambda *_: Said(), BatchPolicy(1, 60.0, 0.0)), Carried(*answers)
    client._transport = carried  # type: ignore[assignment]
    return client, carried


class Said:
    """A provider of batches that answers with a status of its own."""

    most_requests, most_bytes = 10, 1000
    path, exchange = "", None
    result = Result(201, b'{"n": 1}')

    def __init__(self) -> None:
        self.keys = list[str]()

    async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
        return ""

    async def create(self, batch: Batch, requests: dict[str, bytes]) -> str:
        self.keys = list(requests)
        return "made"

    async def find(self, batch: Batch, keys: Any) -> str:
        return ""

    async def state(self, batch: Batch) -> State:
        return State("ended", 1, ended=True)

    async def results(self, batch: Batch, state: State) -> Any:
        return iter([(key, self.result) for key in self.keys])


def request(**headers: str) -> httpx2.Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Request("POST", f"{ADDRESS}/chat/completions", content=b"{}", headers=named)


async def test_a_plain_client_gives_a_response_whatever_its_status() -> None:
    client, carried = Client(ADDRESS), Carried(httpx2.Response(429, content=b"slowly"))
    client._transport = carried  # type: ignore[assignment]
    asked = request(authorization="key")
    response = await client.send(asked)
    assert (response.status_code, response.request) == (429, asked)
    assert carried.requests == [asked]
    await client.reject(RequestKey("a", "a", "model", Usage()))


@pytest.mark.parametrize("more", [{}, {"params": None}, {"params": {"a": "b"}}])
async def test_a_request_has_what_it_is_given_and_its_limits(more: dict[str, Any]) -> None:
    made = Client(ADDRESS).build_request("POST", ADDRESS, content=b"{}", headers={"a": "b"}, timeout=7.0, **more)
    assert (made.method, made.headers["a"], made.content) == ("POST", "b", b"{}")
    assert made.extensions["timeout"]["read"] == 7.0
    assert str(made.url) == ADDRESS + ("?a=b" if more.get("params") else "")


async def test_without_a_label_nothing_goes_into_a_batch() -> None:
    client, carried = answering(httpx2.Response(200, content=b"said"))
    REQUEST_KEY.set(None)
    assert (await client.send(request())).content == b"said" and len(carried.requests) == 1
    await client.reject(RequestKey("a", "a", "model", Usage()))  # nobody was asked
    await client.aclose()
    assert carried.closed == 1


async def test_with_one_the_answer_is_that_of_the_batch() -> None:
    client, carried = answering()
    told = list[Any]()
    client._protocol = lambda exchange, path: told.append((exchange, path)) or Said()  # type: ignore[func-returns-value, assignment]
    asked, label = request(authorization="key"), RequestKey("a", "a", "model", Usage())
    REQUEST_KEY.set(label)
    response = await asyncio.wait_for(client.send(asked), 5.0)
    assert (response.status_code, response.content, response.request) == (201, b'{"n": 1}', asked)
    assert response.headers["content-type"] == "application/json" and not carried.requests
    assert told == [(client._exchange, "/chat/completions")]
    assert dict(client._headers) == {"authorization": "key"}
    assert label.answered
    await client.reject(label)
    assert not label.answered
    await asyncio.wait_for(client.send(asked), 5.0)
    assert len(told) == 1
    await client.aclose()


@pytest.mark.parametrize(
    ("status", "raised"),
    [(200, None), (299, None), (300, Declined), (404, Declined), (407, Declined), (408, Unreached), (409, Declined),
     (499, Declined), (500, Unreached), (503, Unreached)],
)  # fmt: skip
async def test_the_status_of_an_answer_about_a_batch_says_whether_the_provider_refuses(
    status: int, raised: type[Declined | Unreached] | None
) -> None:
    client, carried = answering(httpx2.Response(status, content=b"body"))
    client._headers = httpx2.Headers({"authorization": "key"})
    if raised is None:
        assert await client._exchange("GET", "/batches", None, "a/b") == b"body"
    else:
        with pytest.raises(raised) as caught:
            await client._exchange("GET", "/batches", None, "a/b")
        if isinstance(caught.value, Declined):
            assert (caught.value.status, caught.value.body) == (status, b"body")
    (sent,) = carried.requests
    assert (sent.method, str(sent.url)) == ("GET", f"{ADDRESS}/batches")
    assert (sent.headers["authorization"], sent.headers["content-type"]) == ("key", "a/b")
    assert "content-type" not in client._headers


async def test_a_provider_that_is_not_reached_is_told() -> None:
    client, _ = answering(httpx2.ConnectError("no line"), httpx2.ReadTimeout(""))
    with pytest.raises(Unreached, match="no line"):
        await client._exchange("GET", "/batches", None, "a/b")
    with pytest.raises(Unreached, match="ReadTimeout"):
        await client._exchange("GET", "/batches", None, "a/b")


@pytest.mark.parametrize(
    ("raised", "kind", "told"),
    [
        (aiohttp.ConnectionTimeoutError("late"), httpx2.ConnectTimeout, "late"),
        (aiohttp.SocketTimeoutError("late"), httpx2.ReadTimeout, "late"),
        (aiohttp.ClientPayloadError("cut"), httpx2.RemoteProtocolError, "cut"),
        (aiohttp.ClientPayloadError(), httpx2.RemoteProtocolError, "ClientPayloadError"),
        (ConnectionResetError("reset"), httpx2.RemoteProtocolError, "reset"),
    ],
)
def test_an_error_of_the_connection_keeps_what_it_says(raised: Exception, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as caught, _translate_errors():
        raise raised
    assert str(caught.value) == told


@pytest.mark.parametrize("scheme", ["socks5", ""])
def test_a_proxy_of_another_kind_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert proxy_of("http://elsewhere.test/v1") is None
    monkeypatch.setenv("all_proxy", f"{scheme}://user:secret@proxy.test:1")
    with pytest.raises(UserError, match=r"elsewhere\.test") as caught:
        proxy_of("http://elsewhere.test/v1")
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("http_proxy", "http://proxy.test:1")
    assert proxy_of("http://elsewhere.test/v1") == "http://proxy.test:1"
    monkeypatch.setenv("no_proxy", "elsewhere.test")
    assert proxy_of("http://elsewhere.test/v1") is None
