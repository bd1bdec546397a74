"""An HTTP server that speaks the OpenAI protocol over real sockets, only on loopback."""

import asyncio
import contextlib
import hashlib
import inspect
import itertools
import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from codechat.testing.behaviour import Answer, Behaviour, Call, Fault, error

log = logging.getLogger(__name__)


BLOCK = 16
"""Words of a block: only whole ones are kept."""


class Prefixes:
    """The prefixes that were read and written before; none is ever dropped."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def served(self, messages: Iterable[Mapping[str, str]]) -> int:
        """The words at the beginning of a conversation that are known already."""
        return BLOCK * sum(1 for _ in itertools.takewhile(self._known.__contains__, _blocks(messages)))

    def keep(self, messages: Iterable[Mapping[str, str]], reply: str) -> None:
        """Keep a conversation with its reply."""
        self._known.update(_blocks([*messages, {"role": "assistant", "content": reply}]))


def _blocks(messages: Iterable[Mapping[str, str]]) -> Iterator[bytes]:
    """The hash of every whole block, and of all that is before it. Roles belong to the first word of a message."""
    words = [
        word if number else f"{message['role']} {word}"
        for message in messages
        for number, word in enumerate((message["content"] or "").split())
    ]
    so_far = hashlib.sha256()
    for start in range(0, len(words) - BLOCK + 1, BLOCK):
        so_far.update("\0".join(words[start : start + BLOCK]).encode() + b"\1")
        yield so_far.digest()


class OpenAIServer:
    """Serves on 127.0.0.1 from its own thread; a context manager.

    `calls` holds every request for an answer; with `keep_calls` false it stays empty, for runs of many thousand calls.
    `port` 0 takes a free one. `facts` are further fields of every model in its list (`root`, `created`,
    `max_model_len`), and `fingerprint` is the `system_fingerprint` of its replies. `prefixes` tells, in the usage of
    chat replies, which words it had cached. Entering raises `OSError` if the
    port cannot be had.
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
        prefixes: Prefixes | None = None,
    ) -> None:
        self.behaviour = behaviour
        self.facts, self.fingerprint = dict(facts or {}), fingerprint
        self._prefixes = prefixes
        self.models_fault: Fault | None = None  # the answer to GET /v1/models, if not the list
        self.calls: list[Call] = []
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
        """One request and its response. False if the connection must be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        kept = await _send(await self._respond(method, path, headers, body), writer)
        return kept and headers.get("connection", "").lower() != "close"

    async def _respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault:
        other = self.serves(method, path, headers, body)
        if other is not None:
            return other
        page = self.page(path) if method == "GET" else None
        if page is None and path == "/v1/models" and method == "GET":
            self.probes += 1
            listed = {
                "object": "list",
                "data": [{"id": name, "object": "model", **self.facts} for name in self._models],
            }
            return self.models_fault or Fault(200, listed)
        if page is not None:
            return page
        if method != "POST":
            return error(404, f"no {method} {path} here")
        return await self.answer(path, headers, body)

    async def answer(self, path: str, headers: dict[str, str], body: bytes) -> Fault:
        """The response to a request for an answer."""
        read = self.reads(path, body)
        if read is None:
            return error(404, f"no POST {path} here")
        if isinstance(read, Fault):
            return read
        call = Call(self.answered, path, headers, read)
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
        return Fault(200, self.writes(call, Answer(result) if isinstance(result, str) else result))

    def serves(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault | None:
        """The response of a further API, such as one of batches; None if the request is not for one."""
        return None

    def page(self, path: str) -> Fault | None:
        """A page beside the API, such as a server's state, or in place of the list of models; None if there is none.

        Servers with some differ here.
        """
        return None

    def reads(self, path: str, body: bytes) -> dict[str, Any] | Fault | None:
        """The body of a request for an answer; None for a path that has none. Servers of other protocols differ here.

        It has the `model` and its `messages` as OpenAI's chat has them.
        """
        if path not in ("/v1/chat/completions", "/v1/responses"):
            return None
        try:
            read: dict[str, Any] = json.loads(body)
        except ValueError:
            return error(400, "the body is not JSON")
        return read

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        """The body of a good answer."""
        told = {} if self.fingerprint is None else {"system_fingerprint": self.fingerprint}
        if answer.tier is not None:
            told["service_tier"] = answer.tier
        if not call.path.endswith("completions"):
            return told | _responses(call, answer)
        written = told | _chat(call, answer)
        if self._prefixes is not None:
            cached = self._prefixes.served(call.messages)
            self._prefixes.keep(call.messages, answer.text or "")
            written["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
        return written


async def _send(fault: Fault, writer: asyncio.StreamWriter) -> bool:
    """Send a response with its faults. False if it was cut off, which closes the connection."""
    if fault.stall_s:
        await asyncio.sleep(fault.stall_s)
    data = (fault.body if isinstance(fault.body, str) else json.dumps(fault.body)).encode()
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
