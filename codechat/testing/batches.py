"""Servers with the batches of two providers: states, files, expiry, answers out of order, faults of single requests.

Time is counted in looks: each look at a batch, or at a list, takes it one state further, so that tests need not wait.
The work of a batch is done once, when it is in progress; `done` has every request that was answered, which is what a
provider bills.
"""

import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from codechat.testing.behaviour import Behaviour, Fault, error
from codechat.testing.server import OpenAIServer

Expires = Callable[[str, int], bool]
"""Whether a request, by its body, of the batch with such a number expires."""
Loses = Callable[[int, str], bool]
"""Whether something is lost of the request about batches with such a number, by method and path."""


@dataclass
class MadeBatch:
    """A batch at the provider: its requests (name, body) and, once it has ended, their responses, None if expired."""

    name: str
    number: int
    requests: list[tuple[str, bytes]]
    file: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    looks: int = 0
    results: list[tuple[str, Fault | None]] | None = None
    made: float = field(default_factory=time.time)
    path: str = "/v1/chat/completions"
    fails: str = ""


class BatchServer(OpenAIServer):
    """OpenAI's files and batches beside its API, for one behaviour.

    `expires` picks requests that expire, `fails` gives the reason why a batch of such a number is refused in validation
    (empty: it is not), `loses` says of which requests, numbered from 0, about batches the answer is lost although
    they are carried out, and `misses` which never arrive. `events` has what was asked, in order.
    """

    STATES: tuple[str, ...] = ("validating", "in_progress", "in_progress", "finalizing")

    def __init__(
        self,
        behaviour: Behaviour,
        *,
        seed: int = 0,
        expires: Expires = lambda body, number: False,
        fails: Callable[[int], str] = lambda number: "",
        loses: Loses = lambda number, event: False,
        misses: Loses = lambda number, event: False,
        **options: Any,
    ) -> None:
        super().__init__(behaviour, **options)
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, MadeBatch] = {}
        self.done: Counter[bytes] = Counter()
        self.events: list[str] = []
        self._order = random.Random(seed)
        self._expires, self._fails, self._loses, self._misses = expires, fails, loses, misses
        self._names = itertools.count()

    def serves(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault | None:
        parts = urlsplit(path)
        if not {"files", "batches"} & set(parts.path.split("/")):
            return None
        event = len(self.events), f"{method} {parts.path}"
        self.events.append(event[1])
        if self._misses(*event):
            return Fault(cut=0)
        found = self._about_batches(method, parts.path, parse_qs(parts.query), headers, body)
        return Fault(cut=0) if self._loses(*event) else found

    def _about_batches(
        self, method: str, path: str, query: dict[str, list[str]], headers: dict[str, str], body: bytes
    ) -> Fault:
        match (method, *path.removeprefix("/v1/").split("/")):
            case ("POST", "files"):
                return self._take_file(headers, body)
            case ("GET", "files", name, "content") if name in self.files:
                return Fault(200, self.files[name].decode())
            case ("POST", "batches"):
                return self._make(json.loads(body))
            case ("GET", "batches", *rest):
                return self._show(rest, query, "after")
        return error(404, f"no {method} {path} here")

    def _show(self, rest: list[str], query: dict[str, list[str]], after: str) -> Fault:
        """One batch, which is then a state further, or a page of them."""
        if not rest:
            for batch in self.batches.values():
                self.look(batch)
            return Fault(200, _page([self._said(each) for each in self.batches.values()], query, after))
        if len(rest) > 1 or rest[0] not in self.batches:
            return error(404, f"no batch {'/'.join(rest)}")
        self.look(self.batches[rest[0]])
        return Fault(200, self._said(self.batches[rest[0]]))

    def _take_file(self, headers: dict[str, str], body: bytes) -> Fault:
        edge = headers["content-type"].partition("boundary=")[2].encode()
        content = next(part for part in body.split(b"--" + edge) if b"filename=" in part)
        name = f"file-{next(self._names)}"
        self.files[name] = content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        return Fault(200, {"id": name, "object": "file", "purpose": "batch"})

    def _make(self, asked: dict[str, Any]) -> Fault:
        if asked["input_file_id"] not in self.files:
            return error(404, "no such file")
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        names = [line["custom_id"] for line in lines]
        assert len(set(names)) == len(names), "names are unique"
        assert all(line["url"] == asked["endpoint"] and line["method"] == "POST" for line in lines)
        requests = [(line["custom_id"], json.dumps(line["body"]).encode()) for line in lines]
        return Fault(200, self._said(self.add(requests, asked["endpoint"], asked["input_file_id"], asked["metadata"])))

    def add(
        self, requests: list[tuple[str, bytes]], path: str, file: str = "", metadata: dict[str, str] | None = None
    ) -> MadeBatch:
        """Keep a new batch."""
        number = len(self.batches)
        batch = MadeBatch(f"batch_{number}", number, requests, file, metadata or {}, path=path)
        batch.fails = self._fails(number)
        self.batches[batch.name] = batch
        return batch

    def look(self, batch: MadeBatch) -> None:
        """Take a batch one state further."""
        batch.looks += 1
        if batch.looks > len(self.STATES) and batch.results is None and not batch.fails:
            batch.results = [(name, self._worked(batch, body)) for name, body in batch.requests]
            self._order.shuffle(batch.results)

    def _worked(self, batch: MadeBatch, body: bytes) -> Fault | None:
        """The response to one request of a batch; None if it expired."""
        if self._expires(body.decode(), batch.number):
            return None
        responding = self.answer(batch.path, {}, body)
        try:  # behaviours of batches answer at once
            responding.send(None)
        except StopIteration as done:
            response: Fault = done.value
            if response.status == 200:
                self.done[body] += 1
            return response
        raise AssertionError("a behaviour of batches must not wait")

    def _said(self, batch: MadeBatch) -> dict[str, Any]:
        results = batch.results or []
        good = [(name, each) for name, each in results if each is not None and each.status == 200]
        other = [(name, each) for name, each in results if each is None or each.status != 200]
        word = self.STATES[min(batch.looks, len(self.STATES) - 1)]
        said: dict[str, Any] = {
            "id": batch.name, "object": "batch", "endpoint": batch.path, "input_file_id": batch.file,
            "completion_window": "24h", "created_at": int(batch.made), "metadata": batch.metadata, "status": word,
            "output_file_id": None, "error_file_id": None, "errors": None,
            "request_counts": {"total": len(batch.requests), "completed": len(good), "failed": len(other)},
        }  # fmt: skip
        if batch.fails and batch.looks:
            said |= {"status": "failed", "errors": {"data": [{"code": "x", "message": batch.fails, "line": None}]}}
        elif batch.results is not None:
            said["status"] = "expired" if any(each is None for _, each in results) else "completed"
            for key, lines in (("output_file_id", good), ("error_file_id", other)):
                if lines:
                    said[key] = f"{key}-{batch.name}"
                    self.files[said[key]] = "\n".join(json.dumps(_line(*line)) for line in lines).encode()
        return said


def _line(name: str, response: Fault | None) -> dict[str, Any]:
    if response is None:
        expired = {
            "code": "batch_expired",
            "message": "The window ended before this request.",
        }
        return {"id": f"r-{name}", "custom_id": name, "response": None, "error": expired}
    body = response.body if isinstance(response.body, dict) else {"error": {"message": response.body}}
    told = {"status_code": response.status, "request_id": f"q-{name}", "body": body}
    return {"id": f"r-{name}", "custom_id": name, "response": told, "error": None}


def _page(entries: Iterable[dict[str, Any]], query: dict[str, list[str]], after: str) -> dict[str, Any]:
    """A page of a list, the newest first, behind the entry that the query names."""
    newest = list(entries)[::-1]
    if after in query:
        newest = newest[[each["id"] for each in newest].index(query[after][0]) + 1 :]
    limit = int(query.get("limit", ["20"])[0])
    return {"object": "list", "data": newest[:limit], "has_more": len(newest) > limit}


class MessageBatches(BatchServer):
    """Anthropic's Message Batches, for a server of its Messages API: `class S(MessageBatches, AnthropicServer)`."""

    def _about_batches(
        self, method: str, path: str, query: dict[str, list[str]], headers: dict[str, str], body: bytes
    ) -> Fault:
        parts = path.removeprefix("/v1/messages/").split("/")
        assert headers["anthropic-version"] and ("x-api-key" in headers or "authorization" in headers)
        match (method, *parts[1:]):
            case ("POST",):
                asked = json.loads(body)["requests"]
                requests = [(each["custom_id"], json.dumps(each["params"]).encode()) for each in asked]
                return Fault(200, self._said(self.add(requests, "/v1/messages")))
            case ("GET", name, "results") if (made := self.batches.get(name)) and made.results is not None:
                return Fault(200, "\n".join(json.dumps(_result(*each)) for each in made.results))
            case ("GET", *rest):
                return self._show(rest, query, "after_id")
        return error(404, f"no {method} {path} here")

    def _said(self, batch: MadeBatch) -> dict[str, Any]:
        ended = batch.results is not None
        kinds = Counter(_result(name, each)["result"]["type"] for name, each in batch.results or [])
        waiting = 0 if ended else len(batch.requests)
        return {
            "id": batch.name, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
            "request_counts": {"processing": waiting, "canceled": 0, **{
                kind: kinds[kind] for kind in ("succeeded", "errored", "expired")}},
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch.made)),
            "results_url": f"{self.base_url}/v1/messages/batches/{batch.name}/results" if ended else None,
        }  # fmt: skip


def _result(name: str, response: Fault | None) -> dict[str, Any]:
    if response is None:
        return {"custom_id": name, "result": {"type": "expired"}}
    if response.status == 200:
        return {"custom_id": name, "result": {"type": "succeeded", "message": response.body}}
    return {"custom_id": name, "result": {"type": "errored", "error": response.body}}
