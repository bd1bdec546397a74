"""What leaves all but the engine out of a measurement: a model that answers and a sandbox that passes at once."""

from typing import Literal

from codechat.base.config import run_option
from codechat.base.domain import Reply, Usage
from codechat.models import MODELS, ModelConfig, Request
from codechat.testing.cells import register_instant


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

    register_instant()
