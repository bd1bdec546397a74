"""aiohttp's connections for the SDKs' clients, whose connections take a third of the CPU time of a call.

Imported late, because the libraries are slow to import.
"""

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from codechat.base.errors import UserError
from codechat.models.calls import batch_queue, batches
from codechat.models.calls.batch_protocols import Exchange

LOCAL = ("127.0.0.1", "localhost", "::1")
KEPT_OPEN_S = 4.0
"""Seconds until an idle connection is closed: earlier than by the server (uvicorn: 5)."""
DESCRIBING = b"x-stainless-"
"""Prefix of headers that are not sent: SDKs describe this machine and their options in them."""
LAST_EVENT, LAST_BYTES = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]\s*[\r\n]"), 20
_parsed = lru_cache(maxsize=64)(httpx2.URL)
MOST_BYTES, MOST_BATCHED_BYTES = 64_000_000, 1_000_000_000
"""Longest body of a response, unpacked; a batch's results may have 50,000 answers."""
MOST = "most_bytes"
PACKED = (b"content-encoding", b"content-length")
EXCHANGE_S = 300.0
"""Timeout, in seconds without a byte, of a request about a batch, such as a download of its results."""


class Client(httpx2.AsyncClient):
    """An SDK's HTTP client without cookies, redirects, authentication and base address: the SDK gives whole requests.

    `timeout` is for SDKs that read it from the client. `headers` go with every request, in place of the SDK's.
    """

    def __init__(
        self, address: str, timeout: httpx2.Timeout | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(transport=AioTransport(address, headers), trust_env=False, timeout=timeout)

    def build_request(
        self, method: str, url: Any, *, content: Any = None, headers: Any = None, timeout: Any = None, **more: Any
    ) -> httpx2.Request:
        """The request without the client's defaults, unless further options are given."""
        if any(value is not None for value in more.values()):
            return super().build_request(method, url, content=content, headers=headers, timeout=timeout, **more)
        limits = {"timeout": httpx2.Timeout(timeout).as_dict()}
        return httpx2.Request(method, _parsed(url), content=content, headers=headers, extensions=limits)

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """The complete response of any status. Raises httpx2's errors."""
        response = await self._transport.handle_async_request(request)
        response.request = request
        return response

    async def reject(self, call: batches.RequestKey) -> None:
        """As `BatchQueue.reject`; without batches nothing is kept."""


class BatchClient(Client):
    """A client whose calls with a `REQUEST_KEY` are answered from a provider's batches.

    `address` is the API's address up to the path of its requests, which is the second argument of `protocol`.
    """

    def __init__(
        self,
        address: str,
        protocol: Callable[[Exchange, str], batches.BatchProtocol],
        policy: batches.BatchPolicy,
        timeout: httpx2.Timeout | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(address, timeout, headers)
        self._address, self._protocol, self._policy = address.partition("?")[0].rstrip("/"), protocol, policy
        self._headers = httpx2.Headers()
        self._queue: batch_queue.BatchQueue | None = None

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """The response to a request, from its batch. Raises `RemoteProtocolError` if the batch has none."""
        call = batches.REQUEST_KEY.get()
        if call is None:
            return await super().send(request, **how)
        if self._queue is None:
            omitted = ("content-length", "content-type", "host", "accept-encoding", "connection")
            self._headers = httpx2.Headers([each for each in request.headers.multi_items() if each[0] not in omitted])
            path = str(request.url).removeprefix(self._address)
            self._queue = batch_queue.BatchQueue(self._protocol(self._exchange, path), self._policy)
        try:
            result = await self._queue.ask(request.content, call)
        except batches.Lost as lost:
            raise httpx2.RemoteProtocolError(str(lost)) from None
        headers = {"content-type": "application/json"}
        return httpx2.Response(result.status, headers=headers, content=result.body, request=request)

    async def reject(self, call: batches.RequestKey) -> None:
        if self._queue is not None:
            await self._queue.reject(call)

    async def _exchange(self, method: str, path: str, content: bytes | None, kind: str) -> bytes:
        headers = self._headers.copy()
        headers["content-type"] = kind
        limits = {"timeout": httpx2.Timeout(EXCHANGE_S).as_dict(), MOST: MOST_BATCHED_BYTES}
        request = httpx2.Request(method, self._address + path, content=content, headers=headers, extensions=limits)
        try:
            response = await self._transport.handle_async_request(request)
            body = await response.aread()
        except httpx2.TransportError as error:
            raise batches.Unreached(str(error) or type(error).__name__) from None
        if response.status_code == HTTPStatus.REQUEST_TIMEOUT or response.status_code >= 500:
            raise batches.Unreached(f"HTTP {response.status_code}")
        if response.status_code >= 300:
            raise batches.Declined(response.status_code, body)
        return body

    async def aclose(self) -> None:
        """Close every connection; batches continue at the provider."""
        queue, self._queue = self._queue, None
        if queue is not None:
            await queue.aclose()
        await super().aclose()


class AioTransport(httpx2.AsyncBaseTransport):
    """Connections to one address, one per request under way; responses are complete. `headers` go with every request.

    The address's query, such as `api-version=…`, is added to every request. Belongs to the event loop of its first
    request.
    """

    def __init__(self, address: str, headers: Mapping[str, str] | None = None) -> None:
        self._own = list((headers or {}).items())
        self._replaced = {name.lower().encode() for name, _ in self._own}
        parts = urlsplit(address)
        self._is_tls, self._query = parts.scheme == "https", parts.query
        self._is_local = parts.hostname in LOCAL
        self._proxy = None if self._is_local else proxy_of(address)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The complete response. Raises httpx2's errors."""
        session = self._session = self._session or self._open()
        limits = request.extensions.get("timeout", {})
        options: Any = {
            "headers": [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in request.headers.raw
                if not name.lower().startswith(DESCRIBING) and name.lower() not in self._replaced
            ]
            + self._own,
            "data": request.content or None,
            "allow_redirects": False,
            "timeout": aiohttp.ClientTimeout(None, sock_connect=limits.get("connect"), sock_read=limits.get("read")),
            "proxy": self._proxy,
        }
        with _translate_errors():
            async with session.request(request.method, self._url(request), **options) as response:
                content = await _bounded(response, request.extensions.get(MOST, MOST_BYTES))
                headers = [each for each in response.raw_headers if each[0].lower() not in PACKED]
                return httpx2.Response(response.status, headers=headers, content=content)

    def _url(self, request: httpx2.Request) -> str:
        url = str(request.url)
        return f"{url}{'&' if '?' in url else '?'}{self._query}" if self._query else url

    def _open(self) -> aiohttp.ClientSession:
        verify: ssl.SSLContext | bool = (
            httpx2.create_ssl_context(trust_env=not self._is_local) if self._is_tls else True
        )
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_OPEN_S, ssl=verify),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "gzip, deflate"},  # these are unpacked without further libraries
        )

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()


async def _bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body; of a stream of events at most up to its last one, after which some servers send nothing.

    Raises `ClientPayloadError` for a longer one.
    """
    body, is_stream = bytearray(), response.content_type == "text/event-stream"
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > most:
            raise aiohttp.ClientPayloadError(f"the answer has more than {most} bytes")
        if is_stream and LAST_EVENT.search(body, max(0, len(body) - len(piece) - LAST_BYTES)):
            break
    return bytes(body)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise aiohttp's errors as httpx2's: an unreachable server differs from a broken connection."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except aiohttp.ServerTimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except aiohttp.ClientProxyConnectionError as error:
        raise httpx2.ConnectError(f"the proxy that the environment names: {error.strerror}") from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(error.strerror or str(error)) from error
    except aiohttp.ClientHttpProxyError as error:
        raise httpx2.ProxyError(str(error)) from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise httpx2.RemoteProtocolError(str(error) or type(error).__name__) from error


def proxy_of(address: str) -> str | None:
    """The environment's proxy for an address, by `http_proxy`, `all_proxy` and `no_proxy`.

    Raises `UserError` if it is not an HTTP proxy.
    """
    parts = urlsplit(address)
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is not None and urlsplit(proxy).scheme not in ("http", "https"):  # not shown: it may hold a password
        raise UserError(
            f"the proxy that the environment names for {parts.hostname} is no http:// or https:// address",
            f"set {parts.scheme}_proxy to one, or list {parts.hostname} in no_proxy",
        )
    return proxy
