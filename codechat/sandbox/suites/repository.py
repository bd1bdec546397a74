"""A repository's own tests, run in the sandbox on a copy with the program in place of one function."""

import functools
import hashlib
import importlib.util
import io
import re
import secrets
import tarfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from codechat.base.config import Config, result_option, run_option
from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.sandbox import PYTHON, Box, Command, Sandbox
from codechat.sandbox.inside.text import split_lines
from codechat.sandbox.suites import SUITES
from codechat.sandbox.suites.endings import judge_status, run_in_box

FOLDER = "repository"  # the copy's folder in the box
REMEDY = "dataset.repos names the folder of the repositories"
WRITABLE_MB = 64  # for files of the tests
MOST_MB = 512  # of a repository
LEFT_OUT = frozenset({".git", ".hg", "__pycache__", ".tox", ".venv", "node_modules"})
PACKED = frozenset({".class", ".egg", ".gz", ".jar", ".pyc", ".so", ".whl", ".zip"})  # may hold copies of other files
CACHES = frozenset({".mypy_cache", ".pytest_cache", "htmlcov"})
TESTS = frozenset({"test", "tests"})
DEFINES = re.compile(r"^[^\S\n]*(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)


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
            _add(packed, f"{FOLDER}/{name}", data)
    return archive.getvalue()


@dataclass(frozen=True)
class Gap:
    """A repository in which a function is still to be written: then its `file` has the `content`.

    `code` is the function as it stands there, `tests` a file of tests, `new_tests` a text of tests to be added to it.
    """

    root: Path
    file: str
    content: bytes
    code: str
    tests: str
    new_tests: str
    left_out: frozenset[str] = LEFT_OUT

    def packed(self, secrets: Iterable[str]) -> bytes:
        """The repository as a tar archive, for an agent that is to write the function. Raises `UserError`.

        Left out are the file of tests, with the outermost folder of tests around it, packages, compiled files, and
        every other file that holds the function or one of the `secrets`, white space aside.
        """
        hidden = {_squeezed(text.encode("utf-8", "surrogatepass")) for text in (self.code, *secrets)}
        parts = PurePosixPath(self.tests).parts
        depth = next((number for number, part in enumerate(parts, 1) if part in TESTS), len(parts))
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as packed:
            for inside, data in _files(self.root, self.left_out | CACHES):
                if str(inside) == self.file:
                    _add(packed, self.file, self.content)
                elif inside.parts[:depth] != parts[:depth] and inside.suffix not in PACKED:
                    squeezed = _squeezed(data)
                    if not any(each in squeezed for each in hidden):
                        _add(packed, str(inside), data)
        return archive.getvalue()


def _squeezed(data: bytes) -> bytes:
    return b"".join(data.split())


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
            _add(packed, f"{FOLDER}/{inside}", data)
    return archive.getvalue()


def _files(root: Path, left_out: frozenset[str]) -> Iterator[tuple[PurePosixPath, bytes]]:
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
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o755
    packed.addfile(entry, io.BytesIO(data))


SCRIPT, TOKEN = "run_pytest.py", "token"
WALL_S = 60.0  # the limit of the benchmark's own harness for a group of tests
INSIDE = "tests of a repository import the program"


@dataclass(frozen=True)
class Repository:
    """Tests of a repository, run in a copy of it in which the program replaces a function.

    `project` is the repository's name in the dataset and `folder` its path, None if it is not configured. The function
    is in `file`, a path in that folder, in `lines` from 1, first and last, `indent` columns before its `def`; `nodes`
    are pytest ids.
    """

    project: str
    folder: str | None
    file: str
    lines: tuple[int, int]
    indent: int
    nodes: tuple[str, ...]
    kind = "repository"

    @cached_property
    def key(self) -> str:
        """See `Suite.key`: depends on the repository's content, not its path. Raises `UserError` if it is missing."""
        parts = [self.kind, self.file, list(self.lines), self.indent, list(self.nodes), sorted(self.outside.items())]
        return content_hash(parts)

    @property
    def outside(self) -> dict[str, str]:
        """The content of the repository. Raises `UserError` if it is missing."""
        return {} if self.folder is None else {self.project: read_contents(Path(self.folder)).digest}

    @property
    def test_counts(self) -> tuple[int, int]:
        """See `HasTestCounts`: a pytest id is a test."""
        return len(self.nodes), 0

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        return await run_in_box(sandbox, lambda box: self._run(box, program))

    def _run(self, box: Box, program: Program) -> Verdict:
        command = self.command(program.source)
        verdict = judge_status(box.run(command), command, token=command.files[TOKEN].decode())
        return replace(verdict, inside=INSIDE)

    def command(self, source: str) -> Command:
        """The command that runs the tests in a copy of the repository with the program's code. Raises `UserError` if
        there is no such repository, file or line, or no pytest."""
        require_pytest()
        root = root_of(self.folder)
        names = read_contents(root).names
        for node in self.nodes:
            if "::" in node and node.partition("[")[0].rpartition("::")[2] not in names:
                raise UserError(f"{root} has no test {node}", "use the repositories with the benchmark's own tests")
        return pytest_command(root, {self.file: self.replace_function(root / self.file, source)}, self.nodes)

    def replace_function(self, path: Path, source: str) -> bytes:
        """The file's content with the function's lines replaced by the program, indented as they were."""
        try:
            lines = split_lines(file_content(path).decode("utf-8"))
        except UnicodeDecodeError:
            raise UserError(f"{path} is not UTF-8 text", "leave the task out: dataset.tasks") from None
        first, last = self.lines
        if not 1 <= first <= last <= len(lines):
            raise UserError(f"{path} has no lines {first} to {last}", "use the repositories of the tasks' origin")
        code = textwrap.indent(textwrap.dedent(source).strip("\n"), " " * self.indent) + "\n"
        return "".join([*lines[: first - 1], code, *lines[last:]]).encode("utf-8", "surrogatepass")


class RepositoryConfig(Config):
    """Fields of `repository`."""

    kind: Literal["repository"] = result_option("repository", "which kind of tests")
    project: str = result_option(..., "the repository's name", min_length=1)
    folder: str = run_option(..., "its path", min_length=1)
    file: str = result_option(..., "the file with the function, relative to the folder", min_length=1)
    lines: tuple[int, int] = result_option(..., "the function's first and last line, from 1")
    indent: int = result_option(0, "the columns by which its def is indented", ge=0)
    nodes: list[str] = result_option(..., "pytest ids of the tests", min_length=1)


def require_pytest() -> None:
    """Raises `UserError` if pytest is not installed next to codechat."""
    if importlib.util.find_spec("pytest") is None:
        raise UserError("the tests of repositories need pytest, which is not installed", "pip install pytest")


def pytest_command(root: Path, changed: Mapping[str, bytes], nodes: Sequence[str]) -> Command:
    """The command that runs pytest ids in a copy of a repository with other content in the files `changed`. It prints
    the content of its file `TOKEN` if every one of them passed. Raises `UserError`."""
    archive = packed_with(root, changed)
    return Command(
        argv=(PYTHON, f"../{SCRIPT}", *nodes),
        files={SCRIPT: Path(__file__).with_name(SCRIPT).read_bytes(), TOKEN: secrets.token_hex(16).encode()},
        archive=archive,
        folder=FOLDER,
        environment={"PYTHONPATH": ".:src"},
        wall_s=WALL_S,
        file_mb=writable_mb(archive),
    )


@SUITES.register("repository", RepositoryConfig)
def repository(config: RepositoryConfig) -> Repository:
    """Tests of a repository, run in a copy of it in which the program replaces a function."""
    folder = str(Path(config.folder).expanduser().resolve())
    return Repository(config.project, folder, config.file, config.lines, config.indent, tuple(config.nodes))
