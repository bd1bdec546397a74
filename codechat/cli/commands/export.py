"""`codechat export`: the turns of cells as one flat table, for pandas and R; or a cell in another tool's format."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple

import yaml

from codechat.base.errors import UserError, nearest
from codechat.base.files import from_yaml, write_atomically
from codechat.base.records import GATE, UNDER_TEST, SessionRecord, TurnRecord, read_sessions
from codechat.base.seal import edited
from codechat.base.spreadsheet import csv_text
from codechat.base.template import counted
from codechat.cli.commands.report import options_of
from codechat.cli.terminal import err, out, parse_words
from codechat.report.exporting import EXPORTS
from codechat.report.loading import cell_folders, content_notes, load_cells
from codechat.run.extensions import extensions
from codechat.run.protocols import PROTOCOLS
from codechat.run.results.measured import remeasure

CHUNK = 5_000  # turns in memory at once
MOST_PARTS = 12  # of a field, beyond which its parts get no columns
KEYS = {
    "run": "the cell's folder",
    "runs": "instead of run: folders of finished cells, or folders that hold such: DIR[,DIR]",
    "out": "the file to write: .parquet or .csv",
    "format": "another tool's format in place of a table: inspect, harbor, or evalplus with turn=T",
}
Kind = Literal["string", "int64", "float64", "bool"]
KINDS: Mapping[type, Kind] = {str: "string", int: "int64", float: "float64", bool: "bool"}


@dataclass(frozen=True)
class ExportedCell:
    """A cell's records. `dataset` replaces the name in them if others of the export have it for different tasks.

    `entrant` is the name that a report gives to it and to the cells which differ from it in the seed alone; empty if it
    is exported by itself. `agenda` and `judge` are None if the protocol uses none, or they are not recorded.
    """

    folder: Path
    dataset: str | None = None
    entrant: str = ""
    agenda: str | None = None
    judge: str | None = None

    def sessions(self) -> Iterator[SessionRecord]:
        """The records in order."""
        return read_sessions(self.folder / "sessions.jsonl")


class Row(NamedTuple):
    """What the columns of a row are read from."""

    session: SessionRecord
    turn: TurnRecord
    cell: ExportedCell


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """One column: its name, type, source and meaning. Any value may be missing."""

    name: str
    kind: Kind
    value: Callable[[Row], Any]
    meaning: str


def _at(place: str, *names: str) -> Callable[[Row], Any]:
    """The value at a place of the row, such as `turn.failure.reason`; missing if a part of the path is."""

    def value(row: Row) -> Any:
        found: Any = row
        for name in (*place.split("."), *names):
            found = found.get(name) if isinstance(found, Mapping) else found and getattr(found, name)
        return found

    return value


def _entrant(row: Row) -> str:
    return row.cell.entrant or row.session.model


def _length(row: Row) -> int | None:
    return len(row.session.agenda) + 1 if row.session.agenda else None


def _type(row: Row) -> str | None:
    agenda = row.session.agenda
    return agenda[row.turn.turn - 1] if 0 < row.turn.turn <= len(agenda) else None


def _previous(row: Row) -> bool | None:
    before = (row.session.turns[place] for place in reversed(range(row.turn.turn)))
    return next((turn.passed for turn in before if not turn.rolled_back), None)


def _tries(row: Row) -> int:
    return max(0, sum(call.role == UNDER_TEST for call in row.turn.calls()) - 1) if GATE in row.turn.of_protocol else 0


def _commands(row: Row) -> int | None:
    did = row.turn.trajectory
    return None if did is None else sum(step.kind == "command" for step in did.steps)


def _of_each(*names: str) -> Callable[[Row], str | None]:
    """A field of every instruction of a turn, one a line; None if no instruction has it."""

    def value(row: Row) -> str | None:
        place, own = (1, names[1:]) if names[0] == "adherence" else (0, names)
        parts = [pair[place] for pair in row.turn.judged]
        found = [reduce(lambda part, name: part and getattr(part, name), own, part) for part in parts]
        return None if all(each is None for each in found) else "\n".join(str(each or "") for each in found)

    return value


Rows = tuple[tuple[str, Kind, str | Callable[[Row], Any], str], ...]


def _columns(rows: Rows) -> tuple[ExportColumn, ...]:
    return tuple(
        ExportColumn(name, kind, _at(source) if isinstance(source, str) else source, meaning)
        for name, kind, source, meaning in rows
    )


COLUMNS = _columns(
    (
        ("cell_id", "string", "session.cell_id", "the cell"),
        ("session_id", "string", "session.session_id", "the session"),
        ("task_id", "string", "session.task_id", "the task"),
        ("dataset", "string", lambda row: row.cell.dataset or row.session.dataset, "the dataset"),
        ("model", "string", "session.model", "the model under test"),
        ("protocol", "string", "session.protocol", "the protocol"),
        ("seed", "int64", "session.seed", "the cell's seed"),
        ("entrant", "string", _entrant, "the group: one name for the cells that differ in the seed alone"),
        ("agenda", "string", "cell.agenda", "the agenda, if there is one"),
        ("turns", "int64", _length, "N: the turns that the agenda asks for, turn 0 included"),
        ("judge", "string", "cell.judge", "the judge of instructions, if any"),
        ("status", "string", "session.status", "completed or errored; errored sessions belong in no figure"),
        ("ended", "string", "session.ended", "context_overflow if the session outgrew the model"),
        ("turn", "int64", "turn.turn", "0 is the initial generation"),
        ("agenda_type", "string", _type, "the type of instruction that the agenda asks for"),
        ("skipped", "bool", "turn.skipped", "no instruction applied; the verdict is the one of the turn before"),
        ("instruction_id", "string", _of_each("id"), "the instruction; of several one a line, here and below"),
        ("instruction", "string", _of_each("text"), "its text"),
        ("scope", "string", _of_each("scope"), "cosmetic, structural or semantic"),
        ("change", "string", _of_each("change"), "add, remove or modify"),
        ("candidates", "int64", lambda row: len(row.turn.candidates), "instructions that were checked"),
        ("outcome", "string", "turn.outcome", "pass, fail, timeout, no_code, syntax_error or crash"),
        ("passed", "bool", "turn.passed", "the whole test suite passes"),
        ("passed_base", "bool", "turn.passed_base", "the base tests pass"),
        ("decided", "string", "turn.decided", "outside or inside the program's process; missing if unknown"),
        ("inside", "string", "turn.forced_by", "what forced program and tests into one process"),
        ("passed_before", "bool", _previous, "the code that the turn met passed; missing at turn 0"),
        ("adherence", "string", _of_each("adherence", "verdict"), "adhered, violated or undecided"),
        ("adherence_by", "string", _of_each("adherence", "by"), "the judge"),
        ("adherence_reason", "string", _of_each("adherence", "reason"), "the judge's reason"),
        ("failure", "string", "turn.failure.reason", "why the code does not pass"),
        ("failure_input", "string", "turn.failure.input", "the first failing input"),
        ("failure_expected", "string", "turn.failure.expected", "the expected result there"),
        ("failure_actual", "string", "turn.failure.actual", "what came instead"),
        ("failure_exception", "string", "turn.failure.exception", "the exception, if one was raised"),
        ("finish_reason", "string", "turn.finish_reason", "why the model stopped"),
        ("input_tokens", "int64", "turn.usage.input_tokens", "the model's, cached ones included"),
        ("output_tokens", "int64", "turn.usage.output_tokens", "the model's"),
        ("cached_input_tokens", "int64", "turn.usage.cached_input_tokens", "the model's"),
        ("judge_input_tokens", "int64", "turn.judge_usage.input_tokens", "the judges', cached included"),
        ("judge_output_tokens", "int64", "turn.judge_usage.output_tokens", "the judges'"),
        ("judge_cached_input_tokens", "int64", "turn.judge_usage.cached_input_tokens", "the judges'"),
        ("latency_s", "float64", "turn.latency_s", "seconds that the model took"),
        ("cpu_s", "float64", "turn.cpu_s", "CPU seconds that the tests took"),
        ("code", "string", "turn.code", "the code extracted from the reply"),
        ("response", "string", "turn.response", "the model's whole reply"),
        ("reasoning", "string", "turn.reasoning", "the model's thoughts, if they came apart from the reply"),
        ("reasoning_tokens", "int64", "turn.usage.reasoning_tokens", "the model's, a part of the output tokens"),
        ("truncated", "bool", "turn.truncated", "the endpoint did not read the whole request"),
        ("lacks_name", "bool", "turn.lacks_name", "the reply has code, but none with the entry point's name"),
        ("read_turn", "int64", "turn.read_turn", "the turn whose code the judge read, if not the last one"),
    )
)
GATE_COLUMNS = _columns(
    (
        ("gate_tries", "int64", _tries, "further tries, after code that the tests between turns refused"),
        ("rolled_back", "bool", "turn.rolled_back", "the code before stands: the last try was refused too"),
    )
)
"""What a gate did at the turn: the columns of cells with a turn that was asked again."""
AGENT_COLUMNS = _columns(
    (
        ("commands", "int64", _commands, "commands that a coding agent ran, of the steps that are kept"),
        ("ran_code", "bool", "turn.trajectory.ran_code", "a command ran the code before the answer"),
        ("edits_elsewhere", "int64", "turn.trajectory.elsewhere", "changed files other than the code's"),
        ("lines_added", "int64", "turn.trajectory.lines_added", "lines added to the code's file"),
        ("lines_removed", "int64", "turn.trajectory.lines_removed", "lines removed from it"),
        ("requests", "int64", "turn.trajectory.requests", "the agent's calls of the endpoint"),
        ("agent_ended", "string", "turn.trajectory.ended", "exit, error, or the limit that ended the agent"),
        ("attempts", "int64", "turn.trajectory.attempts", "above 1: asked again after an interruption"),
    )
)
"""What a coding agent did at the turn: the columns of cells with one."""


def own_columns(sessions: Iterable[SessionRecord], taken: set[str]) -> list[ExportColumn]:
    """Columns for what an agent and a gate did, for a session's judgement, and for the fields of turns that only some
    protocols have, the latter sorted.

    A number, a truth value or a text gets a column; a mapping of these gets one for each, such as `requirement_id` for
    the `id` of `requirement`; anything else becomes JSON text. Names that are `taken` begin with `own_`.
    """
    agents = gated = False
    judged: dict[str, set[type]] = defaultdict(set)
    kinds: dict[tuple[str, ...], set[type]] = defaultdict(set)
    for session in sessions:
        for name, value in session.judgement.items() if isinstance(session.judgement, Mapping) else ():
            judged[name].add(type(value))
        for turn in session.turns:
            agents, gated = agents or turn.trajectory is not None, gated or GATE in turn.of_protocol
            for name, value in turn.of_protocol.items():
                if name == GATE:
                    continue
                kinds[name,].add(type(value))
                for key, part in value.items() if isinstance(value, Mapping) else ():
                    kinds[name, str(key)].add(type(part))
    columns = [*(AGENT_COLUMNS if agents else ()), *(GATE_COLUMNS if gated else ())]
    taken = taken | {column.name for column in columns}
    columns += [
        _column(f"judgement_{name}", types, _at("session.judgement", name), f"of the whole session: {name}")
        for name, types in judged.items()
    ]
    for name in sorted({place[0] for place in kinds}):
        whole = kinds[name,]
        parts = {place: types for place, types in kinds.items() if place[0] == name and place != (name,)}
        flat = whole <= {dict, NoneType} and 0 < len(parts) <= MOST_PARTS
        if not flat or any(types & {dict, list} for types in parts.values()):
            parts = {(name,): whole}
        for place, types in parts.items():
            column, meaning = "_".join(place), f"the protocol's own: {'.'.join(place)}"
            column = f"own_{column}" if column in taken else column
            columns.append(_column(column, types, _at("turn.model_extra", *place), meaning))
    return columns


def _column(name: str, types: set[type], value: Callable[[Row], Any], meaning: str) -> ExportColumn:
    """The column of values of these types: JSON text unless they are plain values of one kind."""
    types = types - {NoneType}
    plain = float if types == {int, float} else next(iter(types), str) if len(types) < 2 else dict
    if plain in KINDS:
        return ExportColumn(name, KINDS[plain], value, meaning)

    def as_json(row: Row) -> str | None:
        found = value(row)
        return None if found is None else json.dumps(found, ensure_ascii=False)

    return ExportColumn(name, "string", as_json, f"{meaning}, as JSON")


def _added_columns(name: str, folder: Path) -> Iterator[ExportColumn]:
    """The columns of further results of a study's command."""
    results = extensions().results[name]
    values = results.columns(folder)

    def at(place: int) -> Callable[[Row], Any]:
        def value(row: Row) -> Any:
            found = values.get((row.session.cell_id, row.session.session_id, row.turn.turn))
            return None if found is None else found[place]

        return value

    for place, column in enumerate(results.added):
        yield ExportColumn(column.name, column.kind, at(place), column.meaning)


def run_export(words: list[str]) -> int:
    """Write the turns of one or several cells as one table; returns the exit status. Raises `UserError`."""
    if any(word.startswith("format=") for word in words):
        return _export_to_tool(words)
    further = extensions().results
    values = parse_words(words, KEYS | {name: each.meaning for name, each in further.items()}, required=("out",))
    if ("run" in values) == ("runs" in values):
        mistake = "run and runs are both given" if "run" in values else "run is required"
        raise UserError(mistake, "run=DIR names one cell, runs=DIR[,DIR] several")
    target = Path(values["out"])
    if target.suffix not in WRITERS:
        raise UserError(f"cannot write '{target.suffix}' files", nearest(target.suffix, WRITERS))
    if "run" in values:
        cells, notes = one_cell(Path(values["run"]))
    else:
        cells, notes = several_cells([Path(name) for name in values["runs"].split(",") if name])
    for note in notes:
        err.print(f"note: {note}", markup=False)
    sessions = (session for cell in cells for session in cell.sessions())
    added = [column for name in further.keys() & values for column in _added_columns(name, Path(values[name]))]
    columns = [*COLUMNS, *own_columns(sessions, {column.name for column in COLUMNS}), *added]
    write_atomically(target, WRITERS[target.suffix](columns, _chunks(cells, columns)))
    lengths = [(len(session.turns), session.status) for cell in cells for session in cell.sessions()]
    turns, errored = sum(length for length, _ in lengths), sum(status == "errored" for _, status in lengths)
    counts = (*([(len(cells), "cell")] if "runs" in values else []), (turns, "turn"), (len(columns), "column"))
    out.print(f"{', '.join(counted(*each) for each in counts)}: {target}", markup=False)
    if errored:
        note = f"{counted(errored, 'errored session')} in it, which belong in no figure: keep status == completed"
        err.print(f"note: {note}", markup=False)
    return 0


def _export_to_tool(words: list[str]) -> int:
    chosen = next(word.removeprefix("format=") for word in words if word.startswith("format="))
    options = EXPORTS[chosen].config.model_fields.items() if chosen else ()
    keys = {"run": KEYS["run"], "format": KEYS["format"], "out": "the file to write; for harbor, the folder"}
    keys |= {name: option.description or "" for name, option in options}
    required = ["run", "out", *(name for name, option in options if option.is_required())]
    values = parse_words(words, keys, required=required)
    target = Path(values.pop("out"))
    _, notes = one_cell(Path(values["run"]))
    exported = EXPORTS.build(EXPORTS.validate(values))
    if exported.suffix not in ("", target.suffix):
        form = f"what format={chosen} writes is opened only as *{exported.suffix}, not as {target.name}"
        raise UserError(form, f"out={target.with_suffix(exported.suffix)}")
    if exported.files and target.is_dir() and any(target.iterdir()):
        raise UserError(f"{target} is not empty", "choose another out=FOLDER")
    for name, content in exported.files.items():
        write_atomically(target / name, content)
    if not exported.files:
        write_atomically(target, exported.text)
    for note in (*notes, *exported.remarks):
        err.print(f"note: {note}", markup=False)
    out.print(f"{exported.counts}: {target}", markup=False)
    return 0


def one_cell(folder: Path) -> tuple[list[ExportedCell], list[str]]:
    """A cell, finished or not, and remarks for the user. Raises `UserError`."""
    if not (folder / "sessions.jsonl").is_file():
        several = folder.is_dir() and next(folder.glob("*/sessions.jsonl"), None) is not None
        remedy = f"it holds cells: runs={folder} takes all of them" if several else "a run prints its folder at the end"
        raise UserError(f"{folder} is no cell's folder: it has no sessions.jsonl", remedy)
    warning = edited(folder)
    return [_cell_in(folder)], [f"{folder}: {warning}."] if warning else []


def several_cells(folders: Sequence[Path]) -> tuple[list[ExportedCell], list[str]]:
    """The finished cells of the folders, and remarks for the user. Raises `UserError`."""
    loaded = load_cells(folders, options_of, remeasure)
    notes = list(content_notes(loaded))
    left = [cell.name for folder in folders for cell in cell_folders(folder)[1]]
    if left:
        notes.append(f"Left out, as they have not finished: {', '.join(left)}.")
    cells = [_cell_in(part.folder, cell.dataset, cell.label) for cell in loaded for part in cell.parts]
    seen: dict[str, Path] = {}
    for cell in cells:
        first = next(cell.sessions(), None)
        if first is not None and seen.setdefault(first.cell_id, cell.folder) != cell.folder:
            places = f"{seen[first.cell_id]} and {cell.folder}"
            raise UserError(f"{places} have the same cell id", "export them one by one: run=DIR")
    return cells, notes


def _cell_in(folder: Path, dataset: str | None = None, entrant: str = "") -> ExportedCell:
    try:
        config = from_yaml((folder / "config.yaml").read_text(encoding="utf-8"))
        choices, kind = config.get("choices") or {}, config["protocol"]["kind"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        return ExportedCell(folder, dataset, entrant)  # a recording without its configuration
    uses = next((each.traits.uses for each in PROTOCOLS if each.name == kind), frozenset(choices))
    chosen = {group: choices.get(group) for group in ("agenda", "judge") if group in uses}
    return ExportedCell(folder, dataset, entrant, **chosen)


def _chunks(cells: Sequence[ExportedCell], columns: Sequence[ExportColumn]) -> Iterator[list[list[Any]]]:
    """The rows, at most `CHUNK` at once."""
    rows = (Row(session, turn, cell) for cell in cells for session in cell.sessions() for turn in session.turns)
    while chunk := [[column.value(row) for column in columns] for row in islice(rows, CHUNK)]:
        yield chunk


def _csv(columns: Sequence[ExportColumn], chunks: Iterable[list[list[Any]]]) -> Iterator[bytes]:
    """UTF-8 with a header; missing values are empty, and true and false are written as R and pandas read them.

    Texts that a spreadsheet would run as formulas begin with an apostrophe (`codechat.base.spreadsheet`).
    """
    yield csv_text([[column.name for column in columns]]).encode()
    for chunk in chunks:
        rows = ([str(value).upper() if isinstance(value, bool) else value for value in row] for row in chunk)
        yield csv_text(rows).encode()


def _parquet(columns: Sequence[ExportColumn], chunks: Iterable[list[list[Any]]]) -> Iterator[bytes]:
    """Parquet with the columns' types, their meaning as the fields' metadata."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet

    types: Mapping[Kind, Any] = {
        "string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_(),
    }  # fmt: skip
    schema = pa.schema([pa.field(c.name, types[c.kind], metadata={"description": c.meaning}) for c in columns])
    with tempfile.TemporaryFile() as stream:
        with parquet.ParquetWriter(stream, schema) as writer:
            for chunk in chunks:
                frame = pd.DataFrame(chunk, columns=schema.names, dtype=object)
                table = pa.Table.from_pandas(frame, schema, preserve_index=False)
                writer.write_table(table.replace_schema_metadata())  # without pandas' notes on its types
        stream.seek(0)
        yield from iter(lambda: stream.read(1 << 20), b"")


WRITERS: Mapping[str, Callable[[Sequence[ExportColumn], Iterable[list[list[Any]]]], Iterator[bytes]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
}
