"""The sessions packed for the page: a small index to search in, and bodies in compressed chunks."""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codechat.domain import Outcome
from codechat.records import SessionRecord, TurnRecord
from codechat.report.page.bodies import body_of, instruction_key

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
        asked = [self._number(turn) for turn in session.turns]
        state = 1 if session.status == "errored" else 2 if overflowed else 0
        self.rows.append((name, cell, task, outcomes, judged, asked, state))
        self.seeds.append(session.seed)
        self.verdicts.append(_verdict(session))

    def _number(self, turn: TurnRecord) -> int:
        key = instruction_key(turn)
        return -1 if key is None else self.instructions.setdefault(key, len(self.instructions))

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
