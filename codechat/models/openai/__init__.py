"""Any endpoint that speaks the OpenAI protocol: hosted, vLLM, or another server, by its base URL.

This file makes one attempt; the SDK's own retries are off. `codechat.models.remote` has everything around it.

A reply without text (null content, a tool call, a token limit used up by reasoning) has empty text, and a refusal has
the refusal's text, because the model did answer. A body that is not JSON, has no choice or reports an error, and a
stream that ends early, is `Unreadable`, because the endpoint failed. Reasoning in a separate field is kept
apart (`models/reasoning.py`).
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import field_validator, model_validator

from codechat.base.config import original_option, run_option
from codechat.base.domain import BATCH, FLEX, Message, Reply, Tier
from codechat.base.errors import UserError
from codechat.base.files import text_json
from codechat.base.texts import read_json, visible, writable
from codechat.models import MODELS
from codechat.models.calls.answers import OTHER_SHAPES, Ending, ending, usage_in, word_of
from codechat.models.calls.batches import RequestKey
from codechat.models.endpoints import ARGUMENTS, LLAMA_CPP, LONGEST, SLOTS, VLLM, EndpointInfo, info_of
from codechat.models.openai.streams import is_stream, whole_answer
from codechat.models.prices import listed_prices
from codechat.models.reasoning import THOUGHTS, reasoning_in
from codechat.models.remote import SERVERS, Refused, Remote, RemoteConfig, Unreachable
from codechat.models.remote.failures import Failures, Refusal, SupportedParameters, cause_of
from codechat.models.remote.given import headers_from_environment, key_from_environment

if TYPE_CHECKING:
    import httpx2
    import openai

    from codechat.models.calls.transport import Client
    from codechat.models.openai.client import SdkClient

Api = Literal["chat", "responses"]
PATHS: Mapping[Api, str] = {"chat": "/chat/completions", "responses": "/responses"}
CONNECT_TIMEOUT_S = 10.0
NO_KEY = "no-key"
LONGEST_FINGERPRINT = 200
BEGINNING = 120
"""Bytes of an answer without JSON that its message shows."""
MOST_WORDS = 10_000
"""Characters of an error that are kept."""
BAD_REQUEST, TOO_MANY = 400, 429
NEUTRAL: Mapping[str, Sequence[float]] = {
    "repetition_penalty": [1], "repeat_penalty": [1], "presence_penalty": [0], "frequency_penalty": [0], "top_p": [1],
    "top_k": [-1, 0], "min_p": [0],
}  # fmt: skip
"""Fields of a request with their neutral values."""
VERSIONS: Mapping[str, Sequence[str]] = {VLLM: ("/version", "version"), LLAMA_CPP: ("/openapi.json", "info", "version")}
"""The page of each program that has its version, and the keys that lead there."""


class OpenAIConfig(RemoteConfig):
    """The model's endpoint and decoding."""

    kind: Literal["openai", "gguf"] = original_option("openai", "which provider answers")
    api: Api = original_option("chat", "which API of the endpoint is called: chat or responses")
    reasoning_effort: str | None = original_option(None, "reasoning effort, e.g. low, medium or high; null sends none")
    extra_body: dict[str, Any] = original_option({}, "further fields of the request's JSON body, e.g. {top_p: 1}")
    neutral: dict[str, float] = run_option(
        {}, "fields sent with the value that changes nothing, where a repository's own settings might: {top_p: 1}"
    )
    base_url: str = run_option("http://127.0.0.1:8000/v1", "the endpoint's address up to /v1")
    served_by: Literal["vllm", "llama_cpp"] | None = run_option(
        None,
        "what is started on this machine if nothing answers at a base_url of this machine: vllm, or llama_cpp for "
        "model=gguf; null: nothing",
    )
    prompt_cache: Literal["24h", "off"] | None = run_option(
        None,
        "how long the endpoint is asked to keep what it caches of prompts in batches, which come by the hour; "
        "null: as conf/prices says of OpenAI's models",
    )
    weights_gb: float | None = run_option(
        None, "gigabytes of the weights as they are published, to lay servers out on GPUs; null: not known", gt=0
    )

    @model_validator(mode="after")
    def _can_be_served(self) -> Self:
        if self.served_by == LLAMA_CPP and self.kind != "gguf":
            raise UserError("served_by=llama_cpp serves a model in a GGUF file", "model=gguf model.path=FILE")
        return self

    @field_validator("neutral")
    @classmethod
    def _changes_nothing(cls, fields: dict[str, float]) -> dict[str, float]:
        for name, value in fields.items():
            if value not in NEUTRAL.get(name, ()):
                known = ", ".join(f"{field}: {neutral[0]}" for field, neutral in NEUTRAL.items())
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
        self._address = config.base_url  # after `prepare` the address of the started server
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
        if (temperature := supported.sent_temperature(config.temperature)) is not None:
            body["temperature"] = temperature
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

    @property
    def _base_url(self) -> str:
        """The address without its query, which the connections add to every request."""
        return self._address.partition("?")[0]

    def _connect(self) -> "SdkClient":
        if self._client is None:
            import httpx2

            from codechat.models.calls.batch_protocols import OpenAIBatches
            from codechat.models.calls.transport import BatchClient, Client
            from codechat.models.openai.client import SdkClient

            key, own = key_from_environment(self.config), headers_from_environment(self.config)
            self._transport = (
                BatchClient(self._address, OpenAIBatches, self.config.pace, headers=own)
                if self.config.tier == BATCH
                else Client(self._address, headers=own)
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

    async def describe(self) -> EndpointInfo:
        """The model's entry in the endpoint's list; of a program that codechat starts also version and arguments."""
        import openai

        try:
            listed = read_json((await self._get(f"{self._base_url}/models")).content)
        except openai.APIConnectionError as error:
            if _is_absent(error):
                raise Unreachable(cause_of(error)) from None
            raise self.failures.of_connection(cause_of(error)) from None
        except (openai.APIStatusError, ValueError):
            return EndpointInfo(self.config.base_url)
        try:
            self.failures.served = tuple(visible(str(model["id"])) for model in listed["data"])
        except (KeyError, TypeError):
            self.failures.served = ()
        info = info_of(self.config.base_url, self.config.name, listed, time.time())
        return replace(info, facts={**info.facts, **await self._about_program(), **await self._slots(info)})

    async def _get(self, address: str) -> "httpx2.Response":
        import httpx2

        return await self._connect().get(address, cast_to=httpx2.Response)

    async def prepare(self) -> None:
        """Load the library, wait for the model's server if codechat starts it, and take over its address."""
        servers = SERVERS.get()
        address = await servers.reach(self.config) if servers is not None else None
        if address is not None and address != self._address:
            await self.aclose()
            self._address = address
        self._connect()

    async def _about_program(self) -> dict[str, str]:
        program = self.config.served_by
        if program is None:
            return {}
        path, *keys = VERSIONS[program]
        value = await self._page(path)
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is None:
            return {}
        servers = SERVERS.get()
        arguments = servers.arguments(self.config) if servers is not None else None
        return {
            program: str(writable(str(value)))[:LONGEST],
            **({ARGUMENTS: arguments} if arguments is not None else {}),
        }

    async def _slots(self, info: EndpointInfo) -> dict[str, int]:
        """The conversations that a server for one machine keeps at once, as it states them; empty for others."""
        kind = "" if self.config.slots else str(info.facts.get("owned_by"))
        if kind == "llamacpp":
            props = await self._page("/props")
            slots = props.get("total_slots") if isinstance(props, Mapping) else None
            if slots is None and isinstance(listed := await self._page("/slots"), list):
                slots = len(listed)
            return {SLOTS: slots} if isinstance(slots, int) and slots > 0 else {}
        if kind == "me":  # llama-cpp-python
            page = await self._page("/openapi.json")
            return {SLOTS: 1} if isinstance(page, Mapping) and "llama.cpp" in str(page.get("info")) else {}
        if kind == "library":  # Ollama, which does not state OLLAMA_NUM_PARALLEL: one unless that is set
            page = await self._page("/api/ps")
            return {SLOTS: 1} if isinstance(page, Mapping) and "models" in page else {}
        return {}

    async def _page(self, path: str) -> Any:
        """The JSON at a path outside of /v1; None without an answer."""
        import openai

        try:
            return read_json((await self._get(self._base_url.removesuffix("/v1") + path)).content)
        except (openai.OpenAIError, ValueError):
            return None

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        more = {"service_tier": tier} if tier == FLEX else self._batched if tier == BATCH else {}
        response = await self._post(body | more)
        try:
            return reply_of(self.config.api, response.content, response.headers.get("content-type", ""))
        except Unreadable as error:
            said, held = Refusal(BAD_REQUEST, str(error)), error.refusal
            if said.asks_for_stream and not body.get("stream"):  # said with a good status
                raise Refused(said, response.headers) from None
            if held is not None and (held.is_overflow or held.is_about_money or held.status == TOO_MANY):
                raise Refused(held, response.headers) from None
            raise self.failures.of_answer(str(error)) from None

    async def _post(self, body: dict[str, Any]) -> "httpx2.Response":
        import openai

        try:
            address = self._base_url + PATHS[self.config.api]
            return await self._connect().call(address, encoded(self.config.api, body))
        except openai.APIStatusError as error:
            refused = Refused(refusal_of(error.status_code, error.response.text), error.response.headers)
        except openai.APIConnectionError as error:
            if _is_absent(error):
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


def _is_absent(error: "openai.APIConnectionError") -> bool:
    """Whether no connection was made."""
    import httpx2

    return isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)


class Unreadable(Exception):
    """A good status with a body that is no answer; `refusal` is the error that it holds."""

    def __init__(self, message: str, refusal: Refusal | None = None) -> None:
        super().__init__(message)
        self.refusal = refusal


def refusal_of(status: int, body: str) -> Refusal:
    """Read an error body: OpenAI's `{"error": {...}}`, vLLM's flat object, FastAPI's `detail`, or plain text."""
    try:
        value = read_json(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return Refusal(status, _one_line(body))
    error = value.get("error", value)
    if not isinstance(error, dict):
        return Refusal(status, _one_line(error))
    message = _one_line(error.get("message") or error.get("detail") or error.get("msg") or body)
    upstream = _fields(error, "metadata").get("raw")  # a gateway's own message does not say what happened
    if isinstance(upstream, str):
        message = _one_line(f"{message}: {upstream}")
    code = error.get("code") or error.get("type")
    return Refusal(status, message, _one_line(code or ""), _one_line(error.get("param") or ""))


def _fields(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The fields of an inner object; none if it is no object."""
    inner = value.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _one_line(value: Any) -> str:
    """An endpoint's words, bounded; of FastAPI's list of problems not the values, which may be the whole request."""
    listed = value if isinstance(value, list) else []
    if listed and all(isinstance(each, dict) and isinstance(each.get("loc"), list) for each in listed):
        value = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each.get('msg')}" for each in listed)
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return " ".join(str(writable(text[:MOST_WORDS])).split())


def encoded(api: Api, body: Mapping[str, Any]) -> bytes:
    """A body as JSON. A dialogue sends its messages with every turn, so their encodings are cached."""
    name = "input" if api == "responses" else "messages"
    messages = [f'{{"role":{text_json(each["role"])},"content":{text_json(each["content"])}}}' for each in body[name]]
    others = json.dumps({key: value for key, value in body.items() if key != name}, ensure_ascii=False, allow_nan=False)
    return f'{{"{name}":[{",".join(messages)}],{others[1:]}'.encode()


def reply_of(api: Api | Literal["messages"], body: bytes, content_type: str = "") -> Reply:
    """The reply in a response body, which may be a stream; `messages` is Anthropic's API. Raises `Unreadable`."""
    streamed = is_stream(body, content_type)
    try:
        value = whole_answer(api, body) if streamed else read_json(body)
    except OTHER_SHAPES as problem:
        if streamed:
            reason = f"{problem}" if type(problem) is ValueError else "it is not a stream of JSON"
            raise Unreadable(f"the streamed answer cannot be read ({len(body)} bytes): {reason[:BEGINNING]}") from None
        begins = visible(" ".join(body[:BEGINNING].decode("utf-8", "replace").split()))
        raise Unreadable(f"the answer is not JSON ({len(body)} bytes), it begins: {begins}") from None
    if not isinstance(value, dict):
        raise Unreadable("the answer is not a JSON object")
    minimax = _fields(value, "base_resp")
    if value.get("error"):
        raise _failed(value["error"])
    if minimax.get("status_code"):
        raise _failed({"message": minimax.get("status_msg"), "code": minimax["status_code"]})
    try:
        reply = {"chat": _of_chat, "responses": _of_responses, "messages": _of_message}[api](value)
    except OTHER_SHAPES:
        raise Unreadable(f"the answer has another shape than the {api} API's: {json.dumps(value)[:200]}") from None
    if value.get("service_tier") == FLEX:
        reply = replace(reply, usage=reply.usage.served_as(FLEX))
    fingerprint = value.get("system_fingerprint")
    if not isinstance(fingerprint, str) or not fingerprint:
        return reply
    return replace(reply, fingerprint=str(writable(fingerprint))[:LONGEST_FINGERPRINT])


def _failed(error: Any) -> Unreadable:
    """The error in an answer of a good status; gateways give an upstream's status as its code."""
    known = error.get("code") if isinstance(error, dict) else None
    status = known if isinstance(known, int) and 400 <= known < 600 else BAD_REQUEST
    return Unreadable(
        f"the answer is an error: {json.dumps(error)[:200]}", refusal_of(status, json.dumps({"error": error}))
    )


def _of_chat(value: dict[str, Any]) -> Reply:
    if not value["choices"]:
        raise Unreadable("the answer holds no choice")
    choice = value["choices"][0]
    if choice.get("error"):
        raise _failed(choice["error"])
    message = choice["message"]
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content if part.get("type") not in THOUGHTS)
    text = content or message.get("refusal") or ""
    if not isinstance(text, str):
        raise TypeError
    return _reply(text, choice.get("finish_reason"), value)


def _of_responses(value: dict[str, Any]) -> Reply:
    status = value.get("status", "completed")
    parts = [part for item in value["output"] if item.get("type") == "message" for part in item["content"]]
    text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
    reason = _fields(value, "incomplete_details").get("reason")
    if not value["output"] and reason is None and status == "completed":
        raise Unreadable("the answer holds no output")
    finish = {"None": "stop", "max_output_tokens": "length"}.get(str(reason), reason)
    if status != "completed" and ending(word_of(reason)) not in (Ending.CUT, Ending.FILTERED, Ending.OVERFLOW):
        finish = f"{status} {reason or ''}".strip()
    return _reply(text, finish, value)


def _of_message(value: dict[str, Any]) -> Reply:
    text = "".join(part.get("text") or "" for part in value["content"])
    return _reply(text, value["stop_reason"], value)


def _reply(text: str, finish: object, value: dict[str, Any]) -> Reply:
    usage = usage_in(value.get("usage"))
    return Reply(writable(text), word_of(finish), usage=usage, reasoning=reasoning_in(value))
