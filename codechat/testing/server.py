"""An HTTP server on loopback that speaks the three APIs of `apis.py`: its calls, its replies, every fault, and solvers.

A solver answers with the reference solutions of a dataset's tasks.
"""

import asyncio
import contextlib
import hashlib
import inspect
import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from codechat.base.domain import Usage
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task
from codechat.judging.fitness import right_word
from codechat.testing.apis import Answer, Call, body_of, used, words
from codechat.testing.streams import EVENTS, stream_of

log = logging.getLogger(__name__)
PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens")


@dataclass(frozen=True)
class Fault:
    """A response other than a good answer.

    `stall_s`: seconds before the first byte. `drip_s`: seconds after every byte of the body. `cut`: bytes of the body
    after which the connection is closed; 0: before the status line.
    """

    status: int = 200
    body: str | bytes | dict[str, Any] | list[Any] = ""
    headers: dict[str, str] = field(default_factory=dict)
    stall_s: float = 0.0
    cut: int | None = None
    drip_s: float = 0.0


Result = str | Answer | Fault
Behaviour = Callable[[Call], Result | Awaitable[Result]]


def error(status: int, message: str, code: str | None = None, param: str | None = None, **headers: str) -> Fault:
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


def only_streams(words: str = "This model only support stream mode, please enable the stream parameter.") -> Fault:
    """400, as from Qwen's thinking models for a call that is no stream."""
    return error(400, words, "invalid_parameter_error")


def refuses_temperature() -> Fault:
    """400, as from OpenAI's reasoning models for a temperature of 0."""
    text = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    return error(400, text, "unsupported_value", "temperature")


RESET = Fault(cut=0)
CUT_SHORT = Fault(200, '{"choices": [{"message": {"content": "lost on the way"}}]}', cut=20)
TRUNCATED_JSON = Fault(200, '{"id": "x", "choices": [{"message": {"role": "assistant", "cont')
EMPTY_CHOICES = Fault(200, {"id": "x", "object": "chat.completion", "choices": [], "output": []})


def drip(seconds: float) -> Fault:
    """A good answer, with a pause after every byte."""
    body = {"choices": [{"message": {"role": "assistant", "content": "slowly"}, "finish_reason": "stop"}]}
    return Fault(body=body, drip_s=seconds)


def stall(seconds: float) -> Fault:
    """No byte for some seconds, then a good status without an answer."""
    return Fault(stall_s=seconds, body="{}")


HTML = Fault(200, "<!doctype html>\n<title>Sign in</title>\n<p>Please sign in.\n", {"content-type": "text/html"})
GATEWAY = Fault(502, "<html><h1>502 Bad Gateway</h1></html>", {"content-type": "text/html"})
FAULTS = {
    "html": HTML, "gateway": GATEWAY, "limit": rate_limited(1), "error": error(500, "internal error"),
    "overflow": overflow(), "reset": RESET, "cut": CUT_SHORT, "truncated": TRUNCATED_JSON, "empty": EMPTY_CHOICES,
}  # fmt: skip
"""Faults by name."""

Solver = Callable[[Call], Result]


def troubled(solver: Solver, slow_s: float = 0.0, fault: str | None = None, every: int = 1) -> Behaviour:
    """A solver that waits before each answer, and answers every `every`th call with a fault."""

    async def answer(call: Call) -> Result:
        if slow_s:  # without a wait it also serves batches
            await asyncio.sleep(slow_s)
        return FAULTS[fault] if fault is not None and (call.number + 1) % every == 0 else solver(call)

    return answer


def dataset_tasks(dataset: str, path: str | None = None) -> tuple[Task, ...]:
    """The tasks of a dataset by name, read from `path` if it needs a file. Raises `UserError`."""
    config = DATASETS.validate({DATASETS[dataset].key: dataset} | ({} if path is None else {"path": path}))
    return DATASETS.build(config).tasks


def reference_solver(tasks: Iterable[Task]) -> Solver:
    """Answers with the reference solution of the task in the first user message.

    Judge prompts get a well-formed verdict: all instructions apply and none was followed: the code never changes. The
    questions of `judge.check` are answered rightly.
    A conversation about an unknown task, or a task without a reference, is refused with 400.
    """
    find = finder(tasks)
    replies: dict[str, str] = {}

    def solve(call: Call) -> Result:
        asked = call.messages[0]["content"]
        for label, verdict in (("VERDICT: NOT_APPLICABLE", "APPLICABLE"), ("VERDICT: ADHERED", "VIOLATED")):
            if label in asked:
                word = right_word(asked) or verdict
                return f"The request was compared with the code.\nREASON: a fixed answer.\nVERDICT: {word}"
        first = next(message["content"] for message in call.messages if message["role"] == "user")
        if first not in replies:
            task = find(first)
            if task is None:
                return error(400, "this server knows no task with this statement")
            replies[first] = f"Here is the code:\n\n```{task.target.language}\n{task.reference}\n```\n"
        return replies[first]

    return solve


def fading_solver(tasks: Iterable[Task]) -> Solver:
    """The reference at first; each later turn breaks it with the percentage at the end of the model's name.

    Broken code is repaired with a quarter of that chance. Draws depend only on the conversation. A name without a
    number at its end is refused with 400.
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
        percent, is_broken = int(number), False
        for turn in range(1, len(user)):
            luck = int(hashlib.sha256(f"{call.body['model']}/{user[0]}/{turn}".encode()).hexdigest(), 16) % 400
            is_broken = luck >= percent if is_broken else luck < 4 * percent
        return broken(reply) if is_broken else reply

    return solve


def broken(code: str) -> str:
    """The code with other results: its names stay."""
    return re.sub(r"\breturn\b.*", "return 'broken'", code)


def finder(tasks: Iterable[Task]) -> Callable[[str], Task | None]:
    """Finds the task with a reference whose statement, else signature, is in a text; the longest statement wins."""
    known = [
        (_squeeze(task.prompt), _squeeze(task.target.signature), task) for task in tasks if task.reference is not None
    ]
    known.sort(key=lambda entry: len(entry[0]), reverse=True)

    def find(text: str) -> Task | None:
        message = _squeeze(text)
        stated = [(signature, task) for prompt, signature, task in known if prompt in message]
        signed = [task for signature, task in stated if signature in message]
        if signed or stated:
            return signed[0] if signed else stated[0][1]
        named = [task for _, signature, task in known if signature in message]
        return named[0] if len(named) == 1 else None

    return find


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" \"'")


class OpenAIServer:
    """Serves on 127.0.0.1 from a new thread; a context manager. Entering raises `OSError` for a taken port.

    `calls` holds every request for an answer, unless `keep_calls` is false (for many thousand calls). `usage` sums the
    tokens of all good answers whose usage is no dict. `port` 0 takes a free port. `facts` are further fields of
    every model in the list (`root`, `created`, `max_model_len`), `fingerprint` the `system_fingerprint` of replies.
    """

    def __init__(
        self,
        behaviour: Behaviour,
        *,
        port: int = 0,
        models: Iterable[str] = ("test-model",),
        keep_calls: bool = True,
        facts: Mapping[str, Any] | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.behaviour = behaviour
        self.facts, self.fingerprint = dict(facts or {}), fingerprint
        self.models_fault: Fault | None = None  # the answer to GET /v1/models, if not the list
        self.calls: list[Call] = []
        self.answered, self.usage = 0, Usage()
        self._keep_calls = keep_calls
        self.in_flight = self.most_in_flight = self.probes = 0
        self._port, self._models = port, tuple(models)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._problem: OSError | None = None
        self.connections: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """The address for a config."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self._problem:
            raise self._problem
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=2**20, backlog=1024)
        except OSError as problem:
            self._problem = problem
            return
        else:
            self._port = server.sockets[0].getsockname()[1]
        finally:
            self._started.set()
        await self._stop.wait()
        server.close()
        for task in self.connections:
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            self.connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Handle one request. False if the connection must be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        complete = await _send(await self._respond(method, path, headers, body), writer)
        return complete and headers.get("connection", "").lower() != "close"

    async def _respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault:
        if (other := self.serves(method, path, headers, body)) is not None:
            return other
        if method == "POST":
            return await self.answer(path, headers, body)
        if method == "HEAD":  # asked by agents, to open a connection early
            return Fault()
        if method == "GET" and (page := self.page(path)) is not None:
            return page
        if method != "GET" or path.partition("?")[0] != "/v1/models":
            return error(404, f"no {method} {path} here")
        self.probes += 1
        data = [{"id": name, "object": "model", **self.facts} for name in self._models]
        return self.models_fault or Fault(200, {"object": "list", "data": data})

    async def answer(self, path: str, headers: dict[str, str], body: bytes) -> Fault:
        """The response to a request for an answer."""
        read = self.reads(path, body)
        if read is None:
            return error(404, f"no POST {path} here")
        if isinstance(read, Fault):
            return read
        call = Call(self.answered, path, headers, read)
        if path.partition("?")[0].endswith("/count_tokens"):
            return Fault(200, {"input_tokens": words(call)})
        self.answered += 1
        if self._keep_calls:
            self.calls.append(call)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            result = self.behaviour(call)
            if inspect.isawaitable(result):
                result = await result
        except Exception as problem:
            log.exception("the behaviour raised at call %d", call.number)
            return error(500, f"the behaviour raised {problem!r}")
        finally:
            self.in_flight -= 1
        if isinstance(result, Fault):
            return result
        answer = Answer(result) if isinstance(result, str) else result
        if not isinstance(answer.usage, dict):
            self.usage += used(call, answer)
        written = self.writes(call, answer)
        return Fault(200, self.streams(call, written), EVENTS) if call.streamed else Fault(200, written)

    def serves(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault | None:
        """Override for a further API, such as batches: its response, or None."""
        return None

    def page(self, path: str) -> Fault | None:
        """Override for further pages, such as a server's state, or another list of models: the page, or None."""
        return None

    def reads(self, path: str, body: bytes) -> dict[str, Any] | Fault | None:
        """The body of a request for an answer, with `model` and `messages` as in OpenAI's chat; None for other paths.

        Override for another protocol, together with `writes`.
        """
        if path.partition("?")[0] not in PATHS:
            return None
        try:
            read: dict[str, Any] = json.loads(body)
        except ValueError:
            return error(400, "the body is not JSON")
        return read

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        """The body of a good answer."""
        fields = {} if self.fingerprint is None else {"system_fingerprint": self.fingerprint}
        if answer.tier is not None:
            fields["service_tier"] = answer.tier
        return fields | body_of(call, answer)

    def streams(self, call: Call, written: dict[str, Any]) -> str:
        """The body of a good answer to a call that asks for a stream."""
        return stream_of(call, written)


async def _send(fault: Fault, writer: asyncio.StreamWriter) -> bool:
    """Send a response with its faults. False if it was cut off: the connection is closed."""
    if fault.stall_s:
        await asyncio.sleep(fault.stall_s)
    text = fault.body if isinstance(fault.body, str | bytes) else json.dumps(fault.body)
    data = text.encode() if isinstance(text, str) else text
    headers = {"content-type": "application/json", "content-length": len(data), **fault.headers}
    line = f"HTTP/1.1 {fault.status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"{line}\r\n".encode()
    if fault.cut is not None:
        writer.write(head + data[: fault.cut] if fault.cut else b"")
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.transport.abort()
        return False
    if fault.drip_s:
        writer.write(head)
        for byte in data:
            writer.write(bytes([byte]))
            await asyncio.sleep(fault.drip_s)
    else:
        writer.write(head + data)
    await writer.drain()
    return True
