"""The SDK's client. Imported late, because the SDK is slow to import."""

import itertools
import secrets
from functools import partial
from typing import Any

import httpx2
import openai
from openai._models import FinalRequestOptions

LENGTH = b"content-length"


class SdkClient(openai.AsyncOpenAI):
    """The SDK's client, but the common parts of all requests to an address are built once, because building is slow."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._alike: dict[str, partial[httpx2.Request]] = {}
        self._keys = map(f"{secrets.token_hex(8)}-{{}}".format, itertools.count())

    def platform_headers(self) -> dict[str, str]:
        """No headers: the SDK's describe this machine."""
        return {}

    async def call(self, address: str, content: bytes) -> httpx2.Response:
        """The response of a good status to JSON. Raises the SDK's errors."""
        # the key is not sent; without one the SDK asks the system for a random one
        options = FinalRequestOptions(method="post", url=address, content=content, idempotency_key=next(self._keys))
        return await self.request(httpx2.Response, options)

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        content = options.content
        if not isinstance(content, bytes):
            return super()._build_request(options, retries_taken=retries_taken)
        alike = self._alike.get(options.url)
        if alike is None:
            made = super()._build_request(options, retries_taken=retries_taken)
            headers = [each for each in made.headers.raw if each[0].lower() != LENGTH]
            alike = self._alike[options.url] = partial(
                httpx2.Request, made.method, made.url, headers=headers, extensions=made.extensions
            )
        return alike(content=content)
