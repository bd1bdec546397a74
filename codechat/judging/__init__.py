"""Judges of instructions: does an instruction apply to this code; was it followed? One file per kind.

Some also decide a third question: does this code keep this constraint of the task? For other questions a protocol asks
a role by `Kit.decide`, which uses `codechat.judging.deciding` as these judges do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from codechat.base.config import Config, original_option, run_option
from codechat.base.domain import Adherence, Applicabilities, Applicability, Compliance, Contradiction, Instruction
from codechat.base.registry import Registry

APPLICABILITY, ADHERENCE, CONSTRAINT = QUESTIONS = "applicability", "adherence", "constraint"
"""The roles of the questions: their names in prices and in the journal. A protocol names the ones it needs."""
SOLUTION = "solution"
"""Whether code keeps a constraint and does the same as a solution: asked of the model for constraints, by options."""


class JudgeConfig(Config):
    """Options every judge has."""

    kind: str = original_option(..., "which judge")
    lookahead: int = run_option(
        1, "candidates checked at once when an instruction is chosen; the selection is the same for any value", ge=1
    )

    def asks(self, instruction: Instruction) -> bool:
        """Whether a decision about an instruction asks a model, for estimates."""
        return False

    def asked_together(self) -> int:
        """The number of instructions in one question about applicability."""
        return 1

    def votes_on_constraint(self) -> int:
        """The number of votes on a constraint, for estimates."""
        return 0

    def question_length(self, role: str) -> int:
        """The characters of a question without instruction and code, for estimates."""
        return 0

    def head_length(self, role: str) -> int:
        """The characters with which all questions begin alike, for estimates."""
        return 0


@dataclass(frozen=True, slots=True)
class ConstraintQuestion:
    """Does `code` keep a constraint of the task that `prompt` states?

    `constraint` is the text of the constraint number `index` of the turn. `reference` is the published solution, if the
    task has one: a judge shows it to the model only by its options, or if `like_reference`: then the constraint is kept
    only by code that does the same as the solution.
    """

    task_id: str
    turn: int
    index: int
    prompt: str
    constraint: str
    code: str
    reference: str | None = None
    like_reference: bool = False


@runtime_checkable
class DecidesConstraints(Protocol):
    """A judge that also decides constraints."""

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        """Whether the code keeps the constraint. Raises `InfrastructureError` if the judge cannot be asked."""


@runtime_checkable
class DecidesTogether(Protocol):
    """A judge that can be asked about several instructions and one code at once."""

    async def applicable_together(self, code: str, instructions: Sequence[Instruction]) -> Applicabilities:
        """Is_Applicable of each. Raises `InfrastructureError` if the judge cannot be asked."""


@runtime_checkable
class DecidesConflicts(Protocol):
    """A judge that also decides whether two instructions contradict each other."""

    async def conflict(self, code: str, one: Instruction, other: Instruction) -> Contradiction:
        """Whether no change of the code follows both. Raises `InfrastructureError` if the judge cannot be asked."""


@runtime_checkable
class ReadsParsed(Protocol):
    """A judge that sees nothing in code that does not parse."""

    def reads(self, code: str, language: str) -> bool:
        """Whether the code parses, or may where it runs."""


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

    `offline`: the judge calls no endpoint, so that a decision costs nothing. `needs_rules`: it decides only
    instructions with a rule. `languages`: the languages it reads, None for all. `questions`: the roles it may decide.
    """

    offline: bool = False
    needs_rules: bool = False
    languages: frozenset[str] | None = None
    questions: frozenset[str] = frozenset({APPLICABILITY, ADHERENCE})


JUDGES: Registry[Judge, JudgeTraits] = Registry("judge", "codechat.judging", JudgeTraits, Judge, JudgeConfig)

__all__ = [
    "ADHERENCE", "APPLICABILITY", "CONSTRAINT", "JUDGES", "QUESTIONS", "SOLUTION", "ConstraintQuestion",
    "DecidesConflicts", "DecidesConstraints", "DecidesTogether", "Judge", "JudgeConfig", "JudgeTraits", "ReadsParsed",
]  # fmt: skip
