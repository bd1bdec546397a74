"""A server with OpenAI's batches: states, files, expiry, answers out of order, faults of single requests.

Each poll of a batch, or of a list, advances the batch by one state, so tests need not wait. The work of a batch is done
once; `done` counts every answered request, which a provider bills.
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

from codechat.testing.server import Behaviour, Fault, OpenAIServer, error

Expires = Callable[[str, int], bool]
"""Whether a request expires, by its body and the number of its batch."""
Loses = Callable[[int, str], bool]
"""Whether a message about batches is lost, by its number and "METHOD PATH"."""


@dataclass
class MadeBatch:
    """A batch at the provider: requests (name, body) and, once it has ended, their responses (None: expired)."""

    name: str
    number: int
    requests: list[tuple[str, bytes]]
    file: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    looks: int = 0
    results: list[tuple[str, Fault | None]] | None = None
    made: float = field(default_factory=time.time)
    lists: int = 0
    path: str = "/v1/chat/completions"
    fails: str = ""


class BatchServer(OpenAIServer):
    """OpenAI's API with files and batches, for one behaviour.

    `expires`: requests that expire. `fails`: why the batch of a number fails validation ("": it does not). `loses`:
    messages about batches that are executed but whose response is dropped; `misses`: messages that never arrive.
    `late`: how many lists lack a new batch; `doubles`: a result file's lines, with some again.
    `events` lists the messages, in order.
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
        late: int = 0,
        doubles: Callable[[list[str]], list[str]] = lambda lines: lines,
        **options: Any,
    ) -> None:
        super().__init__(behaviour, **options)
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, MadeBatch] = {}
        self.done: Counter[bytes] = Counter()
        self.events: list[str] = []
        self._order = random.Random(seed)
        self._expires, self._fails, self._loses, self._misses = expires, fails, loses, misses
        self._late, self._doubles = late, doubles
        self._names = itertools.count()

    def serves(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault | None:
        parts = urlsplit(path)
        if not {"files", "batches"} & set(parts.path.split("/")):
            return None
        event = len(self.events), f"{method} {parts.path}"
        self.events.append(event[1])
        if self._misses(*event):
            return Fault(cut=0)
        response = self._about_batches(method, parts.path, parse_qs(parts.query), headers, body)
        return Fault(cut=0) if self._loses(*event) else response

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
            case ("GET", "batches", *names):
                return self._show(names, query, "after")
        return error(404, f"no {method} {path} here")

    def _show(self, names: list[str], query: dict[str, list[str]], after: str) -> Fault:
        """One batch, or a page of batches; each advances by a state."""
        if not names:
            for batch in self.batches.values():
                self.look(batch)
                batch.lists += 1
            shown = [self._said(each) for each in self.batches.values() if each.lists > self._late]
            return Fault(200, _page(shown, query, after))
        name = "/".join(names)
        if name not in self.batches:
            return error(404, f"no batch {name}")
        self.look(self.batches[name])
        return Fault(200, self._said(self.batches[name]))

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
        number = len(self.batches)
        batch = MadeBatch(f"batch_{number}", number, requests, file, metadata or {}, path=path)
        batch.fails = self._fails(number)
        self.batches[batch.name] = batch
        return batch

    def look(self, batch: MadeBatch) -> None:
        """Advance a batch by one state."""
        batch.looks += 1
        if batch.looks > len(self.STATES) and batch.results is None and not batch.fails:
            batch.results = [(name, self._worked(batch, body)) for name, body in batch.requests]
            self._order.shuffle(batch.results)

    def _worked(self, batch: MadeBatch, body: bytes) -> Fault | None:
        """The response to one request of a batch; None if it expired."""
        if self._expires(body.decode(), batch.number):
            return None
        responding = self.answer(batch.path, {}, body)
        try:
            responding.send(None)
        except StopIteration as done:
            response: Fault = done.value
            if response.status == 200:
                self.done[body] += 1
            return response
        raise AssertionError("a behaviour of batches must answer at once")

    def _said(self, batch: MadeBatch) -> dict[str, Any]:
        results = batch.results or []
        good = [(name, each) for name, each in results if each is not None and each.status == 200]
        other = [(name, each) for name, each in results if each is None or each.status != 200]
        word = self.STATES[min(batch.looks, len(self.STATES) - 1)]
        state: dict[str, Any] = {
            "id": batch.name, "object": "batch", "endpoint": batch.path, "input_file_id": batch.file,
            "completion_window": "24h", "created_at": int(batch.made), "metadata": batch.metadata, "status": word,
            "output_file_id": None, "error_file_id": None, "errors": None,
            "request_counts": {"total": len(batch.requests), "completed": len(good), "failed": len(other)},
        }  # fmt: skip
        if batch.fails and batch.looks:
            state |= {"status": "failed", "errors": {"data": [{"code": "x", "message": batch.fails, "line": None}]}}
        elif batch.results is not None:
            state["status"] = "expired" if any(each is None for _, each in results) else "completed"
            for key, lines in (("output_file_id", good), ("error_file_id", other)):
                if lines:
                    state[key] = f"{key}-{batch.name}"
                    written = self._doubles([json.dumps(_line(*line)) for line in lines])
                    self.files[state[key]] = "\n".join(written).encode()
        return state


def _line(name: str, response: Fault | None) -> dict[str, Any]:
    line: dict[str, Any] = {"id": f"r-{name}", "custom_id": name, "response": None, "error": None}
    if response is None:
        return line | {"error": {"code": "batch_expired", "message": "The window ended before this request."}}
    body = response.body if isinstance(response.body, dict) else {"error": {"message": response.body}}
    return line | {"response": {"status_code": response.status, "request_id": f"q-{name}", "body": body}}


def _page(entries: Iterable[dict[str, Any]], query: dict[str, list[str]], after: str) -> dict[str, Any]:
    """A page of a list, newest first, after the entry that the query names."""
    newest = list(entries)[::-1]
    if after in query:
        newest = newest[[each["id"] for each in newest].index(query[after][0]) + 1 :]
    limit = int(query.get("limit", ["20"])[0])
    return {"object": "list", "data": newest[:limit], "has_more": len(newest) > limit}
