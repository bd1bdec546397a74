"""How requests travel: a small pool of connections for every request under way, instead of one pool for all.

The library's pool looks at each of its connections whenever a request begins or ends, so that with 64 at once a quarter
of the whole cost of a call goes into asking idle sockets whether they are still open. Imported where a client is made,
since the library is slow to import.
"""

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

KEPT_OPEN = httpx2.Limits(max_connections=None, max_keepalive_connections=2)


class Spread(httpx2.AsyncBaseTransport):
    """Hands every request to the pool that was used last among the idle ones; makes a pool where all are busy."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        local = parts.hostname in ("127.0.0.1", "localhost", "::1")  # no proxy can reach this machine's own servers
        self._proxy = None if local else proxy_of(address)
        self._trust_env = not local
        self._verify = httpx2.create_ssl_context(trust_env=not local) if parts.scheme == "https" else False
        self._idle: list[httpx2.AsyncHTTPTransport] = []
        self.pools: list[httpx2.AsyncHTTPTransport] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; the pool is free again once the response's head is there, as its body follows at once."""
        pool = self._idle.pop() if self._idle else self._another()
        try:
            return await pool.handle_async_request(request)
        finally:
            self._idle.append(pool)

    def _another(self) -> httpx2.AsyncHTTPTransport:
        pool = httpx2.AsyncHTTPTransport(
            verify=self._verify, trust_env=self._trust_env, limits=KEPT_OPEN, proxy=self._proxy
        )
        self.pools.append(pool)
        return pool

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self.pools:
            await pool.aclose()


def proxy_of(address: str) -> str | None:
    """The proxy that the environment names for an address, as `http_proxy`, `all_proxy` and `no_proxy` say."""
    parts = urlsplit(address)
    if proxy_bypass(parts.netloc):
        return None
    found = getproxies()
    return found.get(parts.scheme) or found.get("all")
