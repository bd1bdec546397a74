"""Whether a program is valid in a version of its language: a compiler of this machine checks it in a box.

Without such a compiler, or an answer from it, the question stays undecided: the verdict is then `crash` or `timeout`,
which mean nothing about the program here. `finding_of` reads verdicts in this way.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from codechat.base.domain import Failure, Outcome, Program, Verdict
from codechat.base.files import content_hash
from codechat.sandbox import Command, Ran, Sandbox, SandboxConfig
from codechat.sandbox.languages import language_of, too_much
from codechat.sandbox.languages.grammar import Attempt, Compiled, Compiler, version_of
from codechat.sandbox.suites.compilers import Absent, Found, find_compiler
from codechat.sandbox.suites.endings import judge_status
from codechat.studies.multicodeif.constraints import Constraint, Finding, Harness

ACCEPTED = "the compiler accepts it"
PUBLISHED_FILE = "Test"
THREADS = 512  # a virtual machine has dozens, and boxes may count theirs together
SEEN = 400_000  # bytes of a compiler's output
ERRORS = 1  # the exit status of every compiler that reports errors
NO_CODE = "the reply holds no code"
_MET = {"pass": True, "fail": False, "syntax_error": False, "no_code": False}
_works: set[str] = set()  # compilers that accept a sample, in this process


@dataclass(frozen=True)
class LanguageVersion:
    """A program must be valid in the `version` of its `language`, which has a compiler.

    `official` is the published check: the file has a fixed name, and a missing library is an error. `guarded` names
    the file as the program needs it, and ignores errors that come from missing libraries.
    """

    language: str
    version: str
    harness: Harness
    kind = "language_version"

    @cached_property
    def key(self) -> str:
        return content_hash([self.kind, self.language, self.version, self.harness])

    @property
    def outside(self) -> Mapping[str, str]:
        return {}

    @property
    def _compiler(self) -> Compiler:
        known = language_of(self.language)
        assert isinstance(known, Compiled)
        return known.compiler

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        if not program.source.strip() and self.harness == "guarded":
            return Verdict.without_run("no_code", NO_CODE)
        if why := too_much(program.source):
            return Verdict.without_run("crash", why)
        try:
            found = await asyncio.to_thread(find_compiler, self._compiler, version_of(self.version), sandbox.config)
        except Absent as absent:
            return Verdict.without_run("crash", str(absent))
        verdict = await self._try(program.source, found, sandbox)
        if verdict.passed or (ran := await self._sample(found, sandbox)) is None:
            return verdict
        said = " ".join((ran.stderr or ran.stdout or f"it ends with status {ran.status}").split())
        name = Path(found.program).name
        said = said.replace(found.program, name)  # records have no paths of a machine
        return Verdict.without_run("crash", f"{name} does not work in the sandbox: {said[:200]}")

    async def _try(self, source: str, found: Found, sandbox: Sandbox) -> Verdict:
        """The verdict by the first options that find no error of the language, else by the first."""
        attempts = self._compiler.options(version_of(self.version), found.home)
        verdicts: list[Verdict] = []
        for options in attempts[: 1 if self.harness == "official" else None]:
            command = self._command(source, found, options, sandbox.config)
            ran = await sandbox.run(command)
            verdicts.append(self._judge(source, command, ran))
            if verdicts[-1].passed and ran.status == ERRORS and self._compiler.newest is not None:
                newest = self._command(source, found, self._compiler.newest, sandbox.config)
                verdicts[-1] = self._compare(source, ran, newest, await sandbox.run(newest)) or verdicts[-1]
            if verdicts[-1].outcome != "syntax_error":
                return verdicts[-1]
        return verdicts[0]

    def _command(self, source: str, found: Found, options: Attempt, config: SandboxConfig) -> Command:
        compiler, guarded = self._compiler, self.harness == "guarded"
        name = compiler.file_name(source) if guarded else f"{PUBLISHED_FILE}{compiler.suffix}"
        checks = compiler.checks if guarded else ()
        return Command(
            argv=(found.program, *compiler.bounds, *checks, *options, name),
            files={name: source.encode("utf-8", "surrogatepass")},
            # A compiler that cannot read its own path without /proc finds its libraries here.
            environment={"LD_LIBRARY_PATH": f"{found.home}/lib:{found.home}/lib/server"} if found.home else {},
            wall_s=math.inf,
            cpu_s=config.load_cpu_s,
            idle_s=config.total_cpu_s,
            processes=THREADS,
            tail=SEEN,
            tools=found.tools,
            alone=True,
        )

    def _judge(self, source: str, command: Command, ran: Ran) -> Verdict:
        accepted = Verdict("pass", True, None, ran.cpu_s, inside="")
        if ran.why is None and ran.status == 0:
            return accepted
        errors, foreign = self._compiler.errors(source, ran.stderr)
        if ran.why is None and ran.status == ERRORS and (errors or foreign):
            if self.harness == "official":
                return _verdict("fail", (errors + foreign)[0], ran)
            if errors:
                return _verdict("syntax_error", errors[0], ran)
            whole = len(ran.stderr.encode("utf-8", "surrogatepass")) < SEEN  # else the first errors are cut off
            return accepted if whole else _verdict("crash", "the compiler reports more than is read", ran)
        failed = judge_status(ran, command)
        outcome: Outcome = "timeout" if failed.outcome == "timeout" else "crash"
        why = failed.failure.reason if failed.failure else "it gives no answer"
        return _verdict(outcome, f"the compiler gives up: {why}", ran)

    def _compare(self, source: str, ran: Ran, newest: Command, later: Ran) -> Verdict | None:
        """Another verdict on a source whose errors look like missing libraries, by the errors of the newest version."""
        own, foreign = self._compiler.errors(source, later.stderr)
        if own or not (foreign and later.why is None and later.status == ERRORS):
            failed = self._judge(source, newest, later)
            if not failed.passed:
                return replace(failed, outcome="timeout" if failed.outcome == "timeout" else "crash")
        of_version = [each for each in self._compiler.errors(source, ran.stderr)[1] if each not in foreign]
        return _verdict("syntax_error", of_version[0], ran) if of_version else None

    async def _sample(self, found: Found, sandbox: Sandbox) -> Ran | None:
        """The run of a valid sample that is not accepted; None if it is, now or earlier in this process."""
        key = content_hash([found.program, self.key, sandbox.config.model_dump(mode="json")])
        if key not in _works:
            options = self._compiler.options(version_of(self.version), found.home)[0]
            ran = await sandbox.run(self._command(self._compiler.sample, found, options, sandbox.config))
            if ran.why is not None or ran.status != 0:
                return ran
            _works.add(key)
        return None


def _verdict(outcome: Outcome, reason: str, ran: Ran) -> Verdict:
    return Verdict(outcome, False, Failure(reason), ran.cpu_s, inside="")


def suite_of(constraint: Constraint, harness: Harness) -> LanguageVersion:
    """The suite for a constraint on the version of a language."""
    return LanguageVersion(constraint.answer.language, constraint.answer.values[0], harness)


def finding_of(verdict: Verdict) -> Finding:
    """The finding by such a suite's verdict: undecided without an answer of the compiler."""
    return Finding(_MET.get(verdict.outcome), ACCEPTED if verdict.failure is None else verdict.failure.reason)
