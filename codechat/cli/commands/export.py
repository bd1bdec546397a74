"""`codechat export`: the turns of cells as one flat table, for pandas and R; or a cell in another tool's format."""

import itertools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from codechat.base.errors import UserError, nearest
from codechat.base.files import from_yaml, write_atomically
from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.base.seal import edited
from codechat.base.spreadsheet import csv_text
from codechat.base.template import counted
from codechat.cli.commands.report import options_of
from codechat.cli.terminal import err, out
from codechat.cli.words import parse_words
from codechat.report.exporting import EXPORTS
from codechat.report.loading import cell_folders, content_notes, load_cells
from codechat.run.protocols import PROTOCOLS
from codechat.run.results.measured import remeasure

if TYPE_CHECKING:
    import pandas as pd

Source = Callable[[SessionRecord, TurnRecord], Any]
Kind = Literal["string", "int64", "float64", "bool"]
KINDS: Mapping[type, Kind] = {str: "string", int: "int64", float: "float64", bool: "bool"}
MOST_PARTS = 12  # of a field, beyond which its parts get no columns


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """One column: its name, type, source and meaning. Any value may be missing."""

    name: str
    kind: Kind
    value: Source
    meaning: str


def own_columns(sessions: Iterable[SessionRecord], taken: set[str]) -> list[ExportColumn]:
    """Columns for the fields that only some protocols have, sorted; names that are `taken` begin with `own_`.

    A number, a truth value or a text gets a column; a mapping of these gets one for each, such as `requirement_id` for
    the `id` of `requirement`; anything else becomes JSON text.
    """
    kinds: dict[str, set[type]] = {}
    parts: dict[str, dict[str, set[type]]] = {}
    for session in sessions:
        for turn in session.turns:
            for name, value in turn.of_protocol.items():
                if isinstance(value, Mapping):
                    for key, part in value.items():
                        parts.setdefault(name, {}).setdefault(str(key), set()).add(type(part))
                kinds.setdefault(name, set()).add(dict if isinstance(value, Mapping) else type(value))
    columns: list[ExportColumn] = []
    for name, found in sorted(kinds.items()):
        inner = parts.get(name, {})
        flat = found <= {dict, type(None)} and 0 < len(inner) <= MOST_PARTS
        if flat and not {kind for part in inner.values() for kind in part} & {dict, list}:
            columns += [_column((name, key), part, taken) for key, part in inner.items()]
        else:
            columns.append(_column((name,), found, taken))
    return columns


def judgement_columns(sessions: Iterable[SessionRecord]) -> list[ExportColumn]:
    """Columns for the parts of a session's judgement, such as `judgement_verdict`; every turn of it has the same."""
    kinds: dict[str, set[type]] = {}
    for session in sessions:
        if isinstance(session.judgement, Mapping):
            for name, value in session.judgement.items():
                kinds.setdefault(str(name), set()).add(type(value))
    return [_judgement_column(name, found) for name, found in kinds.items()]


def _judgement_column(name: str, types: set[type]) -> ExportColumn:
    types = types - {type(None)}
    kind = KINDS.get(next(iter(types), str)) if len(types) < 2 else None

    def value(session: SessionRecord, _: TurnRecord) -> Any:
        part = (session.judgement or {}).get(name)
        return part if kind is not None or part is None else json.dumps(part, ensure_ascii=False)

    meaning = f"of the whole session: {name}" + ("" if kind is not None else ", as JSON")
    return ExportColumn(f"judgement_{name}", kind or "string", value, meaning)


def _column(place: tuple[str, ...], found: set[type], taken: set[str]) -> ExportColumn:
    """The column of a field, or of a part of a field, with values of these types."""
    name = "_".join(place)
    types = found - {type(None)}
    plain = float if types == {int, float} else next(iter(types), str) if len(types) < 2 else None
    kind = KINDS.get(plain) if plain is not None else None

    def value(_: SessionRecord, turn: TurnRecord) -> Any:
        field: Any = turn.model_extra
        for part in place:
            field = field.get(part) if field else None
        return field if kind is not None or field is None else json.dumps(field, ensure_ascii=False)

    meaning = f"the protocol's own: {'.'.join(place)}" + ("" if kind is not None else ", as JSON")
    return ExportColumn(f"own_{name}" if name in taken else name, kind or "string", value, meaning)


@dataclass(frozen=True)
class ExportedCell:
    """A cell's records. `dataset` replaces the name in them if others of the export have it for different tasks.

    `entrant` is the name that a report gives to it and to the cells which differ from it in the seed alone; empty if it
    is exported by itself.
    """

    folder: Path
    dataset: str | None
    choices: Mapping[str, str]
    uses: frozenset[str]
    entrant: str = ""

    @property
    def path(self) -> Path:
        """The file of the sessions."""
        return self.folder / "sessions.jsonl"

    def chosen(self, group: str) -> str | None:
        """The option of a group; None if the protocol does not use it, or it is not recorded."""
        return self.choices.get(group) if group in self.uses else None


def one_cell(folder: Path) -> tuple[ExportedCell, list[str]]:
    """A cell, finished or not, and remarks for the user. Raises `UserError`."""
    if not (folder / "sessions.jsonl").is_file():
        several = folder.is_dir() and next(folder.glob("*/sessions.jsonl"), None) is not None
        remedy = f"it holds cells: runs={folder} takes all of them" if several else "a run prints its folder at the end"
        raise UserError(f"{folder} is no cell's folder: it has no sessions.jsonl", remedy)
    warning = edited(folder)
    return _cell_in(folder, None), [f"{folder}: {warning}."] if warning else []


def several_cells(folders: Sequence[Path]) -> tuple[list[ExportedCell], list[str]]:
    """The finished cells of the folders, and remarks for the user. Raises `UserError`."""
    loaded = load_cells(folders, options_of, remeasure)
    notes = list(content_notes(loaded))
    left = [cell.name for folder in folders for cell in cell_folders(folder)[1]]
    if left:
        notes.append(f"Left out, as they have not finished: {', '.join(left)}.")
    return [_cell_in(part.folder, cell.dataset, cell.label) for cell in loaded for part in cell.parts], notes


def _cell_in(folder: Path, dataset: str | None, entrant: str = "") -> ExportedCell:
    try:
        config = from_yaml((folder / "config.yaml").read_text(encoding="utf-8"))
        choices, kind = config.get("choices") or {}, config["protocol"]["kind"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        return ExportedCell(folder, dataset, {}, frozenset(), entrant)  # a recording without its configuration
    installed = {component.name: component.traits.uses for component in PROTOCOLS}
    return ExportedCell(folder, dataset, choices, installed.get(kind, frozenset(choices)), entrant)


def cell_columns(cells: Sequence[ExportedCell]) -> dict[str, Source]:
    """The values of the columns of a cell's settings, by name. Raises `UserError` if two cells have one id."""
    by_id: dict[str, ExportedCell] = {}
    for cell in cells:
        first = next(read_sessions(cell.path), None)
        if first is not None and by_id.setdefault(first.cell_id, cell) is not cell:
            places = f"{by_id[first.cell_id].folder} and {cell.folder}"
            raise UserError(f"{places} have the same cell id", "export them one by one: run=DIR")

    def of(value: Callable[[ExportedCell, SessionRecord], Any]) -> Source:
        return lambda session, _: value(by_id.get(session.cell_id, cells[0]), session)

    return {
        "dataset": of(lambda cell, session: cell.dataset or session.dataset),
        "entrant": of(lambda cell, session: cell.entrant or session.model),
        "agenda": of(lambda cell, _: cell.chosen("agenda")),
        "judge": of(lambda cell, _: cell.chosen("judge")),
    }


CHUNK = 5_000  # turns in memory at once
KEYS = {
    "run": "the cell's folder",
    "runs": "instead of run: folders of finished cells, or folders that hold such: DIR[,DIR]",
    "out": "the file to write: .parquet or .csv",
    "format": "another tool's format in place of a table: inspect, or evalplus with turn=T",
}


def _session(name: str) -> Source:
    return lambda session, _: getattr(session, name)


def _turn(place: str) -> Source:
    """The value at a place of the turn, such as `failure.reason`; missing if a part of the path is."""

    def value(_: SessionRecord, turn: TurnRecord) -> Any:
        found: Any = turn
        for name in place.split("."):
            found = None if found is None else getattr(found, name)
        return found

    return value


def _previous(session: SessionRecord, turn: TurnRecord) -> bool | None:
    return session.turns[turn.turn - 1].passed if turn.turn else None


def _type(session: SessionRecord, turn: TurnRecord) -> str | None:
    return session.agenda[turn.turn - 1] if 0 < turn.turn <= len(session.agenda) else None


def _length(session: SessionRecord, _: TurnRecord) -> int | None:
    return len(session.agenda) + 1 if session.agenda else None


def _setting(*_: object) -> None:
    """Not in the records: `cell_columns` reads it from the cell's configuration."""


COLUMNS = (
    ExportColumn("cell_id", "string", _session("cell_id"), "the cell"),
    ExportColumn("session_id", "string", _session("session_id"), "the session"),
    ExportColumn("task_id", "string", _session("task_id"), "the task"),
    ExportColumn("dataset", "string", _session("dataset"), "the dataset"),
    ExportColumn("model", "string", _session("model"), "the model under test"),
    ExportColumn("protocol", "string", _session("protocol"), "the protocol"),
    ExportColumn("seed", "int64", _session("seed"), "the cell's seed"),
    ExportColumn("entrant", "string", _setting, "the group: one name for the cells that differ in the seed alone"),
    ExportColumn("agenda", "string", _setting, "the agenda, if there is one"),
    ExportColumn("turns", "int64", _length, "N: the turns that the agenda asks for, turn 0 included"),
    ExportColumn("judge", "string", _setting, "the judge of instructions, if any"),
    ExportColumn("status", "string", _session("status"), "completed or errored; errored sessions belong in no figure"),
    ExportColumn("ended", "string", _session("ended"), "context_overflow if the session outgrew the model"),
    ExportColumn("turn", "int64", _turn("turn"), "0 is the initial generation"),
    ExportColumn("agenda_type", "string", _type, "the type of instruction that the agenda asks for"),
    ExportColumn("skipped", "bool", _turn("skipped"), "no instruction applied; the verdict is that of the turn before"),
    ExportColumn("instruction_id", "string", _turn("instruction.id"), "the instruction"),
    ExportColumn("instruction", "string", _turn("instruction.text"), "its text"),
    ExportColumn("scope", "string", _turn("instruction.scope"), "cosmetic, structural or semantic"),
    ExportColumn("change", "string", _turn("instruction.change"), "add, remove or modify"),
    ExportColumn("candidates", "int64", lambda _, turn: len(turn.candidates), "instructions that were checked"),
    ExportColumn("outcome", "string", _turn("outcome"), "pass, fail, timeout, no_code, syntax_error or crash"),
    ExportColumn("passed", "bool", _turn("passed"), "the whole test suite passes"),
    ExportColumn("passed_base", "bool", _turn("passed_base"), "the base tests pass"),
    ExportColumn("decided", "string", _turn("decided"), "outside or inside the program's process; missing if unknown"),
    ExportColumn("inside", "string", _turn("forced_by"), "what forced program and tests into one process"),
    ExportColumn("passed_before", "bool", _previous, "the code of the turn before passed; missing at turn 0"),
    ExportColumn("adherence", "string", _turn("adherence.verdict"), "adhered, violated or undecided"),
    ExportColumn("adherence_by", "string", _turn("adherence.by"), "the judge"),
    ExportColumn("adherence_reason", "string", _turn("adherence.reason"), "the judge's reason"),
    ExportColumn("failure", "string", _turn("failure.reason"), "why the code does not pass"),
    ExportColumn("failure_input", "string", _turn("failure.input"), "the first failing input"),
    ExportColumn("failure_expected", "string", _turn("failure.expected"), "what was expected there"),
    ExportColumn("failure_actual", "string", _turn("failure.actual"), "what came instead"),
    ExportColumn("failure_exception", "string", _turn("failure.exception"), "the exception, if one was raised"),
    ExportColumn("finish_reason", "string", _turn("finish_reason"), "why the model stopped"),
    ExportColumn("input_tokens", "int64", _turn("usage.input_tokens"), "the model's, cached ones included"),
    ExportColumn("output_tokens", "int64", _turn("usage.output_tokens"), "the model's"),
    ExportColumn("cached_input_tokens", "int64", _turn("usage.cached_input_tokens"), "the model's"),
    ExportColumn("judge_input_tokens", "int64", _turn("judge_usage.input_tokens"), "the judges', cached included"),
    ExportColumn("judge_output_tokens", "int64", _turn("judge_usage.output_tokens"), "the judges'"),
    ExportColumn("judge_cached_input_tokens", "int64", _turn("judge_usage.cached_input_tokens"), "the judges'"),
    ExportColumn("latency_s", "float64", _turn("latency_s"), "seconds that the model took"),
    ExportColumn("cpu_s", "float64", _turn("cpu_s"), "CPU seconds that the tests took"),
    ExportColumn("code", "string", _turn("code"), "what was extracted from the reply"),
    ExportColumn("response", "string", _turn("response"), "the model's whole reply"),
)


def run_export(words: list[str]) -> int:
    """Write the turns of one or several cells as one table; returns the exit status. Raises `UserError`."""
    if any(word.startswith("format=") for word in words):
        return _export_to_tool(words)
    values = parse_words(words, KEYS, required=("out",))
    if ("run" in values) == ("runs" in values):
        mistake = "run and runs are both given" if "run" in values else "run is required"
        raise UserError(mistake, "run=DIR names one cell, runs=DIR[,DIR] several")
    target = Path(values["out"])
    if target.suffix not in WRITERS:
        raise UserError(f"cannot write '{target.suffix}' files", nearest(target.suffix, WRITERS))
    cells = _cells(values)
    sources = cell_columns(cells)
    columns = [replace(column, value=sources.get(column.name, column.value)) for column in COLUMNS]
    columns += judgement_columns(_sessions(cells))
    columns += own_columns(_sessions(cells), {column.name for column in columns})
    turns = 0

    def frames() -> Iterator["pd.DataFrame"]:
        nonlocal turns
        for frame in _frames(cells, columns):
            turns += len(frame)
            yield frame

    write_atomically(target, WRITERS[target.suffix](columns, frames()))
    counts = (*([(len(cells), "cell")] if "runs" in values else []), (turns, "turn"), (len(columns), "column"))
    out.print(f"{', '.join(counted(*each) for each in counts)}: {target}", markup=False)
    errored = sum(session.status == "errored" for session in _sessions(cells))
    if errored:
        note = f"{counted(errored, 'errored session')} in it, which belong in no figure: keep status == completed"
        err.print(f"note: {note}", markup=False)
    return 0


def _export_to_tool(words: list[str]) -> int:
    """Write one cell in the format of another tool."""
    chosen = next(word.removeprefix("format=") for word in words if word.startswith("format="))
    options = EXPORTS[chosen].config.model_fields.items() if chosen else ()
    keys = {**KEYS, "format": KEYS["format"], **{name: option.description or "" for name, option in options}}
    keys = {name: meaning for name, meaning in keys.items() if name != "runs"} | {"out": "the file to write"}
    required = ["run", "out", *(name for name, option in options if option.is_required())]
    values = parse_words(words, keys, required=required)
    target = Path(values.pop("out"))
    _, notes = one_cell(Path(values["run"]))
    exported = EXPORTS.build(EXPORTS.validate(values))
    if exported.suffix not in ("", target.suffix):
        form = f"what format={chosen} writes is opened only as *{exported.suffix}, not as {target.name}"
        raise UserError(form, f"out={target.with_suffix(exported.suffix)}")
    write_atomically(target, exported.text)
    for note in (*notes, *exported.remarks):
        err.print(f"note: {note}", markup=False)
    out.print(f"{exported.counts}: {target}", markup=False)
    return 0


def _cells(values: Mapping[str, str]) -> list[ExportedCell]:
    if "run" in values:
        cell, notes = one_cell(Path(values["run"]))
        cells = [cell]
    else:
        cells, notes = several_cells([Path(name) for name in values["runs"].split(",") if name])
    for note in notes:
        err.print(f"note: {note}", markup=False)
    return cells


def _sessions(cells: Sequence[ExportedCell]) -> Iterator[SessionRecord]:
    return (session for cell in cells for session in read_sessions(cell.path))


def _frames(cells: Sequence[ExportedCell], columns: Sequence[ExportColumn]) -> Iterator["pd.DataFrame"]:
    """The turns, at most `CHUNK` at once; one empty frame if there are none. Missing values are None."""
    import pandas as pd

    names = [column.name for column in columns]
    turns = ((session, turn) for session in _sessions(cells) for turn in session.turns)
    rows = ([column.value(*each) for column in columns] for each in turns)
    yield pd.DataFrame(islice(rows, CHUNK), columns=names, dtype=object)
    while chunk := list(islice(rows, CHUNK)):
        yield pd.DataFrame(chunk, columns=names, dtype=object)


def _csv(columns: Sequence[ExportColumn], frames: Iterable["pd.DataFrame"]) -> Iterator[bytes]:
    """UTF-8 with a header; missing values are empty, and true and false are written as R and pandas read them.

    Texts that a spreadsheet would run as formulas begin with an apostrophe (`codechat.base.spreadsheet`).
    """
    words = {True: "TRUE", False: "FALSE"}
    flags = [column.kind == "bool" for column in columns]
    header = [[column.name for column in columns]]
    for frame in frames:
        rows = (
            [words.get(value) if flag else value for value, flag in zip(row, flags, strict=True)]
            for row in frame.itertuples(index=False, name=None)
        )
        yield csv_text(itertools.chain(header, rows)).encode()
        header = []


def _parquet(columns: Sequence[ExportColumn], frames: Iterable["pd.DataFrame"]) -> Iterator[bytes]:
    """Parquet with the columns' types, their meaning as the fields' metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    types: Mapping[Kind, Any] = {
        "string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_(),
    }  # fmt: skip
    schema = pa.schema([pa.field(c.name, types[c.kind], metadata={"description": c.meaning}) for c in columns])
    with tempfile.TemporaryFile() as stream:
        with parquet.ParquetWriter(stream, schema) as writer:
            for frame in frames:
                table = pa.Table.from_pandas(frame, schema, preserve_index=False)
                writer.write_table(table.replace_schema_metadata())  # without pandas' own notes on its types
        stream.seek(0)
        yield from iter(lambda: stream.read(1 << 20), b"")


WRITERS: Mapping[str, Callable[[Sequence[ExportColumn], Iterable["pd.DataFrame"]], Iterator[bytes]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
}
