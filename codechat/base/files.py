"""Durable writes, content hashes, and YAML."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from codechat.base.errors import UserError
from codechat.base.texts import DEEPEST, is_deep

LONGEST_KEPT = 8192
"""Characters of a text whose JSON is cached: 2,048 texts take 32 MB."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def write_atomically(path: Path, data: str | bytes | Iterable[str] | Iterable[bytes]) -> None:
    """Replace `path` by `data` so that a reader, or a power cut, sees the old file or the new one.

    An iterable is written piece by piece. Raises `UserError` if the folder cannot be written or the disk is full.
    """
    pieces = (data,) if isinstance(data, str | bytes) else data
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                for piece in pieces:
                    stream.write(piece.encode() if isinstance(piece, str) else piece)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "free some space or choose another folder") from error


def append_line(path: Path, line: str) -> None:
    """Append a line that outlasts a kill and a power cut from then on; `read_lines` reads the file.

    Raises `UserError` if the file cannot be written or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            stream.write(line.encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "free some space or choose another folder") from error


def read_lines(path: Path) -> list[str]:
    """The lines of a file, none without a file. A last line that a kill has torn is cut off from the file."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    return whole.decode().split("\n")[:-1]


def canonical_json(value: Any) -> str:
    """JSON text that is the same for equal values: sorted keys, no spaces, UTF-8 kept."""
    return _CANONICAL.encode(value)


class GrowingHash:
    """`content_hash` of a growing list, which encodes only new items."""

    def __init__(self, plain: Callable[[Any], list[Any]]) -> None:
        self._plain = plain
        self._seen: tuple[Any, ...] = ()
        self._hash = hashlib.sha256(b"[")

    def of(self, items: tuple[Any, ...]) -> str:
        """The hash of the items, each converted by `plain` to a list of JSON values."""
        if items[: len(self._seen)] != self._seen:
            self._seen, self._hash = (), hashlib.sha256(b"[")
        for place, item in enumerate(items[len(self._seen) :], len(self._seen)):
            text = ("," if place else "") + _list_json(self._plain(item))
            self._hash.update(text.encode("utf-8", "surrogatepass"))
        self._seen = items
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()


def content_hash(value: Any) -> str:
    """Hex SHA-256 of a JSON value, or of bytes."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    text = _list_json(value) if isinstance(value, list) else canonical_json(value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _list_json(values: list[Any]) -> str:
    """`canonical_json`, with cached texts."""
    return f"[{','.join([text_json(each) if type(each) is str else canonical_json(each) for each in values])}]"


def text_json(text: str) -> str:
    """`canonical_json` of a text, cached: the texts of a dialogue recur at every turn."""
    return _encoded(text) if len(text) <= LONGEST_KEPT else canonical_json(text)


_encoded = lru_cache(maxsize=2048)(canonical_json)  # as many messages as 100 dialogues of ten turns have


def file_hash(path: Path, remedy: str) -> str:
    """Hex SHA-256 of a file's content. Raises `UserError` with the remedy if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", remedy) from error


def from_yaml(text: str) -> Any:
    """The value of a YAML text, read by libyaml if it is there: ten times as fast.

    Raises `yaml.YAMLError`, also for a number or a date that Python cannot hold, and for a value that holds itself.
    """
    try:
        value = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from error
    if "*" in text and is_deep(value):
        raise yaml.YAMLError(f"nested more than {DEEPEST} levels deep")
    return value
