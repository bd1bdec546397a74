"""A suite in one file: a Perl program is run in the sandbox, and its output must be the expected one."""

import shutil
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from codechat.base.config import Config, place_option, result_option
from codechat.base.domain import Failure, Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.sandbox import AddedOptions, Command, Sandbox
from codechat.sandbox.suites import SUITES


class PerlOptions(AddedOptions):
    """What the suite adds to every sandbox."""

    perl: str | None = place_option(None, "the program perl")


@dataclass(frozen=True)
class Perl:
    """Passed if `program.pl argument` prints `output`."""

    argument: str
    output: str
    kind = "perl"

    @cached_property
    def key(self) -> str:
        return content_hash([self.kind, self.argument, self.output])

    @property
    def outside(self) -> dict[str, str]:
        return {}

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        perl = PerlOptions.of(sandbox.config).perl or shutil.which("perl")
        if perl is None:
            raise UserError("the suite perl needs perl", "apt install perl")
        files = {"program.pl": program.source.encode()}
        ran = await sandbox.run(
            Command(argv=(perl, "program.pl", self.argument), files=files, tools=(perl,), wall_s=10.0)
        )
        if ran.why is not None:
            return Verdict("timeout", False, Failure(f"killed: {ran.why}"), ran.cpu_s)
        if ran.status == 0 and ran.stdout.strip() == self.output:
            return Verdict("pass", True, cpu_s=ran.cpu_s)
        failure = Failure("wrong output", expected=self.output, actual=ran.stdout.strip(), exception=ran.stderr[-400:])
        return Verdict("fail", False, failure, ran.cpu_s)


class PerlConfig(Config):
    """Fields of the suite."""

    kind: Literal["perl"] = result_option("perl", "which kind of tests")
    argument: str = result_option("", "the program's argument")
    output: str = result_option(..., "what it must print")


@SUITES.register("perl", PerlConfig)
def perl(config: PerlConfig) -> Perl:
    """A Perl program that must print what is expected (a plugin of the tests)."""
    return Perl(config.argument, config.output)
