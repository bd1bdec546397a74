"""A repository's files: hashed and packed once a process, and packed anew with some of them replaced."""

import functools
import hashlib
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from codechat.base.errors import UserError
from codechat.base.files import content_hash

FOLDER = "repository"
"""The copy's folder in the box."""
REMEDY = "dataset.repos names the folder of the repositories"
WRITABLE_MB = 64  # for the files that tests write
MOST_MB = 512  # of a repository
LEFT_OUT = frozenset({".git", ".hg", "__pycache__", ".tox", ".venv", "node_modules"})
DEFINES = re.compile(r"^\s*(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class RepositoryContents:
    """A hash of a repository's files, and the names of its Python functions and classes."""

    digest: str
    names: frozenset[str]


def root_of(folder: str | None) -> Path:
    """The path of a suite's repository. Raises `UserError` if it is not configured."""
    if folder is None:
        raise UserError("the tests need their repository", "give the folder of the repositories: dataset.repos=DIR")
    return Path(folder)


@functools.cache
def read_contents(root: Path, left_out: frozenset[str] = LEFT_OUT) -> RepositoryContents:
    """A repository's content without the folders `left_out`, read once a process. Raises `UserError`."""
    digest, names = hashlib.sha256(), set[str]()
    for inside, data in _files(root, left_out):
        digest.update(content_hash([str(inside), content_hash(data)]).encode())
        if inside.suffix == ".py":
            names.update(DEFINES.findall(data.decode("utf-8", "replace")))
    return RepositoryContents(digest.hexdigest(), frozenset(names))


def packed_with(root: Path, changed: Mapping[str, bytes], left_out: frozenset[str] = LEFT_OUT) -> bytes:
    """The repository as a tar archive below `FOLDER`, with other content in the files `changed`. Raises `UserError`."""
    archive = io.BytesIO(_pack(root, left_out))
    with tarfile.open(fileobj=archive, mode="a") as packed:
        for name, data in changed.items():
            _add(packed, name, data)
    return archive.getvalue()


def writable_mb(archive: bytes) -> int:
    """The MiB that a run on an archive may write, unpacked files included."""
    return (len(archive) >> 20) + WRITABLE_MB


def file_content(path: Path) -> bytes:
    """A file's content. Raises `UserError`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", REMEDY) from None


@functools.lru_cache(maxsize=16)
def _pack(root: Path, left_out: frozenset[str]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as packed:
        for inside, data in _files(root, left_out):
            _add(packed, str(inside), data)
    return archive.getvalue()


def _files(root: Path, left_out: frozenset[str]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Every file's path and content, except built files and version control."""
    if not root.is_dir():
        raise UserError(f"there is no repository {root}", REMEDY)
    total = 0
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and not path.is_symlink() and not left_out & set(inside.parts):
            data = path.read_bytes()
            total += len(data)
            if total > MOST_MB << 20:
                raise UserError(f"{root} has more than {MOST_MB} MiB", "leave out what its tests do not need")
            yield PurePosixPath(*inside.parts), data


def _add(packed: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(f"{FOLDER}/{name}")
    entry.size, entry.mode = len(data), 0o755
    packed.addfile(entry, io.BytesIO(data))
