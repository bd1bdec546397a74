"""Rows of a pool file with their lines: CSV, JSON Lines or YAML, by the suffix."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from codechat.errors import UserError, nearest


class Row(NamedTuple):
    """One entry of a file: its line, counted from 1, and its fields by column."""

    line: int
    fields: dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """The entries of a file in order. Raises `UserError` naming file and line."""
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
    rows = list(reader(text, path))
    if not rows:
        raise UserError(f"{path}: the pool is empty", "give it one instruction a row")
    return rows


def _csv(text: str, path: Path) -> Iterator[Row]:
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
                raise UserError(
                    f"{path}:{line}: {len(cells)} cells where the header has {len(header)}",
                    "quote cells that hold a comma",
                )
    except csv.Error as error:
        raise UserError(f"{path}:{start}: not CSV: {error}", "mend or drop that line") from error


def _jsonl(text: str, path: Path) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{number}: not JSON: {error}", "mend or drop that line") from error
        yield Row(number, _mapping(fields, path, number))


def _yaml(text: str, path: Path) -> Iterator[Row]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return
        if not isinstance(root, yaml.SequenceNode):
            raise UserError(f"{path}:1: not a list of instructions", "start each instruction with '- '")
        for node in root.value:
            number = node.start_mark.line + 1
            yield Row(number, _mapping(loader.construct_object(node, deep=True), path, number))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}: not YAML: {error.problem}", "mend that line") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not YAML: {error}", "mend the file") from error
    finally:
        loader.dispose()


def _mapping(fields: Any, path: Path, line: int) -> dict[str, Any]:
    if not isinstance(fields, dict):
        raise UserError(f"{path}:{line}: not an instruction with named fields", "it needs at least 'text' and 'scope'")
    return {str(key): value for key, value in fields.items()}


_READERS: dict[str, Callable[[str, Path], Iterator[Row]]] = {
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
