"""A website or web interface that is read by GET, with the retries and limits of every call.

The caller's `read` gets every complete page, and raises `TransientFailure` for a page that is worth another attempt.
Redirects are not followed, so that no header goes to another address.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from codechat.base.errors import EndpointDown, InfrastructureError
from codechat.models.calls.limits import Limits, endpoint_at
from codechat.models.calls.retry import Policy, TransientFailure, repeat

if TYPE_CHECKING:
    from codechat.models.calls.transport import AioTransport

R = TypeVar("R")
CONNECT_S = 10.0
Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """A complete response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Site:
    """One address. Belongs to the event loop of its first request until `aclose`."""

    def __init__(self, address: str, policy: Policy, headers: Headers) -> None:
        """`headers` go with every request."""
        self._address, self._policy, self._headers = address, policy, headers
        self._transport: AioTransport | None = None

    async def get(
        self, path: str, read: Callable[[Page], R], limits: Limits, *, headers: Headers | None = None, part: str = ""
    ) -> R:
        """The result of `read` for the page at a path below the address.

        `part` names a part of the site with separate limits. Raises `InfrastructureError` if no attempt succeeds, and
        other exceptions of `read`.
        """
        endpoint = endpoint_at(f"{self._address} {part}".strip())
        endpoint.join(limits)

        async def attempt() -> R:
            return read(await self._page(path, {**self._headers, **(headers or {})}))

        return (await repeat(attempt, self._policy, endpoint)).result

    async def _page(self, path: str, headers: Headers) -> Page:
        import httpx2

        from codechat.models.calls.transport import AioTransport

        transport = self._transport = self._transport or AioTransport(self._address)
        limits = {"timeout": {"connect": CONNECT_S}}
        request = httpx2.Request("GET", self._address + path, headers=dict(headers), extensions=limits)
        place = self._policy.place
        try:
            response = await transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise TransientFailure(EndpointDown(f"nothing answers at {self._address} ({error})")) from None
        except httpx2.TransportError as error:
            raise TransientFailure(InfrastructureError(f"{place}: the connection broke ({error})")) from None
        return Page(response.status_code, dict(response.headers), response.content)

    async def aclose(self) -> None:
        """Close the connections; the next request opens them again."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()
