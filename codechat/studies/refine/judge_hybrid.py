"""The judge that decides by rules if it can, and asks a language model if there is no rule or it is undecided.

With `rules_first=false` the language model is always asked too. The rule's decision counts, `by` is `rules`, and the
reason begins with the opinion of the language model, so that records and audits can count it: `llm agrees | …`,
`llm disagrees (adhered: they are gone) | 2 comments left: lines 3, 9`, or `llm undecided | …`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from codechat.base.config import original_option
from codechat.base.domain import Adherence, Applicabilities, Applicability, Compliance, Contradiction, Instruction
from codechat.judging import JUDGES, QUESTIONS, ConstraintQuestion, JudgeConfig
from codechat.judging.llm import LlmJudge, LlmJudgeConfig
from codechat.studies.refine.judge_rules import RulesJudge
from codechat.studies.refine.patterns import READ, RULES_VERSION, decidable

DISAGREES = "llm disagrees"


class BesideRules(LlmJudgeConfig):
    """The language models of the hybrid judge."""

    place: ClassVar[str] = "judge.llm"


class HybridConfig(JudgeConfig):
    """The language models, and when they are asked."""

    version: ClassVar[int] = RULES_VERSION

    kind: Literal["hybrid"] = original_option("hybrid", "which judge")
    rules_first: bool = original_option(
        True, "ask the language model only if no rule decides; false: ask both, the rule's decision counts"
    )
    llm: BesideRules = original_option(..., "the language models, as the options of judge=llm")

    def asks(self, instruction: Instruction) -> bool:
        """For an instruction without a rule, or if both are always asked; when a rule is undecided is not foreseen."""
        return instruction.rule is None or not self.rules_first

    def asked_together(self) -> int:
        return self.llm.asked_together() if self.rules_first else 1

    def votes_on_constraint(self) -> int:
        return self.llm.votes_on_constraint()

    def question_length(self, role: str) -> int:
        return self.llm.question_length(role)

    def head_length(self, role: str) -> int:
        return self.llm.head_length(role)


@JUDGES.register("hybrid", HybridConfig, languages=READ, questions=frozenset(QUESTIONS))
class HybridJudge:
    """Rules if an instruction has one that decides, language models otherwise."""

    def __init__(self, config: HybridConfig) -> None:
        self._rules_first = config.rules_first
        self._rules, self._llm = RulesJudge(), LlmJudge(config.llm)
        self._checking, self._checked = asyncio.Lock(), False

    async def check(self) -> None:
        """Nothing yet: the language models are checked before their first question, which may never come."""

    async def aclose(self) -> None:
        await self._llm.aclose()

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        ruled = await self._ruled(code, instruction)
        if ruled.applicable is not None and self._rules_first:
            return ruled
        asked = await (await self._checked_llm()).applicable(code, instruction)
        if ruled.applicable is None:
            return asked
        said = None if asked.applicable is None else "applicable" if asked.applicable else "not applicable"
        reason = _mark_agreement(ruled.reason, asked.applicable == ruled.applicable, said, asked.reason)
        return replace(asked, applicable=ruled.applicable, by=ruled.by, reason=reason)

    async def applicable_together(self, code: str, instructions: Sequence[Instruction]) -> Applicabilities:
        """Rules decide what they can, up to the first that applies; the rest before it is asked together."""
        ruled = [await self._ruled(code, each) for each in instructions]
        until = next((at for at, each in enumerate(ruled) if each.applicable), len(ruled))
        open_ones = [each for each, rule in zip(instructions[:until], ruled, strict=False) if rule.applicable is None]
        if not open_ones:
            return Applicabilities(tuple(ruled))
        asked = await (await self._checked_llm()).applicable_together(code, open_ones)
        told = iter(asked.decisions)
        decisions = [next(told) if rule.applicable is None and at < until else rule for at, rule in enumerate(ruled)]
        return replace(asked, decisions=tuple(decisions))

    async def _ruled(self, code: str, instruction: Instruction) -> Applicability:
        """The rule's decision; none about code that it cannot read, but a language model can."""
        if not decidable(code, instruction):
            return Applicability(None, "rules", "the code does not parse")
        return await self._rules.applicable(code, instruction)

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        ruled = Adherence("undecided", "rules", "the code before does not parse")
        if decidable(before, instruction):
            ruled = await self._rules.adherence(before, after, instruction)
        if ruled.verdict != "undecided" and self._rules_first:
            return ruled
        asked = await (await self._checked_llm()).adherence(before, after, instruction)
        if ruled.verdict == "undecided":
            return asked
        said = None if asked.verdict == "undecided" else asked.verdict
        reason = _mark_agreement(ruled.reason, asked.verdict == ruled.verdict, said, asked.reason)
        return replace(asked, verdict=ruled.verdict, by=ruled.by, reason=reason)

    async def conflict(self, code: str, one: Instruction, other: Instruction) -> Contradiction:
        """The language model's decision: a pair that rules can decide comes to no judge."""
        return await (await self._checked_llm()).conflict(code, one, other)

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        """The language model's decision: a constraint that rules can decide comes to no judge."""
        return await (await self._checked_llm()).constraint(question)

    async def _checked_llm(self) -> LlmJudge:
        async with self._checking:
            if not self._checked:
                await self._llm.check()
                self._checked = True
        return self._llm


def _mark_agreement(ruled: str, agree: bool, said: str | None, asked: str) -> str:
    """The rule's reason after the language model's; the mark comes first, so that no quoted text can forge it."""
    if said is None:
        return f"llm undecided | {ruled}"
    return f"llm agrees | {ruled}" if agree else f"{DISAGREES} ({said}: {asked}) | {ruled}"
