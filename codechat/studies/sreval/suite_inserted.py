"""New tests inserted into a repository's own, run on a copy with the program in place of one function.

The place of a function in a file is found by name and lines. All other bytes of the file stay the same. Files of a
repository are trusted.
"""

import ast
import asyncio
import copy
import functools
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from codechat.base.config import Config, result_option, run_option
from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.sandbox import Command, Sandbox, SandboxConfig
from codechat.sandbox.inside.text import split_lines
from codechat.sandbox.interpreters import interpreter_at
from codechat.sandbox.languages.python.syntax import parse
from codechat.sandbox.suites import SUITES
from codechat.sandbox.suites.endings import judge_status
from codechat.sandbox.suites.repository import (
    DEFINES,
    INSIDE,
    TOKEN,
    Gap,
    file_content,
    pytest_command,
    read_contents,
    require_pytest,
    root_of,
)

OTHERS = "use the repositories that the tasks were made from"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A Python file: its lines with their own line ends, and its syntax tree."""

    path: Path
    lines: tuple[str, ...]
    tree: ast.Module


@dataclass(frozen=True)
class Place:
    """A function in a file: the lines of its decorators and of itself, counted from 0, and its indentation."""

    source: Source
    decorators: range
    lines: range
    indent: str

    @property
    def above(self) -> str:
        """The code above the function and its decorators."""
        return "".join(self.source.lines[: min(self.decorators.start, self.lines.start)])


@functools.lru_cache(maxsize=64)
def read_source(path: Path) -> Source:
    """A file of a repository, read once a process. Raises `UserError` if it is no Python."""
    data = file_content(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escape sequences
            tree = ast.parse(data)
        lines = tuple(split_lines(data.decode("utf-8")))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is no Python in UTF-8: {error}", "leave the task out: dataset.tasks") from None
    return Source(path, lines, tree)


def function_at(path: Path, name: str, lines: tuple[int, int]) -> Place:
    """The function of that name at its first (the `def`) and last line, from 1.

    Lines after the function's end belong to it if they contain nothing but comments. Raises `UserError` if it is
    not there.
    """
    source = read_source(path)
    for node in ast.walk(source.tree):
        if isinstance(node, Function) and (node.name, node.lineno) == (name, lines[0]):
            end = node.end_lineno or node.lineno
            rest = [line.strip() for line in source.lines[end : lines[1]]]
            if end <= lines[1] <= len(source.lines) and all(not line or line.startswith("#") for line in rest):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                indent = source.lines[node.lineno - 1][: node.col_offset]
                return Place(source, range(first - 1, node.lineno - 1), range(node.lineno - 1, lines[1]), indent)
    raise UserError(f"{path} has no function {name} at the lines {lines[0]} to {lines[1]}", OTHERS)


def place_function(place: Place, name: str, program: str) -> bytes:
    """The file with a program instead of the function; decorators stay if the program's function has none."""
    lines, code = place.source.lines, textwrap.dedent(program).strip("\n")
    tree = parse(code)
    found = [each for each in tree.body if isinstance(each, Function) and each.name == name] if tree else []
    node = found[-1] if found else None
    kept = list(lines[place.decorators.start : place.decorators.stop])
    own = indented(code, place.indent)
    if node is None:
        own = [*kept, *own]
    elif not node.decorator_list:
        own[node.lineno - 1 : node.lineno - 1] = kept
    before, after = lines[: place.decorators.start], lines[place.lines.stop :]
    return "".join([*before, *own, *after]).encode("utf-8", "surrogatepass")


def insert_tests(path: Path, owners: Sequence[str], tests: str) -> bytes:
    """The file with tests at the end of a class, given with the classes around it, or of the file."""
    source = read_source(path)
    body, end, indent = source.tree.body, len(source.lines), ""
    for name in owners:
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
        if not found:
            raise UserError(f"{path} has no class {'::'.join(owners)}", OTHERS)
        body, end = found[-1].body, found[-1].end_lineno or end
        line = source.lines[body[0].lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
    before = "".join(source.lines[:end])
    gap = "\n" if before.endswith(("\n", "\r")) or not before else "\n\n"
    new = "".join(indented(textwrap.dedent(tests).strip("\n"), indent))
    return "".join([before, gap, new, *source.lines[end:]]).encode("utf-8", "surrogatepass")


def names_of_tests(tests: str) -> list[str]:
    """The names of the test functions that tests define, in order. Raises `ValueError` if there are none."""
    tree = parse(textwrap.dedent(tests))
    if tree is None:
        raise ValueError("its test does not parse")
    names = [node.name for node in tree.body if isinstance(node, Function) and node.name.startswith("test")]
    if not names:
        raise ValueError("its test defines no function whose name begins with test")
    return list(dict.fromkeys(names))


def indented(code: str, indent: str) -> list[str]:
    """The lines of a code, indented, except lines that begin inside a string, whose value would change."""
    lines = [line + "\n" for line in code.split("\n")]
    tree = parse(code)
    values = (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant)) if tree else ()
    texts = [node for node in values if isinstance(node, ast.JoinedStr) or isinstance(node.value, str | bytes)]
    within = {line for text in texts for line in range(text.lineno + 1, (text.end_lineno or text.lineno) + 1)}
    return [line if number in within or not line.strip() else indent + line for number, line in enumerate(lines, 1)]


CEILING = 10  # by the clock, over what the tests may compute and wait: no busy machine needs it
SYSTEM = Path("/usr")
REMEDY = "give the interpreter of a virtual environment: dataset.environments={NAME: FOLDER/bin/python}"


@dataclass(frozen=True)
class PythonEnvironment:
    """An interpreter: its path, the paths that it needs except the system's, and its packages' names in lower case.

    `digest` is a hash of the versions of the interpreter and its packages.
    """

    program: str
    tools: tuple[str, ...]
    packages: frozenset[str]
    digest: str


@functools.cache
def environment_at(python: str) -> PythonEnvironment:
    """The environment of an interpreter, examined once a process. Raises `UserError` if there is none at that path."""
    interpreter = interpreter_at(python, REMEDY)
    packages = sorted({(name.lower(), version) for name, version in interpreter.packages})
    places = [each if each.resolve() != SYSTEM else interpreter.path for each in (interpreter.prefix, interpreter.base)]
    places += [each for each in map(Path, interpreter.entries) if each.name.endswith("-packages") and each.is_dir()]
    names = frozenset(name for name, _ in packages)
    tools = tuple(dict.fromkeys(map(str, places)))
    return PythonEnvironment(interpreter.path, tools, names, content_hash([interpreter.version, packages]))


@dataclass(frozen=True)
class Inserted:
    """Tests that are new to a repository, run in a copy of it in which the program replaces a function.

    `project` is the repository's name and `folder` its path, None if it is not configured. `file`, relative to the
    folder, contains the `function` at its first and last line, from 1. `tests` are functions, which are inserted
    into the class or the file of a pytest id; they alone are run. `python` is the interpreter with the packages that
    the repository needs, None for the one that runs codechat. If `whole`, programs are the whole file.
    """

    project: str
    folder: str | None
    file: str
    function: str
    lines: tuple[int, int]
    beside: str
    tests: str
    python: str | None = None
    whole: bool = False
    kind = "inserted"

    @functools.cached_property
    def key(self) -> str:
        """See `Suite.key`: depends on the repository's content and the packages' versions, not on their paths."""
        what = [self.file, self.function, list(self.lines), self.beside, self.tests]
        what += ["whole"] if self.whole else []
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

    def gap(self) -> Gap:
        """See `OfFile`. The body that stands there instead has no docstring either."""
        place = self.place()
        functions = (node for node in ast.walk(place.source.tree) if isinstance(node, Function))
        node = next(each for each in functions if each.lineno == place.lines.start + 1)
        code = "".join(place.source.lines[node.lineno - 1 : node.end_lineno])
        stub = copy.copy(node)
        stub.decorator_list, stub.body = [], [ast.Raise(ast.Name("NotImplementedError"))]
        content = place_function(place, self.function, ast.unparse(stub))
        return Gap(root_of(self.folder), self.file, content, code, self._test_file, self.tests)

    def holds_function(self, text: str) -> bool:
        """See `OfFile`. The text is not parsed: another version of Python may run it."""
        return self.function in DEFINES.findall(text)

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        command = await asyncio.to_thread(self.command, program.source, sandbox.config)
        verdict = judge_status(await sandbox.run(command), command, token=command.files[TOKEN].decode())
        return replace(verdict, inside=INSIDE)

    def command(self, source: str, limits: SandboxConfig) -> Command:
        """The command that runs the new tests in a copy of the repository with the program. Raises `UserError`."""
        root, place = root_of(self.folder), self.place()
        whole = source.encode("utf-8", "surrogatepass")
        changed = {
            self._test_file: insert_tests(root / self._test_file, self._owners, self.tests),
            self.file: whole if self.whole else place_function(place, self.function, source),
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
        """The classes around the test of the pytest id."""
        return self.beside.split("::")[1:-1]


class InsertedConfig(Config):
    kind: Literal["inserted"] = result_option("inserted", "which kind of tests")
    project: str = result_option(..., "the repository's name", min_length=1)
    folder: str = run_option(..., "its path", min_length=1)
    file: str = result_option(..., "the file with the function, relative to the folder", min_length=1)
    function: str = result_option(..., "the function's name", min_length=1)
    lines: tuple[int, int] = result_option(..., "the function's first (def) and last line, from 1")
    beside: str = result_option(..., "the pytest id of a test, next to which the new ones are inserted", min_length=1)
    tests: str = result_option(..., "the new tests: functions, as a text", min_length=1)
    python: str | None = run_option(None, "the interpreter that has the repository's packages; null: codechat's own")


@SUITES.register("inserted", InsertedConfig)
def inserted(config: InsertedConfig) -> Inserted:
    """New tests inserted into a repository's own, run in a copy of it with the program in place of a function."""
    names_of_tests(config.tests)
    folder = str(Path(config.folder).expanduser().resolve())
    return Inserted(**{**config.model_dump(exclude={"kind"}), "folder": folder})
