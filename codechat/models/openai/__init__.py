"""Any endpoint that speaks the OpenAI protocol: hosted, vLLM, or another server, by its base URL.

This file makes one attempt; the SDK's own retries are off. `codechat.models.remote` has everything around it.

A reply without text (null content, a tool call, a token limit used up by reasoning) has empty text, and a refusal has
the refusal's text, because the model did answer. A body that is not JSON, has no choice or reports an error, and a
stream that ends early, is `Unreadable`, because the endpoint failed. Reasoning in a separate field is not part of the
text.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import field_validator

from codechat.base.config import original_option, run_option
from codechat.base.domain import BATCH, FLEX, Message, Reply, Tier, Usage
from codechat.base.files import text_json
from codechat.base.texts import visible, writable
from codechat.models import MODELS
from codechat.models.calls.batches import RequestKey
from codechat.models.endpoints import ARGUMENTS, LONGEST, VLLM, EndpointInfo, info_of
from codechat.models.openai.streams import is_stream, whole_answer
from codechat.models.prices import listed_prices
from codechat.models.remote import (
    SERVERS,
    Refused,
    Remote,
    RemoteConfig,
    Unreachable,
    headers_from_environment,
    key_from_environment,
)
from codechat.models.remote.failures import Failures, Refusal, SupportedParameters, cause_of

if TYPE_CHECKING:
    import httpx2

    from codechat.models.calls.transport import Client
    from codechat.models.openai.client import SdkClient

Api = Literal["chat", "responses"]
PATHS: Mapping[Api, str] = {"chat": "/chat/completions", "responses": "/responses"}
CONNECT_TIMEOUT_S = 10.0
NO_KEY = "no-key"
LONGEST_FINGERPRINT = 200
BEGINNING = 120
"""Bytes of an answer without JSON that its message shows."""
NEUTRAL: Mapping[str, float] = {
    "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "top_p": 1, "top_k": -1, "min_p": 0,
}  # fmt: skip
"""Fields of a request with their neutral values."""


class OpenAIConfig(RemoteConfig):
    """The model's endpoint and decoding."""

    kind: Literal["openai"] = original_option("openai", "which provider answers")
    api: Api = original_option("chat", "which API of the endpoint is called: chat or responses")
    reasoning_effort: str | None = original_option(None, "reasoning effort, e.g. low, medium or high; null sends none")
    extra_body: dict[str, Any] = original_option({}, "further fields of the request's JSON body, e.g. {top_p: 1}")
    neutral: dict[str, float] = run_option(
        {}, "fields sent with the value that changes nothing, where a repository's own settings might: {top_p: 1}"
    )
    base_url: str = run_option("http://127.0.0.1:8000/v1", "the endpoint's address up to /v1")
    served_by: Literal["vllm"] | None = run_option(
        None, "what is started on this machine if nothing answers at a base_url of this machine: vllm; null: nothing"
    )
    prompt_cache: Literal["24h", "off"] | None = run_option(
        None,
        "how long the endpoint is asked to keep what it caches of prompts in batches, which come by the hour; "
        "null: as conf/prices says of OpenAI's models",
    )
    weights_gb: float | None = run_option(
        None, "gigabytes of the weights as they are published, to lay servers out on GPUs; null: not known", gt=0
    )

    @field_validator("neutral")
    @classmethod
    def _changes_nothing(cls, fields: dict[str, float]) -> dict[str, float]:
        for name, value in fields.items():
            if NEUTRAL.get(name) != value:
                known = ", ".join(f"{field}: {neutral}" for field, neutral in NEUTRAL.items())
                raise ValueError(f"{name}: {value} could change a reply: give it in extra_body (neutral are {known})")
        return fields


@MODELS.register("openai", OpenAIConfig)
def openai_model(config: OpenAIConfig) -> Remote:
    """Any OpenAI-compatible endpoint by model.base_url: hosted, vLLM and others."""
    return Remote(config, OpenAIApi(config))


class OpenAIApi:
    """The chat or the responses API of one endpoint."""

    def __init__(self, config: OpenAIConfig) -> None:
        self.config = config
        self.failures = Failures(config, unknown_model="is there a /v1 missing in base_url?")
        self._client: SdkClient | None = None
        self._transport: Client | None = None
        self._base_url = config.base_url  # after `_find` the address of the server that codechat started
        known = listed_prices(config)
        retention = config.prompt_cache or (known.keeps if known else None)
        self._batched = {} if retention in (None, "off") else {"prompt_cache_retention": retention}

    @property
    def address(self) -> str:
        servers = SERVERS.get()
        known_as = servers.known_as(self.config) if servers is not None else None
        return (known_as or self.config.base_url) + PATHS[self.config.api]

    def body(self, messages: Sequence[Message], supported: SupportedParameters) -> dict[str, Any]:
        config, responses = self.config, self.config.api == "responses"
        sent = [{"role": message.role, "content": message.content} for message in messages]
        body: dict[str, Any] = {"model": config.name}
        body |= {"input": sent, "store": False} if responses else {"messages": sent}
        if config.temperature is not None and supported.temperature:
            body["temperature"] = config.temperature
        if config.max_tokens is not None:
            cap = "max_completion_tokens" if supported.renames_cap else "max_tokens"
            body["max_output_tokens" if responses else cap] = config.max_tokens
        if (effort := config.reasoning_effort) is not None:
            body |= {"reasoning": {"effort": effort}} if responses else {"reasoning_effort": effort}
        if supported.only_streams:
            body["stream"] = True
            if not responses and supported.stream_options:
                body["stream_options"] = {"include_usage": True}
        return body | config.neutral | config.extra_body

    def _connect(self) -> "SdkClient":
        if self._client is None:
            import httpx2

            from codechat.models.calls.batch_protocols import OpenAIBatches
            from codechat.models.calls.transport import BatchClient, Client
            from codechat.models.openai.client import SdkClient

            key, own = key_from_environment(self.config), headers_from_environment(self.config)
            self._transport = (
                BatchClient(self._base_url, OpenAIBatches, self.config.pace, headers=own)
                if self.config.tier == BATCH
                else Client(self._base_url, headers=own)
            )
            self._client = SdkClient(
                base_url=self._base_url,
                api_key=key or NO_KEY,
                max_retries=0,
                # The whole attempt has its own limit, which a slowly dripping server cannot extend.
                timeout=httpx2.Timeout(None, connect=min(CONNECT_TIMEOUT_S, self.config.timeout_s)),
                http_client=self._transport,
            )
        return self._client

    async def describe(self, seconds: float) -> EndpointInfo:
        """The model's entry in the endpoint's list; for vLLM also the version, and arguments that codechat gave it."""
        import openai

        await self._find()
        limit = min(seconds, self.config.timeout_s)
        try:
            listed = (await self._get(f"{self._base_url}/models", limit)).json()
        except openai.APIConnectionError as error:
            raise Unreachable(cause_of(error)) from None
        except (openai.APIStatusError, ValueError):
            return EndpointInfo(self.config.base_url)
        try:
            self.failures.served = tuple(str(model["id"]) for model in listed["data"])
        except (KeyError, TypeError):
            self.failures.served = ()
        info = info_of(self.config.base_url, self.config.name, listed, time.time())
        return replace(info, facts={**info.facts, **await self._about_vllm(limit)})

    async def _get(self, address: str, seconds: float) -> "httpx2.Response":
        import httpx2

        return await self._connect().get(address, cast_to=httpx2.Response, options={"timeout": seconds})

    async def _find(self) -> None:
        """Wait until the model's server is ready, if codechat starts it, and take over its address."""
        servers = SERVERS.get()
        address = await servers.reach(self.config) if servers is not None else None
        if address is not None and address != self._base_url:
            await self.aclose()
            self._base_url = address

    async def _about_vllm(self, seconds: float) -> dict[str, str]:
        import openai

        if self.config.served_by != "vllm":
            return {}
        try:
            address = self._base_url.removesuffix("/v1") + "/version"
            version = str((await self._get(address, seconds)).json()["version"])
        except (openai.OpenAIError, ValueError, KeyError, TypeError):
            return {}
        servers = SERVERS.get()
        arguments = servers.arguments(self.config) if servers is not None else None
        return {VLLM: version[:LONGEST], **({ARGUMENTS: arguments} if arguments is not None else {})}

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        more = {"service_tier": tier} if tier == FLEX else self._batched if tier == BATCH else {}
        response = await self._post(body | more)
        try:
            return reply_of(self.config.api, response.content, response.headers.get("content-type", ""))
        except Unreadable as error:
            refusal = Refusal(400, str(error))
            if not body.get("stream") and refusal.asks_for_stream:  # said with a good status
                raise Refused(refusal, response.headers) from None
            raise self.failures.of_answer(str(error)) from None

    async def _post(self, body: dict[str, Any]) -> "httpx2.Response":
        import httpx2
        import openai

        try:
            address = self._base_url + PATHS[self.config.api]
            return await self._connect().call(address, encoded(self.config.api, body))
        except openai.APIStatusError as error:
            refused = Refused(refusal_of(error.status_code, error.response.text), error.response.headers)
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
                raise self.failures.of_unreachable(cause_of(error)) from None
            raise self.failures.of_connection(cause_of(error)) from None
        raise refused

    async def reject(self, call: RequestKey) -> None:
        if self._transport is not None:
            await self._transport.reject(call)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


class Unreadable(Exception):
    """A good status with a body that is no answer."""


def refusal_of(status: int, body: str) -> Refusal:
    """Read an error body: OpenAI's `{"error": {...}}`, vLLM's flat object, FastAPI's `detail`, or plain text."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return Refusal(status, " ".join(body.split()))
    error = value.get("error", value)
    if not isinstance(error, dict):
        return Refusal(status, str(error))
    message = error.get("message") or error.get("detail") or body
    text = message if isinstance(message, str) else json.dumps(message)
    code = error.get("code") or error.get("type")
    return Refusal(status, " ".join(text.split()), str(code or ""), str(error.get("param") or ""))


def encoded(api: Api, body: Mapping[str, Any]) -> bytes:
    """A body as JSON. A dialogue sends its messages with every turn, so their encodings are cached."""
    name = "input" if api == "responses" else "messages"
    messages = [f'{{"role":{text_json(each["role"])},"content":{text_json(each["content"])}}}' for each in body[name]]
    others = json.dumps({key: value for key, value in body.items() if key != name}, ensure_ascii=False, allow_nan=False)
    return f'{{"{name}":[{",".join(messages)}],{others[1:]}'.encode()


def reply_of(api: Api, body: bytes, content_type: str = "") -> Reply:
    """The reply in a response body, which may be a stream. Raises `Unreadable`."""
    streamed = is_stream(body, content_type)
    try:
        value = whole_answer(api, body) if streamed else json.loads(body)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as problem:
        if streamed:
            reason = f"{problem}" if type(problem) is ValueError else "it is not a stream of JSON"
            raise Unreadable(f"the streamed answer cannot be read ({len(body)} bytes): {reason[:BEGINNING]}") from None
        begins = visible(" ".join(body[:BEGINNING].decode("utf-8", "replace").split()))
        raise Unreadable(f"the answer is not JSON ({len(body)} bytes), it begins: {begins}") from None
    if not isinstance(value, dict):
        raise Unreadable("the answer is not a JSON object")
    if value.get("error"):
        raise Unreadable(f"the answer is an error: {json.dumps(value['error'])[:200]}")
    try:
        reply = _of_responses(value) if api == "responses" else _of_chat(value)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise Unreadable(f"the answer has another shape than the {api} API's: {json.dumps(value)[:200]}") from None
    if value.get("service_tier") == FLEX:
        reply = replace(reply, usage=reply.usage.served_as(FLEX))
    fingerprint = value.get("system_fingerprint")
    if not isinstance(fingerprint, str) or not fingerprint:
        return reply
    return replace(reply, fingerprint=str(writable(fingerprint))[:LONGEST_FINGERPRINT])


def _of_chat(value: dict[str, Any]) -> Reply:
    if not value["choices"]:
        raise Unreadable("the answer holds no choice")
    choice = value["choices"][0]
    message = choice["message"]
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    text = content or message.get("refusal") or ""
    usage = value.get("usage") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    counted = _usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
    finish = choice.get("finish_reason")
    return Reply(writable(text), None if finish is None else str(finish), usage=counted)


def _of_responses(value: dict[str, Any]) -> Reply:
    if value.get("status") in ("failed", "cancelled"):
        raise Unreadable(f"the response has the status '{value['status']}'")
    parts = [part for item in value["output"] if item.get("type") == "message" for part in item["content"]]
    text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
    reason = (value.get("incomplete_details") or {}).get("reason")
    if not value["output"] and reason is None:
        raise Unreadable("the answer holds no output")
    finish = {None: "stop", "max_output_tokens": "length"}.get(reason, reason)
    usage = value.get("usage") or {}
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens")
    counted = _usage(usage.get("input_tokens"), usage.get("output_tokens"), cached)
    return Reply(writable(text), str(finish), usage=counted)


def _usage(sent: Any, received: Any, cached: Any) -> Usage:
    return Usage(int(sent or 0), int(received or 0), int(cached or 0))
