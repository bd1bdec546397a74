"""Language models as judges: chain-of-thought prompts, and a verdict that is read strictly or left undecided.

Two roles, each with a model of its own (paper, sections III-D1, III-E1 and IV-C).
"""

from typing import ClassVar, Literal

from pydantic import SerializeAsAny, ValidationInfo, field_validator

from codechat.config import Config, original_option
from codechat.domain import Adherence, AdherenceVerdict, Applicability, Instruction
from codechat.judges import ADHERENCE, APPLICABILITY, JUDGES, JudgeConfig
from codechat.judges.deciding import VERDICT, Decision, Question, decide, quote, reask
from codechat.models import MODELS, Model, ModelConfig, Request
from codechat.models.roles import Roles, role
from codechat.template import require

WORDS = {APPLICABILITY: ("APPLICABLE", "NOT_APPLICABLE"), ADHERENCE: ("ADHERED", "VIOLATED")}


class JudgePrompts(Config):
    """The judge's prompts, as whole texts with `{{fields}}`."""

    applicability: str = original_option(..., "asks whether {{instruction}} applies to {{code}}")
    adherence: str = original_option(
        ..., "asks whether the change from {{before}} to {{after}} follows {{instruction}}"
    )
    reask: str = original_option(..., "asks again for one of {{verdicts}} after a reply that could not be read")

    @field_validator("applicability", "adherence", "reask")
    @classmethod
    def _has_its_fields(cls, value: str, info: ValidationInfo) -> str:
        if info.field_name == "reask":
            return require(value, "verdicts")
        fields = ("code",) if info.field_name == "applicability" else ("before", "after")
        return require(value, "instruction", *fields, may=("boundary",))


class LlmJudgeConfig(JudgeConfig, Roles):
    """The judging models and their prompts."""

    place: ClassVar[str] = "judge"

    kind: Literal["llm"] = original_option("llm", "which judge")
    applicability: SerializeAsAny[ModelConfig] = role(
        "gpt_oss_20b", "model that decides whether an instruction applies"
    )
    adherence: SerializeAsAny[ModelConfig] = role("gpt_oss_120b", "model that decides whether it was followed")
    prompts: JudgePrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")
    max_reasks: int = original_option(2, "how often a verdict that cannot be read is asked for again", ge=0, le=10)

    def asks(self, instruction: Instruction) -> bool:
        return True

    def question_length(self, role: str) -> int:
        return len(getattr(self.prompts, role))


@JUDGES.register("llm", LlmJudgeConfig)
class LlmJudge:
    """Language models judge, one for applicability and one for adherence (the paper's way)."""

    def __init__(self, config: LlmJudgeConfig) -> None:
        self.config = config
        self._applicability: Model = MODELS.build(config.applicability)
        self._adherence = self._applicability  # one model for both roles shares its limit of calls
        if config.adherence != config.applicability:
            self._adherence = MODELS.build(config.adherence)

    @property
    def _models(self) -> list[Model]:
        return list({id(model): model for model in (self._applicability, self._adherence)}.values())

    async def check(self) -> None:
        for model in self._models:
            await model.check()

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        """Ask the first model; `applicable` is None if no verdict could be read."""
        prompt = quote(self.config.prompts.applicability, instruction=instruction.text, code=code)
        found = await self._decide(self._applicability, APPLICABILITY, prompt)
        decided = None if found.verdict is None else found.verdict == "APPLICABLE"
        return Applicability(decided, "llm", found.reason, **found.fields())

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        """Ask the second model; `undecided` if no verdict could be read."""
        prompt = quote(self.config.prompts.adherence, instruction=instruction.text, before=before, after=after)
        found = await self._decide(self._adherence, ADHERENCE, prompt)
        verdicts: dict[str | None, AdherenceVerdict] = {"ADHERED": "adhered", "VIOLATED": "violated"}
        return Adherence(verdicts.get(found.verdict, "undecided"), "llm", found.reason, **found.fields())

    async def _decide(self, model: Model, role: str, prompt: str) -> Decision:
        answers = {VERDICT: WORDS[role]}
        again = reask(self.config.prompts.reask, answers)
        question = Question(role, prompt, answers, again, self.config.max_reasks)
        return await decide(model, question, Request((), f"judge:{WORDS[role][0].lower()}", 0, role=role))
