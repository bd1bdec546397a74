"""The control: correct at first, deaf afterwards. Adherence is 0 and correctness stays flat by construction."""

import re
from typing import Literal

from codechat.config import result_option
from codechat.domain import Reply
from codechat.errors import UserError
from codechat.models import MODELS, ModelConfig, Request


class EchoConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["echo"] = result_option("echo", "which provider answers")
    name: str = result_option("echo", "the name that the records show", min_length=1)


@MODELS.register("echo", EchoConfig, baseline=True)
class Echo:
    """The reference solution at turn 0, then the current code unchanged (baseline; offline)."""

    def __init__(self, config: EchoConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The current code in a fence. Raises `UserError` where the task has no reference."""
        if request.crib is None:
            raise RuntimeError("a baseline was called without its crib")
        task = request.crib.task
        if task.reference is None:
            raise UserError(
                f"task {task.task_id} has no reference solution, which model=echo repeats",
                "choose another model, or a dataset with references",
            )
        return Reply(_as_block(request.crib.code or task.reference))

    async def aclose(self) -> None:
        """Nothing to release."""


def _as_block(code: str) -> str:
    """A fenced block whose fence no run of backticks in the code can close."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code.rstrip()}\n{fence}\n"
