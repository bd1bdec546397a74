"""Models: whatever answers a conversation. One file per provider."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from codechat.config import Config, result_option, run_option
from codechat.domain import Instruction, Message, Reply, Task
from codechat.registry import Registry


class Prices(Config):
    """US dollars per million tokens; cached input tokens are part of the input tokens, at their own price."""

    input: float = run_option(..., "US dollars per million input tokens", ge=0)
    output: float = run_option(..., "US dollars per million output tokens, reasoning included", ge=0)
    cached_input: float | None = run_option(
        None, "US dollars per million input tokens that the endpoint had cached; null: as input", ge=0
    )


class ModelConfig(Config):
    """Options every model has."""

    kind: str = result_option(..., "which provider answers")
    name: str = result_option(..., "the model's name, as the provider knows it and the records show it", min_length=1)
    max_concurrency: int = run_option(16, "most calls under way at once", ge=1)
    prices: Prices | None = run_option(
        None, "what it costs, e.g. {input: 1.25, output: 10, cached_input: 0.125}; null: not known"
    )


@dataclass(frozen=True, slots=True)
class Crib:
    """What only a baseline may see: the task with its reference, and where the session stands."""

    task: Task
    instruction: Instruction | None
    code: str | None
    seed: int


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `crib` is None for every model that is not registered as a baseline.

    `task_id` and `turn` say which recorded answer a replay returns; they are never sent to an endpoint. `sample` tells
    independent draws of one conversation apart where decoding is not greedy.
    """

    messages: tuple[Message, ...]
    task_id: str
    turn: int
    crib: Crib | None = None
    sample: int = 0


class Model(Protocol):
    """Something that answers."""

    async def check(self) -> None:
        """Called once before the first call that is needed: raises `UserError` for a missing key or dead endpoint."""

    async def complete(self, request: Request) -> Reply:
        """Answer, after the provider's retries.

        Raises `ContextOverflow`, `InfrastructureError` (`EndpointDown` where nothing answers at all), or `UserError`
        where only the first call can tell that the config is wrong (a refused key, an unknown model name).
        """

    async def aclose(self) -> None:
        """Release connections; the next call opens them again."""


ModelFactory = Callable[[Any], Model]
MODELS: Registry[ModelFactory] = Registry("model", "codechat.models")

__all__ = ["MODELS", "Crib", "Model", "ModelConfig", "ModelFactory", "Prices", "Request"]
