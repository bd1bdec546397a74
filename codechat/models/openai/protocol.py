"""The OpenAI protocol as values: request bodies, replies and refusals. Nothing here touches a socket.

A reply without text (null content, a tool call, a token limit used up by reasoning) has empty text, and a refusal has
the refusal's text, because the model did answer; a body that is not JSON, has no choice or reports an error is
`Unreadable`, because the endpoint failed. Reasoning in a field of its own is not part of the text.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from codechat.base.domain import FLEX, Message, Reply, Usage
from codechat.base.files import text_json
from codechat.base.texts import visible, writable
from codechat.models.remote.failures import Refusal, SupportedParameters

Api = Literal["chat", "responses"]
PATHS: Mapping[Api, str] = {"chat": "/chat/completions", "responses": "/responses"}

LONGEST_FINGERPRINT = 200
BEGINNING = 120  # bytes of an answer that is no JSON which its message shows


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


@dataclass(frozen=True, slots=True)
class Decoding:
    """Options of decoding; None leaves the endpoint's default."""

    temperature: float | None
    max_tokens: int | None
    reasoning_effort: str | None
    extra_body: Mapping[str, Any]


def body_of(
    api: Api, model: str, messages: Iterable[Message], how: Decoding, supported: SupportedParameters
) -> dict[str, Any]:
    """The JSON body of one request."""
    sent = [{"role": message.role, "content": message.content} for message in messages]
    body: dict[str, Any] = {"model": model, "messages": sent}
    if api == "responses":
        body = {"model": model, "input": sent, "store": False}
    if how.temperature is not None and supported.temperature:
        body["temperature"] = how.temperature
    if how.max_tokens is not None:
        cap = "max_completion_tokens" if supported.renames_cap else "max_tokens"
        body["max_output_tokens" if api == "responses" else cap] = how.max_tokens
    if how.reasoning_effort is not None:
        if api == "responses":
            body["reasoning"] = {"effort": how.reasoning_effort}
        else:
            body["reasoning_effort"] = how.reasoning_effort
    return body | dict(how.extra_body)


def encoded(api: Api, body: Mapping[str, Any]) -> bytes:
    """A body as JSON. A dialogue sends its messages again with every turn, and each is encoded once."""
    listed = "input" if api == "responses" else "messages"
    messages = [f'{{"role":{text_json(each["role"])},"content":{text_json(each["content"])}}}' for each in body[listed]]
    rest = json.dumps({key: value for key, value in body.items() if key != listed}, ensure_ascii=False, allow_nan=False)
    return f'{{"{listed}":[{",".join(messages)}],{rest[1:]}'.encode()


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
        found = _of_responses(value) if api == "responses" else _of_chat(value)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise Unreadable(f"the answer has another shape than the {api} API's: {json.dumps(value)[:200]}") from None
    if value.get("service_tier") == FLEX:
        found = replace(found, usage=found.usage.served_as(FLEX))
    fingerprint = value.get("system_fingerprint")
    if not isinstance(fingerprint, str) or not fingerprint:
        return found
    return replace(found, fingerprint=str(writable(fingerprint))[:LONGEST_FINGERPRINT])


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
