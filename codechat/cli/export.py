"""`codechat export`: the turns of cells as one flat table, for pandas and R."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codechat.cli.terminal import out
from codechat.cli.words import parse_words
from codechat.errors import UserError, nearest
from codechat.files import write_atomically
from codechat.records import SessionRecord, TurnRecord, read_sessions

KEYS = {
    "run": "the cell's folder",
    "out": "the file to write: .parquet or .csv",
}
Kind = Literal["string", "int64", "float64", "bool"]


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """One column: its name, its type, where its value comes from, and what it means. Any value may be missing."""

    name: str
    kind: Kind
    value: Callable[[SessionRecord, TurnRecord], Any]
    meaning: str


def _instruction(name: str) -> Callable[[SessionRecord, TurnRecord], Any]:
    return lambda _, turn: getattr(turn.instruction, name) if turn.instruction else None


def _adherence(name: str) -> Callable[[SessionRecord, TurnRecord], Any]:
    return lambda _, turn: getattr(turn.adherence, name) if turn.adherence else None


def _failure(name: str) -> Callable[[SessionRecord, TurnRecord], Any]:
    return lambda _, turn: getattr(turn.failure, name) if turn.failure else None


def _session(name: str) -> Callable[[SessionRecord, TurnRecord], Any]:
    return lambda session, _: getattr(session, name)


def _turn(name: str) -> Callable[[SessionRecord, TurnRecord], Any]:
    return lambda _, turn: getattr(turn, name)


def _usage(payer: str, name: str) -> Callable[[SessionRecord, TurnRecord], Any]:
    return lambda _, turn: getattr(getattr(turn, payer), name)


def _previous(session: SessionRecord, turn: TurnRecord) -> bool | None:
    return session.turns[turn.turn - 1].passed if turn.turn else None


def _type(session: SessionRecord, turn: TurnRecord) -> str | None:
    return session.agenda[turn.turn - 1] if turn.turn else None


COLUMNS = (
    ExportColumn("cell_id", "string", _session("cell_id"), "the cell"),
    ExportColumn("session_id", "string", _session("session_id"), "the session"),
    ExportColumn("task_id", "string", _session("task_id"), "the task"),
    ExportColumn("dataset", "string", _session("dataset"), "the dataset"),
    ExportColumn("model", "string", _session("model"), "the model under test"),
    ExportColumn("protocol", "string", _session("protocol"), "the protocol"),
    ExportColumn("seed", "int64", _session("seed"), "the cell's seed"),
    ExportColumn("status", "string", _session("status"), "completed or errored; errored sessions belong in no figure"),
    ExportColumn("ended", "string", _session("ended"), "context_overflow where the session outgrew the model"),
    ExportColumn("turn", "int64", _turn("turn"), "0 is the initial generation"),
    ExportColumn("agenda_type", "string", _type, "the type of instruction that the agenda asks for"),
    ExportColumn("skipped", "bool", _turn("skipped"), "no instruction applied; the verdict is that of the turn before"),
    ExportColumn("instruction_id", "string", _instruction("id"), "the instruction"),
    ExportColumn("instruction", "string", _instruction("text"), "its text"),
    ExportColumn("scope", "string", _instruction("scope"), "cosmetic, structural or semantic"),
    ExportColumn("change", "string", _instruction("change"), "add, remove or modify"),
    ExportColumn("candidates", "int64", lambda _, turn: len(turn.candidates), "instructions that were checked"),
    ExportColumn("outcome", "string", _turn("outcome"), "pass, fail, timeout, no_code, syntax_error or crash"),
    ExportColumn("passed", "bool", _turn("passed"), "the whole test suite passes"),
    ExportColumn("passed_base", "bool", _turn("passed_base"), "the base tests pass"),
    ExportColumn("passed_before", "bool", _previous, "the code of the turn before passed; missing at turn 0"),
    ExportColumn("adherence", "string", _adherence("verdict"), "adhered, violated or undecided"),
    ExportColumn("adherence_by", "string", _adherence("by"), "who judged"),
    ExportColumn("adherence_reason", "string", _adherence("reason"), "the judge's reason"),
    ExportColumn("failure", "string", _failure("reason"), "why the code does not pass"),
    ExportColumn("failure_input", "string", _failure("input"), "the first failing input"),
    ExportColumn("failure_expected", "string", _failure("expected"), "what was expected there"),
    ExportColumn("failure_actual", "string", _failure("actual"), "what came instead"),
    ExportColumn("failure_exception", "string", _failure("exception"), "the exception, where one was raised"),
    ExportColumn("finish_reason", "string", _turn("finish_reason"), "why the model stopped"),
    ExportColumn("input_tokens", "int64", _usage("usage", "input_tokens"), "the model's, cached ones included"),
    ExportColumn("output_tokens", "int64", _usage("usage", "output_tokens"), "the model's"),
    ExportColumn("cached_input_tokens", "int64", _usage("usage", "cached_input_tokens"), "the model's"),
    ExportColumn("judge_input_tokens", "int64", _usage("judge_usage", "input_tokens"), "the judges', cached included"),
    ExportColumn("judge_output_tokens", "int64", _usage("judge_usage", "output_tokens"), "the judges'"),
    ExportColumn("judge_cached_input_tokens", "int64", _usage("judge_usage", "cached_input_tokens"), "the judges'"),
    ExportColumn("latency_s", "float64", _turn("latency_s"), "seconds that the model took"),
    ExportColumn("cpu_s", "float64", _turn("cpu_s"), "CPU seconds that the tests took"),
    ExportColumn("code", "string", _turn("code"), "what was extracted from the reply"),
    ExportColumn("response", "string", _turn("response"), "the model's whole reply"),
)


def run_export(words: list[str]) -> int:
    """Write the turns of a cell as one table; returns the exit status. Raises `UserError`."""
    values = parse_words(words, KEYS, required=("run", "out"))
    source, target = Path(values["run"]), Path(values["out"])
    if target.suffix not in WRITERS:
        raise UserError(f"cannot write '{target.suffix}' files", nearest(target.suffix, WRITERS))
    if not (source / "sessions.jsonl").is_file():
        raise UserError(f"{source} is no cell's folder", "it has no sessions.jsonl; a run prints its folder at the end")
    rows = list(_rows(source / "sessions.jsonl"))
    write_atomically(target, WRITERS[target.suffix](rows))
    out.print(f"{len(rows)} turns, {len(COLUMNS)} columns: {target}", markup=False)
    return 0


def _rows(path: Path) -> Iterator[list[Any]]:
    for session in read_sessions(path):
        for turn in session.turns:
            yield [column.value(session, turn) for column in COLUMNS]


def _csv(rows: list[list[Any]]) -> bytes:
    """UTF-8 with a header; what is missing is empty, and true and false are written as R and pandas read them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in COLUMNS])
    names = {True: "TRUE", False: "FALSE"}
    writer.writerows([names[value] if isinstance(value, bool) else value for value in row] for row in rows)
    return text.getvalue().encode()


def _parquet(rows: list[list[Any]]) -> bytes:
    """Parquet with the columns' types, their meaning as the fields' metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    types: Mapping[Kind, Any] = {
        "string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_(),
    }  # fmt: skip
    fields = [pa.field(c.name, types[c.kind], metadata={"description": c.meaning}) for c in COLUMNS]
    columns = zip(*rows, strict=True) if rows else ([] for _ in COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    blob = io.BytesIO()
    parquet.write_table(pa.table(arrays, schema=pa.schema(fields)), blob)
    return blob.getvalue()


WRITERS: Mapping[str, Callable[[list[list[Any]]], bytes]] = {".csv": _csv, ".parquet": _parquet}
