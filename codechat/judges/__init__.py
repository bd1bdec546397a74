"""Judges: does an instruction apply to this code; was it followed? One file per kind; `offline` if it asks nobody."""

from collections.abc import Callable
from typing import Any, Protocol

from codechat.config import Config, result_option, run_option
from codechat.domain import Adherence, Applicability, Instruction
from codechat.registry import Registry


class JudgeConfig(Config):
    """Options every judge has."""

    kind: str = result_option(..., "which judge")
    lookahead: int = run_option(
        1, "candidates checked at once when an instruction is chosen; the selection is the same for any value", ge=1
    )


class Judge(Protocol):
    """Decides about code by reading it; never runs it."""

    async def check(self) -> None:
        """Called once before the first decision that is needed; raises `UserError` as a model's `check` does."""

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        """Is_Applicable of Algorithm 1. Raises `InfrastructureError` where the judge cannot be asked."""

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        """Whether the change from `before` to `after` does what was asked, correctness aside (paper III-E1)."""

    async def aclose(self) -> None:
        """Release connections."""


JudgeFactory = Callable[[Any], Judge]
JUDGES: Registry[JudgeFactory] = Registry("judge", "codechat.judges")

__all__ = ["JUDGES", "Judge", "JudgeConfig", "JudgeFactory"]
