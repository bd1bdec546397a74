"""What leaves all but the engine out of a measurement: a model that answers and a sandbox that passes at once."""

from typing import Any, Literal

from codechat.config import run_option
from codechat.domain import Reply, Usage, Verdict
from codechat.models import MODELS, ModelConfig, Request
from codechat.sandbox import SANDBOXES, Command, Ran, SandboxConfig


class Instant(SandboxConfig):
    """Options of the sandbox that runs nothing."""

    kind: Literal["instant"] = run_option("instant", "passes everything")


class InstantSandbox:
    """Passes everything at once, whatever a suite would do in a box."""

    weak, notice = False, None

    def __init__(self, config: Instant) -> None:
        self.config = config

    async def lend(self, work: Any, tools: Any = ()) -> Any:
        return Verdict("pass", passed_base=True)

    async def run(self, command: Command) -> Ran:
        return Ran(0)

    async def aclose(self) -> None: ...


class InstantConfig(ModelConfig):
    """Options of the model that is no model."""

    kind: Literal["instant"] = run_option("instant", "answers at once")
    name: str = run_option("instant", "the name that the records show")


class InstantModel:
    """Answers `t/7` by the seventh program, every time a little longer, so that no two replies are alike."""

    def __init__(self, programs: list[str]) -> None:
        self._programs = programs

    async def check(self) -> None: ...

    async def complete(self, request: Request) -> Reply:
        program = self._programs[int(request.task_id.partition("/")[2]) % len(self._programs)]
        notes = "".join(f"# {request.task_id}, change {turn}\n" for turn in range(request.turn))
        return Reply(f"Here it is:\n```python\n{program.rstrip()}\n{notes}```\n", usage=Usage(900, 150))

    async def aclose(self) -> None: ...


def register(programs: list[str]) -> None:
    """Make `model=instant` and `sandbox=instant` known."""

    @MODELS.register("instant", InstantConfig)
    def model(config: InstantConfig) -> InstantModel:
        """Answers at once."""
        return InstantModel(programs)

    @SANDBOXES.register("instant", Instant)
    def instant(config: Instant, workers: int) -> InstantSandbox:
        """Passes everything at once."""
        return InstantSandbox(config)
