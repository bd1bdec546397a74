"""A repository's own tests, run in the sandbox on a copy with the program in place of one function."""

import importlib.util
import secrets
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from codechat.base.config import Config, result_option, run_option
from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.sandbox import PYTHON, Box, Command, Sandbox
from codechat.sandbox.inside.text import split_lines
from codechat.sandbox.suites import SUITES
from codechat.sandbox.suites.checkout import FOLDER, file_content, packed_with, read_contents, root_of, writable_mb
from codechat.sandbox.suites.endings import judge_status, run_in_box

SCRIPT, TOKEN = "run_pytest.py", "token"
WALL_S = 60.0  # the limit of the benchmark's own harness for a group of tests
INSIDE = "tests of a repository import the program"


@dataclass(frozen=True)
class Repository:
    """Tests of a repository, run in a copy of it in which the program replaces a function.

    `project` is the repository's name in the dataset and `folder` its path, None if it is not configured. `file`
    contains the function; its path is relative to that folder, as are the pytest ids in `nodes`. `lines` are the
    function's first and last line, from 1; `indent` is the number of columns before its `def`.
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
        """See `HasTestCounts`: a pytest id is a test."""
        return len(self.nodes), 0

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        return await run_in_box(sandbox, lambda box: self._run(box, program))

    def _run(self, box: Box, program: Program) -> Verdict:
        command = self.command(program.source)
        verdict = judge_status(box.run(command), command, token=command.files[TOKEN].decode())
        return replace(verdict, inside=INSIDE)

    def command(self, source: str) -> Command:
        """The command that runs the tests in a copy of the repository with the program's code.

        Raises `UserError` if there is no such repository, file or line, or no pytest.
        """
        require_pytest()
        root = root_of(self.folder)
        names = read_contents(root).names
        for node in self.nodes:
            if "::" in node and node.partition("[")[0].rpartition("::")[2] not in names:
                raise UserError(
                    f"{root} has no test {node}", "use the repositories that hold the benchmark's own tests"
                )
        return pytest_command(root, {self.file: self.replace_function(root / self.file, source)}, self.nodes)

    def replace_function(self, path: Path, source: str) -> bytes:
        """The file's content with the function's lines replaced by the program, indented as they were."""
        try:
            lines = split_lines(file_content(path).decode("utf-8"))
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


def require_pytest() -> None:
    """Raises `UserError` if pytest is not installed beside codechat."""
    if importlib.util.find_spec("pytest") is None:
        raise UserError("the tests of repositories need pytest, which is not installed", "pip install pytest")


def pytest_command(root: Path, changed: Mapping[str, bytes], nodes: Sequence[str]) -> Command:
    """The command that runs pytest ids in a copy of a repository with other content in the files `changed`.

    It prints the content of its file `TOKEN` if every one of them passed. Raises `UserError`.
    """
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
