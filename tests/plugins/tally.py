"""A language in one file, with its kind of tests: a Tally program is signed numbers, and its value is their sum."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from codechat.base.config import Config, result_option
from codechat.base.domain import Extraction, Failure, Program, Target, Verdict
from codechat.base.files import content_hash
from codechat.sandbox import PYTHON, Command, Sandbox
from codechat.sandbox.languages import register
from codechat.sandbox.suites import SUITES

RUN = "import sys\nprint(sum(map(int, open('program').read().split())))\n"


class Tally:
    """Code is every signed number of the reply, in a fence or not."""

    names = ("tally", "tly")

    def extract(self, reply: str, target: Target) -> Extraction:
        """The numbers."""
        code = " ".join(re.findall(r"[+-]\d+", reply))
        return (
            Extraction(code, code, None, "signed numbers") if code else Extraction(None, None, "no_code", "no number")
        )

    def defines(self, code: str) -> frozenset[str] | None:
        """A tally has no names."""
        return None


register(Tally())


@dataclass(frozen=True)
class Sum:
    """Passed if the program's sum is `total`."""

    total: int
    kind = "sum"

    @cached_property
    def key(self) -> str:
        return content_hash([self.kind, self.total])

    @property
    def outside(self) -> dict[str, str]:
        return {}

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        files = {"program": program.source.encode(), "run.py": RUN.encode()}
        ran = await sandbox.run(Command(argv=(PYTHON, "run.py"), files=files, wall_s=60.0))
        if ran.status == 0 and ran.stdout.strip() == str(self.total):
            return Verdict("pass", True, cpu_s=ran.cpu_s, inside="")
        failure = Failure("wrong sum", expected=str(self.total), actual=ran.stdout.strip())
        return Verdict("fail", False, failure, ran.cpu_s, inside="")


class SumConfig(Config):
    """Fields of the suite."""

    kind: Literal["sum"] = result_option("sum", "which kind of tests")
    total: int = result_option(..., "what the numbers add up to")


@SUITES.register("sum", SumConfig)
def total(config: SumConfig) -> Sum:
    """A tally that must have a sum (a plugin of the tests)."""
    return Sum(config.total)
