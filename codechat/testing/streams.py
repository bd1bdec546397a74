"""Good answers as streams of server-sent events, as servers of the three APIs send them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from codechat.testing.apis import Call

EVENTS = {"content-type": "text/event-stream"}
PIECE = 16
"""Characters of a delta."""
EMPTY: dict[str, dict[str, Any]] = {"reasoning": {}, "message": {"content": []}, "function_call": {"arguments": ""}}
"""By the type of an item of the responses API: the fields that are empty when it is added."""
BLOCKS: dict[str, tuple[str, str, str, Any]] = {
    "text": ("text", "text_delta", "text", ""),
    "tool_use": ("input", "input_json_delta", "partial_json", {}),
}
"""By the type of a block of Anthropic's: its field, the type of its deltas, their field, and the empty value."""


def events(values: Iterable[dict[str, Any]], *, named: bool = False) -> str:
    """The body of a stream. `named`: each event has the name in its `type`."""
    each = ((f"event: {value['type']}\n" if named else "", json.dumps(value)) for value in values)
    return ": keep-alive\n\n" + "".join(f"{name}data: {text}\n\n" for name, text in each)


def stream_of(call: Call, body: dict[str, Any]) -> str:
    """The body of a good answer as a stream, in the API of the call."""
    if call.api == "chat":
        return chat_stream(body, with_usage=bool((call.body.get("stream_options") or {}).get("include_usage")))
    return (responses_stream if call.api == "responses" else messages_stream)(body)


def chat_stream(body: dict[str, Any], *, with_usage: bool) -> str:
    """An answer of the chat API in pieces, with the usage in the last chunk if it was asked for."""
    choice = body["choices"][0]
    head = {**body, "object": "chat.completion.chunk"}
    usage = head.pop("usage", None)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    chunks = [chunk({"role": "assistant", "content": ""})]
    for name, value in choice["message"].items():
        if name == "tool_calls":
            chunks += [chunk({name: [part]}) for place, each in enumerate(value) for part in _call_parts(place, each)]
        elif name != "role" and value is not None:
            chunks += [chunk({name: part}) for part in _pieces(value)]
    chunks.append(chunk({}, choice["finish_reason"]))
    if with_usage:
        chunks.append({**head, "choices": [], "usage": usage})
    return events(chunks) + "data: [DONE]\n\n"


def responses_stream(body: dict[str, Any]) -> str:
    """An answer of the responses API in pieces, ended by the whole response."""
    values: list[dict[str, Any]] = []

    def say(kind: str, **fields: Any) -> None:
        values.append({"type": f"response.{kind}", **fields})

    say("created", response={**body, "status": "in_progress", "output": []})
    for place, item in enumerate(body["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        say("output_item.added", output_index=place, item=item | EMPTY[item["type"]])
        for index, part in enumerate(item.get("content", ())):
            say("content_part.added", **at, content_index=index, part={**part, "text": ""})
            for piece in _pieces(part["text"]):
                say("output_text.delta", **at, content_index=index, delta=piece)
        for piece in _pieces(item.get("arguments", "")):
            say("function_call_arguments.delta", **at, delta=piece)
        say("output_item.done", output_index=place, item=item)
    say(body["status"], response=body)
    return events(values, named=True)


def messages_stream(body: dict[str, Any]) -> str:
    """An answer of Anthropic's messages API in pieces."""
    begun = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 1}}
    values: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for place, block in enumerate(body["content"]):
        field, kind, part, empty = BLOCKS[block["type"]]
        text = block[field] if isinstance(block[field], str) else json.dumps(block[field])
        deltas = [{"type": kind, part: piece} for piece in _pieces(text)]
        values.append({"type": "content_block_start", "index": place, "content_block": {**block, field: empty}})
        values += [{"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas]
        values.append({"type": "content_block_stop", "index": place})
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    values += [{"type": "message_delta", "delta": end, "usage": body["usage"]}, {"type": "message_stop"}]
    return events(values, named=True)


def _call_parts(place: int, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A tool call in pieces: its name, then its arguments."""
    function = call["function"]
    yield {"index": place, **call, "function": {**function, "arguments": ""}}
    yield from ({"index": place, "function": {"arguments": piece}} for piece in _pieces(function["arguments"]))


def _pieces(value: Any) -> Iterator[Any]:
    if not isinstance(value, str):
        yield value
        return
    yield from (value[start : start + PIECE] for start in range(0, len(value), PIECE))
