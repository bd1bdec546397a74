"""Judges of instructions: does an instruction apply to this code; was it followed? One file per kind.

For other questions a protocol asks one of its roles by `Kit.decide`, which uses `codechat.judges.deciding` as the
judges here do.
"""

from dataclasses import dataclass
from typing import Protocol

from codechat.config import Config, original_option, run_option
from codechat.domain import Adherence, Applicability, Instruction
from codechat.registry import Registry

APPLICABILITY, ADHERENCE = "applicability", "adherence"
"""The roles of the two questions: their names in prices and in the journal."""


class JudgeConfig(Config):
    """Options every judge has."""

    kind: str = original_option(..., "which judge")
    lookahead: int = run_option(
        1, "candidates checked at once when an instruction is chosen; the selection is the same for any value", ge=1
    )

    def asks(self, instruction: Instruction) -> bool:
        """Whether a decision about an instruction asks a model, for estimates."""
        return False

    def question_length(self, role: str) -> int:
        """The characters of a question without instruction and code, for estimates."""
        return 0


class Judge(Protocol):
    """Decides about code by reading it; never runs it."""

    async def check(self) -> None:
        """Called once before the first needed decision; raises `UserError` as a model's `check` does."""

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        """Is_Applicable of Algorithm 1. Raises `InfrastructureError` if the judge cannot be asked."""

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        """Whether the change from `before` to `after` follows the instruction, correctness aside (paper III-E1)."""

    async def aclose(self) -> None:
        """Release connections."""


@dataclass(frozen=True)
class JudgeTraits:
    """The properties of a kind of judge that are known before it is built.

    `offline`: it calls no endpoint, so that a decision costs nothing. `needs_rules`: it decides only instructions that
    carry a rule. `languages`: those that it reads; None for all.
    """

    offline: bool = False
    needs_rules: bool = False
    languages: frozenset[str] | None = None


JUDGES: Registry[Judge, JudgeTraits] = Registry("judge", "codechat.judges", JudgeTraits, Judge, JudgeConfig)

__all__ = ["ADHERENCE", "APPLICABILITY", "JUDGES", "Judge", "JudgeConfig", "JudgeTraits"]
