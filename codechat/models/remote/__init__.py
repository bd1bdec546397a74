"""A model behind an endpoint: options, key, limits, retries and response cache, and the endpoint's self-description.

A protocol brings a `ModelApi`, which makes one attempt; everything else is here, once. docs/calls.md lists every fault
and how it is handled.
"""

import asyncio
import logging
import math
import secrets
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args

from pydantic import field_validator

from codechat.base.config import original_option, result_option, run_option
from codechat.base.domain import BATCH, CHARS_PER_TOKEN, FLEX, STANDARD, Message, Reply, Tier, Usage
from codechat.base.errors import InfrastructureError, Stopped, UserError
from codechat.models import UNDER_TEST, ModelConfig, Request
from codechat.models.calls import (
    BRAKE,
    HELD_SLOTS,
    Endpoint,
    HeldSlots,
    Limits,
    Policy,
    TransientFailure,
    cache,
    call_with_retries,
    endpoint_at,
    repeat,
)
from codechat.models.calls.answers import is_final
from codechat.models.calls.batches import REQUEST_KEY, BatchPolicy, RequestKey
from codechat.models.calls.purse import PURSE
from codechat.models.endpoints import (
    ENDPOINT_LISTENER,
    SLOTS,
    TEMPERATURE,
    EndpointInfo,
    Weights,
    address_of,
    facts_of,
    is_near,
)
from codechat.models.reasoning import MARKS, Marks, parted
from codechat.models.remote.failures import Failures, Refusal, SupportedParameters
from codechat.models.remote.given import header_variables, plain_address, variable_name

log = logging.getLogger(__name__)


class Servers(Protocol):
    """The running cell's model servers; see `codechat.models.serving.CellServers`."""

    def known_as(self, config: ModelConfig) -> str | None: ...
    def arguments(self, config: ModelConfig) -> str | None: ...
    def kv_tokens(self, config: ModelConfig) -> int | None: ...
    async def reach(self, config: ModelConfig) -> str | None: ...


SERVERS: ContextVar[Servers | None] = ContextVar("servers", default=None)
"""The running cell's model servers, set by the engine; None outside of cells."""
DESCRIBE_TIMEOUT_S = 2.0
QUIET_S, SAY_EVERY_S = 11.0, 60.0
"""Seconds of silence after which a wait for a busy endpoint is said, and between two such remarks. A connection is made
or refused earlier."""
FIRST_REPLY_TOKENS = 500
"""Tokens reserved for the first replies if tokens per minute are limited and `max_tokens` is not set."""
UNKNOWN_REPLY_TOKENS = 32_000
"""Tokens of a budget reserved for replies until the first one, if `max_tokens` is not set."""
FADING = 0.95
"""How an earlier reply's length fades with each later one."""
FLEX_ATTEMPT, FLEX_RETRIES = 3, 8
"""Factors of an attempt's time and retries in the tier flex, which is slower and often refuses calls (429)."""
BATCH_SIZE = 10_000
"""Most requests of one batch; the provider's bounds hold too."""
BATCH_AGE_S = 120.0
"""Seconds after which a batch is submitted although sessions could still add to it."""
BATCH_S = 14 * 86_400.0
"""Bounds a series of batches of one call; a single batch expires at the provider after a day."""


class EndpointConfig(ModelConfig):
    """An endpoint, and the limits of calls to it."""

    name: str = original_option(..., "the model's name as the endpoint knows it", min_length=1)
    base_url: str | None = run_option(None, "the endpoint's address")
    api_key_env: str | None = run_option(None, "environment variable that holds the key; null: no key needed")
    headers: dict[str, str] = run_option(
        {}, "further headers of every request, by the environment variables that hold them, e.g. {X-Title: MY_TITLE}"
    )
    max_concurrency: int = run_option(32, "most calls under way at once to the endpoint", ge=1)
    requests_per_minute: float | None = run_option(
        None, "most requests a minute to this endpoint; null: no limit", gt=0
    )
    tokens_per_minute: float | None = run_option(
        None, "most tokens a minute, sent and received, with the endpoint; null: no limit", gt=0
    )
    adaptive_concurrency: bool = run_option(
        False, "find out how many calls at once the endpoint takes, up to max_concurrency: fewer after a 429"
    )
    timeout_s: float = run_option(300.0, "seconds that end one attempt; of the tier flex three times as many", gt=0)
    call_timeout_s: float | None = run_option(
        None, "seconds for one call with all its retries; null: twice timeout_s", gt=0
    )
    max_retries: int = run_option(6, "how often a failed attempt is repeated", ge=0, le=20)

    @property
    def limits(self) -> Limits:
        """The limits of calls to the endpoint."""
        return Limits(self.max_concurrency, self.requests_per_minute, self.tokens_per_minute, self.adaptive_concurrency)

    _plain_address = field_validator("base_url")(plain_address)
    _header_variables = field_validator("headers", mode="before")(header_variables)
    _variable_name = field_validator("api_key_env")(variable_name)

    @property
    def address(self) -> str:
        """The address, or the provider's name if the provider's library knows the address."""
        return str(address_of(self))

    @property
    def place(self) -> str:
        """The model and its endpoint, in messages."""
        return f"{self.name} at {self.address}"


class RemoteConfig(EndpointConfig):
    """The endpoint, and the decoding options of all protocols."""

    temperature: float | None = original_option(
        0.0,
        "0 is greedy decoding, which few servers repeat exactly; null sends none, for models that refuse it",
        ge=0,
        le=2,
    )
    max_tokens: int | None = original_option(None, "most tokens of one reply; null leaves it to the endpoint", ge=1)
    thoughts: Marks = result_option((), MARKS)
    weights: Weights = result_option(Weights(), "which weights are meant by the name")
    stream: Literal["auto", True, False] = run_option(
        "auto", "whether answers are asked for as streams: true, false, or auto: if the endpoint gives no others"
    )
    slots: int | None = run_option(
        None, "conversations that the server keeps at once; null: as many as it states, if it states them", ge=1
    )
    tier: Tier = run_option(
        "standard",
        "what is paid for how long a wait: standard, flex (about half, slower, sometimes refused), batch (half, by the "
        "hour); replies are the same model's",
    )
    tier_fallback: Literal["standard"] | None = run_option(
        None, "standard: what flex refuses for want of room is asked at the full price; null: never"
    )
    batch_poll_s: float = run_option(15.0, "seconds between two looks at a batch", gt=0)
    cache: bool | None = run_option(
        None, "whether replies are kept across cells; null: only replies of greedy decoding (temperature 0)"
    )

    def loaded_weights(self) -> Weights:
        """The weights that are meant. Raises `UserError` if they are a file that cannot be read."""
        return self.weights

    @property
    def pace(self) -> BatchPolicy:
        """When requests become a batch."""
        return BatchPolicy(BATCH_SIZE, BATCH_AGE_S, self.batch_poll_s)

    def longest_reply(self) -> float:
        return self.max_tokens or math.inf


def policy_of(config: EndpointConfig, tier: Tier) -> Policy:
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
    """The endpoint takes no connection; the text is the cause."""


class ModelApi(Protocol):
    """One model in one protocol. Belongs to the event loop of its first request until `aclose`."""

    failures: Failures

    @property
    def address(self) -> str:
        """Address and API, as in the response cache's keys."""

    def body(self, messages: Sequence[Message], supported: SupportedParameters) -> dict[str, Any]:
        """The request with the supported parameters: everything that determines the reply, as plain values.

        A temperature has the key `temperature`.
        """

    async def prepare(self) -> None:
        """Load the library and wait for a server that codechat starts, so that no attempt does. Raises `UserError`."""

    async def describe(self) -> EndpointInfo:
        """The endpoint's description of the model. Raises `Unreachable`, `TransientFailure` or `UserError`."""

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        """Make one attempt in a tier; the usage has the tier that the endpoint reports.

        `final`: no later request repeats the last message. Raises `Refused`, `TransientFailure`, or an error that ends
        the call.
        """

    async def reject(self, call: RequestKey) -> None:
        """Release a call's unreadable answer from its batch: it is asked again."""

    async def aclose(self) -> None:
        """Release connections; the next request opens them again."""


class Remote:
    """A model behind an API. Belongs to the event loop of its first call until `aclose`."""

    def __init__(self, config: RemoteConfig, api: ModelApi) -> None:
        self.config = config
        self._api, self._failures = api, api.failures
        self._endpoint: Endpoint | None = None
        self._policies = {tier: policy_of(config, tier) for tier in get_args(Tier)}
        self._no_limits = Endpoint()
        self._supported = SupportedParameters(only_streams=config.stream is True and config.tier != BATCH)
        self._usual_reply: float = FIRST_REPLY_TOKENS
        self._longest_reply = 0  # of the last ones
        self._answered = 0
        self._reached = self._presented = False
        self._is_near = is_near(config.address)
        self._info: EndpointInfo | None = None
        self._reaching = asyncio.Lock()
        self._waits = 0  # that ended without a description
        self._busy = ""  # the last one's error

    def _limits(self) -> Endpoint:
        if self._endpoint is None:
            self._endpoint = endpoint_at(self.config.address)
            self._endpoint.join(self.config.limits)
        return self._endpoint

    async def check(self) -> None:
        """Nothing: key and endpoint are checked before the first call that the cache cannot answer."""

    async def _reach(self) -> None:
        """Ask the endpoint once for its description, and check it; concurrent first callers wait for the result.

        An empty description is accepted: not every server has one, or gives it to every key.
        """
        waits = self._waits
        async with self._reaching:
            if self._reached:
                return
            if self._waits > waits:
                raise InfrastructureError(self._busy)
            await self._api.prepare()
            try:
                self._info = await self._awaited()
            except Unreachable as problem:
                raise self._failures.of_nobody(str(problem)) from None
            except InfrastructureError as problem:
                if not isinstance(problem, Stopped):
                    self._waits, self._busy = self._waits + 1, str(problem)
                raise
            slots = self.config.slots or self._info.facts.get(SLOTS)
            if isinstance(slots, int):
                self._limits().keeps(slots)
            await self._present(self._info)
            if self.config.cache is not False:
                cache.store_endpoint_info(self._api.address, self.config.name, self._info.text())
            self._reached = True

    async def _awaited(self) -> EndpointInfo:
        """The description. An endpoint that takes connections is waited for as long as for a reply: it may be busy.

        Raises as `repeat`, `Stopped` as soon as the brake is pulled.
        """
        policy = policy_of(self.config, STANDARD)
        policy = replace(policy, place=f"{policy.place} is busy: it accepts connections and")
        found = asyncio.ensure_future(repeat(self._api.describe, policy, self._no_limits))
        saying = asyncio.ensure_future(self._say_busy(policy.call_s))
        try:
            await BRAKE.get().wait(found)
        finally:
            saying.cancel()
        return found.result().result

    async def _say_busy(self, most_s: float) -> None:
        waited_s = QUIET_S
        await asyncio.sleep(QUIET_S)
        while True:
            words = "%s accepts connections and has not answered for %.0f s: waiting, at most %.0f s"
            log.warning(words, self.config.place, waited_s, most_s)
            await asyncio.sleep(SAY_EVERY_S)
            waited_s += SAY_EVERY_S

    async def describe(self) -> EndpointInfo | None:
        """The endpoint's description; None if it does not answer within two seconds, or the key is missing."""
        try:
            await self._api.prepare()
            async with asyncio.timeout(DESCRIBE_TIMEOUT_S):
                return await self._api.describe()
        except (Unreachable, TransientFailure, TimeoutError, UserError):
            return None

    async def _present(self, info: EndpointInfo) -> None:
        """Report the endpoint to the running cell before its first reply is used. Raises `UserError`."""
        listener = ENDPOINT_LISTENER.get()
        if listener is not None:
            await listener.on_connect(self.config, info)

    async def aclose(self) -> None:
        """Close the connections, and write the cache's pending entries."""
        self._endpoint, self._reaching = None, asyncio.Lock()
        await cache.settle()
        await self._api.aclose()

    async def complete(self, request: Request) -> Reply:
        """Send the conversation, or return its cached answer. Raises as `Model.complete`."""
        question = self._question(request)
        if question is not None and not self._reached:
            if cache.recall(question) is None:
                await self._reach()
                question = self._question(request)  # the weights are known now
            elif not self._presented:
                await self._present(self._known_info())
                self._presented = True
        reply = await cache.recall_or_ask(question, lambda: self._ask(request, question), self._may_cache)
        return parted(reply, self.config.thoughts)

    def _known_info(self) -> EndpointInfo:
        """The last known description: of this cell, else of the cached replies."""
        if self._info is None:
            listener = ENDPOINT_LISTENER.get()
            self._info = listener.known(self.config) if listener is not None else None
        if self._info is None:
            cached = cache.recall_endpoint_info(self._api.address, self.config.name)
            self._info = EndpointInfo(self.config.address, facts_of(cached))
        return self._info

    def _question(self, request: Request) -> cache.CachedQuestion | None:
        """The cache's key: the request as configured, even if the endpoint later refuses some of its parameters."""
        config = self.config
        if config.cache is False:
            return None
        body = self._api.body(request.messages, SupportedParameters())
        greedy = body.get("temperature") == 0
        if not (greedy or config.cache):
            return None
        weights = config.loaded_weights().key(self._known_info().weights(config.name))
        sample = None if greedy else request.sample
        return cache.CachedQuestion(self._api.address, config.name, body, sample, weights, request.again)

    def _may_cache(self, reply: Reply) -> bool:
        """Whether a reply may be cached: not if it was decoded without the configured temperature."""
        return is_final(reply) and self._supported.as_configured

    async def _ask(self, request: Request, question: cache.CachedQuestion | None) -> Reply:
        if not self._reached:
            await self._reach()
        if self.config.tier == BATCH:
            reply = await self._ask_in_batch(request, question)
        else:
            reply = await self._ask_within_budget(request)
        self._longest_reply = max(reply.usage.output_tokens, int(FADING * self._longest_reply))
        self._answered += 1
        listener = ENDPOINT_LISTENER.get()
        if reply.fingerprint is not None and listener is not None:
            await listener.on_fingerprint(self.config, reply.fingerprint)
        self._usual_reply += (reply.usage.output_tokens - self._usual_reply) / min(self._answered, 10)
        return reply

    async def _ask_within_budget(self, request: Request) -> Reply:
        """The reply, once the budget has room for it and the calls under way; reserved until it is recorded."""
        slots, endpoint = HELD_SLOTS.get() or HeldSlots(), self._limits()
        slots.leave()  # of an earlier call of this step, which others may wait for
        dialogue = slots.unit if request.role == UNDER_TEST else ""
        if dialogue:  # before a reservation, which would keep room from the conversations under way
            await endpoint.dialogues.begin(dialogue)
        sent, said = self._sizes(request)
        longest = self._longest_reply if self._answered else self.config.max_tokens or UNKNOWN_REPLY_TOKENS
        expected = Usage(sent, longest).served_as(self.config.tier)
        give_back = await PURSE.get().reserve(slots.unit, slots.payer, expected)
        try:
            reply = await self._call(request, endpoint, sent + said if endpoint.counts_tokens else 0)
        except BaseException:
            give_back()
            raise
        if HELD_SLOTS.get() is None:
            give_back()
        else:
            slots.keep(give_back)
        if dialogue and self._is_near:
            endpoint.dialogues.measure(dialogue, reply.usage)
        if request.final:
            endpoint.dialogues.end(dialogue)
        return reply

    async def _call(self, request: Request, endpoint: Endpoint, tokens: int) -> Reply:
        """The reply in the configured tier, or at the full price if flex has no room and `tier_fallback` allows it."""
        tier = self.config.tier
        try:
            return await call_with_retries(lambda: self._attempt(request, tier), self._policies[tier], endpoint, tokens)
        except InfrastructureError as refused:
            if isinstance(refused, Stopped) or tier != FLEX or not (self.config.tier_fallback and refused.rate_limited):
                raise
            policy = self._policies[STANDARD]
            reply = await call_with_retries(lambda: self._attempt(request, STANDARD), policy, endpoint, tokens)
            retries = reply.retries + refused.retries + 1
            return replace(reply, retries=retries, rate_limited=reply.rate_limited + refused.rate_limited)

    def _sizes(self, request: Request) -> tuple[int, int]:
        """The estimated tokens of a call: the prompt, by its characters, and the longest or the usual reply."""
        sent = int(sum(len(message.content) for message in request.messages) / CHARS_PER_TOKEN)
        return sent, self.config.max_tokens or int(self._usual_reply)

    async def _ask_in_batch(self, request: Request, question: cache.CachedQuestion | None) -> Reply:
        """The reply from a provider's batch, asked again in another batch if the first has none.

        The call's identity is equal in every process: the response cache's key if the reply may be shared, else the
        step that will record it.
        """
        slots = HELD_SLOTS.get() or HeldSlots(secrets.token_hex(8), secrets.token_hex(8))
        step = f"{slots.step}/{request.role}/{request.number}/{request.sample}"
        sent, _ = self._sizes(request)
        expected = Usage(sent, int(min(self._usual_reply, self.config.longest_reply())))
        call = RequestKey(step if question is None else question.key(), slots.unit, slots.payer, expected)
        token = REQUEST_KEY.set(call)
        try:
            policy = self._policies[BATCH]
            reply = await call_with_retries(lambda: self._attempt(request, BATCH), policy, self._no_limits)
        finally:
            REQUEST_KEY.reset(token)
        return replace(reply, usage=reply.usage.served_as(BATCH))

    async def _attempt(self, request: Request, tier: Tier) -> Reply:
        """The reply of one attempt. What the endpoint refused in it is left out from then on."""
        supported = begun = self._supported
        reason = ""
        while True:
            body = self._api.body(request.messages, supported)
            try:
                reply = await self._api.send(body, tier, final=request.final)
                self._failures.check_end(reply)
            except Refused as refused:
                refusal, headers = refused.refusal, refused.headers
            except TransientFailure:
                if (call := REQUEST_KEY.get()) is not None:
                    await self._api.reject(call)
                    BRAKE.get().check()  # after an interruption no call waits for a batch
                raise
            else:
                if supported is not begun:
                    await self._learn(supported.changes(begun), reason)
                return reply
            avoiding = self._without(supported, refusal, body)
            if avoiding is None:
                raise self._failures.of_refusal(refusal, headers, has_answered=self._answered > 0)
            supported, reason = avoiding, refusal.message

    async def _learn(self, changes: Mapping[str, bool], reason: str) -> None:
        """Use what the endpoint took from now on; a refusal that it does not mend teaches nothing.

        Another temperature than the configured one is a fact about the endpoint, for the cell's record.
        """
        learnt = replace(self._supported, **changes)
        if learnt == self._supported:
            return
        what = self._failures.redact(reason)
        how = "as a stream" if "only_streams" in changes else "without what it refuses"
        log.warning("%s: asked again %s: %s", self.config.place, how, what)
        self._supported = learnt
        if not learnt.as_configured:
            sent = learnt.sent_temperature(self.config.temperature)
            info = self._known_info()
            await self._present(replace(info, facts={**info.facts, TEMPERATURE: "none" if sent is None else sent}))

    def _without(
        self, supported: SupportedParameters, refusal: Refusal, body: Mapping[str, Any]
    ) -> SupportedParameters | None:
        """The parameters that avoid a refusal; None if there are none, or the config forbids streams."""
        learnt = supported.after(refusal, body)
        may_stream = self.config.stream is not False and self.config.tier != BATCH
        return None if learnt is not None and learnt.only_streams and not may_stream else learnt
