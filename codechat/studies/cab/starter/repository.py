"""Small git repositories made of texts, with the same commit ids on every machine, and without the program git."""

import hashlib
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codechat.environment import cache_root
from codechat.errors import UserError
from codechat.files import content_hash

BEGUN_S = 1_735_689_600
"""The time of the first commit, 2025-01-01 in UTC; every further one is a day later."""
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its message, and the whole texts of the files that it adds or changes, by path."""

    message: str
    files: Mapping[str, str]


Objects = dict[str, bytes]
"""Git objects with their headers, by id."""


def objects_of(commits: Sequence[Commit], author: str) -> tuple[list[str], Objects]:
    """The ids of the commits, each the child of the one before, and all objects."""
    objects: Objects = {}
    ids: list[str] = []
    files: dict[str, str] = {}
    for number, commit in enumerate(commits):
        files |= commit.files
        parent = [f"parent {ids[-1]}"] if ids else []
        signed = f"{author} <{author}@localhost> {BEGUN_S + number * DAY_S} +0000"
        tree = _tree(files, objects)
        lines = [f"tree {tree}", *parent, f"author {signed}", f"committer {signed}", "", commit.message]
        ids.append(_keep("commit", ("\n".join(lines) + "\n").encode(), objects))
    return ids, objects


def write_once(name: str, last: str, objects: Objects) -> Path:
    """The bare repository of these objects in codechat's cache, `last` its newest commit. Raises `UserError`."""
    folder = cache_root() / "assist_starter" / content_hash([name, last])[:16] / f"{name}.git"
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            new = Path(made) / "new"
            for path, data in _files(last, objects):
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                (new / path).write_bytes(data)
            _move(new, folder)
    except OSError as error:
        raise UserError(
            f"cannot write {folder}: {error.strerror}", "free some space, or set CODECHAT_CACHE_DIR"
        ) from error
    return folder


def _files(last: str, objects: Objects) -> Iterator[tuple[str, bytes]]:
    yield "HEAD", b"ref: refs/heads/main\n"
    yield "config", b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
    yield "refs/heads/main", f"{last}\n".encode()
    for name, data in objects.items():
        yield f"objects/{name[:2]}/{name[2:]}", zlib.compress(data)


def _move(new: Path, folder: Path) -> None:
    try:
        new.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process came first, with the same content
            raise


def _tree(files: Mapping[str, str], objects: Objects) -> str:
    """The id of the folder of these files."""
    inner: dict[str, dict[str, str]] = {}
    entries: list[tuple[str, bytes]] = []
    for path, text in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            inner.setdefault(name, {})[rest] = text
        else:
            entries.append((name, _entry("100644", name, _keep("blob", text.encode(), objects))))
    for name, below in inner.items():
        entries.append((f"{name}/", _entry("40000", name, _tree(below, objects))))  # git sorts folders so
    return _keep("tree", b"".join(entry for _, entry in sorted(entries)), objects)


def _entry(mode: str, name: str, identity: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(identity)


def _keep(kind: str, content: bytes, objects: Objects) -> str:
    data = f"{kind} {len(content)}\0".encode() + content
    identity = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    objects[identity] = data
    return identity
