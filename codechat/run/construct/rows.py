"""Rows of a user's JSONL files, read strictly."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from codechat.base.errors import UserError
from codechat.base.texts import writable

R = TypeVar("R", bound=BaseModel)


def read_rows(path: Path, model: type[R], key: str, remedy: str = "") -> Iterator[tuple[int, R]]:
    """The rows of a file, `.jsonl` or `.jsonl.gz`, each with its line. `key` is the setting that names the file.

    Raises `UserError` with file and line for one that is no row of this kind, such as a file's torn last line.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    text = line.decode("utf-8-sig")
                    yield number, _row(text, model, f"{path}:{number}", remedy or f"mend {key}={path}")
    except OSError as error:
        raise UserError(f"cannot read {key}={path}: {error.strerror or error}", "name a readable file") from error
    except (UnicodeDecodeError, EOFError) as error:
        raise UserError(
            f"{key}={path} is no JSONL in UTF-8: {error}", "save it as UTF-8, one JSON object a line"
        ) from error


def _row(line: str, model: type[R], place: str, remedy: str) -> R:
    try:
        return model.model_validate(writable(json.loads(line)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{place}: {where}: {first['msg'].removeprefix('Value error, ')}".replace(": : ", ": "), remedy
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place} is no JSON object: {str(error)[:100]}", remedy) from error
