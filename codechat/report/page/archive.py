"""The sessions packed for the page: a small index to search in, and bodies in compressed chunks.

Each text is stored once. A turn's request repeats the whole conversation, and its code is a part of its reply: a turn
keeps how many messages it shares with the request before, and a text that stands in a reply is a slice of that reply.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codechat.base.domain import Outcome
from codechat.base.records import SessionRecord, TurnRecord

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
    key = instruction_key(turn)
    more = turn.of_protocol.items()
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
        "more": {name: value for name, value in more if value is not None and not (key and name == REQUIREMENT)},
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


CHUNK_CHARACTERS = 400_000  # of JSON: decoded in a few milliseconds, and long enough to compress well
LETTERS: dict[Outcome | None, str] = {
    "pass": "p", "fail": "f", "timeout": "t", "no_code": "n", "syntax_error": "s", "crash": "c", None: "-",
}  # fmt: skip


@dataclass
class Index:
    """What the list, the search and the filters need of every session, by columns.

    `outcomes` has a letter per turn (`LETTERS`); `judged` `a`, `v`, `u` as the judge said, `s` for a skipped turn,
    `o` for one after the context overflowed, `-` for one that nobody judged; `asked` the instruction's number, or -1;
    `state` 0 for a completed session, 1 for an errored one, 2 for one that a context overflow ended. `seeds` is there
    only if a cell has sessions of several seeds, and `verdicts`, empty where there is none, only if a protocol judges
    whole dialogues.
    """

    tasks: dict[str, int] = field(default_factory=dict)
    instructions: dict[tuple[str, ...], int] = field(default_factory=dict)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    seeds: list[int] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)

    def add(self, cell: int, session: SessionRecord) -> None:
        name = session.session_id if session.session_id not in self.seen else f"{session.session_id}-{cell}"
        self.seen.add(session.session_id)
        overflowed = session.ended == "context_overflow"
        task = self.tasks.setdefault(session.task_id, len(self.tasks))
        outcomes = "".join(LETTERS[turn.outcome] for turn in session.turns)
        judged = "".join(_judged(turn, overflowed) for turn in session.turns)
        keys = [instruction_key(turn) for turn in session.turns]
        asked = [-1 if key is None else self.instructions.setdefault(key, len(self.instructions)) for key in keys]
        state = 1 if session.status == "errored" else 2 if overflowed else 0
        self.rows.append((name, cell, task, outcomes, judged, asked, state))
        self.seeds.append(session.seed)
        self.verdicts.append(_verdict(session))

    def columns(self, starts: Sequence[int]) -> dict[str, Any]:
        """The JSON value; `starts` holds the number of each chunk's first session."""
        names = ("key", "cell", "task", "outcomes", "judged", "asked", "state")
        values = {name: [row[place] for row in self.rows] for place, name in enumerate(names)}
        if len({(row[1], seed) for row, seed in zip(self.rows, self.seeds, strict=True)}) > len(set(values["cell"])):
            values["seeds"] = self.seeds
        if any(self.verdicts):
            values["verdicts"] = self.verdicts
        return {"starts": starts, "tasks": list(self.tasks), "instructions": list(self.instructions), **values}


@dataclass(frozen=True)
class Archive:
    """The packed sessions of a page. `limit` is the most characters kept of a text, None if all are."""

    index: Index
    chunks: list[str]
    starts: list[int]
    limit: int | None


def archive(cells: Iterable[Iterable[SessionRecord]], limit: int | None, most: float) -> Archive | None:
    """Pack every session of every cell; None once the chunks are larger than `most` bytes."""
    index = Index()
    found = Archive(index, [], [], limit)
    for first, texts in _batches(cells, index, limit):
        found.chunks.append(packed("[" + ",".join(texts) + "]"))
        found.starts.append(first)
        if sum(map(len, found.chunks)) > most:
            return None
    return found


def _batches(
    cells: Iterable[Iterable[SessionRecord]], index: Index, limit: int | None
) -> Iterator[tuple[int, list[str]]]:
    """The sessions' JSON texts, a chunk's worth at a time, with the number of the first."""
    texts: list[str] = []
    size = first = 0
    for number, sessions in enumerate(cells):
        for session in sessions:
            index.add(number, session)
            texts.append(as_json(body_of(session, index.instructions, limit)))
            size += len(texts[-1])
            if size >= CHUNK_CHARACTERS:
                yield first, texts
                first, texts, size = first + len(texts), [], 0
    if texts:
        yield first, texts


def _verdict(session: SessionRecord) -> str:
    """The judge's word on the whole dialogue, as text; empty if there is none."""
    if not isinstance(session.judgement, Mapping) or "verdict" not in session.judgement:
        return ""
    return str(session.judgement["verdict"] or "undecided").lower().replace("_", " ")


def _judged(turn: TurnRecord, overflowed: bool) -> str:
    if turn.skipped:
        return "s"
    if overflowed and turn.response is None:
        return "o"
    return "-" if turn.adherence is None else turn.adherence.verdict[0]


def as_json(value: Any) -> str:
    """JSON in ASCII: a lone surrogate stays an escape, which scripts read and UTF-8 could not hold."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def packed(text: str) -> str:
    """Compressed by zlib, in base 64: letters that can end no element, whatever the text holds."""
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")
