"""The control: correct at first, deaf afterwards. Adherence is 0 and correctness stays flat by construction."""

from typing import Literal

from codechat.config import original_option
from codechat.domain import Reply
from codechat.models import MODELS, ModelConfig, Request
from codechat.models.baselines.answering import answer, reference_of, view_of


class EchoConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["echo"] = original_option("echo", "which provider answers")
    name: str = original_option("echo", "the name that the records show", min_length=1)


@MODELS.register("echo", EchoConfig, baseline=True)
class Echo:
    """The reference solution at turn 0, then the current code unchanged (baseline; offline)."""

    def __init__(self, config: EchoConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The current code in a fence. Raises `UserError` where the task has no reference."""
        view = view_of(request)
        return answer(view.code or reference_of(view), view)

    async def aclose(self) -> None:
        """Nothing to release."""
