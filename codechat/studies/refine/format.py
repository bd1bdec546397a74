"""CodeChat-Eval's replication package: dialogues of ten turns with code and adherence, in columns that are recognised.

The names of the package's files and columns are unknown. `NAMES` lists the columns that are tried for each part,
`columns.PART=NAME` names another one, and the import prints which columns were recognised. Model, dataset and turn
stand in columns or in the names of files and folders. A part for which two columns qualify is refused.
"""

import csv
import gzip
import io
import json
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from codechat.base.config import original_option
from codechat.base.domain import Change, Message, Scope, Target
from codechat.base.errors import UserError
from codechat.base.records import AdherenceRecord, InstructionRecord
from codechat.base.template import counted
from codechat.base.texts import read_json
from codechat.datasets.importing import FORMATS, ImportConfig, Imported, PublishedTurn, dialogue
from codechat.sandbox.languages import extract
from codechat.studies.refine.instructions.pool import VERBS, leading_verb

Part = Literal[
    "task", "code", "reply", "adherence", "instruction", "instruction_id", "scope", "change", "model", "dataset",
    "turn", "prompt",
]  # fmt: skip
NAMES: Mapping[Part, Sequence[str]] = {
    "task": ["task_id", "taskid", "task", "problem_id", "problem", "question_id", "sample_id", "id"],
    "code": ["code", "generated_code", "extracted_code", "solution", "generated", "completion", "final_code"],
    "reply": ["response", "reply", "raw_response", "model_response", "model_output", "output", "raw"],
    "adherence": [
        *("adherence", "adhered", "adheres", "adherent", "is_adherent", "adherence_result", "adherence_label"),
        *("instruction_followed", "followed", "is_followed", "compliance", "complied"),
    ],
    "instruction": ["instruction", "instruction_text", "refinement", "refinement_instruction", "followup"],
    "instruction_id": ["instruction_id", "instructionid", "inst_id", "refinement_id"],
    "scope": ["scope", "instruction_scope", "category", "instruction_category", "instruction_type", "type", "level"],
    "change": ["change", "change_type", "operation", "action", "modification"],
    "model": ["model", "model_name", "llm", "model_id"],
    "dataset": ["dataset", "benchmark", "data", "dataset_name"],
    "turn": ["turn", "turn_id", "turn_number", "round", "iteration", "step"],
    "prompt": ["prompt", "request", "input", "messages", "user_prompt"],
}
"""The columns that are tried for each part, in lower case, with `_` for `-` and blanks."""
PREFIXES = {"humaneval": "HumanEval", "mbpp": "Mbpp"}
TRUTH = dict.fromkeys(("", "null", "none", "nan", "skip", "skipped"), None)
TRUTH |= dict.fromkeys(("true", "yes", "1", "adhered", "adherent"), True)
TRUTH |= dict.fromkeys(("false", "no", "0", "violated", "not adhered", "non-adherent"), False)
REMEDY = "source=PACKAGE names the folder or the zip file"
_TURN = re.compile(r"(?:^|[^a-z])(?:turn|round|iter(?:ation)?|step|t)[ _.-]*(\d{1,2})(?!\d)", re.IGNORECASE)
_KNOWN = re.compile(r"\.(?:jsonl?|csv)(?:\.gz)?\Z", re.IGNORECASE)
_HIDDEN = re.compile(r"(?:^|/)(?:\.|__MACOSX/)")
_LAST_NUMBER = re.compile(r"(?:^|[_.\- ])(\d{1,2})$")
_DATASET = re.compile(r"(humaneval|human[_-]eval|mbpp)[ _-]?(?:plus|\+)?", re.IGNORECASE)

Columns = Mapping[Part, str]
Kinds = Mapping[str, tuple[Scope, Change]]
"""Scope and change by an instruction's id and text."""


class PackageImport(ImportConfig):
    """Options of `codechat`."""

    format: Literal["codechat"] = original_option("codechat", "what the source is")
    columns: dict[Part, str] = original_option({}, "the column of a part that is not recognised")


@dataclass(frozen=True, slots=True)
class _Record:
    path: PurePosixPath
    line: int
    row: Mapping[str, Any]
    columns: Columns

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def get(self, part: Part) -> Any:
        return self.row[self.columns[part]] if part in self.columns else None


@FORMATS.register(
    "codechat", PackageImport, preview=lambda config: _recognised(_records(_files(config), config.columns), config)
)
def package(config: PackageImport) -> Imported:
    """CodeChat-Eval's replication package: a file of sessions for each model and dataset (out=FOLDER)."""
    files = _files(config)
    records = _records(files, config.columns)
    kinds, said = _kinds(files), Counter[str]()
    remarks = list(_recognised(records, config))
    dialogues: dict[tuple[str, str, str], dict[int, PublishedTurn]] = defaultdict(dict)
    for record in records:
        if "task" not in record.columns or not {"code", "reply"} & record.columns.keys():
            said["records without a task, or without code and reply, are left out"] += 1
            continue
        model, dataset, task, number = _origin(record, config)
        if number in dialogues[model, dataset, task]:
            what = f"a second record of turn {number} of {task} of {model}"
            raise UserError(f"{record.place}: {what}", "import one run at a time")
        dialogues[model, dataset, task][number] = _turn(record, kinds, said)
    if not dialogues:
        part: Part = "code" if any("task" in record.columns for record in records) else "task"
        raise UserError(f"{config.source} holds no record with a task and a code", _columns_remedy(records, part))
    first = min(number for turns in dialogues.values() for number in turns)
    parts: dict[str, list[Any]] = defaultdict(list)
    broken: list[str] = []
    for (model, dataset, task), by_number in dialogues.items():
        turns = [by_number[number] for number in sorted(by_number)]
        if sorted(by_number) != list(range(first, first + len(turns))):
            broken.append(f"{task} of {model}")
        else:
            parts[f"{model}-{dataset}"].append(dialogue(task, dataset, model, _with_skips(turns)))
    if not parts:
        lacking = f"turns are missing in every dialogue: the first is {broken[0]}"
        raise UserError(
            f"{config.source}: {lacking}", "columns.turn=NAME names the column of the turn, if it is another"
        )
    remarks += [f"{count} {what}" for what, count in said.items()]
    if kinds:
        remarks.append(f"the package's instructions: {len(kinds)} ids and texts with scope and change")
    if first:
        remarks.append(f"turns begin at {first} in the package, and at 0 here")
    if broken:
        remarks.append(f"{counted(len(broken), 'dialogue')} left out, as turns are missing: the first is {broken[0]}")
    return Imported([session for part in parts.values() for session in part], [], remarks, dict(parts))


def _files(config: PackageImport) -> Mapping[str, str]:
    source = Path(config.source)
    if source.is_dir():
        paths = {path.relative_to(source).as_posix(): path for path in sorted(source.rglob("*")) if path.is_file()}
        files = [(name, path.read_bytes()) for name, path in paths.items() if _is_known(name)]
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            files = [(name, archive.read(name)) for name in archive.namelist() if _is_known(name)]
    elif source.is_file():
        files = [(source.name, source.read_bytes())]
    else:
        raise UserError(f"source: there is no {source}", REMEDY)
    found: dict[str, str] = {}
    for name, blob in files:
        plain = re.sub(r"(?i)\.gz\Z", "", name)  # compressed or not, a name says the same
        if plain in found:
            raise UserError(f"{source} has both {plain} and {plain}.gz", "leave one of them out")
        found[plain] = _text(name, blob)
    return found


def _is_known(name: str) -> bool:
    return _KNOWN.search(name) is not None and _HIDDEN.search(name) is None


def _text(name: str, blob: bytes) -> str:
    """A file's text. Raises `UserError`: a character that is replaced would be another program."""
    try:
        blob = gzip.decompress(blob) if blob.startswith(b"\x1f\x8b") else blob
        return blob.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = blob.count(b"\n", 0, error.start) + 1
        raise UserError(f"{name}:{line}: not UTF-8 (byte {error.start} of the file)", "save it as UTF-8") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {name}: {error}", "get the file again: it is cut or damaged") from error


def _records(files: Mapping[str, str], chosen: Columns) -> list[_Record]:
    """The records of all JSON files. Raises `UserError` for a named column that no record has."""
    records: list[_Record] = []
    for name in (name for name in sorted(files) if name.lower().endswith((".jsonl", ".json"))):
        path, rows = PurePosixPath(name), [*_values(name, files[name])]
        others = [line for line, row in rows if not isinstance(row, dict)]
        if 0 < len(others) < len(rows):
            raise UserError(f"{name}:{others[0]}: not a JSON object, as the other rows are", "mend or drop that row")
        for line, row in rows if not others else ():
            columns = {part: column for part in NAMES if (column := _column(row, part, chosen, f"{name}:{line}"))}
            records.append(_Record(path, line, row, columns))
    for part, column in chosen.items():
        if not any(part in record.columns for record in records):
            raise UserError(f"there is no column {column}", _columns_remedy(records, part))
    return records


def _values(name: str, text: str) -> Iterator[tuple[int, Any]]:
    try:
        yield from enumerate(values if isinstance(values := read_json(text), list) else [values], 1)
        return
    except ValueError:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    for number, line in lines:
        try:
            yield number, read_json(line)
        except ValueError as error:
            raise UserError(f"{name}:{number}: not JSON: {error}", REMEDY) from error


@lru_cache(maxsize=1000)
def _fitting(names: tuple[str, ...], part: Part) -> list[str]:
    plain = {name: _plain(name) for name in names}
    return [name for wanted in NAMES[part] for name in names if plain[name] == wanted]


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _column(row: Mapping[str, Any], part: Part, chosen: Columns, place: str) -> str | None:
    """The column of a part. Raises `UserError` if two columns with different values qualify."""
    if part in chosen:
        return chosen[part] if chosen[part] in row else None
    fitting = _fitting(tuple(row), part)
    if part == "code":  # of a code and a reply, the code
        fitting = [name for name in fitting if isinstance(row[name], str | None)]
    if len(fitting) > 1 and len({json.dumps(row[name], sort_keys=True, default=str) for name in fitting}) > 1:
        what = f"{' and '.join(fitting[:3])} may both be the {part.replace('_', ' ')}"
        raise UserError(f"{place}: {what}", f"columns.{part}={fitting[0]}")
    return fitting[0] if fitting else None


def _columns_remedy(records: Sequence[_Record], part: Part) -> str:
    seen = ", ".join(sorted({name for record in records for name in record.row})[:12])
    return f"columns.{part}=NAME names the column{f'; there are {seen}' if seen else ''}"


def _origin(record: _Record, config: PackageImport) -> tuple[str, str, str, int]:
    """Model, dataset, task and turn of a record, by its columns or the file's name. Raises `UserError`."""
    lacks = f"{record.place}: neither a column nor the file's name says the"
    dataset = _DATASET.search(str(record.get("dataset") or record.path))
    if dataset is None:
        raise UserError(f"{lacks} dataset", "columns.dataset=NAME names it")
    name = "mbpp" if dataset[1].lower() == "mbpp" else "humaneval"
    turn = _number(record.get("turn"), record.path)
    if turn is None:
        raise UserError(f"{lacks} turn", "columns.turn=NAME names it")
    model = str(record.get("model") or config.model or _model(record.path))
    if not model:
        raise UserError(f"{lacks} model", "model=NAME, or columns.model")
    digits = re.search(r"(\d+)\D*$", str(record.get("task")))
    return model, name, f"{PREFIXES[name]}/{digits[1]}" if digits else str(record.get("task")), turn


def _number(value: Any, path: PurePosixPath) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (digits := re.search(r"\d+", value)):
        return int(digits[0])
    found = next((match for part in reversed(path.parts) if (match := _TURN.search(PurePosixPath(part).stem))), None)
    found = found or _LAST_NUMBER.search(path.stem)
    return int(found[1]) if found else None


@lru_cache(maxsize=1000)
def _model(path: PurePosixPath) -> str:
    """The rest of the file's or a folder's name without dataset and turn."""
    for part in (path.stem, *reversed(path.parts[:-1])):
        left = _DATASET.sub("", _TURN.sub("", part) if _TURN.search(part) else _LAST_NUMBER.sub("", part))
        left = re.sub(r"(?i)\b(?:results?|outputs?|generations?|data|dialogues?)\b", "", left.replace("_", " "))
        left = re.sub(r"\s+", "_", left.strip(" ._-+"))
        if left and not left.isdigit():
            return left
    return ""


def _turn(record: _Record, kinds: Kinds, said: Counter[str]) -> PublishedTurn:
    code, reply = record.get("code"), record.get("reply")
    if isinstance(code, str) and "```" in code:
        said["codes stand in fences: read as replies, and their code extracted"] += 1
        code, reply = None, reply or code
    if code is None and isinstance(reply, str):
        code = extract(reply, Target()).code
        said["codes are extracted from the replies"] += 1
    own: dict[str, Any] = {}
    if (adhered := _truth(record.get("adherence"), record.place)) is not None:
        own["adherence"] = AdherenceRecord(verdict="adhered" if adhered else "violated", by="published", reason="")
    if (instruction := _instruction(record, kinds, said)) is not None:
        own["instruction"] = instruction
    asked = next((text for part in ("prompt", "instruction") if isinstance(text := record.get(part), str)), "")
    return PublishedTurn(
        code if isinstance(code, str) and code.strip() else None, None,
        request=[Message("user", asked)] if asked else [], response=reply if isinstance(reply, str) else None, own=own,
    )  # fmt: skip


def _truth(value: Any, place: str) -> bool | None:
    said = f"{value:g}" if isinstance(value, float) else str(value).strip().lower()
    if said not in TRUTH:
        raise UserError(
            f"{place}: adherence {value!r} is neither true nor false", "name another: columns.adherence=NAME"
        )
    return TRUTH[said]


def _instruction(record: _Record, kinds: Kinds, said: Counter[str]) -> InstructionRecord | None:
    """The instruction with scope and change: of the record, else of the pool, else the change of the verb (III-B)."""
    text, name = (str(record.get(part) or "").strip() for part in ("instruction", "instruction_id"))
    if not (text or name):
        return None
    known = kinds.get(name) or kinds.get(text)
    scope = _one_of(record.get("scope"), Scope) or (known and known[0])
    change = _one_of(record.get("change"), Change) or (known and known[1])
    if change is None and (change := VERBS.get(leading_verb(text))):
        said["changes of instructions follow from their leading verbs (paper III-B)"] += 1
    if scope is None or change is None:
        said["instructions have no scope or change: they count in no figure by scope"] += 1
        return None
    return InstructionRecord(id=name or text[:60], text=text or name, scope=scope, change=change)


def _kinds(files: Mapping[str, str]) -> Kinds:
    """Scope and change by instruction, from the package's CSV files."""
    known: dict[str, tuple[Scope, Change]] = {}
    tables = [text for name, text in files.items() if name.lower().endswith(".csv")]
    for row in (row for table in tables for row in csv.DictReader(io.StringIO(table))):
        cells = {_plain(str(column)): value.strip() for column, value in row.items() if isinstance(value, str)}
        text = next((cells[name] for name in (*NAMES["instruction"], "text") if cells.get(name)), "")
        scope = next(filter(None, (_one_of(cells.get(name), Scope) for name in NAMES["scope"])), None)
        change = next(filter(None, (_one_of(cells.get(name), Change) for name in NAMES["change"])), None)
        change = change or VERBS.get(leading_verb(text))
        if scope and change and text:
            ids = [cells[name] for name in (*NAMES["instruction_id"], "id") if cells.get(name)]
            known = dict.fromkeys((text, *ids), (scope, change)) | known
    return known


def _one_of(value: Any, names: Any) -> Any:
    return next((name for name in get_args(names) if isinstance(value, str) and value.strip().lower() == name), None)


def _with_skips(turns: Sequence[PublishedTurn]) -> list[PublishedTurn]:
    """The turns, with a skip for each follow-up without a verdict whose code is missing or unchanged."""
    judged = any("adherence" in (turn.own or {}) for turn in turns)
    made: list[PublishedTurn] = []
    for turn in turns:
        skipped = made and judged and "adherence" not in (turn.own or {}) and turn.code in (None, made[-1].code)
        made.append(PublishedTurn(made[-1].code, None, skipped=True) if skipped else turn)
    return made


def _recognised(records: Sequence[_Record], config: PackageImport) -> Iterator[str]:
    named: dict[Part, set[str]] = defaultdict(set)
    for path, parts in dict.fromkeys((record.path, frozenset(record.columns)) for record in records):
        dataset, turn = _DATASET.search(str(path)), _number(None, path)
        by_name: dict[Part, str] = {"model": config.model or _model(path)}
        by_name["dataset"] = dataset[0].strip(" _-") if dataset else ""
        by_name["turn"] = "" if turn is None else str(turn)
        for part, value in by_name.items():
            if value and part not in parts:
                named[part].add(value)
    missing = []
    for part in NAMES:
        columns = Counter(record.columns[part] for record in records if part in record.columns)
        if columns:
            yield f"{part.replace('_', ' ')}: {', '.join(f'{name} ({count})' for name, count in columns.items())}"
        elif part not in named:
            missing.append(part)
    for part, values in named.items():
        yield f"{part}: {', '.join(sorted(values)[:12])} (by the names of files and folders, or model=)"
    if missing:
        yield f"not recognised: {', '.join(missing)} (columns.PART=NAME names one)"
    if unused := sorted({name for record in records for name in record.row.keys() - {*record.columns.values()}}):
        yield f"columns not used: {', '.join(unused[:20])}"
