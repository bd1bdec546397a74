"""Good answers as streams of server-sent events, as servers of the OpenAI protocol send them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

EVENTS = {"content-type": "text/event-stream"}
PIECE = 16
"""Characters of a delta."""


def events(values: Iterable[dict[str, Any]], *, named: bool = False) -> str:
    """The body of a stream. `named`: each event has the name in its `type`."""
    each = ((f"event: {value['type']}\n" if named else "", json.dumps(value)) for value in values)
    return ": keep-alive\n\n" + "".join(f"{name}data: {text}\n\n" for name, text in each)


def chat_stream(body: dict[str, Any], *, with_usage: bool) -> str:
    """An answer of the chat API in pieces, with the usage in the last chunk if it was asked for."""
    choice = body["choices"][0]
    head = {**body, "object": "chat.completion.chunk"}
    usage = head.pop("usage", None)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    chunks = [chunk({"role": "assistant", "content": ""})]
    for name, value in choice["message"].items():
        if name != "role" and value is not None:
            chunks += [chunk({name: part}) for part in _pieces(value)]
    chunks.append(chunk({}, choice["finish_reason"]))
    if with_usage:
        chunks.append({**head, "choices": [], "usage": usage})
    return events(chunks) + "data: [DONE]\n\n"


def responses_stream(body: dict[str, Any]) -> str:
    """An answer of the responses API in pieces, ended by the whole response."""
    texts = [part["text"] for item in body["output"] for part in item.get("content", [])]
    deltas = [{"type": "response.output_text.delta", "delta": piece} for text in texts for piece in _pieces(text)]
    begun = {**body, "status": "in_progress", "output": []}
    last = {"type": f"response.{body['status']}", "response": body}
    return events([{"type": "response.created", "response": begun}, *deltas, last], named=True)


def _pieces(value: Any) -> Iterator[Any]:
    if not isinstance(value, str):
        yield value
        return
    yield from (value[start : start + PIECE] for start in range(0, len(value), PIECE))
