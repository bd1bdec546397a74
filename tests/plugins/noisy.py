"""A judge of known errors: it knows by rules what was followed, and errs as often as it is told to.

Its reason says what it knows, so that a test can label its decisions as people would who never err.
"""

import hashlib
from typing import Literal

from codechat.base.config import result_option
from codechat.base.domain import Adherence, Applicability, Instruction
from codechat.base.seeding import generator
from codechat.judging import JUDGES, JudgeConfig
from codechat.studies.refine.patterns import adherence, applicable


class NoisyConfig(JudgeConfig):
    """How often it is right."""

    kind: Literal["noisy"] = result_option("noisy", "which judge")
    sensitivity: float = result_option(0.8, "share of followed instructions that it calls adhered", ge=0, le=1)
    specificity: float = result_option(0.8, "share of the others that it calls violated", ge=0, le=1)


@JUDGES.register("noisy", NoisyConfig, offline=True, needs_rules=True, languages=frozenset({"python"}))
class NoisyJudge:
    """Rules with errors of known rates."""

    def __init__(self, config: NoisyConfig) -> None:
        self.config = config

    async def check(self) -> None:
        """Nothing outside is needed."""

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        return applicable(code, instruction)

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        truth = adherence(before, after, instruction).verdict
        asked = hashlib.sha256("\0".join((instruction.id, before, after)).encode()).hexdigest()
        luck = generator(0, asked, "noisy").random()
        if truth == "adhered":
            return Adherence("adhered" if luck < self.config.sensitivity else "violated", "noisy", f"in truth {truth}")
        return Adherence("violated" if luck < self.config.specificity else "adhered", "noisy", "in truth violated")

    async def aclose(self) -> None:
        """Nothing to release."""
