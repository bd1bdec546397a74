"""New tests inserted into a repository's own, run on a copy with the program in place of one function."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from codechat.base.config import Config, result_option, run_option
from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.sandbox import Command, Sandbox, SandboxConfig
from codechat.sandbox.interpreters import Interpreter, interpreter_at
from codechat.sandbox.suites import SUITES
from codechat.sandbox.suites.endings import judge_status
from codechat.sandbox.suites.repository import INSIDE, TOKEN, pytest_command, read_contents, require_pytest, root_of
from codechat.studies.sreval.placing import Place, function_at, insert_tests, names_of_tests, place_function

CEILING = 10  # by the clock, over what the tests may compute and wait: no busy machine needs it
SYSTEM = Path("/usr")
REMEDY = "give the interpreter of a virtual environment: dataset.environments={NAME: FOLDER/bin/python}"


@dataclass(frozen=True)
class PythonEnvironment:
    """An interpreter: its path, paths of this machine that it needs (`tools`), and its packages' names in lower case.

    `digest` is a hash of the versions of the interpreter and its packages.
    """

    program: str
    tools: tuple[str, ...]
    packages: frozenset[str]
    digest: str


@cache
def environment_at(python: str) -> PythonEnvironment:
    """The environment of an interpreter, examined once a process. Raises `UserError` if there is none at that path."""
    interpreter = interpreter_at(python, REMEDY)
    packages = sorted({(name.lower(), version) for name, version in interpreter.packages})
    tools = tuple(dict.fromkeys(_tools(interpreter)))
    return PythonEnvironment(
        interpreter.path, tools, frozenset(name for name, _ in packages), content_hash([interpreter.version, packages])
    )


def _tools(interpreter: Interpreter) -> Iterator[str]:
    """The folders of the environment, of the interpreter behind it and of its packages, except the system's own."""
    for folder in (interpreter.prefix, interpreter.base):
        yield interpreter.path if folder.resolve() == SYSTEM else str(folder)
    for entry in map(Path, interpreter.entries):
        if entry.name.endswith("-packages") and entry.is_dir():
            yield str(entry)


@dataclass(frozen=True)
class Inserted:
    """Tests that are new to a repository, run in a copy of it in which the program replaces a function.

    `project` is the repository's name and `folder` its path, None if it is not configured. `file`, relative to the
    folder, contains the `function` at its first and last line, from 1. `tests` are functions, which are inserted
    into the class or the file that the pytest id `beside` names; they alone are run. `python` is the interpreter
    with the packages that the repository needs, None for the one that runs codechat.
    """

    project: str
    folder: str | None
    file: str
    function: str
    lines: tuple[int, int]
    beside: str
    tests: str
    python: str | None = None
    kind = "inserted"

    @cached_property
    def key(self) -> str:
        """See `Suite.key`: depends on the repository's content and the packages' versions, not on their paths."""
        what = [self.file, self.function, list(self.lines), self.beside, self.tests]
        return content_hash([self.kind, *what, sorted(self.outside.items())])

    @property
    def outside(self) -> dict[str, str]:
        """The content of the repository, and the versions of a given interpreter's packages. Raises `UserError`."""
        found = {} if self.folder is None else {self.project: read_contents(Path(self.folder)).digest}
        if self.python is not None:
            found[f"{self.project}: packages"] = environment_at(self.python).digest
        return found

    @property
    def test_counts(self) -> tuple[int, int]:
        """See `HasTestCounts`: a function is a test."""
        return len(names_of_tests(self.tests)), 0

    def place(self) -> Place:
        """The function's place. Raises `UserError` if it, or the place for the new tests, is not there."""
        root = root_of(self.folder)
        insert_tests(root / self._test_file, self._owners, self.tests)
        if self.python is None:
            require_pytest()
        elif "pytest" not in environment_at(self.python).packages:
            remedy = f"install it there: {self.python} -m pip install pytest"
            raise UserError(f"the tests of {self.project} need pytest, which {self.python} does not have", remedy)
        return function_at(root / self.file, self.function, self.lines)

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        command = await asyncio.to_thread(self.command, program.source, sandbox.config)
        verdict = judge_status(await sandbox.run(command), command, token=command.files[TOKEN].decode())
        return replace(verdict, inside=INSIDE)

    def command(self, source: str, limits: SandboxConfig) -> Command:
        """The command that runs the new tests in a copy of the repository with the program. Raises `UserError`."""
        root, place = root_of(self.folder), self.place()
        changed = {
            self._test_file: insert_tests(root / self._test_file, self._owners, self.tests),
            self.file: place_function(place, self.function, source),
        }
        nodes = ["::".join([self._test_file, *self._owners, name]) for name in names_of_tests(self.tests)]
        command, spend = pytest_command(root, changed, nodes), limits.total_cpu_s
        command = replace(command, cpu_s=spend, idle_s=spend, wall_s=2 * CEILING * spend)
        if self.python is None:
            return command
        environment = environment_at(self.python)
        argv = (environment.program, "-s", "-B", *command.argv[1:])
        return replace(command, argv=argv, tools=environment.tools)

    @property
    def _test_file(self) -> str:
        return self.beside.partition("::")[0]

    @property
    def _owners(self) -> list[str]:
        """The classes around the test `beside`."""
        return self.beside.split("::")[1:-1]


class InsertedConfig(Config):
    """Fields of `inserted`."""

    kind: Literal["inserted"] = result_option("inserted", "which kind of tests")
    project: str = result_option(..., "the repository's name", min_length=1)
    folder: str = run_option(..., "its path", min_length=1)
    file: str = result_option(..., "the file with the function, relative to the folder", min_length=1)
    function: str = result_option(..., "the function's name", min_length=1)
    lines: tuple[int, int] = result_option(..., "the function's first (def) and last line, from 1")
    beside: str = result_option(..., "the pytest id of a test beside which the new ones are inserted", min_length=1)
    tests: str = result_option(..., "the new tests: functions, as a text", min_length=1)
    python: str | None = run_option(None, "the interpreter that has the repository's packages; null: codechat's own")


@SUITES.register("inserted", InsertedConfig)
def inserted(config: InsertedConfig) -> Inserted:
    """New tests inserted into a repository's own, run in a copy of it with the program in place of a function."""
    folder = str(Path(config.folder).expanduser().resolve())
    names_of_tests(config.tests)
    return Inserted(
        project=config.project,
        folder=folder,
        file=config.file,
        function=config.function,
        lines=config.lines,
        beside=config.beside,
        tests=config.tests,
        python=config.python,
    )
