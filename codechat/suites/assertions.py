"""Python snippets that follow a program: passed only with a token that the program never sees."""

import marshal
import math
import secrets
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from codechat.config import Config, result_option
from codechat.domain import Failure, Outcome, Program, Verdict
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.sandbox import Box, Ended, Job, Sandbox, SandboxConfig, WorkerDied
from codechat.sandbox.inside import wire
from codechat.sandbox.stream import Frames, Malformed
from codechat.suites import SUITES
from codechat.suites.endings import ADDRESS, SHOWN, explain_end, read_exception, run_in_box

TOKEN_BYTES = 16


@dataclass(frozen=True)
class Assertions:
    """Snippets that follow a program and make assertions about it, and about its source text if they read it.

    If the program's target has an entry point, the program must define it; it is also the only builtin name that the
    program may redefine for the snippets. Program and snippets share an interpreter: docs/sandbox.md lists what is
    guarded. A program that exits early never passes. `load_cpu_s` limits the program's own code and every snippet.
    """

    snippets: tuple[str, ...]
    kind = "assertions"
    forgeable = True

    @cached_property
    def key(self) -> str:
        return content_hash([self.kind, *self.snippets])

    @property
    def outside(self) -> dict[str, str]:
        return {}

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        if not self.snippets:
            raise UserError("there are no assertions to run: every program would pass", "add tests to the requirement")
        return await run_in_box(sandbox, lambda box: self._run(box, program, sandbox.config))

    def _run(self, box: Box, program: Program, config: SandboxConfig) -> Verdict:
        source, entry_point = program.source, program.target.entry_point
        reader = AssertionsReader(self.snippets, entry_point, config.output_mb << 20)
        cpu = math.ceil(config.load_cpu_s + config.total_cpu_s) + 1
        job = {
            "program": source if source.endswith("\n") else source + "\n",  # a style checker requires it
            "entry": entry_point,
            "snippets": list(self.snippets),
            "token": reader.token,
            "load_cpu_s": config.load_cpu_s,
            "cpu": cpu,
        }
        data = marshal.dumps(job, 2)
        ended = box.python(Job(data, config.idle_s, config.total_cpu_s, cpu, warm=True), reader.read)
        if not reader.started:
            raise WorkerDied("the program could not be confined")
        return reader.conclude(ended, cpu)


class AssertionsConfig(Config):
    """Fields of `assertions`."""

    kind: Literal["assertions"] = result_option("assertions", "which kind of tests")
    tests: list[str] = result_option(..., "Python snippets that follow the program", min_length=1)


@SUITES.register("assertions", AssertionsConfig)
def assertions(config: AssertionsConfig) -> Assertions:
    """Python snippets that follow the program and make assertions about it."""
    return Assertions(tuple(config.tests))


class AssertionsReader:
    """Reads one run's stream. Frames are claims; only the token proves that the last snippet ran to its end."""

    def __init__(self, snippets: tuple[str, ...], entry_point: str, output_limit: int) -> None:
        self._snippets, self._entry_point, self._room = snippets, entry_point, output_limit
        self._frames = Frames()
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self.started = self._loaded = False
        self._index = -1
        self._outcome: Outcome | None = None
        self._failure: Failure | None = None

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return an empty answer, and whether the verdict is decided."""
        self._room -= len(data)
        try:
            if self._room < 0:
                raise Malformed("more output than is read")
            for kind, payload in self._frames.feed(data):
                self._frame(kind, payload)
                if self._outcome is not None:
                    break
        except Malformed as error:
            self._fail("crash", f"the results cannot be read: {error}")
        return b"", self._outcome is not None

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.STARTED and not self.started:
            self.started = True
        elif kind == wire.SYNTAX and not self._loaded:
            self._fail("syntax_error", "the program does not parse: " + payload.decode(errors="replace")[:SHOWN])
        elif kind == wire.MISSING and not self._loaded:
            self._fail("fail", f"the program does not define {self._entry_point}")
        elif kind == wire.LOADED and self.started and not self._loaded:
            self._loaded = True
        elif kind == wire.AT and self._loaded and payload == wire.INDEX.pack(self._index + 1):
            self._index += 1
        elif kind == wire.ERROR:
            outcome, reason, described = read_exception(payload)
            self._fail(outcome, reason, exception=described)
        elif kind == wire.DONE and secrets.compare_digest(payload, self.token):
            self._outcome = "pass"
        else:
            raise Malformed("a frame out of order")

    def _fail(self, outcome: Outcome, reason: str, **details: Any) -> None:
        """Decide: the program failed at the current assertion."""
        self._outcome = outcome
        if 0 <= self._index < len(self._snippets):
            details |= {"index": self._index, "input": self._snippets[self._index][: 2 * SHOWN]}
            if details.get("exception", "").rpartition("\n")[2].startswith("AssertionError"):
                reason = "an assertion does not hold"
        self._failure = Failure(reason, **details)

    def conclude(self, ended: Ended, cpu_limit: int) -> Verdict:
        """The verdict, once the child is gone."""
        if self._outcome is None:
            self._fail(*explain_end(ended, cpu_limit))
        failure = self._failure
        if failure is not None and (printed := ended.stdout[: self._frames.printed]):
            failure = replace(failure, stdout=ADDRESS.sub("0x…", printed.decode(errors="replace")))
        return Verdict(self._outcome or "crash", self._outcome == "pass", failure, round(ended.cpu_s, 4))
