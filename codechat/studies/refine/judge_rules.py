"""The judge that decides by reading the syntax tree and tokens: free and repeatable."""

from typing import ClassVar, Literal

from codechat.base.config import original_option
from codechat.base.domain import Adherence, Applicability, Instruction
from codechat.judging import JUDGES, JudgeConfig
from codechat.studies.refine.patterns import READ, RULES_VERSION, adherence, applicable, readable


class RulesConfig(JudgeConfig):
    """The rules have no options: each instruction carries its rule."""

    version: ClassVar[int] = RULES_VERSION

    kind: Literal["rules"] = original_option("rules", "decide by the instructions' own rules")


class RulesJudge:
    """Decides instructions that carry a rule; leaves the others undecided. Raises `UserError` for a malformed rule."""

    async def check(self) -> None:
        """Nothing outside is needed."""

    def reads(self, code: str, language: str) -> bool:
        return readable(code, language)

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        return applicable(code, instruction)

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        return adherence(before, after, instruction)

    async def aclose(self) -> None:
        """Nothing to release."""


@JUDGES.register("rules", RulesConfig, offline=True, needs_rules=True, languages=READ)
def rules(config: RulesConfig) -> RulesJudge:
    """Deterministic checks on syntax tree and tokens, undecided without a rule or if form is not enough."""
    return RulesJudge()
