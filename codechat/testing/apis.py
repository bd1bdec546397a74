"""Requests and answers in three APIs: OpenAI's chat and responses, Anthropic's messages."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from codechat.base.domain import Usage

API = Literal["chat", "responses", "messages"]


@dataclass(frozen=True)
class Call:
    """One request for an answer. `number` counts the calls of this server from 0."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def api(self) -> API:
        """The API that is spoken, by the path; other paths than Anthropic's by the body."""
        if self.path.startswith("/v1/messages"):
            return "messages"
        return "chat" if "messages" in self.body else "responses"

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation, each message with its role and its text; results of tools have the role `tool`."""
        return list(_messages(self.body))

    @property
    def tools(self) -> set[str]:
        """The names of the tools that are offered, outside of namespaces."""
        offered = (each.get("function", each) for each in self.body.get("tools") or ())
        return {each["name"] for each in offered if "name" in each}

    @property
    def streamed(self) -> bool:
        """Whether a stream is asked for."""
        return self.body.get("stream") is True


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the model. An empty id is replaced by a unique one."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


@dataclass(frozen=True)
class Answer:
    """A reply with its details. Tokens are counted in words unless `usage` is given; a dict is sent unchanged."""

    text: str | None
    finish_reason: str = "stop"
    usage: Usage | dict[str, Any] | None = None
    message: dict[str, Any] = field(default_factory=dict)  # further fields of the message, chat API only
    tier: str | None = None  # the `service_tier` that the body names
    tools: tuple[ToolCall, ...] = ()


def words(call: Call) -> int:
    """The tokens of a request, counted in words."""
    return sum(len(message["content"].split()) for message in call.messages)


def used(call: Call, answer: Answer) -> Usage:
    """The tokens of a call and its answer, counted in words unless the answer says them."""
    if isinstance(answer.usage, Usage):
        return answer.usage
    written = [answer.text or "", *(json.dumps(each.arguments) for each in answer.tools)]
    return Usage(words(call), sum(len(text.split()) for text in written))


def body_of(call: Call, answer: Answer) -> dict[str, Any]:
    """The body of a good answer in the API of the call."""
    body = {"chat": _chat, "responses": _responses, "messages": _anthropic}[call.api](call, answer)
    return body | ({"usage": answer.usage} if isinstance(answer.usage, dict) and answer.usage else {})


def _messages(body: dict[str, Any]) -> Iterator[dict[str, str]]:
    if head := body.get("system") or body.get("instructions"):
        yield {"role": "system", "content": _text(head)}
    sent = body["messages"] if "messages" in body else body["input"]
    for message in [{"role": "user", "content": sent}] if isinstance(sent, str) else sent:
        if "role" not in message:
            if "output" in message:
                yield {"role": "tool", "content": _text(message["output"])}
            continue
        content = message.get("content")
        is_result = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
        yield {"role": "tool" if is_result else message["role"], "content": _text(content)}


def _text(content: Any) -> str:
    """The text of a content, which may be a list of parts."""
    if isinstance(content, list):
        return "\n".join(_text(part.get("text") or part.get("content")) for part in content)
    return content or ""


def _named(call: Call, answer: Answer) -> Iterator[tuple[str, ToolCall]]:
    return ((each.id or f"call_{call.number}_{place}", each) for place, each in enumerate(answer.tools))


def _counted(usage: Usage, sent: str, received: str) -> dict[str, Any]:
    """The usage as OpenAI's APIs name it."""
    return {
        f"{sent}_tokens": usage.input_tokens,
        f"{received}_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        f"{sent}_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        f"{received}_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _chat(call: Call, answer: Answer) -> dict[str, Any]:
    tools = [
        {"id": name, "type": "function", "function": {"name": each.name, "arguments": json.dumps(each.arguments)}}
        for name, each in _named(call, answer)
    ]
    message = {"role": "assistant", "content": answer.text} | ({"tool_calls": tools} if tools else {}) | answer.message
    finish = "tool_calls" if tools else answer.finish_reason
    return {
        "id": f"chatcmpl-{call.number}", "object": "chat.completion", "created": int(time.time()),
        "model": call.body["model"], "usage": _counted(used(call, answer), "prompt", "completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
    }  # fmt: skip


def _responses(call: Call, answer: Answer) -> dict[str, Any]:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish_reason)
    content = [] if answer.text is None else [{"type": "output_text", "text": answer.text, "annotations": []}]
    tools = [
        {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": each.name,
         "arguments": json.dumps(each.arguments), "status": "completed"}
        for name, each in _named(call, answer)
    ]  # fmt: skip
    return {
        "id": f"resp_{call.number}", "object": "response", "created_at": int(time.time()),
        "model": call.body["model"], "usage": _counted(used(call, answer), "input", "output"), "error": None,
        "status": "incomplete" if reason else "completed", "incomplete_details": {"reason": reason} if reason else None,
        "output": [
            {"type": "reasoning", "id": f"rs_{call.number}", "summary": []},
            {"type": "message", "id": f"msg_{call.number}", "role": "assistant", "content": content},
            *tools,
        ],
    }  # fmt: skip


def _anthropic(call: Call, answer: Answer) -> dict[str, Any]:
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    reason = "tool_use" if answer.tools else reasons.get(answer.finish_reason, answer.finish_reason)
    text = [{"type": "text", "text": answer.text}] if answer.text else []
    tools = [
        {"type": "tool_use", "id": name, "name": each.name, "input": each.arguments}
        for name, each in _named(call, answer)
    ]
    usage = used(call, answer)
    counted = {
        "input_tokens": usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
    }
    return {
        "id": f"msg_{call.number}", "type": "message", "role": "assistant", "model": call.body["model"],
        "content": [*text, *tools], "stop_reason": reason, "stop_sequence": None, "usage": counted,
    }  # fmt: skip
