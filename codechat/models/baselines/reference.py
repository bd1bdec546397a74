"""The upper bound of tasks that grow: every turn's own reference; and that of the turn before, which should fail."""

from typing import Literal

from codechat.config import original_option
from codechat.domain import Reply
from codechat.models import MODELS, ModelConfig, Request
from codechat.models.baselines.answering import answer, reference_of, view_of


class ReferenceConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["reference"] = original_option("reference", "which provider answers")
    name: str = original_option("reference", "the name that the records show", min_length=1)


class PreviousConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["previous"] = original_option("previous", "which provider answers")
    name: str = original_option("previous", "the name that the records show", min_length=1)


class References:
    """Answers with a turn's own reference, or if `late` with that of the turn before, where a task has steps."""

    def __init__(self, config: ModelConfig, *, late: bool) -> None:
        self.config, self._late = config, late

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def complete(self, request: Request) -> Reply:
        """The reference in a fence; the first turn has none before it. Raises `UserError` if there is none."""
        view = view_of(request)
        before = None
        if self._late and request.turn:
            before = view.task.reference_at(request.turn - 1)
        return answer(reference_of(view) if before is None else before, view)

    async def aclose(self) -> None:
        """Nothing to release."""


@MODELS.register("reference", ReferenceConfig, baseline=True)
def reference(config: ReferenceConfig) -> References:
    """The right answer to every turn's request (baseline; offline)."""
    return References(config, late=False)


@MODELS.register("previous", PreviousConfig, baseline=True)
def previous(config: PreviousConfig) -> References:
    """The reference of the turn before: it passes the turns whose tests do not tell the step (baseline; offline)."""
    return References(config, late=True)
