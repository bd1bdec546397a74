"""How requests travel: aiohttp's connections under the SDK's client, since its own cost a third of a whole call.

Imported where a client is made, since the libraries are slow to import.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from codechat.errors import UserError

LOCAL = ("127.0.0.1", "localhost", "::1")
KEPT_OPEN_S = 4.0
"""Idle connections are closed after so many seconds: before the server does (uvicorn after 5), so that no request meets
a connection that is being closed."""


class Client(httpx2.AsyncClient):
    """The client that the SDK makes its requests with, as far as they need one.

    It has no cookies, redirects, authentication or base address: what the SDK gives is the whole request.
    """

    def __init__(self, address: str) -> None:
        self._carrier = Carrier(address)
        super().__init__(transport=self._carrier, trust_env=False)

    def build_request(
        self,
        method: str,
        url: httpx2.URL | str,
        *,
        content: Any = None,
        headers: Any = None,
        timeout: Any = None,
        **more: Any,
    ) -> httpx2.Request:
        """The request as it is, without the client's own parts where there is nothing more to it."""
        if any(value is not None for value in more.values()):
            return super().build_request(method, url, content=content, headers=headers, timeout=timeout, **more)
        limits = {"timeout": httpx2.Timeout(timeout).as_dict()}
        return httpx2.Request(method, url, content=content, headers=headers, extensions=limits)

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """The whole response, whatever its status. Raises httpx2's errors."""
        response = await self._carrier.handle_async_request(request)
        response.request = request
        return response


class Carrier(httpx2.AsyncBaseTransport):
    """Connections to one address, as many as there are requests under way, kept while they are used.

    Every response is read whole before it is handed over. Belongs to the event loop of its first request.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._is_tls = parts.scheme == "https"
        self._is_local = parts.hostname in LOCAL
        # No proxy can reach this machine's own servers.
        self._proxy = None if self._is_local else proxy_of(address)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; the response is whole. Raises httpx2's errors."""
        session = self._session = self._session or self._opened()
        with _in_its_words():
            sending = session.request(
                request.method,
                str(request.url),
                headers=request.headers.multi_items(),
                data=request.content or None,
                allow_redirects=False,
                timeout=_timeout(request),
                proxy=self._proxy,
            )
            async with sending as response:
                return httpx2.Response(response.status, headers=response.raw_headers, content=await response.read())

    def _opened(self) -> aiohttp.ClientSession:
        verify: ssl.SSLContext | bool = (
            httpx2.create_ssl_context(trust_env=not self._is_local) if self._is_tls else True
        )
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_OPEN_S, ssl=verify),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "gzip, deflate"},  # what httpx2, which unpacks, knows without further libraries
            auto_decompress=False,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()


def _timeout(request: httpx2.Request) -> aiohttp.ClientTimeout:
    asked = request.extensions.get("timeout", {})
    return aiohttp.ClientTimeout(total=None, sock_connect=asked.get("connect"), sock_read=asked.get("read"))


@contextmanager
def _in_its_words() -> Iterator[None]:
    """aiohttp's errors as those that the SDK knows: who was never reached is told from who broke off."""
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
    """The proxy that the environment names for an address, as `http_proxy`, `all_proxy` and `no_proxy` say.

    Raises `UserError` for one that does not speak HTTP.
    """
    parts = urlsplit(address)
    if proxy_bypass(parts.netloc):
        return None
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all")
    if found is not None and urlsplit(found).scheme not in ("http", "https"):  # not shown: it may hold a password
        raise UserError(
            f"the proxy that the environment names for {parts.hostname} is no http:// or https:// address",
            f"set {parts.scheme}_proxy to one, or list {parts.hostname} in no_proxy",
        )
    return found
