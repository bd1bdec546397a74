"""Any endpoint that speaks the OpenAI protocol: hosted, vLLM, or another server, by its base URL.

This file makes one attempt; `codechat.models.remote` has everything around it.

A reply without text (null content, a tool call, a token limit used up by reasoning) has empty text, and a refusal has
the refusal's text, because the model did answer. A body that is not JSON, has no choice or reports an error is
`Unreadable`, because the endpoint failed. Reasoning in a separate field is not part of the text.
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
from codechat.models.prices import listed_prices
from codechat.models.remote import SERVERS, Refused, Remote, RemoteConfig, Unreachable, key_from_environment
from codechat.models.remote.failures import Failures, Refusal, SupportedParameters

if TYPE_CHECKING:
    from codechat.models.calls.transport import Client

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
        self._client: Client | None = None
        self._headers: dict[str, str] = {}
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
        return body | config.neutral | config.extra_body

    def _connect(self) -> "Client":
        if self._client is None:
            from codechat.models.calls.batch_protocols import OpenAIBatches
            from codechat.models.calls.transport import BatchClient, Client

            key = key_from_environment(self.config) or NO_KEY
            self._headers = {"authorization": f"Bearer {key}", "accept": "application/json", "user-agent": "codechat"}
            batched = self.config.tier == BATCH
            self._client = (
                BatchClient(self._base_url, OpenAIBatches, self.config.pace) if batched else Client(self._base_url)
            )
        return self._client

    async def _request(self, method: str, address: str, wait: Any, content: bytes | None = None) -> bytes:
        """The body of a good answer; `wait` is a timeout of httpx2. Raises `Refused`, and httpx2's errors."""
        client = self._connect()
        headers = {**self._headers, "content-type": "application/json"} if content is not None else self._headers
        request = client.build_request(method, address, content=content, headers=headers, timeout=wait)
        response = await client.send(request)
        if not response.is_success:
            raise Refused(refusal_of(response.status_code, response.text), response.headers)
        return response.content

    async def describe(self, seconds: float) -> EndpointInfo:
        """The model's entry in the endpoint's list; for vLLM also the version, and arguments that codechat gave it."""
        import httpx2

        await self._find()
        limit = min(seconds, self.config.timeout_s)
        try:
            listed = json.loads(await self._request("GET", f"{self._base_url}/models", limit))
        except httpx2.RequestError as error:
            raise Unreachable(str(error) or type(error).__name__) from None
        except (Refused, ValueError):
            return EndpointInfo(self.config.base_url)
        try:
            self.failures.served = tuple(str(model["id"]) for model in listed["data"])
        except (KeyError, TypeError):
            self.failures.served = ()
        info = info_of(self.config.base_url, self.config.name, listed, time.time())
        return replace(info, facts={**info.facts, **await self._about_vllm(limit)})

    async def _find(self) -> None:
        """Wait until the model's server is ready, if codechat starts it, and take over its address."""
        servers = SERVERS.get()
        address = await servers.reach(self.config) if servers is not None else None
        if address is not None and address != self._base_url:
            await self.aclose()
            self._base_url = address

    async def _about_vllm(self, seconds: float) -> dict[str, str]:
        import httpx2

        if self.config.served_by != "vllm":
            return {}
        try:
            address = self._base_url.removesuffix("/v1") + "/version"
            version = str(json.loads(await self._request("GET", address, seconds))["version"])
        except (Refused, httpx2.RequestError, ValueError, KeyError, TypeError):
            return {}
        servers = SERVERS.get()
        arguments = servers.arguments(self.config) if servers is not None else None
        return {VLLM: version[:LONGEST], **({ARGUMENTS: arguments} if arguments is not None else {})}

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        more = {"service_tier": tier} if tier == FLEX else self._batched if tier == BATCH else {}
        content = await self._post(encoded(self.config.api, body | more))
        try:
            return reply_of(self.config.api, content)
        except Unreadable as error:
            raise self.failures.of_answer(str(error)) from None

    async def _post(self, content: bytes) -> bytes:
        import httpx2

        # The whole attempt has a time limit, which a slowly dripping server cannot extend.
        timeout = httpx2.Timeout(None, connect=min(CONNECT_TIMEOUT_S, self.config.timeout_s))
        try:
            return await self._request("POST", self._base_url + PATHS[self.config.api], timeout, content)
        except httpx2.RequestError as error:
            unreachable = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            failed = self.failures.of_unreachable if unreachable else self.failures.of_connection
            raise failed(str(error) or type(error).__name__) from None

    async def reject(self, call: RequestKey) -> None:
        if self._client is not None:
            await self._client.reject(call)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


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


def reply_of(api: Api, body: bytes) -> Reply:
    """The reply in a response body. Raises `Unreadable`."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
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
