"""The pool: the embedded one, or a user's own file with a column map.

A file is CSV, JSON Lines or YAML, by its suffix. All mistakes of a file are reported at once. The change that an
instruction means follows from its leading verb (paper III-B, Table II).
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import yaml

from codechat.base.config import Config, original_option, place_option, run_option
from codechat.base.domain import CHANGES, SCOPES, Change, Instruction
from codechat.base.errors import MAX_LINES, UserError, nearest
from codechat.base.texts import read_json
from codechat.sandbox.languages import language_of
from codechat.studies.refine.instructions import INSTRUCTIONS, PYTHON, Pool, Rejected, WrongPool, hash_of
from codechat.studies.refine.patterns import rule_of

_VERBS: dict[Change, str] = {
    "add": "add adopt annotate apply attach create declare define describe document ensure explain implement include "
           "insert introduce log memoise provide put state use",
    "remove": "avoid delete discard drop eliminate exclude forbid limit minimise omit prevent prohibit reduce remove "
              "strip",
    "modify": "change combine convert extract inline invert merge move optimise refactor reformat rename reorder "
              "replace rewrite shorten simplify split swap switch transform turn",
}  # fmt: skip

VERBS: Mapping[str, Change] = {verb: change for change, verbs in _VERBS.items() for verb in verbs.split()}
"""The 59 verbs. Words in -ise are also known in -ize."""
EMBEDDED = Path(__file__).with_name("pool.yaml")
Field = Literal["id", "text", "scope", "change", "rule", "languages", "rejected", "accepted"]
REQUIRED = ("text", "scope")
YES = ["1", "1.0", "true", "yes", "y", "x", "accept", "accepted", "keep", "kept", "include", "included"]
NO = ["", *["0", "0.0", "false", "no", "n", "reject", "rejected", "drop", "dropped", "exclude", "excluded"]]
MARKS: Mapping[str, bool] = dict.fromkeys(YES, True) | dict.fromkeys(NO, False)
"""The values of the column `accepted`, and whether each means yes."""
SHOWS_ALL = "`codechat list instructions` with the same instructions.… settings"
N = TypeVar("N", bound=str)


def leading_verb(text: str) -> str:
    """The first word of an instruction in lower case; empty if there is none."""
    match = re.match(r"\W*([A-Za-z][A-Za-z'-]*)", text)
    return match.group(1).lower() if match else ""


def change_of(text: str, verbs: Mapping[str, Change] = VERBS) -> Change:
    """The change meant by the leading verb. Raises `UserError` for an unknown verb."""
    verb = leading_verb(text)
    other = {"ize": "ise", "ise": "ize"}.get(verb[-3:], "")
    for spelling in (verb, verb[:-3] + other):
        if spelling in verbs:
            return verbs[spelling]
    raise UserError(
        f"the leading verb '{verb}' of '{text:.60}' stands for no change",
        f"map it: +instructions.verbs.{verb or 'VERB'}=add (or remove, modify), or start with one of its "
        f"{len(verbs)} verbs: {', '.join(list(verbs)[:6])}, …",
    )


class Row(NamedTuple):
    """One entry of a file: its line, counted from 1 (0: unknown), and its fields by column name, or its mistake."""

    line: int
    fields: dict[str, Any] | UserError


def read_rows(path: Path) -> tuple[Row, ...]:
    """The entries of a file in order. Raises `UserError` if it has none."""
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise UserError(f"{path}: a pool cannot be read from '{path.suffix}'", f"use one of {', '.join(_READERS)}")
    try:
        rows = _rows(path.read_text(encoding="utf-8-sig"), suffix)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})", "save it as UTF-8") from error
    except OSError as error:
        remedy = "set instructions.path to a CSV, JSONL or YAML file"
        raise UserError(f"cannot read the pool {path}: {error.strerror}", remedy) from error
    if not rows:
        raise UserError(f"{path}: the pool is empty", "give it one instruction a row")
    return rows


@lru_cache(maxsize=8)  # the cells of a sweep read the same pool
def _rows(text: str, suffix: str) -> tuple[Row, ...]:
    return tuple(_READERS[suffix](text))


def _csv(text: str) -> Iterator[Row]:
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
                problem = f"{len(cells)} cells where the header has {len(header)}"
                yield Row(line, UserError(problem, "quote cells that hold a comma"))
    except csv.Error as error:
        yield Row(start, UserError(f"not CSV: {error}", "mend or drop that line"))


def _jsonl(text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield _row(number, read_json(line))
            except ValueError as error:
                yield Row(number, UserError(f"not JSON: {error}", "mend or drop that line"))


def _yaml(text: str) -> Iterator[Row]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        root = loader.get_single_node()
        if root is not None and not isinstance(root, yaml.SequenceNode):
            yield Row(1, UserError("not a list of instructions", "start each instruction with '- '"))
            return
        for node in root.value if root is not None else ():
            try:
                yield _row(node.start_mark.line + 1, loader.construct_object(node, deep=True))
            except yaml.MarkedYAMLError as error:
                yield _not_yaml(error)
    except yaml.MarkedYAMLError as error:
        yield _not_yaml(error)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        yield Row(0, UserError(f"not YAML: {error}", "mend the file"))
    finally:
        loader.dispose()


def _not_yaml(error: yaml.MarkedYAMLError) -> Row:
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    return Row(line, UserError(f"not YAML: {error.problem}", "mend that line"))


def _row(line: int, fields: Any) -> Row:
    if not isinstance(fields, dict):
        return Row(line, UserError("not an instruction with named fields", "it needs at least 'text' and 'scope'"))
    return Row(line, {str(key): value for key, value in fields.items()})


_READERS: dict[str, Callable[[str], Iterator[Row]]] = {".csv": _csv, ".jsonl": _jsonl, ".yaml": _yaml, ".yml": _yaml}


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
            reading.take(row)
        except UserError as mistake:
            reading.mistakes.append((row.line, mistake))
            if reading.is_table and not isinstance(row.fields, UserError) and not reading.required <= row.fields.keys():
                break  # every row of a table lacks what its header lacks
    accepted = reading.accepted
    python = tuple(one for one in accepted if one.language == PYTHON)
    others = tuple(one for one in accepted if one.language != PYTHON)
    warnings = (*reading.warnings, *reading.unread(rows))
    pool = Pool(python, hash_of(python), tuple(reading.rejected), warnings, others, reading.languages)
    if reading.mistakes:
        raise _wrong(path, reading.mistakes, len(rows), pool)
    if not accepted:
        raise UserError(f"{path}: every instruction is rejected", "leave 'rejected' empty for those to be used")
    return pool


class _Reading:
    """The instructions, mistakes (with their lines) and warnings collected from a file so far."""

    def __init__(self, path: Path, columns: Mapping[Field, str], verbs: Mapping[str, Change]) -> None:
        self.path, self.verbs = path, verbs
        self.columns = {name: columns.get(name, name) for name in get_args(Field)}
        self.is_table = (
            path.suffix.lower() == ".csv"
        )  # entries of YAML and JSON may lack fields that a table leaves empty
        mapped = {column for name, column in self.columns.items() if self.is_table and column != name}
        self.required = mapped | {self.columns[name] for name in REQUIRED}
        self.accepted: list[Instruction] = []
        self.rejected: list[Rejected] = []
        self.warnings: list[str] = []
        self.mistakes: list[tuple[int, UserError]] = []
        self.languages: dict[str, frozenset[str]] = {}
        self._lines: dict[str, int] = {}

    def take(self, row: Row) -> None:
        """Understand one row. Raises `UserError`, without the place."""
        if isinstance(row.fields, UserError):
            raise row.fields
        fields = self._fields(row.fields)
        if not isinstance(fields["text"], str) or not fields["text"].strip():
            raise UserError("the instruction has no text", "write one imperative sentence")
        text, scope = " ".join(fields["text"].split()), _choice(fields["scope"], SCOPES, "scope")
        slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].rstrip("-")
        name = str(fields["id"]).strip() if fields["id"] else f"{scope}-{slug}"
        if name in self._lines:
            raise UserError(f"the id '{name}' is taken by line {self._lines[name]}", "give each instruction its own id")
        self._lines[name] = row.line
        if reason := str(fields["rejected"] or "") or _refusal(fields["accepted"]):
            self.rejected.append(Rejected(name, text, scope, reason))
            return
        change = self._change(fields["change"], text, f"{self.path}:{row.line}")
        if languages := _languages(fields["languages"]):
            self.languages[name] = frozenset(languages)
        language = PYTHON if PYTHON in languages or not languages else languages[0]
        instruction = Instruction(name, text, scope, change, _rule(fields["rule"]), language)
        rule_of(instruction)  # a mistake in a rule shows now, not in the first session that draws it
        self.accepted.append(instruction)

    def _fields(self, given: dict[str, Any]) -> dict[str, Any]:
        """The row's fields by codechat's names."""
        for name, column in self.columns.items():
            if column in self.required and column not in given:
                remedy = f"name yours: instructions.columns.{name}=COLUMN; {nearest(column, given)}"
                raise UserError(f"no column '{column}'", remedy)
        return {name: given.get(column) for name, column in self.columns.items()}

    def _change(self, value: Any, text: str, place: str) -> Change:
        given = str(value or "").strip().lower()
        try:
            meant = change_of(text, self.verbs)
        except UserError as error:
            if not given:
                raise UserError(error.message, f"say it in a column 'change', or {error.remedy}") from error
            meant = None
        if not given and meant:
            return meant
        change = _choice(value, CHANGES, "change")
        if meant not in (None, change):
            differs = f"{place}: '{text:.60}' counts as '{change}', as given; its leading verb would mean '{meant}'"
            self.warnings.append(differs)
        return change

    def unread(self, rows: Sequence[Row]) -> Iterator[str]:
        """A warning for each column that is not read and whose name resembles a field."""
        found = dict.fromkeys(name for row in rows if isinstance(row.fields, dict) for name in row.fields)
        read = {column: name for name, column in self.columns.items()}
        for name in found:
            meant = get_close_matches(name.strip().lower()[:40], read, n=1, cutoff=0.75)
            if name not in read and meant and meant[0] not in found:
                field = read[meant[0]]
                yield (
                    f"{self.path}: the column '{name}' is not read; if it is the {field}, "
                    f"set instructions.columns.{field}={name}"
                )


def _wrong(path: Path, mistakes: Sequence[tuple[int, UserError]], rows: int, understood: Pool) -> WrongPool:
    """All mistakes of a file in five lines: the first one in full, of the others at least the line."""
    placed = tuple(
        UserError(f"{path}:{line}: {one.message}" if line else f"{path}: {one.message}", one.remedy)
        for line, one in mistakes
    )
    if len(mistakes) == 1:
        return WrongPool(placed[0].message, placed[0].remedy, placed, understood)
    lines = [f"{line or '?'}: {one.message}{one.remedy and f'; {one.remedy}'}" for line, one in mistakes]
    if len(lines) > MAX_LINES - 1:
        others = ", ".join(str(line or "?") for line, _ in mistakes[MAX_LINES - 2 :])
        lines = [*lines[: MAX_LINES - 2], f"{SHOWS_ALL} shows the others too, in lines {others}"]
    message = f"{path}: {len(mistakes)} of {rows} rows cannot be used, by line"
    return WrongPool(message, "\n".join(lines), placed, understood)


def _choice(value: Any, names: Sequence[N], what: str) -> N:
    given = str(value).strip().lower()
    for name in names:
        if given == name:
            return name
    raise UserError(f"'{value}' is no {what}", nearest(given, names))


def _refusal(given: Any) -> str:
    """The reason why a row is not used according to `accepted`; empty if it is used, or has no such column."""
    mark = True if given is None else MARKS.get(str(given).strip().lower())
    if mark is None:
        raise UserError(f"'accepted' is {given!r}", "say yes or no, true or false, 1 or 0, accepted or rejected")
    return "" if mark else "marked as not accepted"


def _languages(given: Any) -> list[str]:
    names = re.split(r"[\s,;]+", given.strip()) if given and isinstance(given, str) else given or []
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise UserError(f"'languages' is {given!r:.60}", "list their names, such as [javascript, java]")
    return [language_of(name).names[0] for name in names]


def _rule(rule: Any) -> dict[str, Any] | None:
    if isinstance(rule, str) and rule.strip():
        try:
            rule = read_json(rule)
        except ValueError as error:
            raise UserError(f"the rule is not JSON: {error}", 'e.g. {"pattern": "comment"}') from error
    if rule in (None, ""):
        return None
    if not isinstance(rule, dict) or "pattern" not in rule:
        raise UserError("a rule is a mapping that names a pattern", 'e.g. {"pattern": "comment"}')
    try:
        return dict(json.loads(json.dumps(rule)))
    except (TypeError, ValueError) as error:
        raise UserError(f"a rule is plain data: {error}", "put the value in quotes") from error
