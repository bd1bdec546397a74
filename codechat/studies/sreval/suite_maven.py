"""Tests of a Java repository, run by Maven without network on a copy with the program in place of one method."""

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from codechat.base.config import Config, place_option, result_option, run_option
from codechat.base.domain import Failure, Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.sandbox import AddedOptions, Command, Ran, Sandbox, SandboxConfig
from codechat.sandbox.languages.definitions import NONE, definition
from codechat.sandbox.suites import SUITES
from codechat.sandbox.suites.compilers import JavaOptions, find_home, seen_from
from codechat.sandbox.suites.endings import judge_status
from codechat.sandbox.suites.repository import (
    FOLDER,
    INSIDE,
    LEFT_OUT,
    Gap,
    file_content,
    packed_with,
    read_contents,
    root_of,
)

BUILT = LEFT_OUT | {"target"}  # without classes of another program
CPU_S, IDLE_S, WALL_S = 900.0, 120.0, 9000.0  # of a whole build with its tests
LEAST = {"processes": 128, "memory_mb": 8192, "open_files": 1024}  # what two JVMs at a time need
WRITABLE_MB = 512  # for what the build writes
TAIL = 1 << 17
JVM = (
    "-Xmx1g -XX:+UseSerialGC -XX:-UseContainerSupport -XX:ReservedCodeCacheSize=128m -XX:CompressedClassSpaceSize=256m"
)
TESTS = "-Dtest="
RAN = "Tests run: "
COUNT = re.compile(r"^\[\w+\] Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$", re.MULTILINE)
ERROR = "[ERROR]"
UNFIT = ":testCompile "  # the goal that compiles the tests, once the program is compiled
COMPILES = (":compile ", UNFIT)  # the goals that only the compiler can fail
CRASHED = re.compile(
    r"unknown compilation problem|exception has occurred in the compiler|Fatal error compiling: .*Error\b"
)
"""The compiler ran out of stack or memory, which is no error of the source."""
SHOWN = 12  # lines of what Maven reports
OTHERS = "use the repositories that the tasks were made from"
_WORKING: dict[str, str] = {}  # by repository and test: why that does not run even untouched; empty if it does
BESIDE = re.compile(
    r"@[\w.]+(?:\([^()]*\))?|/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL
)  # annotations and comments of a method
COMMANDS = ("/usr/bin", "/bin")  # Maven's own script, and the shell that starts a JVM for tests


@dataclass(frozen=True)
class Toolchain:
    """Maven's program, the JDK's folder, and the paths of this machine that both need."""

    maven: str
    java_home: str
    tools: tuple[str, ...]


@cache
def toolchain(jdk: str | None) -> Toolchain:
    """The installed tools; `jdk` is a JDK's folder, None to look for one. Raises `UserError` if one is missing."""
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError("tests of Java repositories need mvn, which is not installed", "install Maven")
    home, java_home = Path(maven).resolve().parent.parent, find_home(jdk)
    tools = [*COMMANDS, *seen_from(home), *seen_from(java_home)]
    return Toolchain(str(home / "bin" / "mvn"), str(java_home), tuple(dict.fromkeys(tools)))


class MavenOptions(AddedOptions):
    maven_repository: str | None = place_option(
        None, "the local Maven repository, for tests of Java repositories, which run without network", min_length=1
    )


@dataclass(frozen=True)
class Part:
    """Lines of a file of the repository, from 1, and the code in them."""

    file: str
    lines: tuple[int, int]
    code: str

    def replaced(self, root: Path, code: str) -> bytes:
        """The file with other code in these lines. Raises `UserError` if they do not contain this part's code."""
        path, (first, last) = root / self.file, self.lines
        lines = file_content(path).splitlines(keepends=True)
        if b"".join(lines[first - 1 : last]).decode("utf-8", "replace").split() != self.code.split():
            raise UserError(f"{path} does not hold the task's code at the lines {first} to {last}", OTHERS)
        new = (code.strip("\n") + "\n").encode("utf-8", "surrogatepass")
        return b"".join([*lines[: first - 1], new, *lines[last:]])


@dataclass(frozen=True)
class Maven:
    """Tests of a Java repository, run by Maven in a copy of it.

    `project` is the repository's name and `folder` its path, None if it is not configured. The program replaces
    `method`, and `tests` the repository's own `test`. `words` are Maven's arguments. The local Maven repository is the
    sandbox's `maven_repository`; without network Maven needs everything there. If `whole`, programs are the whole file.
    """

    project: str
    folder: str | None
    method: Part
    test: Part
    tests: str
    words: tuple[str, ...]
    whole: bool = False
    kind = "maven"

    @cached_property
    def key(self) -> str:
        """See `Suite.key`: depends on the repository's content, not its path. Raises `UserError` if it is missing."""
        parts = [[part.file, list(part.lines)] for part in (self.method, self.test)]
        what = [parts, self.tests, list(self.words), *(["whole"] if self.whole else [])]
        return content_hash([self.kind, *what, sorted(self.outside.items())])

    @property
    def outside(self) -> dict[str, str]:
        """The content of the repository. Raises `UserError` if it is missing."""
        return {} if self.folder is None else {self.project: read_contents(Path(self.folder), BUILT).digest}

    @property
    def named(self) -> int:
        """The number of tests that the words name: at least one for a class, two for `A#b+c`."""
        tests = [name for word in self.words if word.startswith(TESTS) for name in word[len(TESTS) :].split(",")]
        return sum(1 + name.partition("#")[2].count("+") for name in tests if name and name[0] != "!") or 1

    def place(self) -> None:
        """Raises `UserError` if the method or the test is not where it should be."""
        for part in (self.method, self.test):
            part.replaced(root_of(self.folder), "")

    @property
    def _head(self) -> str:
        """The method up to its body."""
        return BESIDE.sub("", self.method.code).partition("{")[0].strip()

    def gap(self) -> Gap:
        """See `OfFile`."""
        root = root_of(self.folder)
        content = self.method.replaced(root, f"{self._head} {{\n    throw new UnsupportedOperationException();\n}}")
        return Gap(root, self.method.file, content, self.method.code, self.test.file, self.tests, BUILT)

    def holds_function(self, text: str) -> bool:
        """See `OfFile`."""
        name = re.search(r"(?<![\w$])[\w$]+(?=\s*\()", self._head)
        return name is not None and definition(text, name[0]) > NONE

    def make_ready(self, limits: SandboxConfig, note: Callable[[str], None]) -> None:
        """See `NeedsSetup`. Raises `UserError` if tests of this kind cannot be run here."""
        repository = MavenOptions.of(limits).maven_repository
        if repository is None:
            raise UserError(
                f"the tests of {self.project} are run by Maven without network",
                "name the local repository with all that they need: sandbox.maven_repository=~/.m2/repository",
            )
        place = Path(repository).expanduser()
        if not place.is_dir() or (os.getuid() == 0 and not place.stat().st_mode & 0o005 == 0o005):
            raise UserError(
                f"sandbox.maven_repository: programs cannot read a folder {place}", "name one that others may read"
            )
        if any(getattr(limits, name) < least for name, least in LEAST.items()):
            raise UserError(
                f"the tests of {self.project} are run by Maven, which needs more of this machine than other programs",
                "set " + " ".join(f"sandbox.{name}={least}" for name, least in LEAST.items()) + ", or more",
            )
        toolchain(JavaOptions.of(limits).java.home)

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        self.make_ready(sandbox.config, lambda line: None)
        command = await asyncio.to_thread(self.command, sandbox.config, program.source, self.tests)
        ran = await sandbox.run(command)
        if RAN not in ran.stdout and (why := await self._why_not(sandbox)):
            raise UserError(
                f"the own tests of {self.project} do not run here: {why}",
                f"see that this works without network: mvn -o {' '.join(self.words)}",
            )
        return judge_build(ran, command, self.named)

    async def _why_not(self, sandbox: Sandbox) -> str:
        """The reason if the repository's tests do not run even with nothing replaced; else empty. They are run once."""
        place = content_hash([self.method.file, self.test.file, list(self.words), sorted(self.outside.items())])
        if place not in _WORKING:
            own = replace(self, whole=False)
            command = await asyncio.to_thread(own.command, sandbox.config, self.method.code, self.test.code)
            ran = await sandbox.run(command)
            failure = judge_build(ran, command, self.named).failure
            problem = (failure.exception or failure.reason) if failure else ""
            _WORKING[place] = "" if RAN in ran.stdout else problem.splitlines()[0]
        return _WORKING[place]

    def command(self, limits: SandboxConfig, source: str, tests: str) -> Command:
        """The command that runs tests in a copy of the repository with a program. Raises `UserError`."""
        root, chain = root_of(self.folder), toolchain(JavaOptions.of(limits).java.home)
        whole = source.encode("utf-8", "surrogatepass")
        changed = {
            self.test.file: self.test.replaced(root, tests),
            self.method.file: whole if self.whole else self.method.replaced(root, source),
        }
        local = str(Path(MavenOptions.of(limits).maven_repository or "").expanduser().resolve())
        archive = packed_with(root, changed, BUILT)
        return Command(
            argv=(chain.maven, "-o", "-B", f"-Dmaven.repo.local={local}", *self.words),
            archive=archive,
            folder=FOLDER,
            environment={
                "JAVA_HOME": chain.java_home,
                "LD_LIBRARY_PATH": f"{chain.java_home}/lib",
                "JAVA_TOOL_OPTIONS": JVM,
            },
            wall_s=WALL_S,
            cpu_s=CPU_S,
            idle_s=IDLE_S,
            file_mb=(len(archive) >> 20) + WRITABLE_MB,
            tail=TAIL,
            tools=(*chain.tools, local),
        )


def judge_build(ran: Ran, command: Command, named: int) -> Verdict:
    """The verdict by Maven's exit status and its report: as many tests as are named must have passed, none skipped."""
    verdict = replace(judge_status(ran, command), inside=INSIDE)
    said = [line for line in ran.stdout.splitlines() if line.startswith(ERROR) and line.strip() != ERROR]
    counts = [tuple(map(int, found)) for found in COUNT.findall(ran.stdout)]
    run, failures, errors, skipped = map(sum, zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
    if verdict.passed and failures + errors:  # Maven's status says nothing if it is to ignore them
        failure = Failure(f"{failures + errors} of {run} tests fail")
        return replace(verdict, outcome="fail", passed_base=False, failure=failure)
    if verdict.passed and (skipped or run < named):
        reason = f"{run - skipped} of {max(run, named)} tests were run to their end"
        return replace(verdict, outcome="fail", passed_base=False, failure=Failure(reason), unrun="some")
    if verdict.failure is None or not said:
        return verdict
    if any(goal in line for line in said for goal in COMPILES) and any(map(CRASHED.search, said)):
        return replace(verdict, outcome="crash", failure=replace(verdict.failure, reason="the compiler gives up on it"))
    reason = "it does not compile" if "COMPILATION ERROR" in ran.stdout else verdict.failure.reason
    failure = replace(verdict.failure, reason=reason, exception="\n".join(said[:SHOWN]))
    return replace(verdict, failure=failure, unrun="unfit" if any(UNFIT in line for line in said) else None)


class MavenConfig(Config):
    kind: Literal["maven"] = result_option("maven", "which kind of tests")
    project: str = result_option(..., "the repository's name", min_length=1)
    folder: str = run_option(..., "its path", min_length=1)
    file: str = result_option(..., "the file with the method, relative to the folder", min_length=1)
    lines: tuple[int, int] = result_option(..., "the method's first and last line, from 1")
    code: str = run_option(..., "the method as it stands there")
    test_file: str = result_option(..., "the file with the test that the new ones replace", min_length=1)
    test_lines: tuple[int, int] = result_option(..., "its first and last line, from 1")
    test_code: str = run_option(..., "the test as it stands there")
    tests: str = result_option(..., "the new tests, as a text", min_length=1)
    words: list[str] = result_option(..., "Maven's arguments, such as [test, -Dtest=a.ATest#b]", min_length=1)


@SUITES.register("maven", MavenConfig)
def maven(config: MavenConfig) -> Maven:
    """Tests of a Java repository, run by Maven in a copy of it with the program in place of a method."""
    return Maven(
        project=config.project,
        folder=str(Path(config.folder).expanduser().resolve()),
        method=Part(config.file, config.lines, config.code),
        test=Part(config.test_file, config.test_lines, config.test_code),
        tests=config.tests,
        words=tuple(config.words),
    )
