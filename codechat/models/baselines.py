"""Baselines: models that see a task's reference and involve no language model. They calibrate a score."""

from typing import Literal

from codechat.base.config import original_option
from codechat.base.domain import Reply
from codechat.base.errors import UserError
from codechat.models import MODELS, BaselineView, ModelConfig, Request
from codechat.sandbox.languages import fence

LABEL = "the name that the records show"
KIND = "which provider answers"


def view_of(request: Request) -> BaselineView:
    """The task and the session's state, for baselines alone. A request without it is a bug of the caller."""
    if request.view is None:
        raise RuntimeError("a baseline was called without its view of the task")
    return request.view


def reference_of(view: BaselineView) -> str:
    """The right answer to the request. Raises `UserError` if the task has none."""
    reference = view.reference if view.reference is not None else view.task.reference
    if reference is None:
        raise UserError(
            f"{view.task.task_id} has no reference solution, which a baseline model answers with",
            "add canonical_solution to the task, or choose a model that is not a baseline",
        )
    return reference


class Offline:
    """A baseline overrides `code`."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing to check."""

    async def aclose(self) -> None:
        """Nothing to release."""

    async def complete(self, request: Request) -> Reply:
        """The baseline's code in a fence. Raises `UserError` if the task has no reference."""
        view = view_of(request)
        return Reply(fence(self.code(view, request.turn), view.task.target.language))

    def code(self, view: BaselineView, turn: int) -> str:
        """The code that answers a turn, counted from 0."""
        raise NotImplementedError


class EchoConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["echo"] = original_option("echo", KIND)
    name: str = original_option("echo", LABEL, min_length=1)


@MODELS.register("echo", EchoConfig, baseline=True)
class Echo(Offline):
    """The reference solution at turn 0, then the current code unchanged (baseline; offline).

    The control: its adherence is 0, and its correctness stays as it was at turn 0.
    """

    def code(self, view: BaselineView, turn: int) -> str:
        return view.code or reference_of(view)


class ReferenceConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["reference"] = original_option("reference", KIND)
    name: str = original_option("reference", LABEL, min_length=1)


class PreviousConfig(ModelConfig):
    """Nothing to choose but the label."""

    kind: Literal["previous"] = original_option("previous", KIND)
    name: str = original_option("previous", LABEL, min_length=1)


class References(Offline):
    """The reference of the turn, or if `late` of the turn before it (at turn 0: of turn 0).

    On tasks that grow with every turn the former is the upper bound, and the latter should fail.
    """

    def __init__(self, config: ModelConfig, *, late: bool) -> None:
        self.config, self._late = config, late

    def code(self, view: BaselineView, turn: int) -> str:
        before = view.task.reference_at(turn - 1) if self._late and turn else None
        return reference_of(view) if before is None else before


@MODELS.register("reference", ReferenceConfig, baseline=True)
def reference(config: ReferenceConfig) -> References:
    """The right answer to every turn's request (baseline; offline)."""
    return References(config, late=False)


@MODELS.register("previous", PreviousConfig, baseline=True)
def previous(config: PreviousConfig) -> References:
    """The reference of the turn before: it passes turns whose tests do not detect the step (baseline; offline)."""
    return References(config, late=True)
