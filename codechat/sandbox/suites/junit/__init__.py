"""JUnit tests of a Java program: both are one unit, whose tests run in a separate virtual machine."""

import asyncio
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from codechat.base.config import Config, result_option
from codechat.base.domain import Failure, Outcome, Program, Unrun, Verdict
from codechat.base.errors import BrokenTask, UserError
from codechat.base.files import content_hash
from codechat.sandbox import Box, Command, Sandbox, SandboxConfig
from codechat.sandbox.suites import NOTHING_OUTSIDE, SUITES
from codechat.sandbox.suites.compilers import JavaOptions
from codechat.sandbox.suites.endings import judge_status, run_in_box
from codechat.sandbox.suites.junit.toolchain import Compiler, Kind, Toolchain, toolchain

REMEDY = "use sandbox=bubblewrap, or set CODECHAT_CACHE_DIR to a folder that every user can enter, outside of your home"
LEAST = {"memory_mb": 1024, "open_files": 32, "file_mb": 8, "total_cpu_s": 2}
THREADS = 512  # tests of concurrency start hundreds
INSIDE = (
    "tests share a virtual machine with the program, which could run them and read what they expect, change their "
    "fields, or let its own objects equal anything"
)
REFUSED: dict[Kind, tuple[Outcome, str]] = {
    Kind.PROGRAM_DOES_NOT_PARSE: ("syntax_error", "it is not valid Java"),
    Kind.PROGRAM_FAILS: ("syntax_error", "it does not compile"),
    Kind.TESTS_DO_NOT_FIT: ("fail", "its tests do not compile with it"),
    Kind.GIVES_UP: ("crash", "the compiler gives up on it"),
    Kind.SHADOWS: ("fail", "it declares a type that its tests mean to take from a library"),
    Kind.TOO_LONG: ("timeout", "compiling it takes too long"),
    Kind.ENDED: ("crash", "it takes the compiler down"),
}
UNRUN: dict[Kind, Unrun] = {Kind.TESTS_DO_NOT_FIT: "unfit", Kind.SHADOWS: "none"}
STATUSES = {10: "a test fails", 11: "no test runs", 12: "a test is skipped", 13: "not all of its tests end"}
"""The meanings of the exit statuses of `Runner.java`."""
NOT_RUN: dict[str, Unrun] = {STATUSES[11]: "none", STATUSES[12]: "some", STATUSES[13]: "some"}


@dataclass(frozen=True)
class JUnit:
    """A source with JUnit 5 tests; passed if all of them pass, and at least one runs.

    Program and tests are compiled as one unit without a package: the imports of either hold for both, and public types
    may be in either. `declares` names types of `java.lang` or of the tests' libraries that programs may declare; a
    program could otherwise replace a type that its tests rely on.
    """

    tests: str
    declares: tuple[str, ...] = ()
    kind, language, outside = "junit", "java", NOTHING_OUTSIDE

    @cached_property
    def key(self) -> str:
        return content_hash([self.kind, self.tests, sorted(self.declares)])

    def make_ready(self, config: SandboxConfig, note: Callable[[str], None]) -> None:
        """See `NeedsSetup`."""
        refuse_little(config)
        toolchain(JavaOptions.of(config).java, self.tests, note)

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        refuse_little(sandbox.config)
        tools = await asyncio.to_thread(toolchain, JavaOptions.of(sandbox.config).java, self.tests)
        return await run_in_box(sandbox, lambda box: self._run(box, program, tools, sandbox.config), tools.tools)

    def _run(self, box: Box, program: Program, tools: Toolchain, config: SandboxConfig) -> Verdict:
        compiler: Compiler = box.keep(str(tools.folder), tools.compiler)
        compiled = compiler.compile(program.source, self.tests, self.declares, limit_s=config.load_cpu_s)
        if compiled.kind is Kind.TESTS_DO_NOT_PARSE:
            raise BrokenTask(f"the tests of a task are not valid Java: {compiled.text.strip()}", "mend them")
        if compiled.kind is not Kind.COMPILED:
            outcome, reason = REFUSED[compiled.kind]
            said = compiled.text.strip() or None
            unrun = UNRUN.get(compiled.kind)
            return Verdict(outcome, False, Failure(reason, exception=said), compiled.cpu_s, inside="", unrun=unrun)
        command = Command(
            argv=tuple(tools.run(config.memory_mb, compiled.text.split())),
            files={"token": secrets.token_hex(16).encode(), "unit": compiled.unit},
            environment=tools.environment,
            wall_s=math.inf,
            cpu_s=config.total_cpu_s,
            idle_s=config.total_cpu_s,
            processes=THREADS,
            tools=tools.tools,
            alone=True,
        )
        ran = box.run(command)
        if ran.why == "missing":
            raise UserError(f"this sandbox does not see the Java runtime {tools.image}", REMEDY)
        of_machine, begun, said = ran.stderr.partition("\f")  # the virtual machine's own words come first
        ran = replace(ran, stderr=said if begun else of_machine)
        verdict = judge_status(ran, command, token=command.files["token"].decode(), meanings=STATUSES)
        unrun = NOT_RUN.get(verdict.failure.reason) if verdict.failure else None
        return replace(verdict, cpu_s=verdict.cpu_s + compiled.cpu_s, inside=INSIDE, unrun=unrun)


def refuse_little(config: SandboxConfig) -> None:
    """Raises `UserError` if no virtual machine could start within the limits: that is no failure of the program."""
    for name, least in LEAST.items():
        if getattr(config, name) < least:
            given = f"sandbox.{name}={getattr(config, name)}"
            raise UserError(
                f"a Java virtual machine does not start with {given}", f"set sandbox.{name}={least}, or more"
            )


class JUnitConfig(Config):
    """Fields of `junit`."""

    kind: Literal["junit"] = result_option("junit", "which kind of tests")
    tests: str = result_option(..., "a source with JUnit 5 tests", min_length=1)
    declares: list[str] = result_option([], "types that programs declare although the tests' libraries have them")


@SUITES.register("junit", JUnitConfig)
def junit(config: JUnitConfig) -> JUnit:
    """JUnit 5 tests of a Java program, in a separate virtual machine."""
    return JUnit(config.tests, tuple(config.declares))
