"""A repository's own tests, run in the sandbox on a copy with the program in place of one function."""

import functools
import hashlib
import importlib.util
import io
import re
import secrets
import tarfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from codechat.config import Config, result_option, run_option
from codechat.domain import Program, Verdict
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.sandbox import PYTHON, Box, Command, Sandbox
from codechat.suites import SUITES
from codechat.suites.endings import judge_status, run_in_box

SCRIPT = "script.py"
WALL_S = 60.0  # the limit of the benchmark's own harness for a group of tests
ROOM_MB = 64  # for the files that tests write
MOST_MB = 512  # of a repository
LEFT_OUT = {".git", ".hg", "__pycache__", ".tox", ".venv", "node_modules"}
REMEDY = "dataset.repos names the folder of the repositories"
# pytest prints to standard error, where failures are read. The token is printed once pytest has returned: a test run
# that ends before that does not count.
RUN = """
import os
import sys
import pytest
os.dup2(2, 1)
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what is installed here is not what the repository asks for
done = (os.environ.pop("CODECHAT_TOKEN"), pytest.main(sys.argv[1:]))
sys.stdout.flush()
if done[1] == 0:
    os.write(2, done[0].encode())
sys.exit(int(done[1]))
"""
DEFINES = re.compile(r"^\s*(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)
OPTIONS = ("-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", "--override-ini=addopts=")


@dataclass(frozen=True)
class Repository:
    """Tests of a repository, run in a copy of it in which the program replaces a function.

    `project` is the repository's name in the dataset and `folder` its path, None if it is not configured. `file` holds
    the function; its path is relative to that folder, as are the pytest ids in `nodes`. `lines` are the function's
    first and last line, from 1; `indent` the columns by which its `def` is indented.
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
        return content_hash(
            [self.kind, self.file, list(self.lines), self.indent, list(self.nodes), sorted(self.outside.items())]
        )

    @property
    def outside(self) -> dict[str, str]:
        """The content of the repository. Raises `UserError` if it is missing."""
        return {} if self.folder is None else {self.project: read_contents(Path(self.folder)).digest}

    @property
    def test_counts(self) -> tuple[int, int]:
        """See `Counted`: a pytest id is a test."""
        return len(self.nodes), 0

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        return await run_in_box(sandbox, lambda box: self._run(box, program))

    def _run(self, box: Box, program: Program) -> Verdict:
        command = self.command(program.source)
        verdict = judge_status(box.run(command), command, token=command.environment["CODECHAT_TOKEN"])
        return replace(verdict, inside="tests of a repository import the program")

    def command(self, source: str) -> Command:
        """The command that runs the tests in a copy of the repository with the program's code.

        Raises `UserError` if there is no such repository, file or line, or no pytest.
        """
        if importlib.util.find_spec("pytest") is None:
            raise UserError("the tests of repositories need pytest, which is not installed", "pip install pytest")
        if self.folder is None:
            raise UserError("the tests need their repository", "give the folder of the repositories: dataset.repos=DIR")
        root = Path(self.folder)
        names = read_contents(root).names
        for node in self.nodes:
            if "::" in node and _test_name(node) not in names:
                raise UserError(
                    f"{root} has no test {node}", "use the repositories that hold the benchmark's own tests"
                )
        archive = io.BytesIO(_pack(root))
        with tarfile.open(fileobj=archive, mode="a") as packed:
            _add(packed, PurePosixPath("repository", self.file), self.replace_function(root / self.file, source))
        data = archive.getvalue()
        return Command(
            argv=(PYTHON, f"../{SCRIPT}", *OPTIONS, *self.nodes),
            files={SCRIPT: RUN.encode()},
            archive=data,
            folder="repository",
            environment={"PYTHONPATH": ".:src", "CODECHAT_TOKEN": secrets.token_hex(16)},
            wall_s=WALL_S,
            file_mb=(len(data) >> 20) + ROOM_MB,
        )

    def replace_function(self, path: Path, source: str) -> bytes:
        """The file's content with the function's lines replaced by the program, indented as they were."""
        try:
            lines = path.read_text("utf-8").splitlines(keepends=True)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}", REMEDY) from None
        except UnicodeDecodeError:
            raise UserError(f"{path} is not UTF-8 text", "leave the task out: dataset.tasks") from None
        first, last = self.lines
        if not 1 <= first <= last <= len(lines):
            remedy = "use the repositories that the tasks were made from"
            raise UserError(f"{path} has no lines {first} to {last}", remedy)
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


@SUITES.register("repository", RepositoryConfig)
def repository(config: RepositoryConfig) -> Repository:
    """Tests of a repository, run in a copy of it in which the program replaces a function."""
    folder = str(Path(config.folder).expanduser().resolve())
    return Repository(config.project, folder, config.file, config.lines, config.indent, tuple(config.nodes))


@dataclass(frozen=True)
class RepositoryContents:
    """A hash of a repository's files, and the names of its functions and classes."""

    digest: str
    names: frozenset[str]


@functools.cache
def read_contents(root: Path) -> RepositoryContents:
    """A repository's content, read once a process. Raises `UserError`."""
    digest, names = hashlib.sha256(), set[str]()
    for inside, data in _files(root):
        digest.update(content_hash([str(inside), content_hash(data)]).encode())
        if inside.suffix == ".py":
            names.update(DEFINES.findall(data.decode("utf-8", "replace")))
    return RepositoryContents(digest.hexdigest(), frozenset(names))


@functools.lru_cache(maxsize=4)
def _pack(root: Path) -> bytes:
    """The repository as a tar archive, below the folder `repository`. Raises `UserError`."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as packed:
        for inside, data in _files(root):
            _add(packed, PurePosixPath("repository", *inside.parts), data)
    return archive.getvalue()


def _files(root: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Every file's path and content, except built files and version control."""
    if not root.is_dir():
        raise UserError(f"there is no repository {root}", REMEDY)
    total = 0
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and not path.is_symlink() and not LEFT_OUT & set(inside.parts):
            data = path.read_bytes()
            total += len(data)
            if total > MOST_MB << 20:
                raise UserError(f"{root} has more than {MOST_MB} MiB", "leave out what its tests do not need")
            yield PurePosixPath(*inside.parts), data


def _test_name(node: str) -> str:
    """The function, or class, of a pytest id, without parameters."""
    return node.partition("[")[0].rpartition("::")[2]


def _add(packed: tarfile.TarFile, name: PurePosixPath, data: bytes) -> None:
    entry = tarfile.TarInfo(str(name))
    entry.size, entry.mode = len(data), 0o755
    packed.addfile(entry, io.BytesIO(data))
