"""CodeChat-Eval's replication package: dialogues of ten turns with code and adherence, in columns that are recognised.

The package could not be opened here, so nothing rests on the names of its files and columns: `NAMES` lists those that
are tried for each part, `columns.PART=NAME` names another, and what was recognised, and what was not, is said. Model,
dataset and turn stand in columns or in the names of files and folders. A part that two columns may be is refused.
"""

import csv
import io
import json
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from codechat.base.config import Config, original_option
from codechat.base.domain import Change, Message, Scope, Target
from codechat.base.errors import UserError
from codechat.base.records import AdherenceRecord, InstructionRecord
from codechat.base.template import counted
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.datasets.importing.dialogues import PublishedTurn, dialogue
from codechat.sandbox.languages import extract
from codechat.studies.refine.instructions.pool import VERBS, leading_verb

NAMES: Mapping[str, tuple[str, ...]] = {
    "task": ("task_id", "taskid", "task", "problem_id", "problem", "question_id", "sample_id", "id"),
    "code": ("code", "generated_code", "extracted_code", "solution", "generated", "completion", "final_code"),
    "reply": ("response", "reply", "raw_response", "model_response", "model_output", "output", "raw"),
    "adherence": (
        *("adherence", "adhered", "adheres", "adherent", "is_adherent", "adherence_result", "adherence_label"),
        *("instruction_followed", "followed", "is_followed", "compliance", "complied"),
    ),
    "instruction": ("instruction", "instruction_text", "refinement", "refinement_instruction", "followup"),
    "instruction_id": ("instruction_id", "instructionid", "inst_id", "refinement_id"),
    "scope": ("scope", "instruction_scope", "category", "instruction_category", "instruction_type", "type", "level"),
    "change": ("change", "change_type", "operation", "action", "modification"),
    "model": ("model", "model_name", "llm", "model_id"),
    "dataset": ("dataset", "benchmark", "data", "dataset_name"),
    "turn": ("turn", "turn_id", "turn_number", "round", "iteration", "step"),
    "prompt": ("prompt", "request", "input", "messages", "user_prompt"),
}
"""The columns that are tried for each part, in lower case without regard to `-`, blanks and capitals."""
PREFIXES = {"humaneval": "HumanEval", "mbpp": "Mbpp"}
TRUE, FALSE = (
    ("true", "yes", "1", "adhered", "adherent"),
    ("false", "no", "0", "violated", "not adhered", "non-adherent"),
)
DEEPEST = 3
"""Lists within each other in which records may stand: models, dialogues, turns."""
_TURN = re.compile(r"(?:^|[^a-z])(?:turn|round|iter(?:ation)?|step|t)[ _.-]*(\d{1,2})(?!\d)", re.IGNORECASE)
_HIDDEN = re.compile(r"(?:^|/)(?:\.|__MACOSX/)")
_LAST_NUMBER = re.compile(r"(?:^|[_.\- ])(\d{1,2})$")
_DATASET = re.compile(r"(humaneval|human[_-]eval|mbpp)[ _-]?(?:plus|\+)?", re.IGNORECASE)


class Columns(Config):
    """The columns of the package, if they are not found by themselves."""

    task: str | None = original_option(None, "the task's id", min_length=1)
    code: str | None = original_option(None, "the code of a turn", min_length=1)
    reply: str | None = original_option(None, "the model's whole reply", min_length=1)
    adherence: str | None = original_option(None, "whether the instruction was followed", min_length=1)
    instruction: str | None = original_option(None, "the instruction's text", min_length=1)
    instruction_id: str | None = original_option(None, "the instruction's id", min_length=1)
    scope: str | None = original_option(None, "the instruction's scope", min_length=1)
    change: str | None = original_option(None, "the instruction's change", min_length=1)
    model: str | None = original_option(None, "the model", min_length=1)
    dataset: str | None = original_option(None, "the dataset", min_length=1)
    turn: str | None = original_option(None, "the turn's number", min_length=1)
    prompt: str | None = original_option(None, "what was asked at the turn", min_length=1)


class PackageImport(ImportConfig):
    """Options of `codechat`."""

    format: Literal["codechat"] = original_option("codechat", "what the source is")
    columns: Columns = original_option(Columns(), "the columns' names, where they are not recognised")


@dataclass(frozen=True, slots=True)
class _Place:
    """Which dialogue a record belongs to."""

    model: str
    dataset: str
    task: str


@dataclass
class _Found:
    """What was read, and what is to be said of it."""

    turns: dict[_Place, dict[int, PublishedTurn]] = field(default_factory=lambda: defaultdict(dict))
    recognised: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unused: Counter[str] = field(default_factory=Counter)
    named: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """What the names of files and folders say, by part."""
    said: Counter[str] = field(default_factory=Counter)


def _preview(config: PackageImport) -> Iterator[str]:
    found = _Found()
    _recognise(found, _records(dict(_files(Path(config.source))), config.columns), config)
    yield from _recognised(found)


@FORMATS.register("codechat", PackageImport, preview=_preview)
def package(config: PackageImport) -> Imported:
    """CodeChat-Eval's replication package: a file of sessions for each model and dataset (out=FOLDER)."""
    files = dict(_files(Path(config.source)))
    pool = _pool(files)
    found = _Found()
    rows = list(_records(files, config.columns))
    _recognise(found, rows, config)
    for at, row in rows:
        _take(found, config, pool, at, row)
    if not found.turns:
        part = "code" if "task" in found.recognised else "task"
        raise UserError(f"{config.source} holds no record with a task and a code", _columns_remedy(found, part))
    shift = min(number for turns in found.turns.values() for number in turns)
    parts: dict[str, list[Any]] = defaultdict(list)
    broken: list[str] = []
    for place, turns in found.turns.items():
        numbers = sorted(turns)
        if numbers != list(range(shift, shift + len(numbers))):
            broken.append(f"{place.task} of {place.model}")
            continue
        session = dialogue(place.task, place.dataset, place.model, _with_skips([turns[n] for n in numbers]))
        parts[f"{place.model}-{place.dataset}"].append(session)
    remarks = [*_remarks(found), *_of_pool(pool)]
    if shift:
        remarks.append(f"turns begin at {shift} in the package, and at 0 here")
    if broken:
        remarks.append(f"{counted(len(broken), 'dialogue')} left out, as turns are missing: the first is {broken[0]}")
    return Imported([session for part in parts.values() for session in part], [], remarks, dict(parts))


def _files(source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        paths = sorted(path for path in source.rglob("*") if path.suffix.lower() in (".jsonl", ".json", ".csv"))
        named = [(path.relative_to(source).as_posix(), path) for path in paths]
        yield from ((name, path.read_bytes()) for name, path in named if not _HIDDEN.search(name))
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            names = [name for name in archive.namelist() if not _HIDDEN.search(name)]
            yield from ((name, archive.read(name)) for name in names if not name.endswith("/"))
    elif source.is_file():
        yield source.name, source.read_bytes()
    else:
        raise UserError(f"source: there is no {source}", "source=PACKAGE names the folder or the zip file")


def _records(files: Mapping[str, bytes], columns: Columns) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The records of all files, each with its file and line."""
    for name in sorted(files):
        if name.lower().endswith((".jsonl", ".json")):
            for line, value in _values(name, files[name]):
                yield from (((name, line), row) for row in _flat(value, columns) if isinstance(value, dict))


def _values(name: str, blob: bytes) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file, line by line, or of the list or the object that it is."""
    text = blob.decode("utf-8-sig", "replace")
    try:
        yield from enumerate(values if isinstance(values := json.loads(text), list) else [values], 1)
        return
    except ValueError:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    for number, line in lines:
        try:
            value = json.loads(line)
        except ValueError as error:
            remedy = "source=PACKAGE names the folder or the zip file"
            raise UserError(f"{name}:{number}: not JSON: {error}", remedy) from error
        yield number, value


def _flat(row: dict[str, Any], columns: Columns, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The row; of one without code that holds a list of records, such as a dialogue's turns, these with its columns."""
    lists = {
        name: items for name, value in row.items()
        if isinstance(value, list) and (items := [item for item in value if isinstance(item, dict)])
    }  # fmt: skip
    if len(chosen := [name for name in lists if any(_has(item, "code", columns) for item in lists[name])]) != 1:
        chosen = list(lists)
    if depth == DEEPEST or _has(row, "code", columns) or len(chosen) != 1:
        yield row
        return
    outer = {name: value for name, value in row.items() if name != chosen[0]}
    for number, item in enumerate(lists[chosen[0]]):
        of_dialogue = _has(outer, "task", columns) and not _has(item, "turn", columns)
        yield from _flat({**outer, **({"turn": number} if of_dialogue else {}), **item}, columns, depth + 1)


def _has(row: Mapping[str, Any], part: str, columns: Columns) -> bool:
    names = {*NAMES[part], *(NAMES["reply"] if part == "code" else ())}
    return any(_plain(name) in names or name in (getattr(columns, part), columns.reply) for name in row)


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _column(row: Mapping[str, Any], part: str, chosen: str | None, place: str) -> str | None:
    """The column of a part. Raises `UserError` if two that say different things may be it."""
    if chosen is not None:
        return chosen if chosen in row else None
    fitting = [name for wanted in NAMES[part] for name in row if _plain(name) == wanted]
    if part == "code":  # of a code and a reply, the code
        fitting = [name for name in fitting if isinstance(row[name], str | None)]
    if len({json.dumps(row[name], sort_keys=True, default=str) for name in fitting}) > 1:
        raise UserError(
            f"{place}: {' and '.join(fitting[:3])} may both be the {part.replace('_', ' ')}",
            f"columns.{part}={fitting[0]}",
        )
    return fitting[0] if fitting else None


def _columns_remedy(found: _Found, part: str) -> str:
    seen = ", ".join(sorted({*found.unused, *(name for names in found.recognised.values() for name in names)})[:12])
    return f"columns.{part}=NAME names the column{f'; there are {seen}' if seen else ''}"


def _recognise(found: _Found, rows: Iterable[tuple[tuple[str, int], dict[str, Any]]], config: PackageImport) -> None:
    """Note where each part is read from. Raises `UserError` for a named column that no record has."""
    columns = config.columns
    for at, row in rows:
        taken = {part: _column(row, part, getattr(columns, part), f"{at[0]}:{at[1]}") for part in NAMES}
        for part, name in taken.items():
            if name is not None:
                found.recognised[part][name] += 1
        found.unused.update(name for name in row if name not in taken.values())
        path = PurePosixPath(at[0])
        dataset, turn = _DATASET.search(at[0]), _number(None, path)
        by_name = {
            "model": config.model or _model(path),
            "dataset": dataset and dataset[0].strip(" _-"),
            "turn": None if turn is None else str(turn),
        }
        for part, said in by_name.items():
            if taken[part] is None and said:
                found.named[part].add(said)
    for part in NAMES:
        if (chosen := getattr(columns, part)) and part not in found.recognised:
            raise UserError(f"there is no column {chosen}", _columns_remedy(found, part))


def _take(
    found: _Found, config: PackageImport, pool: Mapping[str, tuple[Scope, Change]], at: tuple[str, int],
    row: dict[str, Any],
) -> None:  # fmt: skip
    place, path = f"{at[0]}:{at[1]}", PurePosixPath(at[0])
    columns = {part: _column(row, part, getattr(config.columns, part), place) for part in NAMES}
    values = {part: row[name] for part, name in columns.items() if name is not None}
    if "task" not in values or ("code" not in values and "reply" not in values):
        found.said["records without a task, or without code and reply, are left out"] += 1
        return
    dataset = _dataset(values.get("dataset"), path, place)
    turn = _number(values.get("turn"), path)
    if turn is None:
        raise UserError(f"{place}: neither a column nor the file's name says the turn", "columns.turn=NAME names it")
    model = str(values["model"]) if values.get("model") else config.model or _model(path)
    if not model:
        raise UserError(f"{place}: neither a column nor the file's name says the model", "model=NAME, or columns.model")
    where = _Place(model, dataset, _task(values["task"], dataset))
    if turn in found.turns[where]:
        raise UserError(
            f"{place}: a second record of turn {turn} of {where.task} of {model}", "import one run at a time"
        )
    found.turns[where][turn] = _turn(found, values, pool, place)


def _turn(
    found: _Found, values: Mapping[str, Any], pool: Mapping[str, tuple[Scope, Change]], place: str
) -> PublishedTurn:
    code, reply = values.get("code"), values.get("reply")
    if isinstance(code, str) and "```" in code:
        found.said["codes stand in fences: taken for replies, and their code extracted"] += 1
        code, reply = None, reply or code
    if code is None and isinstance(reply, str):
        code = extract(reply, Target()).code
        found.said["codes are extracted from the replies"] += 1
    own: dict[str, Any] = {}
    if (adhered := _truth(values.get("adherence"), place)) is not None:
        verdict: Any = "adhered" if adhered else "violated"
        own["adherence"] = AdherenceRecord(verdict=verdict, by="published", reason="")
    if (instruction := _instruction(found, values, pool)) is not None:
        own["instruction"] = instruction
    text, prompt = values.get("instruction"), values.get("prompt")
    said = prompt if isinstance(prompt, str) else text if isinstance(text, str) else ""
    return PublishedTurn(
        code if isinstance(code, str) and code.strip() else None, None, request=[Message("user", said)] if said else [],
        response=reply if isinstance(reply, str) else None, own=own,
    )  # fmt: skip


def _instruction(
    found: _Found, values: Mapping[str, Any], pool: Mapping[str, tuple[Scope, Change]]
) -> InstructionRecord | None:
    """The instruction with its scope and change: the record's own, or the pool's; its change by its verb (III-B)."""
    text, name = str(values.get("instruction") or "").strip(), str(values.get("instruction_id") or "").strip()
    if not (text or name):
        return None
    known = pool.get(name) or pool.get(text)
    scope = _one_of(values.get("scope"), Scope) or (known and known[0])
    change = _one_of(values.get("change"), Change) or (known and known[1])
    if change is None and (change := VERBS.get(leading_verb(text))):
        found.said["changes of instructions follow from their leading verbs (paper III-B)"] += 1
    if scope is None or change is None:
        found.said["instructions have no scope or change: they count in no figure by scope"] += 1
        return None
    return InstructionRecord(id=name or text[:60], text=text or name, scope=scope, change=change)


def _pool(files: Mapping[str, bytes]) -> dict[str, tuple[Scope, Change]]:
    """Scope and change by an instruction's id and text, from the package's CSV files."""
    known: dict[str, tuple[Scope, Change]] = {}
    for name, blob in files.items():
        if name.lower().endswith(".csv"):
            for row in csv.DictReader(io.StringIO(blob.decode("utf-8-sig", "replace"))):
                own = {_plain(str(column)): value for column, value in row.items() if isinstance(value, str)}
                scope = next((s for part in NAMES["scope"] if (s := _one_of(own.get(part), Scope))), None)
                text = next((own[part].strip() for part in (*NAMES["instruction"], "text") if own.get(part)), "")
                change = next((c for part in NAMES["change"] if (c := _one_of(own.get(part), Change))), None)
                change = change or VERBS.get(leading_verb(text))
                if scope and change and text:
                    for key in (
                        text,
                        *(own[part].strip() for part in (*NAMES["instruction_id"], "id") if own.get(part)),
                    ):
                        known.setdefault(key, (scope, change))
    return known


def _of_pool(pool: Mapping[str, tuple[Scope, Change]]) -> list[str]:
    return [f"the package's instructions: {len(pool)} ids and texts with scope and change"] if pool else []


def _one_of(value: Any, names: Any) -> Any:
    return next((name for name in get_args(names) if isinstance(value, str) and value.strip().lower() == name), None)


def _truth(value: Any, place: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    said = f"{value:g}" if isinstance(value, float) else str(value).strip().lower()
    if said in ("", "null", "none", "nan", "skip", "skipped"):
        return None
    if said in TRUE or said in FALSE:
        return said in TRUE
    raise UserError(
        f"{place}: adherence {value!r} is neither true nor false", "columns.adherence=NAME names another column"
    )


def _dataset(value: Any, path: PurePosixPath, place: str) -> str:
    found = _DATASET.search(str(value)) if value else _DATASET.search(str(path))
    if found is None:
        raise UserError(
            f"{place}: neither a column nor the file's name says the dataset", "columns.dataset=NAME names it"
        )
    return "mbpp" if found[1].lower() == "mbpp" else "humaneval"


def _number(value: Any, path: PurePosixPath) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (digits := re.search(r"\d+", value)):
        return int(digits[0])
    found = next((match for part in reversed(path.parts) if (match := _TURN.search(PurePosixPath(part).stem))), None)
    found = found or _LAST_NUMBER.search(path.stem)
    return int(found[1]) if found else None


def _model(path: PurePosixPath) -> str:
    """What is left of the file's name, or of a folder's, without dataset and turn."""
    for part in (path.stem, *reversed(path.parts[:-1])):
        left = _DATASET.sub("", _TURN.sub("", part) if _TURN.search(part) else _LAST_NUMBER.sub("", part))
        left = re.sub(r"(?i)\b(?:results?|outputs?|generations?|data|dialogues?)\b", "", left.replace("_", " "))
        left = re.sub(r"\s+", "_", left.strip(" ._-+"))
        if left and not left.isdigit():
            return left
    return ""


def _task(value: Any, dataset: str) -> str:
    digits = re.search(r"(\d+)\D*$", str(value))
    return f"{PREFIXES[dataset]}/{digits[1]}" if digits else str(value)


def _with_skips(turns: Sequence[PublishedTurn]) -> list[PublishedTurn]:
    """The turns; one after the first without an instruction's verdict whose code is missing or unchanged is a skip."""
    judged = any("adherence" in (turn.own or {}) for turn in turns)
    made: list[PublishedTurn] = []
    for number, turn in enumerate(turns):
        own = turn.own or {}
        if number and judged and "adherence" not in own and turn.code in (None, made[-1].code):
            made.append(PublishedTurn(made[-1].code, None, skipped=True))
        else:
            made.append(turn)
    return made


def _remarks(found: _Found) -> Iterator[str]:
    yield from _recognised(found)
    yield from (f"{count} {said}" for said, count in found.said.items())


def _recognised(found: _Found) -> Iterator[str]:
    for part, names in found.recognised.items():
        yield f"{part.replace('_', ' ')}: {', '.join(f'{name} ({count})' for name, count in names.items())}"
    for part, values in found.named.items():
        yield f"{part}: {', '.join(sorted(values)[:12])} (by the names of files and folders, or model=)"
    if missing := [part for part in NAMES if part not in found.recognised and part not in found.named]:
        yield f"not recognised: {', '.join(missing)} (columns.PART=NAME names one)"
    if found.unused:
        yield f"columns not used: {', '.join(sorted(found.unused)[:20])}"
