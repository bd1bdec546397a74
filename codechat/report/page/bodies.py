"""A session as the page stores it: what a reader opens, each text once.

A turn's request repeats the whole conversation, and its code is a part of its reply. So a turn keeps how many
messages it shares with the request before, and a text that stands in an earlier reply is a slice of that reply.
"""

from collections.abc import Mapping
from typing import Any

from codechat.records import INSIDE, SessionRecord, TurnRecord

CODE_LIMIT = 16_000  # characters: differences need whole codes, so they are cut later than replies
REQUIREMENT = "requirement"  # the field of a turn that asks for a verifiable instruction


def body_of(session: SessionRecord, instructions: Mapping[tuple[str, ...], int], limit: int | None) -> dict[str, Any]:
    """The JSON value of one session; `instructions` numbers the instructions, `limit` bounds a text's characters."""
    replies: list[str | None] = []
    turns = []
    before: list[tuple[str, str]] = []
    for turn in session.turns:
        replies.append(None if turn.response is None else shortened(turn.response, limit))
        request: list[tuple[str, str]] = [(message.role, message.content) for message in turn.request]
        turns.append(_turn(turn, instructions, replies, limit) | _request(before, request, replies, limit))
        before = request or before
    language = getattr(session, "language", None) or "python"  # records that do not name it are of Python
    return {
        "session": session.session_id,
        "seed": session.seed,
        "protocol": session.protocol,
        "agenda": session.agenda,
        "error": session.error,
        **({} if language == "python" else {"language": language}),
        "turns": turns,
    }


def instruction_key(turn: TurnRecord) -> tuple[str, ...] | None:
    """What tells instructions apart across pools: the whole of it, not the id alone.

    A verifiable instruction has a strategy where others have a scope, and no change.
    """
    asked = turn.instruction
    if asked is not None:
        return (asked.id, asked.text, asked.scope, asked.change)
    required = (turn.model_extra or {}).get(REQUIREMENT)
    if not isinstance(required, Mapping) or "text" not in required:
        return None
    return (*(str(required.get(name) or "") for name in ("id", "text", "strategy")), "")


def shortened(text: str, limit: int | None) -> str:
    """The text, or its two ends with a note between them that says how much is missing."""
    if limit is None or len(text) <= limit:
        return text
    half = limit // 2
    note = f"[… {len(text) - 2 * half:,} characters are left out of this page; sessions.jsonl has them …]"
    return f"{text[:half]}\n\n{note}\n\n{text[-half:]}"


def _turn(
    turn: TurnRecord, instructions: Mapping[tuple[str, ...], int], replies: list[str | None], limit: int | None
) -> dict[str, Any]:
    key, more = (
        instruction_key(turn),
        (turn.model_extra or {}).items(),
    )  # of the protocol's own, but what is shown already
    values = {
        "instruction": None if key is None else instructions[key],
        "candidates": [[each.id, each.applicable, each.by] for each in turn.candidates],
        "reply": replies[-1],
        "finish": turn.finish_reason,
        "code": None if turn.code is None else _slice(shortened(turn.code, limit and max(limit, CODE_LIMIT)), replies),
        "base": turn.passed_base,
        "inside": (turn.forced_by or "") if turn.decided == "inside" else None,
        "failure": turn.failure and turn.failure.given_fields(),
        "adherence": turn.adherence and [turn.adherence.verdict, turn.adherence.by, turn.adherence.reason],
        "tokens": [turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cached_input_tokens],
        "judge_tokens": [turn.judge_usage.input_tokens, turn.judge_usage.output_tokens],
        "seconds": [round(turn.latency_s, 3), round(turn.cpu_s, 3)],
        "more": {
            name: value
            for name, value in more
            if value is not None and name != INSIDE and not (key and name == REQUIREMENT)
        },
    }
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def _request(
    before: list[tuple[str, str]], request: list[tuple[str, str]], replies: list[str | None], limit: int | None
) -> dict[str, Any]:
    """The messages beyond those shared with the request before."""
    if not request:
        return {}
    keep = 0
    while keep < min(len(before), len(request)) and before[keep] == request[keep]:
        keep += 1
    new = [[role, _slice(shortened(content, limit), replies[:-1])] for role, content in request[keep:]]
    return {"keep": keep, "request": new}


def _slice(text: str, replies: list[str | None]) -> str | list[int]:
    """`[reply, start, end]` where the text stands in a reply, offsets in UTF-16 units as scripts count them."""
    for number, reply in reversed(list(enumerate(replies))):
        start = -1 if reply is None or not text else reply.find(text)
        if reply is not None and start >= 0:
            first = _units(reply[:start])
            return [number, first, first + _units(text)]
    return text


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
