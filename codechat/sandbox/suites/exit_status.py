"""A Python script whose exit status decides, unguarded: only for benchmarks that measure this way."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from codechat.base.config import Config, result_option
from codechat.base.domain import Program, Verdict
from codechat.base.files import content_hash
from codechat.sandbox import PYTHON, Command, Sandbox
from codechat.sandbox.suites import NOTHING_OUTSIDE, SUITES, syntax_problem
from codechat.sandbox.suites.endings import judge_status

NAME = "script.py"


@dataclass(frozen=True)
class ExitStatus:
    """Snippets that follow the program in one file; passed if that ends with status 0 within `wall_s` seconds. The
    seconds are by the clock. Without snippets the program itself is the script."""

    snippets: tuple[str, ...] = ()
    wall_s: float = 10.0
    kind, outside = "exit_status", NOTHING_OUTSIDE

    @cached_property
    def key(self) -> str:
        return content_hash([self.kind, self.wall_s, *self.snippets])

    def unusable(self, entry_point: str) -> Iterator[str]:
        """See `HasSnippets.unusable`; the snippets are one script."""
        if problem := syntax_problem("\n".join(self.snippets)):
            yield f"the tests do not parse: {problem}"

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        source = "\n".join([program.source, *self.snippets]).encode("utf-8", "surrogatepass")
        command = Command(argv=(PYTHON, NAME), files={NAME: source}, wall_s=self.wall_s)
        return replace(judge_status(await sandbox.run(command), command), inside="the program's own exit status")


class ExitStatusConfig(Config):
    """Fields of `exit_status`."""

    kind: Literal["exit_status"] = result_option("exit_status", "which kind of tests")
    tests: list[str] = result_option([], "Python snippets that follow the program")
    wall_s: float = result_option(10.0, "seconds by the clock", gt=0)


@SUITES.register("exit_status", ExitStatusConfig)
def exit_status(config: ExitStatusConfig) -> ExitStatus:
    """A Python script that decides by its exit status; nothing is guarded."""
    return ExitStatus(tuple(config.tests), config.wall_s)
