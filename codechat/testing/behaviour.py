"""The calls and the possible answers of a test server: replies, every fault of an endpoint, and solvers.

A solver answers with the reference solutions of a dataset's tasks.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task


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
    tier: str | None = None  # the `service_tier` that the body names


@dataclass(frozen=True)
class Fault:
    """A response other than a good answer.

    `stall_s` is the wait before its first byte and `drip_s` the pause after every byte of the body, in seconds; `cut`
    closes the connection after that many bytes of the body, and before the status line if it is 0.
    """

    status: int = 200
    body: str | dict[str, Any] | list[Any] = ""
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


HTML = Fault(200, "<!doctype html>\n<title>Sign in</title>\n<p>Please sign in.\n", {"content-type": "text/html"})
GATEWAY = Fault(502, "<html><h1>502 Bad Gateway</h1></html>", {"content-type": "text/html"})
FAULTS = {
    "html": HTML, "gateway": GATEWAY, "limit": rate_limited(1), "error": error(500, "internal error"),
    "overflow": overflow(), "reset": RESET, "cut": CUT_SHORT, "truncated": TRUNCATED_JSON, "empty": EMPTY_CHOICES,
}  # fmt: skip
"""By name, what an endpoint may answer instead of a reply."""

Solver = Callable[[Call], Result]


def troubled(solver: Solver, slow_s: float = 0.0, fault: str | None = None, every: int = 1) -> Behaviour:
    """A solver that waits before each answer, and to each call whose number `every` divides answers with a fault."""

    async def answer(call: Call) -> Result:
        if slow_s:  # a batch is answered at once
            await asyncio.sleep(slow_s)
        return FAULTS[fault] if fault is not None and (call.number + 1) % every == 0 else solver(call)

    return answer


def dataset_tasks(dataset: str, path: str | None = None) -> tuple[Task, ...]:
    """The tasks of a dataset by its name, read from a file if it needs one. Raises `UserError`."""
    config = DATASETS.validate({DATASETS[dataset].key: dataset} | ({} if path is None else {"path": path}))
    return DATASETS.build(config).tasks


def reference_solver(tasks: Iterable[Task]) -> Solver:
    """Every answer is the reference solution of the task that the first user message states.

    Judge prompts get a well-formed verdict: all instructions apply, and none was followed: the code never changes.
    A conversation about an unknown task is refused with 400. Tasks without a reference are unknown.
    """
    known = [
        (_squeeze(task.prompt), _squeeze(task.target.signature), task) for task in tasks if task.reference is not None
    ]
    known.sort(key=lambda entry: len(entry[0]), reverse=True)
    found: dict[str, str] = {}

    def solve(call: Call) -> Result:
        for words, verdict in (("VERDICT: NOT_APPLICABLE", "APPLICABLE"), ("VERDICT: ADHERED", "VIOLATED")):
            if words in call.messages[0]["content"]:
                return f"The request was compared with the code.\nREASON: a fixed answer.\nVERDICT: {verdict}"
        first = next(message["content"] for message in call.messages if message["role"] == "user")
        if first not in found:
            task = _task_of(_squeeze(first), known)
            if task is None:
                return error(400, "this server knows no task with this statement")
            found[first] = f"Here is the code:\n\n```{task.target.language}\n{task.reference}\n```\n"
        return found[first]

    return solve


def fading_solver(tasks: Iterable[Task]) -> Solver:
    """The reference at first; each later turn breaks it with the chance, in percent, at the end of the model's name.

    Broken code is repaired with a quarter of that chance. Draws depend only on the conversation. A model without a
    number at the end of its name is refused with 400.
    """
    right = reference_solver(tasks)

    def solve(call: Call) -> Result:
        reply = right(call)
        user = [message["content"] for message in call.messages if message["role"] == "user"]
        if not isinstance(reply, str) or "VERDICT:" in reply:
            return reply
        number = str(call.body["model"]).rpartition("-")[2]
        if not number.isdecimal():
            return error(400, "the model's name must end in a percentage: model.name=fading-20", param="model")
        percent, broken = int(number), False
        for turn in range(1, len(user)):
            luck = int(hashlib.sha256(f"{call.body['model']}/{user[0]}/{turn}".encode()).hexdigest(), 16) % 400
            broken = luck >= percent if broken else luck < 4 * percent
        return re.sub(r"\breturn\b.*", "return 'broken'", reply) if broken else reply

    return solve


def _task_of(message: str, known: list[tuple[str, str, Task]]) -> Task | None:
    """The task whose statement, else whose signature, is in the message; the longest statement wins."""
    stated = [(signature, task) for prompt, signature, task in known if prompt in message]
    signed = [task for signature, task in stated if signature in message]
    if signed or stated:
        return signed[0] if signed else stated[0][1]
    named = [task for _, signature, task in known if signature in message]
    return named[0] if len(named) == 1 else None


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" \"'")
