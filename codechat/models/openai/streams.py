"""An answer that came as a stream, put together as the body of the same answer without one.

`reply_of` then reads one shape. A stream that ends early has no body: a part of an answer is no answer.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, groupby
from typing import Any, Literal

from codechat.base.texts import read_json

_LINE_END = re.compile("\r\n|\r|\n")  # not `splitlines`, which also divides at characters that texts have
_FIRST_FIELD = re.compile(rb"\s*(?:(?:data|event|id|retry)\s*:|:)")
_DONE = "[DONE]"
_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_KEPT = ("id", "model", "created", "system_fingerprint", "service_tier", "usage")
_FAILED = ("error", "response.error")


def is_stream(body: bytes, content_type: str = "") -> bool:
    """Whether a response is a stream of events; some servers answer so without being asked, or as another type."""
    starts = body.removeprefix(b"\xef\xbb\xbf")
    return _FIRST_FIELD.match(starts) is not None or (
        content_type.startswith("text/event-stream") and starts.lstrip()[:1] not in (b"{", b"[")
    )


def whole_answer(api: Literal["chat", "responses", "messages"], body: bytes) -> dict[str, Any]:
    """The body of the same answer without a stream; `{"error": …}` if the stream reports one.

    Raises `ValueError` with a one-line message if it ends early or is no stream.
    """
    events = list(_events(body))
    for name, event in events:
        if (problem := _problem(name, event)) is not None:
            return {"error": problem}
    return {"chat": _of_chat, "responses": _of_responses, "messages": _of_messages}[api](events)


def _problem(name: str, event: Any) -> Any:
    """The error in an event; None without one."""
    if isinstance(event, Mapping) and (event.get("error") or event.get("object") == "error"):
        return event.get("error") or event
    is_bare = isinstance(event, Mapping) and "message" in event and "code" in event and "choices" not in event
    return (event or "an error without words") if name in _FAILED or is_bare else None


def _events(body: bytes) -> Iterator[tuple[str, Any]]:
    """The events' names and values, up to `[DONE]`, which comes as `None`. Comments and empty events are left out."""
    name, data = "", list[str]()
    for line in (*_LINE_END.split(body.decode("utf-8-sig")), ""):
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value.strip()
            elif field == "data":
                data.append(value)
            continue
        text, named, name, data = "\n".join(data).strip(), name, "", []
        if text == _DONE:
            yield named, None
            return
        if text:
            value = read_json(text)
            kind = value.get("type") if isinstance(value, Mapping) else None
            yield kind if isinstance(kind, str) and named not in _FAILED else named, value
        elif named in _FAILED:
            yield named, ""


def _of_chat(events: list[tuple[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    parts: dict[str, list[Any]] = defaultdict(list)
    finish, done, choices = None, False, 0
    for _, chunk in events:
        done = done or chunk is None
        if not isinstance(chunk, Mapping):
            continue
        whole |= {name: chunk[name] for name in _KEPT if chunk.get(name)}
        for choice in chunk.get("choices") or ():
            if choice.get("index") or 0:
                continue
            choices += 1
            for name, part in (choice.get("delta") or {}).items():
                parts[name].append(part)
            if choice.get("delta") is None:
                parts |= {name: [value] for name, value in (choice.get("message") or {}).items()}
            finish = choice.get("finish_reason") or finish
            if choice.get("usage"):  # where some servers count
                whole["usage"] = choice["usage"]
    if finish is None and not done:
        raise ValueError("the stream ended before the answer did")
    message = {name: _joined(each) for name, each in parts.items()} | {"role": "assistant"}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": finish}] if choices else []
    return whole


def _joined(parts: list[Any]) -> Any:
    """A field of the message from its parts: texts and lists grow, other values are replaced.

    Parts of one type are joined at once, since a long answer has a hundred thousand.
    """
    whole: Any = None
    for kind, run in groupby((part for part in parts if part is not None), type):
        new: Any = list(run)
        new = "".join(new) if kind is str else list(chain.from_iterable(new)) if kind is list else new[-1]
        grows = isinstance(whole, list) or (isinstance(whole, str) and kind is list)
        whole = [*_as_list(whole), *_as_list(new)] if grows else new
    return whole


def _as_list(part: Any) -> list[Any]:
    """A content as a list of parts, as some servers give it between plain texts."""
    if isinstance(part, list):
        return part
    return [{"type": "text", "text": part}] if part else []


def _of_responses(events: list[tuple[str, Any]]) -> dict[str, Any]:
    """The response in the last event; its output is in earlier events if a server leaves it out there."""
    ends = [event["response"] for name, event in events if name in _LAST_EVENTS and isinstance(event, Mapping)]
    if not ends:
        raise ValueError("the stream ended before the response did")
    whole: dict[str, Any] = dict(ends[-1])
    if not whole.get("output"):
        whole["output"] = [event["item"] for name, event in events if name == "response.output_item.done"]
    return whole


def _of_messages(events: list[tuple[str, Any]]) -> dict[str, Any]:
    """The message of Anthropic's API, with its texts alone; the last event with usage has the final counts."""
    whole: dict[str, Any] = {}
    text, ended = "", False
    for name, event in events:
        if name == "message_start":
            whole = dict(event["message"])
        elif name == "content_block_delta":
            text += event["delta"].get("text") or ""
        elif name == "message_delta":
            whole |= event["delta"]
            counts = {count: number for count, number in (event.get("usage") or {}).items() if number}
            whole["usage"] = {**(whole.get("usage") or {}), **counts}
        ended = ended or name == "message_stop"
    if not (whole and ended):
        raise ValueError("the stream ended before the message did")
    return {**whole, "content": [{"type": "text", "text": text}]}
