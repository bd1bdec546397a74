"""What leaves everything but the engine out of a measurement: a sandbox that passes at once, an observer of nothing."""

from typing import Any, Literal

from codechat.config import run_option
from codechat.domain import Verdict
from codechat.sandbox import SANDBOXES, SandboxConfig


class Instant(SandboxConfig):
    """Options of the sandbox that runs nothing."""

    kind: Literal["instant"] = run_option("instant", "passes everything")


class InstantSandbox:
    """Passes everything at once."""

    weak, notice = False, None

    async def verify(self, program: str, task: Any) -> Verdict:
        return Verdict("pass", passed_base=True)

    async def aclose(self) -> None: ...


class Silent:
    """Shows nothing."""

    def note(self, text: str) -> None: ...

    def turn(self, turn: Any, *, anew: bool) -> None: ...

    def session(self, session: Any, planned: int) -> None: ...

    def recalled(self, session: Any, planned: int) -> None: ...


def register() -> None:
    """Make `sandbox=instant` known."""

    @SANDBOXES.register("instant", Instant)
    def instant(config: Instant, workers: int) -> InstantSandbox:
        """Passes everything at once."""
        return InstantSandbox()
