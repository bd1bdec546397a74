"""The calls and the possible answers of a test server: replies, and every fault of an endpoint."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """One request for an answer. `number` counts the calls of this server from 0."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation, from either API."""
        sent: list[dict[str, str]] = self.body["messages"] if "messages" in self.body else self.body["input"]
        return sent


@dataclass(frozen=True)
class Answer:
    """A reply with its details; tokens are counted in words unless given."""

    text: str | None
    finish_reason: str = "stop"
    usage: dict[str, Any] | None = None
    message: dict[str, Any] = field(default_factory=dict)  # further fields of the message, chat API only


@dataclass(frozen=True)
class Fault:
    """A response other than a good answer.

    `stall_s` is the wait before its first byte and `drip_s` the pause after every byte of the body, in seconds; `cut`
    closes the connection after that many bytes of the body, and before the status line if it is 0.
    """

    status: int = 200
    body: str | dict[str, Any] = ""
    headers: dict[str, str] = field(default_factory=dict)
    stall_s: float = 0.0
    cut: int | None = None
    drip_s: float = 0.0


Result = str | Answer | Fault
Behaviour = Callable[[Call], Result | Awaitable[Result]]


def error(status: int, message: str, code: str | None = None, param: str | None = None, **headers: str) -> Fault:
    """An error in OpenAI's form."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return Fault(status, {"error": {"message": message, "type": kind, "param": param, "code": code}}, headers)


def rate_limited(retry_after: float | str | None = None) -> Fault:
    """429, with `Retry-After` in seconds or as the given text."""
    words = f"{retry_after:g}" if isinstance(retry_after, int | float) else retry_after
    headers = {} if words is None else {"retry-after": words}
    return error(429, "Rate limit reached", "rate_limit_exceeded", **headers)


def overflow(limit: int = 2048, wording: str = "openai") -> Fault:
    """400 for a conversation that is too long, in the words of OpenAI or vLLM."""
    if wording == "openai":
        text = f"This model's maximum context length is {limit} tokens. Please reduce the length of the messages."
        return error(400, text, "context_length_exceeded", "messages")
    text = f"This model's maximum context length is {limit} tokens. However, your request has {limit + 1} input tokens."
    return Fault(400, {"object": "error", "message": text, "type": "BadRequestError", "param": None, "code": 400})


def refuses_temperature() -> Fault:
    """400, as from OpenAI's reasoning models for a temperature of 0."""
    text = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    return error(400, text, "unsupported_value", "temperature")


RESET = Fault(cut=0)
CUT_SHORT = Fault(200, '{"choices": [{"message": {"content": "lost on the way"}}]}', cut=20)
TRUNCATED_JSON = Fault(200, '{"id": "x", "choices": [{"message": {"role": "assistant", "cont')
EMPTY_CHOICES = Fault(200, {"id": "x", "object": "chat.completion", "choices": [], "output": []})


def drip(seconds: float) -> Fault:
    """A good answer, so many seconds between one byte and the next."""
    body = {"choices": [{"message": {"role": "assistant", "content": "slowly"}, "finish_reason": "stop"}]}
    return Fault(body=body, drip_s=seconds)


def stall(seconds: float) -> Fault:
    """No byte for that long, then a good status with nothing in it."""
    return Fault(stall_s=seconds, body="{}")
