"""Any endpoint that speaks the OpenAI protocol: hosted, vLLM, or another server, by its base URL.

This file makes one attempt; `codechat.calls` has retries, limits and the cache, and the SDK's own retries are off.
docs/calls.md lists every fault and how it is handled.
"""

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING, Any

from codechat.calls import Endpoint, Limits, Policy, call_with_retries, endpoint_at
from codechat.calls.cache import CachedQuestion, has, is_final, recall_or_ask, settle
from codechat.calls.introduced import keep_statement, recall_statement
from codechat.domain import Reply
from codechat.errors import UserError
from codechat.models import MODELS, Request
from codechat.models.endpoints import WITNESS, Statement, key_of, read_statement, statement_of
from codechat.models.openai_config import OpenAIConfig
from codechat.models.openai_failures import Failures
from codechat.models.openai_protocol import (
    PATHS,
    Decoding,
    Dialect,
    Unreadable,
    body_of,
    refusal_of,
    reply_of,
)

if TYPE_CHECKING:
    import httpx2
    import openai

log = logging.getLogger(__name__)

PROBE_TIMEOUT_S = 10.0
INTRODUCTION_TIMEOUT_S = 2.0
CONNECT_TIMEOUT_S = 10.0
NO_KEY = "no-key"
TOLD_BY_THE_SDK = (
    *("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Async"),
    *("Retry-Count", "Read-Timeout"),
)
"""Headers `X-Stainless-…` that describe this machine: no call sends them."""
FIRST_REPLY_TOKENS = 500
"""Tokens reserved for the first replies if tokens per minute are limited and `max_tokens` is not set."""


@MODELS.register("openai", OpenAIConfig)
class OpenAIModel:
    """Any OpenAI-compatible endpoint by model.base_url: hosted, vLLM and others.

    Belongs to the event loop of its first call until `aclose`.
    """

    def __init__(self, config: OpenAIConfig) -> None:
        self.config = config
        self._address = config.base_url + PATHS[config.api]
        self._client: openai.AsyncOpenAI | None = None
        self._quiet: openai.RequestOptions = {}
        self._endpoint: Endpoint | None = None
        self._policy = Policy(
            config.place, config.timeout_s, config.call_timeout_s or 2 * config.timeout_s, config.max_retries
        )
        self._decoding = Decoding(config.temperature, config.max_tokens, config.reasoning_effort, config.extra_body)
        self._dialect = Dialect()
        self._failures = Failures(config)
        self._usual_reply: float = FIRST_REPLY_TOKENS
        self._has_answered = False
        self._reached = self._presented = False
        self._said: Statement | None = None
        self._reaching: asyncio.Event | None = None

    # -- the connection --------------------------------------------------------------------------------------------

    def _key(self) -> str | None:
        variable = self.config.api_key_env
        if variable is None:
            return None
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UserError(
                f"{self.config.place} needs a key, and the environment variable {variable} is not set",
                f"export {variable}=…, or set {key_of(self.config, 'api_key_env')}=null for an endpoint without keys",
            )
        if not (key.isascii() and key.isprintable()):
            raise UserError(f"the environment variable {variable} does not hold a key: it has unprintable characters")
        return key

    def _connect(self) -> "openai.AsyncOpenAI":
        if self._client is None:
            import httpx2
            import openai

            from codechat.calls.transport import Client

            key = self._key()
            self._client = openai.AsyncOpenAI(
                base_url=self.config.base_url,
                api_key=key or NO_KEY,
                max_retries=0,
                # The whole attempt has its own limit, which a slowly dripping server cannot extend.
                timeout=httpx2.Timeout(None, connect=min(CONNECT_TIMEOUT_S, self.config.timeout_s)),
                http_client=Client(self.config.base_url),
            )
            self._quiet = {"headers": {f"X-Stainless-{name}": openai.Omit() for name in TOLD_BY_THE_SDK}}
        return self._client

    def _limits(self) -> Endpoint:
        if self._endpoint is None:
            config = self.config
            self._endpoint = endpoint_at(config.base_url)
            self._endpoint.join(
                Limits(
                    config.max_concurrency,
                    config.requests_per_minute,
                    config.tokens_per_minute,
                    config.adaptive_concurrency,
                )
            )
        return self._endpoint

    async def check(self) -> None:
        """Nothing yet: key and endpoint are tried before the first call that the cache cannot answer."""

    async def _reach(self) -> None:
        """Check the endpoint once; concurrent first callers wait for the result."""
        while not self._reached:
            if self._reaching is not None:
                await self._reaching.wait()
                continue
            self._reaching = asyncio.Event()
            try:
                await self._probe()
                self._reached = True
            finally:
                self._reaching.set()
                self._reaching = None

    async def _probe(self) -> None:
        """Ask for the list of models. Any answer is good: not every server has a list, or shows it with every key."""
        import openai

        try:
            self._said = await self._listed(PROBE_TIMEOUT_S)
        except openai.APIConnectionError as error:
            raise UserError(
                f"nothing answers at {self.config.base_url} ({self._failures.cause_of(error)})",
                f"start the server, or set {key_of(self.config, 'base_url')} to the model's server",
            ) from None
        await self._present(self._said)
        if self.config.cache is not False:
            await asyncio.to_thread(keep_statement, self._address, self.config.name, self._said.text())

    async def _listed(self, seconds: float) -> Statement:
        """What the endpoint says in its list of models. Raises the SDK's `APIConnectionError`."""
        import openai

        probe = self._connect().with_options(timeout=min(seconds, self.config.timeout_s))
        try:
            answer = await probe.models.with_raw_response.list(extra_headers=self._quiet.get("headers"))
            listed = answer.http_response.json()
        except (openai.APIStatusError, ValueError):
            return Statement(self.config.base_url)
        self._failures.served = _model_names(listed)
        return statement_of(self.config.base_url, self.config.name, listed, time.time())

    async def introduction(self) -> Statement | None:
        """What the endpoint says of itself; None if it does not answer within two seconds, or the key is missing."""
        import openai

        try:
            return await self._listed(INTRODUCTION_TIMEOUT_S)
        except (openai.APIConnectionError, UserError):
            return None

    async def _present(self, said: Statement) -> None:
        """Tell the running cell who answers, before the first reply is used. Raises `UserError` if it refuses."""
        witness = WITNESS.get()
        if witness is not None:
            await witness.meets(self.config, said)

    async def aclose(self) -> None:
        """Close the connections, and write the cache's pending entries."""
        client, self._client, self._endpoint = self._client, None, None
        await settle()
        if client is not None:
            await client.close()

    # -- a call ----------------------------------------------------------------------------------------------------

    async def complete(self, request: Request) -> Reply:
        """Send the conversation, or return its cached answer. Raises as `Model.complete`."""
        question = self._question(request)
        if question is not None and not self._reached:
            if not has(question):
                await self._reach()
                question = self._question(request)  # now it is known whose replies may be taken
            elif not self._presented:
                await self._present(self._supposed())
                self._presented = True
        return await recall_or_ask(question, lambda: self._ask(request), self._may_cache)

    def _supposed(self) -> Statement:
        """Who answers, as far as it is known without asking: to this cell before, else when replies were cached."""
        if self._said is None:
            witness = WITNESS.get()
            self._said = witness.known(self.config) if witness is not None else None
        if self._said is None:
            kept = recall_statement(self._address, self.config.name)
            self._said = read_statement(self.config.base_url, kept) if kept else Statement(self.config.base_url)
        return self._said

    def _question(self, request: Request) -> CachedQuestion | None:
        """The cache's key: the request as configured, even if the endpoint later refuses some of its parameters."""
        config = self.config
        if config.cache is False:
            return None
        body = body_of(config.api, config.name, request.messages, self._decoding, Dialect())
        greedy = body.get("temperature") == 0
        if not (greedy or config.cache):
            return None
        weights = self._supposed().weights(config.name)
        if config.weights.revision is not None:
            weights = f"{config.weights.revision}\n{weights}"
        return CachedQuestion(self._address, config.name, body, None if greedy else request.sample, weights)

    def _may_cache(self, reply: Reply) -> bool:
        """No reply that was decoded without the configured temperature is cached."""
        return is_final(reply) and self._dialect.temperature

    async def _ask(self, request: Request) -> Reply:
        if not self._reached:
            await self._reach()
        endpoint = self._limits()
        tokens = self._tokens_of(request) if endpoint.counts_tokens else 0
        reply = await call_with_retries(lambda: self._attempt(request), self._policy, endpoint, tokens)
        self._has_answered = True
        witness = WITNESS.get()
        if reply.fingerprint is not None and witness is not None:
            await witness.hears(self.config, reply.fingerprint)
        self._usual_reply += (reply.usage.output_tokens - self._usual_reply) / 10
        return reply

    def _tokens_of(self, request: Request) -> int:
        """The rough tokens of a call: four characters a token, and the longest reply or the average reply so far."""
        sent = sum(len(message.content) for message in request.messages) // 4
        return sent + (self.config.max_tokens or int(self._usual_reply))

    async def _attempt(self, request: Request) -> Reply:
        response = await self._post(request)
        try:
            return reply_of(self.config.api, response.content)
        except Unreadable as error:
            raise self._failures.of_answer(str(error)) from None

    async def _post(self, request: Request) -> "httpx2.Response":
        """The response of a good status; a refused parameter is left out from then on."""
        import httpx2
        import openai

        config = self.config
        while True:
            dialect = self._dialect
            body = body_of(config.api, config.name, request.messages, self._decoding, dialect)
            try:
                client, quiet = self._connect(), self._quiet
                return await client.post(self._address, cast_to=httpx2.Response, body=body, options=quiet)
            except openai.APIStatusError as error:
                refusal, headers = refusal_of(error.status_code, error.response.text), error.response.headers
            except openai.APIConnectionError as error:
                raise self._failures.of_connection(error) from None
            if dialect.after(refusal, body) is None:
                raise self._failures.of_refusal(refusal, headers, has_answered=self._has_answered)
            learnt = self._dialect.after(refusal, body)
            if learnt is not None:  # else another call has learnt it in the meantime
                said = self._failures.redact(refusal.message)
                log.warning("%s: asked again without what it refuses: %s", config.place, said)
                self._dialect = learnt


def _model_names(listed: Any) -> tuple[str, ...]:
    try:
        return tuple(str(model["id"]) for model in listed["data"])
    except (KeyError, TypeError):
        return ()
