"""The upper bound of tasks that grow: every turn's own reference, or that of the turn before."""

from typing import Literal

from codechat.config import original_option
from codechat.domain import Reply
from codechat.models import MODELS, ModelConfig, Request
from codechat.models.baselines.answering import answer, reference_of, view_of
from codechat.tasks import StepTask


class ReferenceConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["reference"] = original_option("reference", "which provider answers")
    name: str = original_option("reference", "the name that the records show", min_length=1)


@MODELS.register("reference", ReferenceConfig, baseline=True)
class Reference:
    """The right answer to every turn's request (baseline; offline)."""

    def __init__(self, config: ReferenceConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The turn's reference in a fence. Raises `UserError` if there is none."""
        view = view_of(request)
        return answer(reference_of(view), view)

    async def aclose(self) -> None:
        """Nothing to release."""


class PreviousConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["previous"] = original_option("previous", "which provider answers")
    name: str = original_option("previous", "the name that the records show", min_length=1)


@MODELS.register("previous", PreviousConfig, baseline=True)
class Previous:
    """The reference of the turn before: it passes the turns whose tests do not tell the step (baseline; offline)."""

    def __init__(self, config: PreviousConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """That reference in a fence; at turn 0, and where a task has no steps, the right answer."""
        view = view_of(request)
        task = view.task
        before = task.steps[request.turn - 1].reference if request.turn and isinstance(task, StepTask) else None
        return answer(before if before is not None else reference_of(view), view)

    async def aclose(self) -> None:
        """Nothing to release."""
