"""An HTTP server that speaks the OpenAI protocol over real sockets, for tests and for trying codechat without a model.

In a test, answers come from a function of the call::

    with OpenAIServer(lambda call: "hello") as server:
        ...  # server.base_url, server.calls

A behaviour returns the reply's text, an `Answer`, or a `Fault`. As a command it answers every task with its reference
solution, on loopback::

    python tests/servers/openai_server.py --dataset starter --port 8000
"""

import argparse
import asyncio
import contextlib
import hashlib
import inspect
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Call:
    """One request for an answer. `number` counts the calls of this server from 0."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation, whichever API it came by."""
        return self.body["messages"] if "messages" in self.body else self.body["input"]


@dataclass(frozen=True)
class Answer:
    """A reply with its details; token counts are those of the words unless given."""

    text: str | None
    finish_reason: str = "stop"
    usage: dict[str, Any] | None = None
    message: dict[str, Any] = field(default_factory=dict)  # further fields of the message, chat API only


@dataclass(frozen=True)
class Fault:
    """A response other than a good answer. `cut` closes the connection after that many bytes of it.

    `drip_s` is the pause after every byte of the body.
    """

    status: int = 200
    body: str | dict[str, Any] = ""
    headers: dict[str, str] = field(default_factory=dict)
    stall_s: float = 0.0
    cut: int | None = None
    drip_s: float = 0.0


Result = str | Answer | Fault
Behaviour = Callable[[Call], Result | Awaitable[Result]]


# -- faults ------------------------------------------------------------------------------------------------------


def error(status: int, message: str, code: str | None = None, param: str | None = None, **headers: str) -> Fault:
    """An error in OpenAI's form."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return Fault(status, {"error": {"message": message, "type": kind, "param": param, "code": code}}, headers)


def rate_limited(retry_after: float | str | None = None) -> Fault:
    """429, with `Retry-After` in seconds, or as given in words."""
    words = f"{retry_after:g}" if isinstance(retry_after, int | float) else retry_after
    headers = {} if words is None else {"retry-after": words}
    return error(429, "Rate limit reached", "rate_limit_exceeded", **headers)


def overflow(limit: int = 2048, wording: str = "openai") -> Fault:
    """400 for a conversation that is too long, as OpenAI or vLLM word it."""
    if wording == "openai":
        text = f"This model's maximum context length is {limit} tokens. Please reduce the length of the messages."
        return error(400, text, "context_length_exceeded", "messages")
    text = f"This model's maximum context length is {limit} tokens. However, your request has {limit + 1} input tokens."
    return Fault(400, {"object": "error", "message": text, "type": "BadRequestError", "param": None, "code": 400})


def refuses_temperature() -> Fault:
    """400 as OpenAI's reasoning models answer to a temperature of 0."""
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


# -- the server --------------------------------------------------------------------------------------------------


class OpenAIServer:
    """Serves on 127.0.0.1 from a thread of its own; a context manager. `calls` holds every request for an answer."""

    def __init__(
        self, behaviour: Behaviour, *, port: int = 0, models: Iterable[str] = ("test-model",), keep_calls: bool = True
    ) -> None:
        self.behaviour = behaviour
        self.models_fault: Fault | None = None  # what GET /v1/models answers, if not the list
        self.calls: list[Call] = []  # empty with keep_calls=False, for runs of many thousand calls
        self.answered = 0
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
        """The address that a config takes."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> "OpenAIServer":
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
        """One request and its response. False: the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        fault = await self._respond(method, path, headers, body)
        if fault.stall_s:
            await asyncio.sleep(fault.stall_s)
        data = (fault.body if isinstance(fault.body, str) else json.dumps(fault.body)).encode()
        extra = "".join(f"{name}: {value}\r\n" for name, value in fault.headers.items())
        line = f"HTTP/1.1 {fault.status} X\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n{extra}"
        response = f"{line}\r\n".encode() + data
        if fault.cut is not None:
            writer.write(response[: len(response) - len(data) + fault.cut] if fault.cut else b"")
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            writer.transport.abort()
            return False
        if fault.drip_s:
            writer.write(response[: len(response) - len(data)])
            for byte in data:
                writer.write(bytes([byte]))
                await asyncio.sleep(fault.drip_s)
        else:
            writer.write(response)
        await writer.drain()
        return headers.get("connection", "").lower() != "close"

    async def _respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault:
        if path == "/v1/models" and method == "GET":
            self.probes += 1
            listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in self._models]}
            return self.models_fault or Fault(200, listed)
        if path not in ("/v1/chat/completions", "/v1/responses") or method != "POST":
            return error(404, f"no {method} {path} here")
        try:
            call = Call(self.answered, path, headers, json.loads(body))
        except ValueError:
            return error(400, "the body is not JSON")
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
            return error(500, f"the behaviour raised {problem!r}")
        finally:
            self.in_flight -= 1
        if isinstance(result, Fault):
            return result
        answer = Answer(result) if isinstance(result, str) else result
        return Fault(200, _chat(call, answer) if path.endswith("completions") else _responses(call, answer))


def _words(text: str | None) -> int:
    return len((text or "").split())


def _chat(call: Call, answer: Answer) -> dict[str, Any]:
    sent = sum(_words(message["content"]) for message in call.messages)
    received = _words(answer.text)
    counted = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
    message = {"role": "assistant", "content": answer.text, **answer.message}
    return {
        "id": f"chatcmpl-{call.number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": call.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": None}],
        "usage": answer.usage or counted,
    }


def _responses(call: Call, answer: Answer) -> dict[str, Any]:
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(answer.finish_reason)
    content = [] if answer.text is None else [{"type": "output_text", "text": answer.text, "annotations": []}]
    counted = {
        "input_tokens": sum(_words(message["content"]) for message in call.messages),
        "output_tokens": _words(answer.text),
    }
    return {
        "id": f"resp_{call.number}",
        "object": "response",
        "created_at": int(time.time()),
        "model": call.body["model"],
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "output": [
            {"type": "reasoning", "id": f"rs_{call.number}", "summary": []},
            {"type": "message", "id": f"msg_{call.number}", "role": "assistant", "content": content},
        ],
        "usage": answer.usage or counted,
    }


# -- behaviours --------------------------------------------------------------------------------------------------


class SolvableTask(Protocol):
    """What of a task the reference solver needs; `codechat.domain.Task` has it."""

    task_id: str
    prompt: str
    signature: str
    reference: str | None


def reference_solver(tasks: Iterable[SolvableTask]) -> Behaviour:
    """Every answer is the reference solution of the task that the first user message states.

    Judge prompts get a well-formed verdict: all instructions apply, and none was followed, as the code never changes.
    A conversation about no known task is refused with 400.
    """
    known = [(_squeeze(task.prompt), _squeeze(task.signature), task) for task in tasks]
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
            found[first] = f"Here is the code:\n\n```python\n{task.reference}\n```\n"
        return found[first]

    return solve


def fading_solver(tasks: Iterable[SolvableTask]) -> Behaviour:
    """The reference at first; at each later turn the code breaks with the chance, in percent, that ends the model's name.

    Broken code is mended with a quarter of that chance. Chances follow from the conversation: the same every time.
    """
    right = reference_solver(tasks)

    def solve(call: Call) -> Result:
        reply = right(call)
        user = [message["content"] for message in call.messages if message["role"] == "user"]
        if not isinstance(reply, str) or "VERDICT:" in reply:
            return reply
        percent = int(str(call.body["model"]).rpartition("-")[2])
        broken = False
        for turn in range(1, len(user)):
            luck = int(hashlib.sha256(f"{call.body['model']}/{user[0]}/{turn}".encode()).hexdigest(), 16) % 400
            broken = luck >= percent if broken else luck < 4 * percent
        return re.sub(r"\breturn\b.*", "return 'broken'", reply) if broken else reply

    return solve


def _task_of(message: str, known: list[tuple[str, str, SolvableTask]]) -> SolvableTask | None:
    """The task whose statement, or else whose signature, the message holds; the longest statement wins."""
    stated = [(signature, task) for prompt, signature, task in known if prompt in message]
    signed = [task for signature, task in stated if signature in message]
    if signed or stated:
        return signed[0] if signed else stated[0][1]
    named = [task for _, signature, task in known if signature in message]
    return named[0] if len(named) == 1 else None


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" \"'")


BEHAVIOURS = {"reference": reference_solver, "fading": fading_solver}


def main() -> None:
    """Serve the reference solutions of a dataset until interrupted."""
    from codechat.datasets import DATASETS
    from codechat.errors import UserError

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--dataset", default="starter", help="a dataset's name, as in dataset=NAME")
    parser.add_argument("--path", help="its file, as in dataset.path=FILE")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    parser.add_argument(
        "--behaviour", choices=sorted(BEHAVIOURS), default="reference",
        help="reference: every answer is the reference; fading: model.name=fading-20 breaks the code at 20 %% of turns",
    )  # fmt: skip
    chosen = parser.parse_args()
    try:
        config = DATASETS.validate({"kind": chosen.dataset} | ({"path": chosen.path} if chosen.path else {}))
        tasks = DATASETS.of(config).factory(config).tasks
    except UserError as mistake:
        parser.error(str(mistake))
    behaviour = BEHAVIOURS[chosen.behaviour](tasks)
    with OpenAIServer(behaviour, port=chosen.port, models=["reference"], keep_calls=False) as server:
        print(f"{len(tasks)} tasks of {chosen.dataset} ({chosen.behaviour}) at {server.base_url}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
