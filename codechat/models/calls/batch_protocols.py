"""Two providers' batches: OpenAI's files with a line per request, and Anthropic's Message Batches.

Both use the connections of the model's client and the headers of its requests.
"""

import datetime
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from codechat.base.texts import read_json
from codechat.models.calls.answers import OTHER_SHAPES, tokens
from codechat.models.calls.batches import Batch, Result, State, Unreached, Unsure

Exchange = Callable[[str, str, bytes | None, str], Awaitable[bytes]]
"""Sends (method, path below the API's address, body, content type); returns the body of a good answer.

Raises `Unreached` and `Declined`."""

JSON = "application/json"
CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([0-9a-f]{40})"')
PAGE = 100
CLOCKS_S = 3_600.0
"""Greatest difference between a provider's clock and ours."""


def _read(body: bytes) -> dict[str, Any]:
    try:
        value = read_json(body)
    except ValueError as problem:
        raise Unreached(f"the answer is not JSON: {problem}") from None
    if not isinstance(value, dict):
        raise Unreached("the answer is not a JSON object")
    return value


def _id(body: bytes) -> str:
    """The id of the created file or batch."""
    made = _read(body).get("id")
    if not isinstance(made, str | int) or made == "":
        raise Unreached("the answer names no id")
    return str(made)


def _results(body: bytes, read: Callable[[dict[str, Any]], tuple[str, Result]]) -> Iterator[tuple[str, Result]]:
    """The answer in each line. A whole line that cannot be read is no answer to its request, which is asked again."""
    for line in filter(None, map(bytes.strip, body.splitlines())):
        try:
            yield read(_read(line))
        except (Unreached, *OTHER_SHAPES):
            name = CUSTOM_ID.search(line)
            if name is None or not line.endswith(b"}"):
                raise
            yield name[1].decode(), Result(0, b"the answer cannot be read")


class OpenAIBatches:
    """`/files` and `/batches`: a batch is found again by its input file, whose id is known before the batch exists.

    OpenAI's bounds: 50,000 requests and 200 MB a file, and a window of 24 hours.
    """

    most_requests, most_bytes = 50_000, 150_000_000
    ended = ("completed", "failed", "expired", "cancelled")

    def __init__(self, exchange: Exchange, path: str) -> None:
        self._exchange, self._path = exchange, path

    async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
        head = {"method": "POST", "url": f"/v1{self._path}"}
        lines = [
            json.dumps({"custom_id": key, **head})[:-1].encode() + b', "body": ' + body + b"}\n"
            for key, body in requests.items()
        ]
        edge = f"codechat-{batch.name}"
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'.encode(),
            f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{batch.name}.jsonl"\r\n'
            f"Content-Type: application/jsonl\r\n\r\n".encode(),
            *lines,
            f"\r\n--{edge}--\r\n".encode(),
        ]
        kind = f"multipart/form-data; boundary={edge}"
        return _id(await self._exchange("POST", "/files", b"".join(parts), kind))

    async def create(self, batch: Batch, requests: dict[str, bytes]) -> str:
        asked = {
            "input_file_id": batch.file,
            "endpoint": f"/v1{self._path}",
            "completion_window": "24h",
            "metadata": {"codechat": batch.name},
        }
        return _id(await self._exchange("POST", "/batches", json.dumps(asked).encode(), JSON))

    async def find(self, batch: Batch, keys: Collection[str]) -> str:
        after = ""
        while batch.file:
            page = {"limit": PAGE, **({"after": after} if after else {})}
            listed = _read(await self._exchange("GET", f"/batches?{urlencode(page)}", None, JSON))
            for each in listed["data"]:
                if batch.file == each.get("input_file_id") or batch.name == (each.get("metadata") or {}).get(
                    "codechat"
                ):
                    return str(each["id"])
            oldest = min((each.get("created_at", 0) for each in listed["data"]), default=0)
            if not listed.get("has_more") or oldest < batch.made - CLOCKS_S:
                break
            after = str(listed["data"][-1]["id"])
        return ""

    async def state(self, batch: Batch) -> State:
        answer = _read(await self._exchange("GET", f"/batches/{batch.remote}", None, JSON))
        counts = answer.get("request_counts") or {}
        places = tuple(answer[name] for name in ("output_file_id", "error_file_id") if answer.get(name))
        errors = (answer.get("errors") or {}).get("data") or []
        problem = "; ".join(str(each.get("message")) for each in errors[:3])
        done = tokens(counts.get("completed")) + tokens(counts.get("failed"))
        return State(str(answer["status"]), done, answer["status"] in self.ended, places, problem)

    async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
        files = [await self._exchange("GET", f"/files/{place}/content", None, JSON) for place in state.places]
        return (result for file in files for result in _results(file, self._result))

    @staticmethod
    def _result(line: dict[str, Any]) -> tuple[str, Result]:
        response, error = line.get("response"), line.get("error")
        if response is None:
            return str(line["custom_id"]), Result(0, str((error or {}).get("message") or error).encode())
        return str(line["custom_id"]), Result(int(response["status_code"]), json.dumps(response["body"]).encode())


ERRORS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
"""The HTTP status of Anthropic's errors; others: 500."""


class AnthropicBatches:
    """Message Batches. They carry no name of ours, so a lost batch is found by its time, size and results.

    Anthropic's bounds: 100,000 requests and 256 MB.
    """

    most_requests, most_bytes = 100_000, 200_000_000

    def __init__(self, exchange: Exchange, path: str) -> None:
        self._exchange = exchange
        self._path, _, query = path.partition("?")
        self._query = f"?{query}" if query else ""
        self._others: set[tuple[str, str]] = set()  # (our name, id) of ended batches that did not match

    async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
        return ""

    async def create(self, batch: Batch, requests: dict[str, bytes]) -> str:
        each = [f'{{"custom_id": "{key}", "params": '.encode() + body + b"}" for key, body in requests.items()]
        body = b'{"requests": [' + b", ".join(each) + b"]}"
        return _id(await self._exchange("POST", f"{self._path}/batches{self._query}", body, JSON))

    async def find(self, batch: Batch, keys: Collection[str]) -> str:
        known, after, unsure = set(keys), "", False
        while True:
            page = urlencode({"limit": PAGE, **({"after_id": after} if after else {})})
            query = f"{self._query}&{page}" if self._query else f"?{page}"
            listed = _read(await self._exchange("GET", f"{self._path}/batches{query}", None, JSON))
            for each in listed["data"]:
                if sum((each.get("request_counts") or {}).values()) != batch.size or self._age(each, batch) < 0:
                    continue
                if (batch.name, each["id"]) in self._others:
                    continue
                if each["processing_status"] != "ended":
                    unsure = True  # only results identify a batch
                    continue
                candidate = replace(batch, remote=str(each["id"]))
                first = next(await self.results(candidate, State("ended", 0, ended=True)), None)
                if first is not None and first[0] in known:
                    return candidate.remote
                self._others.add((batch.name, each["id"]))
            last = listed["data"][-1] if listed["data"] else None
            if last is None or not listed.get("has_more") or self._age(last, batch) < 0:
                break
            after = str(last["id"])
        if unsure:
            raise Unsure
        return ""

    @staticmethod
    def _age(answer: dict[str, Any], batch: Batch) -> float:
        """Below 0 if a batch is surely older than ours; in seconds."""
        try:
            created = datetime.datetime.fromisoformat(str(answer["created_at"])).timestamp()
        except OTHER_SHAPES:
            raise Unreached("the answer names no time of creation") from None
        return created - (batch.made - CLOCKS_S)

    async def state(self, batch: Batch) -> State:
        answer = _read(await self._exchange("GET", f"{self._path}/batches/{batch.remote}{self._query}", None, JSON))
        counts = answer.get("request_counts") or {}
        done = sum(tokens(count) for name, count in counts.items() if name != "processing")
        word = str(answer["processing_status"])
        return State(word, done, word == "ended")

    async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
        path = f"{self._path}/batches/{batch.remote}/results{self._query}"
        return _results(await self._exchange("GET", path, None, JSON), self._result)

    @staticmethod
    def _result(line: dict[str, Any]) -> tuple[str, Result]:
        key, result = str(line["custom_id"]), line["result"]
        match result["type"]:
            case "succeeded":
                return key, Result(200, json.dumps(result["message"]).encode())
            case "errored":
                error = result["error"].get("error", result["error"])
                body = json.dumps({"type": "error", "error": error}).encode()
                return key, Result(ERRORS.get(error.get("type"), 500), body)
            case other:
                return key, Result(0, f"the request was {other}".encode())
