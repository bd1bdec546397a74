"""The report as one HTML file that needs no network: its sections, and every dialogue to read.

The sessions are packed: a small index to search in, and bodies in compressed chunks. Each text is stored once: a turn
holds the number of messages shared with the request before, and a text that is part of a reply is stored as a slice.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.resources import files
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from codechat.base.domain import Outcome, Trajectory
from codechat.base.files import write_atomically
from codechat.base.records import CALLS, GATE, SessionRecord, TurnRecord
from codechat.base.template import fill
from codechat.report.chapters import chapter_of
from codechat.report.comparison import LoadedCell
from codechat.report.data import FigureFile, Interval, ReportData, Table

CODE_LIMIT = 16_000  # characters: differences need whole codes, so they are cut later than replies
STEP_LIMIT = 4_000  # characters of a command or of its output: an agent has many
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


def instruction_keys(turn: TurnRecord) -> list[tuple[str, ...]]:
    """The identities of a turn's instructions across pools: all their fields, because ids repeat. A verifiable
    instruction has a strategy in place of a scope, and no change."""
    if turn.asked:
        return [(asked.id, asked.text, asked.scope, asked.change) for asked in turn.asked]
    required = (turn.model_extra or {}).get(REQUIREMENT)
    if not isinstance(required, Mapping) or "text" not in required:
        return []
    return [(*(str(required.get(name) or "") for name in ("id", "text", "strategy")), "")]


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
    numbers = [instructions[key] for key in instruction_keys(turn)]
    judged = [each and [each.verdict, each.by, each.reason] for _, each in turn.judged]
    gate = _tries(turn, limit)
    shown = (CALLS, GATE) if gate else ()
    more = [(name, value) for name, value in turn.of_protocol.items() if name not in shown]
    more += [("input cut", True)] if turn.truncated else []
    more += [("code without the name", True)] if turn.lacks_name else []
    more += [] if turn.read_turn is None else [(f"judged on turn {turn.read_turn}", True)]
    values = {
        "instruction": numbers[0] if numbers else None,
        "further": [[number, each] for number, each in zip(numbers[1:], judged[1:], strict=False)],
        "candidates": [
            [each.id, each.applicable, each.by, *([each.conflict.instruction] if each.conflict else [])]
            for each in turn.candidates
        ],
        "reply": replies[-1],
        "reasoning": turn.reasoning and shortened(turn.reasoning, limit),
        "finish": turn.finish_reason,
        "code": None if turn.code is None else _slice(shortened(turn.code, limit and max(limit, CODE_LIMIT)), replies),
        "base": turn.passed_base,
        "inside": (turn.forced_by or "") if turn.decided == "inside" else None,
        "failure": turn.failure and turn.failure.given_fields(),
        "adherence": judged[0],
        "gate": gate,
        "agent": turn.trajectory and _trajectory(turn.trajectory, limit),
        "tokens": [turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cached_input_tokens],
        "judge_tokens": [turn.judge_usage.input_tokens, turn.judge_usage.output_tokens],
        "seconds": [round(turn.latency_s, 3), round(turn.cpu_s, 3)],
        "more": {name: value for name, value in more if value is not None and not (numbers and name == REQUIREMENT)},
    }
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def _tries(turn: TurnRecord, limit: int | None) -> dict[str, Any] | None:
    """The replies of a turn whose model was asked again, with their verdicts; None for other turns."""
    gate: dict[str, Any] | None = (turn.model_extra or {}).get(GATE)
    if gate is None:
        return None
    replies = [shortened(call.response, limit) for call in turn.calls() if call.response is not None]
    return {**gate, "tries": [{**told, "reply": reply} for told, reply in zip(gate["tries"], replies, strict=True)]}


def _trajectory(did: Trajectory, limit: int | None) -> dict[str, Any]:
    """What an agent did, without its file, which is the turn's code; values that say nothing are left out."""
    bound = min(limit or STEP_LIMIT, STEP_LIMIT)
    steps = [[each.kind, shortened(each.text, bound), shortened(each.output, bound), each.status] for each in did.steps]
    plain = {field.name: getattr(did, field.name) for field in fields(did) if field.name != "file"}
    values = {**plain, "steps": steps, "diff": shortened(did.diff, limit and max(limit, CODE_LIMIT))}
    return {name: value for name, value in values.items() if value}


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
    """`[reply, start, end]` if the text is part of a reply; offsets in UTF-16 units, which scripts count."""
    for number, reply in reversed(list(enumerate(replies))):
        if text and reply is not None and (start := reply.find(text)) >= 0:
            before, after = (len(part.encode("utf-16-le", "surrogatepass")) // 2 for part in (reply[:start], text))
            return [number, before, before + after]
    return text


CHUNK_CHARACTERS = 400_000  # of JSON: decoded in a few milliseconds, and long enough to compress well
LETTERS: dict[Outcome | None, str] = {
    "pass": "p", "fail": "f", "timeout": "t", "no_code": "n", "syntax_error": "s", "crash": "c", None: "-",
}  # fmt: skip


@dataclass
class Index:
    """The data of every session for the list, the search and the filters, by columns.

    `outcomes` has a letter per turn (`LETTERS`); `judged` has `a`, `v`, `u` for the verdict, `s` for a skipped turn,
    `o` for a turn after the context overflowed, `-` for a turn without a judge; `asked` the instruction's number, a
    list of several, or -1; `state` 0 for a completed session, 1 for an errored one, 2 for one ended by a context
    overflow. `seeds` exists only if a cell has sessions of several seeds, `verdicts` only if a protocol judges whole
    dialogues, `rolled_back`, the turns whose code was given up, only if there are any.
    """

    tasks: dict[str, int] = field(default_factory=dict)
    instructions: dict[tuple[str, ...], int] = field(default_factory=dict)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    seeds: list[int] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    rolled_back: list[list[int]] = field(default_factory=list)

    def add(self, cell: int, session: SessionRecord) -> None:
        name = session.session_id if session.session_id not in self.seen else f"{session.session_id}-{cell}"
        self.seen.add(session.session_id)
        overflowed = session.ended == "context_overflow"
        task = self.tasks.setdefault(session.task_id, len(self.tasks))
        outcomes = "".join(LETTERS[turn.outcome] for turn in session.turns)
        judged = "".join(_judged(turn, overflowed) for turn in session.turns)
        asked = [self._numbers(turn) for turn in session.turns]
        state = 1 if session.status == "errored" else 2 if overflowed else 0
        self.rows.append((name, cell, task, outcomes, judged, asked, state))
        self.seeds.append(session.seed)
        self.verdicts.append(_verdict(session))
        self.rolled_back.append([turn.turn for turn in session.turns if turn.rolled_back])

    def _numbers(self, turn: TurnRecord) -> int | list[int]:
        numbers = [self.instructions.setdefault(key, len(self.instructions)) for key in instruction_keys(turn)]
        return numbers if len(numbers) > 1 else numbers[0] if numbers else -1

    def columns(self, starts: Sequence[int]) -> dict[str, Any]:
        """The JSON value; `starts` holds the number of each chunk's first session."""
        names = ("key", "cell", "task", "outcomes", "judged", "asked", "state")
        values = {name: [row[place] for row in self.rows] for place, name in enumerate(names)}
        if len({(row[1], seed) for row, seed in zip(self.rows, self.seeds, strict=True)}) > len(set(values["cell"])):
            values["seeds"] = self.seeds
        if any(self.verdicts):
            values["verdicts"] = self.verdicts
        if any(self.rolled_back):
            values["rolled_back"] = self.rolled_back
        return {"starts": starts, "tasks": list(self.tasks), "instructions": list(self.instructions), **values}


@dataclass(frozen=True)
class Archive:
    """The packed sessions of a page. `limit` is the most characters kept of a text, None if all are."""

    index: Index
    chunks: list[str]
    starts: list[int]
    limit: int | None


def pack_sessions(cells: Iterable[Iterable[SessionRecord]], limit: int | None, most: float) -> Archive | None:
    """Pack every session of every cell; None once the chunks are larger than `most` bytes."""
    found, texts, first = Archive(Index(), [], [], limit), list[str](), 0
    every = ((number, session) for number, sessions in enumerate(cells) for session in sessions)
    for number, session in chain(every, [(0, None)]):
        if session is not None:
            found.index.add(number, session)
            texts.append(as_json(body_of(session, found.index.instructions, limit)))
        if texts and (session is None or sum(map(len, texts)) >= CHUNK_CHARACTERS):
            found.chunks.append(packed("[" + ",".join(texts) + "]"))
            found.starts.append(first)
            first, texts = first + len(texts), []
            if sum(map(len, found.chunks)) > most:
                return None
    return found


def _verdict(session: SessionRecord) -> str:
    """The judge's verdict on the whole dialogue in words; empty if there is none."""
    if not isinstance(session.judgement, Mapping) or "verdict" not in session.judgement:
        return ""
    return str(session.judgement["verdict"] or "undecided").lower().replace("_", " ")


def _judged(turn: TurnRecord, overflowed: bool) -> str:
    if turn.skipped:
        return "s"
    if overflowed and turn.response is None:
        return "o"
    return "-" if turn.followed is None else turn.followed[0]


def as_json(value: Any) -> str:
    """JSON in ASCII: a lone surrogate stays an escape, which scripts read and UTF-8 could not hold."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def packed(text: str) -> str:
    """Compressed by zlib, in base 64: letters that can end no element."""
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


# in the order in which they build on each other
SCRIPTS = (
    "elements.js",
    "charts.js",
    "code.js",
    "sections.js",
    "sessions.js",
    "beside.js",
    "agent.js",
    "dialogue.js",
    "page.js",
)
STYLES = ("page.css", "sessions.css")


def document(archive: Archive, report: ReportData) -> str:
    """The HTML. The page's script comes before the sessions, so that it works while they are still being read. The
    policy allows only this page's style and script, no connection, and no text turned into markup."""
    style, script = _joined(STYLES), '"use strict";\n(() => {\n' + _joined(SCRIPTS) + "})();\n"
    blocks = [("index", packed(as_json(archive.index.columns(archive.starts))))]
    blocks.append(("summary", packed(as_json(summary_values(report)))))
    blocks += [(f"chunk-{number}", chunk) for number, chunk in enumerate(archive.chunks)]
    return fill(
        _joined(["page.html"]),
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        style=style,
        script=script,
        overview=as_json(overview(report, archive.limit)).replace("<", "\\u003c"),
        data="".join(
            f'<script type="application/octet-stream" id="packed-{name}">{text}</script>\n' for name, text in blocks
        ),
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _joined(names: Sequence[str]) -> str:
    return "\n".join(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in names)


def summary_values(summary: ReportData) -> dict[str, Any]:
    """The chapters with their tables and figures, as JSON values; a figure is its SVG file."""
    return {
        "groups": [
            {
                "key": key,
                "title": title,
                "tables": [_table(table.bounded) for table in summary.tables if table.group == key],
                "figures": [_figure(each) for each in summary.figures if each.of.group == key and each.of.on_page],
            }
            for key, title in summary.groups.items()
        ],
        "notes": list(summary.notes),
    }


def _table(table: Table) -> dict[str, Any]:
    """A value has the shown text, the sort key, and whether it is bold."""
    rows = [
        [
            [column.text(value), value.low if isinstance(value, Interval) else value, (row, place) in table.strong]
            for place, (column, value) in enumerate(zip(table.columns, values, strict=True))
        ]
        for row, values in enumerate(table.rows)
    ]
    columns = [[column.title, column.numeric] for column in table.columns]
    return {"name": table.name, "title": table.title, "note": table.note, "columns": columns, "rows": rows}


def _figure(figure: FigureFile) -> dict[str, str]:
    svg = base64.b64encode(figure.svg.read_bytes()).decode("ascii")
    return {**{name: getattr(figure.of, name) for name in ("name", "title", "caption")}, "svg": svg}


def overview(report: ReportData, limit: int | None) -> dict[str, Any]:
    """The cautions, headline, cells and sections; `limit` is the most characters kept of a text, None for all."""
    places = {cell.folder: place for place, cell in enumerate(report.cells)}
    cells = [
        {
            "label": cell.label,
            "model": cell.model,
            "dataset": cell.dataset,
            "protocol": cell.protocol,
            "setting": cell.setting,
            "baseline": cell.is_baseline,
            "fates": chapter_of(cell.protocol).fates,
            **({"samples": cell.samples} if cell.samples > 1 else {}),
        }
        for cell in report.cells
    ]
    return {
        "cautions": [cell.caution for cell in report.cells if cell.caution],
        "findings": _plain(report.headline, places),
        "cells": cells,
        "sections": _plain(report.sections, places),
        "limit": limit,
    }


def _plain(value: Any, places: Mapping[Path, int]) -> Any:
    """JSON of a section's parts: a part is an object with its type as `is`, a cell is its number."""
    if isinstance(value, LoadedCell):
        return places[value.folder]
    if is_dataclass(value):
        parts = {field.name: _plain(getattr(value, field.name), places) for field in fields(value)}
        return {"is": type(value).__name__, **parts}
    return [_plain(each, places) for each in value] if isinstance(value, list | tuple) else value


MOST_BYTES = 52_000_000  # of packed sessions; the page as a whole stays below 60 MB
LIMITS = (None, 16_000, 6_000, 2_000)  # characters of a text that are kept, tried until the page is small enough


def write_page(report: ReportData, out: Path) -> Path:
    """Write `index.html` into the folder `out`; returns its path.

    The same report gives the same bytes. If all dialogues together are too large for a browser, long texts keep only
    their two ends, and the page says so. Raises `UserError` if a cell cannot be read or the page not be written.
    """
    bounds = [(limit, inf if limit == LIMITS[-1] else MOST_BYTES) for limit in LIMITS]
    tried = (
        pack_sessions((chapter_of(cell.protocol).shown(cell) for cell in report.cells), limit, most)
        for limit, most in bounds
    )
    path = out / "index.html"
    write_atomically(path, document(next(found for found in tried if found is not None), report))
    return path
