"""A model behind an endpoint: its key, limits, retries and response cache, and the endpoint's description of itself.

A protocol brings a `ModelApi`, which makes one attempt; everything else is here, once. docs/calls.md lists every fault
and how it is handled.
"""

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, get_args

from codechat.base.domain import BATCH, FLEX, STANDARD, Message, Reply, Tier, Usage
from codechat.base.errors import InfrastructureError, Stopped, UserError
from codechat.models import Request
from codechat.models.calls import (
    BRAKE,
    HELD_SLOTS,
    Endpoint,
    HeldSlots,
    Limits,
    Policy,
    TransientFailure,
    call_with_retries,
    endpoint_at,
)
from codechat.models.calls.batches import REQUEST_KEY, RequestKey
from codechat.models.calls.cache import (
    CachedQuestion,
    is_final,
    recall,
    recall_endpoint_info,
    recall_or_ask,
    settle,
    store_endpoint_info,
)
from codechat.models.endpoints import ENDPOINT_LISTENER, EndpointInfo, key_of
from codechat.models.remote.config import RemoteConfig
from codechat.models.remote.failures import Failures, Refusal, SupportedParameters

if TYPE_CHECKING:
    from codechat.models.serving import CellServers

log = logging.getLogger(__name__)

SERVERS: "ContextVar[CellServers | None]" = ContextVar("servers", default=None)
"""The running cell's model servers, set by the engine; None outside of cells."""
PROBE_TIMEOUT_S = 10.0
DESCRIBE_TIMEOUT_S = 2.0
FIRST_REPLY_TOKENS = 500
"""Tokens reserved for the first replies if tokens per minute are limited and `max_tokens` is not set."""


FLEX_ATTEMPT, FLEX_RETRIES = 3, 8
"""How many times as long an attempt in the tier flex may take, and how many times as often it is repeated: that tier is
slower, and refuses calls (429) for as long as it has no room."""


BATCH_S = 14 * 86_400.0
"""A batch ends by itself: a provider lets it expire after a day. So this only bounds many that follow each other."""


def _policy(config: RemoteConfig, tier: Tier) -> Policy:
    attempt_s, retries = config.timeout_s, config.max_retries
    if tier == FLEX:
        attempt_s, retries = FLEX_ATTEMPT * attempt_s, FLEX_RETRIES * retries
    if tier == BATCH:
        return Policy(config.place, BATCH_S, BATCH_S, retries)
    return Policy(config.place, attempt_s, config.call_timeout_s or 2 * attempt_s, retries)


class Refused(Exception):
    """An HTTP error, with the headers that came with it."""

    def __init__(self, refusal: Refusal, headers: Mapping[str, str]) -> None:
        super().__init__(refusal.message)
        self.refusal, self.headers = refusal, headers


class Unreachable(Exception):
    """The endpoint takes no connection, or does not answer a question about itself; the text says why."""


class ModelApi(Protocol):
    """One model in one protocol. Belongs to the event loop of its first request until `aclose`."""

    failures: Failures

    @property
    def address(self) -> str:
        """The address and the API of it, as they are part of the response cache's keys."""

    def body(self, messages: Sequence[Message], supported: SupportedParameters) -> dict[str, Any]:
        """The request with the supported parameters: everything that determines the reply, as plain values.

        The temperature is under `temperature`, if there is one.
        """

    async def describe(self, seconds: float) -> EndpointInfo:
        """The endpoint's description of the model, within some seconds. Raises `Unreachable` or `UserError`."""

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        """Make one attempt in a tier, without any repetition; the usage has the tier that the endpoint says it served.

        `final`: no later request repeats the last message.

        Raises `Refused`, `TransientFailure`, or an error that ends the call.
        """

    async def reject(self, call: RequestKey) -> None:
        """The answer that a call found in a batch cannot be read: it is asked again."""

    async def aclose(self) -> None:
        """Release connections; the next request opens them again."""


def key_from_environment(config: RemoteConfig) -> str | None:
    """The key in the variable that the config names; None if it names none. Raises `UserError`."""
    variable = config.api_key_env
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(
            f"{config.place} needs a key, and the environment variable {variable} is not set",
            f"export {variable}=…, or set {key_of(config, 'api_key_env')}=null for an endpoint without keys",
        )
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"the environment variable {variable} does not hold a key: it has unprintable characters")
    return key


class Remote:
    """A model that is asked by its API. Belongs to the event loop of its first call until `aclose`."""

    def __init__(self, config: RemoteConfig, api: ModelApi) -> None:
        self.config = config
        self._api, self._failures = api, api.failures
        self._endpoint: Endpoint | None = None
        self._policies = {tier: _policy(config, tier) for tier in get_args(Tier)}
        self._no_limits = Endpoint()
        self._supported = SupportedParameters()
        self._usual_reply: float = FIRST_REPLY_TOKENS
        self._has_answered = False
        self._reached = self._presented = False
        self._info: EndpointInfo | None = None
        self._reaching: asyncio.Event | None = None

    # -- the endpoint ----------------------------------------------------------------------------------------------

    def _limits(self) -> Endpoint:
        if self._endpoint is None:
            config = self.config
            self._endpoint = endpoint_at(config.address)
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
        """Ask the endpoint who it is. Any answer is good: not every server says it, or says it to every key."""
        self._info = await self._describe()
        await self._present(self._info)
        if self.config.cache is not False:
            store_endpoint_info(self._api.address, self.config.name, self._info.text())

    async def _describe(self) -> EndpointInfo:
        try:
            return await self._api.describe(PROBE_TIMEOUT_S)
        except Unreachable as problem:
            raise self._failures.of_nobody(str(problem)) from None

    async def describe(self) -> EndpointInfo | None:
        """The endpoint's description; None if it does not answer within two seconds, or the key is missing."""
        try:
            return await self._api.describe(DESCRIBE_TIMEOUT_S)
        except (Unreachable, UserError):
            return None

    async def _present(self, info: EndpointInfo) -> None:
        """Report to the running cell who answers, before the first reply is used. Raises `UserError` if it refuses."""
        listener = ENDPOINT_LISTENER.get()
        if listener is not None:
            await listener.on_connect(self.config, info)

    async def aclose(self) -> None:
        """Close the connections, and write the cache's pending entries."""
        self._endpoint = None
        await settle()
        await self._api.aclose()

    # -- a call ----------------------------------------------------------------------------------------------------

    async def complete(self, request: Request) -> Reply:
        """Send the conversation, or return its cached answer. Raises as `Model.complete`."""
        question = self._question(request)
        if question is not None and not self._reached:
            if recall(question) is None:
                await self._reach()
                question = self._question(request)  # now it is known whose replies may be taken
            elif not self._presented:
                await self._present(self._known_info())
                self._presented = True
        return await recall_or_ask(question, lambda: self._ask(request, question), self._may_cache)

    def _known_info(self) -> EndpointInfo:
        """The description known without asking: made to this cell before, else made when the replies were cached."""
        if self._info is None:
            listener = ENDPOINT_LISTENER.get()
            self._info = listener.known(self.config) if listener is not None else None
        if self._info is None:
            kept = recall_endpoint_info(self._api.address, self.config.name)
            self._info = EndpointInfo(self.config.address, json.loads(kept) if kept else {})
        return self._info

    def _question(self, request: Request) -> CachedQuestion | None:
        """The cache's key: the request as configured, even if the endpoint later refuses some of its parameters."""
        config = self.config
        if config.cache is False:
            return None
        body = self._api.body(request.messages, SupportedParameters())
        greedy = body.get("temperature") == 0
        if not (greedy or config.cache):
            return None
        weights = config.weights.key(self._known_info().weights(config.name))
        return CachedQuestion(self._api.address, config.name, body, None if greedy else request.sample, weights)

    def _may_cache(self, reply: Reply) -> bool:
        """No reply that was decoded without the configured temperature is cached."""
        return is_final(reply) and self._supported.temperature

    async def _ask(self, request: Request, question: CachedQuestion | None) -> Reply:
        if not self._reached:
            await self._reach()
        if self.config.tier == BATCH:
            reply = await self._ask_in_batch(request, question)
        else:
            endpoint = self._limits()
            tokens = sum(self._sizes(request)) if endpoint.counts_tokens else 0
            reply = await self._call(request, endpoint, tokens)
        self._has_answered = True
        listener = ENDPOINT_LISTENER.get()
        if reply.fingerprint is not None and listener is not None:
            await listener.on_fingerprint(self.config, reply.fingerprint)
        self._usual_reply += (reply.usage.output_tokens - self._usual_reply) / 10
        return reply

    async def _call(self, request: Request, endpoint: Endpoint, tokens: int) -> Reply:
        """The reply in the configured tier; at the full price only if that tier has no room and the config says so."""
        tier = self.config.tier
        try:
            return await call_with_retries(lambda: self._attempt(request, tier), self._policies[tier], endpoint, tokens)
        except InfrastructureError as refused:
            if isinstance(refused, Stopped) or tier != FLEX or not (self.config.tier_fallback and refused.rate_limited):
                raise
            again = self._policies[STANDARD]
            reply = await call_with_retries(lambda: self._attempt(request, STANDARD), again, endpoint, tokens)
            counts = {"retries": refused.retries + 1, "rate_limited": refused.rate_limited}
            return replace(reply, **{name: getattr(reply, name) + count for name, count in counts.items()})

    def _sizes(self, request: Request) -> tuple[int, int]:
        """The tokens that a call will take, in and out: four characters each, and the longest or the usual reply."""
        sent = sum(len(message.content) for message in request.messages) // 4
        return sent, self.config.max_tokens or int(self._usual_reply)

    async def _ask_in_batch(self, request: Request, question: CachedQuestion | None) -> Reply:
        """The reply from a batch of the provider's, asked again in another one if the first has none.

        The call is known by the same words in every process: those of the response cache if it may be shared, else
        those of the step that will record it.
        """
        slots = HELD_SLOTS.get() or HeldSlots(secrets.token_hex(8), secrets.token_hex(8))
        own = f"{slots.step}/{request.role}/{request.number}/{request.sample}"
        sent, _ = self._sizes(request)
        expected = Usage(sent, int(min(self._usual_reply, self.config.longest_reply())))
        call = RequestKey(own if question is None else question.key(), slots.unit, slots.payer, expected)
        token = REQUEST_KEY.set(call)
        try:
            reply = await call_with_retries(
                lambda: self._attempt(request, BATCH), self._policies[BATCH], self._no_limits
            )
        finally:
            REQUEST_KEY.reset(token)
        return replace(reply, usage=reply.usage.served_as(BATCH))

    async def _attempt(self, request: Request, tier: Tier) -> Reply:
        """The reply of one attempt; a refused parameter is left out from then on."""
        while True:
            supported = self._supported
            body = self._api.body(request.messages, supported)
            try:
                return await self._api.send(body, tier, final=request.final)
            except Refused as refused:
                refusal, headers = refused.refusal, refused.headers
            except TransientFailure:
                if (call := REQUEST_KEY.get()) is not None:
                    await self._api.reject(call)
                    BRAKE.get().check()  # after an interruption no call waits for a batch
                raise
            if supported.after(refusal, body) is None:
                raise self._failures.of_refusal(refusal, headers, has_answered=self._has_answered)
            learnt = self._supported.after(refusal, body)
            if learnt is not None:  # else another call has learnt it in the meantime
                reason = self._failures.redact(refusal.message)
                log.warning("%s: asked again without what it refuses: %s", self.config.place, reason)
                self._supported = learnt
