"""Rows of a pool file with their lines: CSV, JSON Lines or YAML, by the suffix.

A row that cannot be read is its mistake, so that all mistakes of a file are found at once.
"""

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
    rows = list(reader(text, path))
    if not rows:
        raise UserError(f"{path}: the pool is empty", "give it one instruction a row")
    return rows


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
