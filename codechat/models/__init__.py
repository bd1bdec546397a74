"""Models: they answer conversations. One file per provider."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import FiniteFloat, field_validator

from codechat.base.config import Config, original_option, run_option
from codechat.base.domain import Instruction, Message, Reply, Tier
from codechat.base.records import UNDER_TEST
from codechat.base.registry import Registry
from codechat.base.texts import problem_of_name
from codechat.datasets.tasks import Start, Task


class Prices(Config):
    """US dollars per million tokens; cached input tokens are part of the input tokens, at a separate price."""

    input: FiniteFloat = run_option(..., "US dollars per million input tokens", ge=0)
    output: FiniteFloat = run_option(..., "US dollars per million output tokens, reasoning included", ge=0)
    cached_input: FiniteFloat | None = run_option(
        None, "US dollars per million input tokens that the endpoint had cached; null: as input", ge=0
    )
    cache_write: FiniteFloat | None = run_option(
        None, "US dollars per million input tokens that the endpoint wrote to its prompt cache; null: as input", ge=0
    )
    tiers: "dict[Tier, Prices]" = run_option(
        {}, "the same of other tiers, e.g. {batch: {input: 0.625, output: 5}}; a tier without: as above"
    )


class ModelConfig(Config):
    """Options every model has."""

    kind: str = original_option(..., "which provider answers")
    name: str = original_option(..., "the model's name, as the provider knows it and the records show it", min_length=1)
    max_concurrency: int = run_option(16, "most calls under way at once", ge=1)
    prices: Prices | None = run_option(
        None, "what it costs, e.g. {input: 1.25, output: 10, cached_input: 0.125}; null: not known"
    )

    @field_validator("name")
    @classmethod
    def _can_be_shown(cls, name: str) -> str:
        if problem := problem_of_name(name):
            raise ValueError(f"the name {problem}")
        return name

    def recorded_model(self) -> str | None:
        """The model whose recorded replies are replayed; None for other models."""
        return None

    def longest_reply(self) -> float:
        """The most tokens of one reply, for estimates."""
        return math.inf


@dataclass(frozen=True, slots=True)
class BaselineView:
    """The task and the state of the session, which only a baseline may see.

    `reference` is the right answer to this request if it differs from the task's. `again` is as in the request;
    `further` are the instructions that the request has after its first.
    """

    task: Task
    instruction: Instruction | None
    code: str | None
    seed: int
    reference: str | None = None
    again: int = 0
    further: tuple[Instruction, ...] = ()

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The request's instructions, in their order."""
        return () if self.instruction is None else (self.instruction, *self.further)


@dataclass(frozen=True, slots=True)
class Desk:
    """The place where a coding agent works in a session, from the first request to the last.

    `start` returns the first state of its folder. What must survive this process is kept below `folder`. `opened`
    returns the resource of a name, made once and closed with the session.
    """

    session: str
    start: Callable[[], Start]
    folder: Path
    opened: Callable[[str, Callable[[], Any]], Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `view` is None for every model that is not registered as a baseline.

    `task_id`, `turn`, `role` and `number` (of a role's calls at one turn) select the recorded answer of a replay; they
    are never sent to an endpoint. `sample` numbers independent draws of one conversation if decoding is not greedy.
    `again` numbers the further replies to one request of a turn, each of which is drawn anew, greedy decoding included.
    `final`: no later request repeats the last message, so no prompt cache needs it. `desk` is None for every model
    that does not work in a folder.
    """

    messages: tuple[Message, ...]
    task_id: str
    turn: int
    view: BaselineView | None = None
    sample: int = 0
    role: str = UNDER_TEST
    number: int = 0
    final: bool = False
    desk: Desk | None = None
    again: int = 0


class Model(Protocol):
    """Answers conversations."""

    async def check(self) -> None:
        """Called once before the first needed call; raises `UserError` for a missing key or dead endpoint."""

    async def complete(self, request: Request) -> Reply:
        """Answer, after the provider's retries.

        Raises `ContextOverflow`, `InfrastructureError` (`EndpointDown` if the endpoint is unreachable), or `UserError`
        if the first call shows that the config is wrong (a refused key, an unknown model name).
        """

    async def aclose(self) -> None:
        """Release connections; the next call opens them again."""


@dataclass(frozen=True)
class ModelTraits:
    """The properties of a kind of model that are known before it is built.

    `baseline`: it may see a task's reference (`BaselineView`), and is no evidence about any model. `offline`: it calls
    no endpoint and costs nothing; true of baselines too. `languages`: languages that it answers in; None: all.
    `datasets`: names of the datasets that it may play a role in; None: all. `has_desk`: it is a coding agent, which
    works in a folder (`Desk`).
    """

    baseline: bool = False
    offline: bool = False
    languages: frozenset[str] | None = None
    datasets: frozenset[str] | None = None
    has_desk: bool = False


MODELS: Registry[Model, ModelTraits] = Registry("model", "codechat.models", ModelTraits, Model, ModelConfig)

__all__ = ["MODELS", "UNDER_TEST", "BaselineView", "Desk", "Model", "ModelConfig", "ModelTraits", "Prices", "Request"]
