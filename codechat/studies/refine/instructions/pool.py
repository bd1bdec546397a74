"""The pool: the embedded one, or a user's own file with a column map.

A file is CSV, JSON Lines or YAML, by its suffix. A row that cannot be read or understood is a mistake of its own, so
that all mistakes of a file are found at once. The change that an instruction means follows from its leading verb (paper
III-B, Table II).
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import yaml

from codechat.base.config import Config, original_option, place_option, run_option
from codechat.base.domain import CHANGES, SCOPES, Change, Instruction, Scope
from codechat.base.errors import MAX_LINES, UserError, nearest
from codechat.sandbox.languages import language_of
from codechat.studies.refine.instructions import INSTRUCTIONS, PYTHON, Pool, Rejected, WrongPool, hash_of
from codechat.studies.refine.patterns import rule_of

_VERBS: dict[Change, str] = {
    "add": """
        add adopt annotate apply attach create declare define describe document ensure explain implement include insert
        introduce log memoise provide put state use
    """,
    "remove": """
        avoid delete discard drop eliminate exclude forbid limit minimise omit prevent prohibit reduce remove strip
    """,
    "modify": """
        change combine convert extract inline invert merge move optimise refactor reformat rename reorder replace
        rewrite shorten simplify split swap switch transform turn
    """,
}

VERBS: Mapping[str, Change] = {verb: change for change, verbs in _VERBS.items() for verb in verbs.split()}
"""The 59 verbs. Words in -ise are also known in -ize."""


def leading_verb(text: str) -> str:
    """The first word of an instruction in lower case; empty if there is none."""
    match = re.match(r"\W*([A-Za-z][A-Za-z'-]*)", text)
    return match.group(1).lower() if match else ""


def change_of(text: str, verbs: Mapping[str, Change] = VERBS) -> Change:
    """The change meant by the leading verb. Raises `UserError` for an unknown verb."""
    verb = leading_verb(text)
    for spelling in _spellings(verb):
        if spelling in verbs:
            return verbs[spelling]
    raise UserError(
        f"the leading verb '{verb}' of '{text:.60}' stands for no change",
        f"map it: +instructions.verbs.{verb or 'VERB'}=add (or remove, modify), or start with one of its "
        f"{len(verbs)} verbs: {', '.join(list(verbs)[:6])}, …",
    )


def _spellings(verb: str) -> tuple[str, ...]:
    if verb.endswith("ize"):
        return verb, f"{verb[:-3]}ise"
    if verb.endswith("ise"):
        return verb, f"{verb[:-3]}ize"
    return (verb,)


class Row(NamedTuple):
    """One entry of a file: its line, counted from 1, and its fields by column name."""

    line: int
    fields: dict[str, Any]


def read_rows(path: Path) -> list[Row | UserError]:
    """The entries of a file in order, mistakes with file and line among them. Raises `UserError` if it has none."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UserError(f"{path}: a pool cannot be read from '{path.suffix}'", f"use one of {', '.join(_READERS)}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})", "save it as UTF-8") from error
    except OSError as error:
        raise UserError(
            f"cannot read the pool {path}: {error.strerror}", "set instructions.path to a CSV, JSONL or YAML file"
        ) from error
    rows = _rows(reader, text, path)
    if not rows:
        raise UserError(f"{path}: the pool is empty", "give it one instruction a row")
    return list(rows)


@lru_cache(maxsize=8)  # the cells of a sweep read the same pool
def _rows(
    reader: Callable[[str, Path], Iterator[Row | UserError]], text: str, path: Path
) -> tuple[Row | UserError, ...]:
    return tuple(reader(text, path))


def _csv(text: str, path: Path) -> Iterator[Row | UserError]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    start = 1
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1
            if not header:
                header = cells
            elif len(cells) == len(header):
                yield Row(line, dict(zip(header, cells, strict=True)))
            elif cells:
                yield UserError(
                    f"{path}:{line}: {len(cells)} cells where the header has {len(header)}",
                    "quote cells that hold a comma",
                )
    except csv.Error as error:
        yield UserError(f"{path}:{start}: not CSV: {error}", "mend or drop that line")


def _jsonl(text: str, path: Path) -> Iterator[Row | UserError]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield UserError(f"{path}:{number}: not JSON: {error}", "mend or drop that line")
        else:
            yield _row(fields, path, number)


def _yaml(text: str, path: Path) -> Iterator[Row | UserError]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return
        if not isinstance(root, yaml.SequenceNode):
            yield UserError(f"{path}:1: not a list of instructions", "start each instruction with '- '")
            return
        for node in root.value:
            try:
                yield _row(loader.construct_object(node, deep=True), path, node.start_mark.line + 1)
            except yaml.MarkedYAMLError as error:
                yield _not_yaml(error, path)
    except yaml.MarkedYAMLError as error:
        yield _not_yaml(error, path)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        yield UserError(f"{path}: not YAML: {error}", "mend the file")
    finally:
        loader.dispose()


def _not_yaml(error: yaml.MarkedYAMLError, path: Path) -> UserError:
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    return UserError(f"{path}:{line}: not YAML: {error.problem}", "mend that line")


def _row(fields: Any, path: Path, line: int) -> Row | UserError:
    if not isinstance(fields, dict):
        return UserError(f"{path}:{line}: not an instruction with named fields", "it needs at least 'text' and 'scope'")
    return Row(line, {str(key): value for key, value in fields.items()})


_READERS: dict[str, Callable[[str, Path], Iterator[Row | UserError]]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".yaml": _yaml,
    ".yml": _yaml,
}


def column(row: Row, field: str, name: str, path: Path) -> Any:
    """The value of the column for one of codechat's fields. Raises `UserError` if there is no such column."""
    if name not in row.fields:
        raise UserError(
            f"{path}:{row.line}: no column '{name}'",
            f"name yours: instructions.columns.{field}=COLUMN; {nearest(name, row.fields)}",
        )
    return row.fields[name]


EMBEDDED = Path(__file__).with_name("pool.yaml")
Field = Literal["id", "text", "scope", "change", "rule", "languages", "rejected", "accepted"]
REQUIRED = ("text", "scope")
YES = ["1", "1.0", "true", "yes", "y", "x", "accept", "accepted", "keep", "kept", "include", "included"]
NO = ["", *["0", "0.0", "false", "no", "n", "reject", "rejected", "drop", "dropped", "exclude", "excluded"]]
MARKS: Mapping[str, bool] = dict.fromkeys(YES, True) | dict.fromkeys(NO, False)
"""The values of the column `accepted`, and whether each means yes."""
SHOWS_ALL = "`codechat list instructions` with the same instructions.… settings"


class PoolConfig(Config):
    """Options of the pool."""

    kind: Literal["default"] = original_option("default", "the embedded pool, or the one that path names")
    path: str | None = place_option(None, "a pool of your own as CSV, JSONL or YAML; its content is in the cell id")
    columns: dict[Field, str] = run_option(
        {name: name for name in get_args(Field)}, "your columns' names, e.g. instructions.columns.text=Prompt"
    )
    verbs: dict[str, Change] = original_option({}, "changes of further leading verbs, or other ones: {tidy: modify}")


@INSTRUCTIONS.register("default", PoolConfig)
def load(config: PoolConfig) -> Pool:
    """The embedded pool of refinement instructions, or your own from instructions.path. Raises `UserError`."""
    path = Path(config.path) if config.path is not None else EMBEDDED
    return read_pool(path, config.columns, {**VERBS, **{verb.lower(): change for verb, change in config.verbs.items()}})


def read_pool(path: Path, columns: Mapping[Field, str], verbs: Mapping[str, Change] = VERBS) -> Pool:
    """Read and check a file of instructions.

    `text` and `scope` are required. Without a column `id` the id is made from scope and text. `change` wins over
    the leading verb, with a warning if the two differ; without it the verb decides. A row with a text under
    `rejected` is kept apart, with that text as the reason, and so is one with a no under `accepted`. A row holds for
    code in any language, or in those under `languages`.

    Raises `WrongPool` with all mistakes.
    """
    rows = read_rows(path)
    reading = _Reading(path, columns, verbs)
    for row in rows:
        try:
            if isinstance(row, UserError):
                raise row
            reading.take(row)
        except UserError as mistake:
            reading.mistakes.append(mistake)
            if path.suffix.lower() == ".csv" and isinstance(row, Row) and not reading.has_columns(row):
                break  # every row of a table lacks what its header lacks
    accepted = reading.accepted
    warnings = (*reading.warnings, *_unread([row for row in rows if isinstance(row, Row)], columns, path))
    own = tuple(one for one in accepted if one.language == PYTHON)
    others = tuple(one for one in accepted if one.language != PYTHON)
    pool = Pool(own, hash_of(own), tuple(reading.rejected), tuple(warnings), others, reading.languages)
    if reading.mistakes:
        raise _wrong(path, reading.mistakes, len(rows), pool)
    if not accepted:
        raise UserError(f"{path}: every instruction is rejected", "leave 'rejected' empty for those to be used")
    return pool


class _Reading:
    """The instructions, mistakes and warnings collected from a file so far."""

    def __init__(self, path: Path, columns: Mapping[Field, str], verbs: Mapping[str, Change]) -> None:
        self.path, self.columns, self.verbs = path, columns, verbs
        self.accepted: list[Instruction] = []
        self.rejected: list[Rejected] = []
        self.warnings: list[str] = []
        self.mistakes: list[UserError] = []
        self.languages: dict[str, frozenset[str]] = {}
        self._lines: dict[str, int] = {}

    def has_columns(self, row: Row) -> bool:
        """Whether the header has the columns that are required and those that are mapped."""
        needed = {"text": "text", "scope": "scope", **self.columns}
        return all(source in row.fields for name, source in needed.items() if name in REQUIRED or source != name)

    def take(self, row: Row) -> None:
        """Understand one row. Raises `UserError`."""
        place = f"{self.path}:{row.line}"
        fields = _fields(row, self.columns, self.path)
        text, scope = _text(fields, row, self.path), _scope(fields, row, self.path)
        name = str(fields["id"]).strip() if fields.get("id") else f"{scope}-{_slug(text)}"
        if name in self._lines:
            raise UserError(
                f"{place}: the id '{name}' is taken by line {self._lines[name]}", "give each instruction its own id"
            )
        self._lines[name] = row.line
        reason = str(fields.get("rejected") or "") or _refusal(fields, place)
        if reason:
            self.rejected.append(Rejected(name, text, scope, reason))
            return
        change, warning = _change(fields, text, self.verbs, place)
        languages = _languages(fields, place)
        if languages:
            self.languages[name] = frozenset(languages)
        language = PYTHON if PYTHON in languages or not languages else languages[0]
        one = Instruction(name, text, scope, change, _rule(fields, row, self.path), language)
        self.accepted.append(_check_rule(one, row, self.path))
        self.warnings += [warning] if warning else []


def _wrong(path: Path, mistakes: Sequence[UserError], rows: int, understood: Pool) -> WrongPool:
    """All mistakes of a file in five lines: the first one in full, of the others at least the line."""
    if len(mistakes) == 1:
        return WrongPool(mistakes[0].message, mistakes[0].remedy, tuple(mistakes), understood)
    lines = [f"{_line_of(path, each)}: {_without_place(path, each)}" for each in mistakes]
    if len(lines) > MAX_LINES - 1:
        rest = ", ".join(_line_of(path, each) for each in mistakes[MAX_LINES - 2 :])
        lines = [*lines[: MAX_LINES - 2], f"{SHOWS_ALL} shows the others too, in lines {rest}"]
    message = f"{path}: {len(mistakes)} of {rows} rows cannot be used, by line"
    return WrongPool(message, "\n".join(lines), tuple(mistakes), understood)


def _line_of(path: Path, mistake: UserError) -> str:
    found = re.match(r"(\d+):", mistake.message.removeprefix(f"{path}:"))
    return found.group(1) if found else "?"


def _without_place(path: Path, mistake: UserError) -> str:
    text = re.sub(r"^\d+: ", "", mistake.message.removeprefix(f"{path}:")).strip()
    return f"{text}; {mistake.remedy}" if mistake.remedy else text


def _unread(rows: Sequence[Row], columns: Mapping[Field, str], path: Path) -> Iterator[str]:
    """A warning for each column that is not read and whose name is almost that of one that would be."""
    found = dict.fromkeys(name for row in rows for name in row.fields)
    read = {columns.get(name, name): name for name in get_args(Field)}
    for name in found:
        meant = get_close_matches(name.strip().lower()[:40], read, n=1, cutoff=0.75)
        if name not in read and meant and meant[0] not in found:
            yield (
                f"{path}: the column '{name}' is not read; if it is the {read[meant[0]]}, "
                f"set instructions.columns.{read[meant[0]]}={name}"
            )


def _fields(row: Row, columns: Mapping[Field, str], path: Path) -> dict[str, Any]:
    """The row's fields by codechat's names."""
    fields: dict[str, Any] = {}
    for name in get_args(Field):
        source = columns.get(name, name)
        if source != name:
            # YAML and JSON entries may lack fields that a table would leave empty
            optional = name not in REQUIRED and path.suffix.lower() != ".csv"
            fields[name] = row.fields.get(source) if optional else column(row, name, source, path)
        elif name in REQUIRED:
            fields[name] = column(row, name, name, path)
        else:
            fields[name] = row.fields.get(name)
    return fields


def _text(fields: dict[str, Any], row: Row, path: Path) -> str:
    text = fields["text"]
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"{path}:{row.line}: the instruction has no text", "write one imperative sentence")
    return " ".join(text.split())


def _scope(fields: dict[str, Any], row: Row, path: Path) -> Scope:
    given = str(fields["scope"]).strip().lower()
    for scope in SCOPES:
        if given == scope:
            return scope
    raise UserError(f"{path}:{row.line}: '{fields['scope']}' is no scope", nearest(given, SCOPES))


def _refusal(fields: dict[str, Any], place: str) -> str:
    given = fields.get("accepted")
    if given is None:
        return ""
    mark = MARKS.get(str(given).strip().lower())
    if mark is None:
        raise UserError(
            f"{place}: 'accepted' is {given!r}", "say yes or no, true or false, 1 or 0, accepted or rejected"
        )
    return "" if mark else "marked as not accepted"


def _change(fields: dict[str, Any], text: str, verbs: Mapping[str, Change], place: str) -> tuple[Change, str]:
    """The change, with a warning if the leading verb means another."""
    given = str(fields.get("change") or "").strip().lower()
    try:
        meant = change_of(text, verbs)
    except UserError as error:
        if not given:
            raise UserError(f"{place}: {error.message}", f"say it in a column 'change', or {error.remedy}") from error
        meant = None
    if not given:
        assert meant is not None
        return meant, ""
    for change in CHANGES:
        if given == change:
            differs = f"{place}: '{text:.60}' counts as '{change}', as given; its leading verb would mean '{meant}'"
            return change, differs if meant not in (None, change) else ""
    raise UserError(f"{place}: '{fields['change']}' is no change", nearest(given, CHANGES))


def _languages(fields: dict[str, Any], place: str) -> list[str]:
    given = fields.get("languages") or []
    names = re.split(r"[\s,;]+", given.strip()) if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise UserError(f"{place}: 'languages' is {given!r:.60}", "list their names, such as [javascript, java]")
    return [language_of(name).names[0] for name in names]


def _rule(fields: dict[str, Any], row: Row, path: Path) -> dict[str, Any] | None:
    rule = fields.get("rule")
    if isinstance(rule, str) and rule.strip():
        try:
            rule = json.loads(rule)
        except ValueError as error:
            raise UserError(
                f"{path}:{row.line}: the rule is not JSON: {error}", 'e.g. {"pattern": "comment"}'
            ) from error
    if rule in (None, ""):
        return None
    if not isinstance(rule, dict) or "pattern" not in rule:
        raise UserError(f"{path}:{row.line}: a rule is a mapping that names a pattern", 'e.g. {"pattern": "comment"}')
    try:
        return dict(json.loads(json.dumps(rule)))
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}:{row.line}: a rule is plain data: {error}", "put the value in quotes") from error


def _check_rule(instruction: Instruction, row: Row, path: Path) -> Instruction:
    try:
        rule_of(instruction)
    except UserError as error:
        raise UserError(f"{path}:{row.line}: {error.message}", error.remedy) from error
    return instruction


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].rstrip("-")
