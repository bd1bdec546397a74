"""Language models as judges: chain-of-thought prompts, and a verdict that is read strictly or left undecided.

A role for each question, each with a separate model (paper, sections III-D1, III-E1 and IV-C). A cell has the roles
that its protocol asks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import SerializeAsAny, ValidationInfo, field_validator, model_validator

from codechat.base.config import Config, original_option, result_option, run_option
from codechat.base.domain import (
    Adherence,
    AdherenceVerdict,
    Applicabilities,
    Applicability,
    Compliance,
    Contradiction,
    Instruction,
    Spent,
)
from codechat.base.errors import JudgeUnreadable, UserError
from codechat.base.template import require
from codechat.judging import ADHERENCE, APPLICABILITY, CONSTRAINT, JUDGES, QUESTIONS, ConstraintQuestion, JudgeConfig
from codechat.judging.deciding import UNREADABLE, VERDICT, Decision, Question, decide, quote, reask
from codechat.models import MODELS, Model, ModelConfig, Request
from codechat.models.roles import Roles, role

WORDS = {
    APPLICABILITY: ("APPLICABLE", "NOT_APPLICABLE"),
    ADHERENCE: ("ADHERED", "VIOLATED"),
    CONSTRAINT: ("KEPT", "BROKEN"),
}
UNREADABLE_IN_A_ROW = 10
"""Decisions in a row without a readable answer after which a role is asked no more. If two of twelve answers cannot be
read, as its check allows, ten in a row are so by chance once in sixty million."""
SOLVED = "{prompt}\n\nA solution that was published with the task:\n\n{reference}"


TOGETHER = Path(__file__).with_name("together.md").read_text("utf-8")
"""The question about several instructions, unless the prompts have one."""
CONFLICT = Path(__file__).with_name("conflict.md").read_text("utf-8")
"""The question whether two instructions contradict each other, unless the prompts have one."""
CONFLICTS = ("CONTRADICTORY", "COMPATIBLE")


class JudgePrompts(Config):
    """The judge's prompts, as whole texts with `{{fields}}`."""

    applicability: str = original_option(..., "asks whether {{instruction}} applies to {{code}}")
    adherence: str = original_option(
        ..., "asks whether the change from {{before}} to {{after}} follows {{instruction}}"
    )
    together: str | None = result_option(
        None,
        "asks of each of the numbered {{instructions}} whether it applies to {{code}}, with a line VERDICT N: … for "
        "each (judge.batch); null: a built-in text",
    )
    conflict: str | None = result_option(
        None,
        "asks whether {{first}} and {{second}} contradict each other for {{code}} (agenda.composite); null: a built-in "
        "text",
    )
    constraint: str | None = result_option(
        None, "asks whether {{code}}, written for {{task}}, keeps {{constraint}}; null if the protocol does not ask it"
    )
    solution: str | None = result_option(
        None,
        "asks whether it also does what {{reference}} does, for constraints whose published answer is a whole solution",
    )
    reask: str = original_option(..., "asks again for one of {{verdicts}} after a reply that could not be read")

    @field_validator("applicability", "together", "adherence", "conflict", "constraint", "solution", "reask")
    @classmethod
    def _has_its_fields(cls, value: str | None, info: ValidationInfo) -> str | None:
        fields = {
            "applicability": ("instruction", "code"),
            "together": ("instructions", "code"),
            "adherence": ("instruction", "before", "after"),
            "conflict": ("first", "second", "code"),
            "constraint": ("task", "constraint", "code"),
            "solution": ("task", "constraint", "reference", "code"),
            "reask": ("verdicts",),
        }
        may = () if info.field_name == "reask" else ("boundary",)
        return None if value is None else require(value, *fields[info.field_name or ""], may=may)


class LlmJudgeConfig(JudgeConfig, Roles):
    """The judging models and their prompts."""

    place: ClassVar[str] = "judge"

    kind: Literal["llm"] = original_option("llm", "which judge")
    applicability: SerializeAsAny[ModelConfig] | None = role(
        "gpt_oss_20b", "model that decides whether an instruction applies", default=None
    )
    adherence: SerializeAsAny[ModelConfig] | None = role(
        "gpt_oss_120b", "model that decides whether it was followed", default=None
    )
    constraint: SerializeAsAny[ModelConfig] | None = role(
        "gpt_oss_120b", "model that decides whether a code keeps a constraint of its task", default=None
    )
    prompts: JudgePrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")
    max_reasks: int = original_option(2, "how often a verdict that cannot be read is asked for again", ge=0, le=10)
    votes: int = result_option(
        1, "how often it is asked whether a constraint is kept: the majority counts, a tie is undecided", ge=1, le=99
    )
    batch: int = result_option(
        1, "instructions about which one question asks whether they apply to a code; 1: a question each", ge=1, le=20
    )
    reference: bool = result_option(
        False, "show the published solution of the task to the model that decides about constraints"
    )
    check: bool = run_option(
        True, "before the first session, ask each model twelve questions with known answers; 10 must be right"
    )

    @model_validator(mode="after")
    def _can_ask(self) -> "LlmJudgeConfig":
        if self.constraint is not None and self.prompts.constraint is None:
            raise UserError("judge.prompts.constraint is missing", "give it as a text or @FILE, or choose a preset")
        return self

    def asks(self, instruction: Instruction) -> bool:
        return True

    def asked_together(self) -> int:
        return self.batch

    def votes_on_constraint(self) -> int:
        return self.votes

    def question_length(self, role: str) -> int:
        return len(getattr(self.prompts, role) or "")

    def head_length(self, role: str) -> int:
        return len((getattr(self.prompts, role) or "").partition("{{")[0])


@JUDGES.register("llm", LlmJudgeConfig, questions=frozenset(QUESTIONS))
class LlmJudge:
    """Language models judge, one for applicability and one for adherence (the paper's way), one for constraints."""

    def __init__(self, config: LlmJudgeConfig, *, brakes: bool = True) -> None:
        self.config = config
        self._brakes, self._unreadable = brakes, Counter[str]()  # decisions in a row, by role
        self._said: dict[str, str] = {}
        chosen = {role: model for role in QUESTIONS if (model := getattr(config, role))}
        # roles with equal configs share a model, and with it the limit of calls
        built: list[tuple[ModelConfig, Model]] = []
        for one in chosen.values():
            if all(one != known for known, _ in built):
                built.append((one, MODELS.build(one)))
        self._built = [model for _, model in built]
        self._models = {role: next(model for known, model in built if known == one) for role, one in chosen.items()}

    async def check(self) -> None:
        for model in self._built:
            await model.check()

    async def aclose(self) -> None:
        for model in self._built:
            await model.aclose()

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        """Ask the model of this role; `applicable` is None if no verdict could be read."""
        found = await self.ask(APPLICABILITY, instruction=instruction.text, code=code)
        decided = None if found.verdict is None else found.verdict == "APPLICABLE"
        return Applicability(decided, "llm", found.reason, **found.fields())

    async def applicable_together(self, code: str, instructions: Sequence[Instruction]) -> Applicabilities:
        """Ask the model of this role once; one by one for a single instruction, or after an unreadable answer."""
        spent = Spent(cached=True)
        if len(instructions) > 1:
            numbered = "\n\n".join(f"{number}. {each.text}" for number, each in enumerate(instructions, 1))
            answers = {f"{VERDICT} {number}": WORDS[APPLICABILITY] for number in range(1, len(instructions) + 1)}
            text = quote(self.config.prompts.together or TOGETHER, instructions=numbered, code=code)
            found = await self._decide(APPLICABILITY, text, answers=answers)
            if found.answers is not None:
                words = found.answers.values()  # in the order of the labels
                decided = (Applicability(word == WORDS[APPLICABILITY][0], "llm", found.reason) for word in words)
                return Applicabilities(tuple(decided), **found.fields())
            spent = Spent(**found.fields())
        alone = [await self.applicable(code, each) for each in instructions]
        decisions = tuple(Applicability(each.applicable, each.by, each.reason) for each in alone)
        return Applicabilities(decisions, **reduce(Spent.plus, alone, spent).fields())

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        """Ask the model of this role; `undecided` if no verdict could be read."""
        found = await self.ask(ADHERENCE, instruction=instruction.text, before=before, after=after)
        verdicts: dict[str | None, AdherenceVerdict] = {"ADHERED": "adhered", "VIOLATED": "violated"}
        return Adherence(verdicts.get(found.verdict, "undecided"), "llm", found.reason, **found.fields())

    async def conflict(self, code: str, one: Instruction, other: Instruction) -> Contradiction:
        """Ask the model of applicability; undecided if no verdict could be read."""
        prompt = quote(self.config.prompts.conflict or CONFLICT, first=one.text, second=other.text, code=code)
        found = await self._decide(APPLICABILITY, prompt, answers={VERDICT: CONFLICTS})
        decided = None if found.verdict is None else found.verdict == CONFLICTS[0]
        return Contradiction(decided, "llm", found.reason, **found.fields())

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        """Ask the model of this role once or several times; undecided without a majority of readable verdicts."""
        config, task, solution = self.config, question.prompt, question.reference
        parts = {"constraint": question.constraint, "code": question.code}
        if question.like_reference and config.prompts.solution is not None and solution is not None:
            prompt = quote(config.prompts.solution, task=task, reference=solution, **parts)
        else:
            if config.reference and solution is not None:
                task = SOLVED.format(prompt=task, reference=solution)
            prompt = quote(config.prompts.constraint or "", task=task, **parts)
        found = [await self._decide(CONSTRAINT, prompt, vote) for vote in range(config.votes)]
        return majority(found, WORDS[CONSTRAINT])

    async def ask(self, role: str, sample: int = 0, /, **quoted: str) -> Decision:
        """The decision on a role's question about the `quoted` texts, which its prompt names."""
        return await self._decide(role, quote(getattr(self.config.prompts, role), **quoted), sample)

    async def _decide(
        self, role: str, prompt: str, vote: int = 0, answers: Mapping[str, tuple[str, ...]] | None = None
    ) -> Decision:
        """A decision; further votes are asked as further samples, so that no cached reply answers twice.

        Raises `JudgeUnreadable` once so many decisions in a row had no readable answer, and if the judge `brakes`.
        """
        if self._brakes and self._unreadable[role] >= UNREADABLE_IN_A_ROW:
            raise self._no_more(role)
        answers = answers or {VERDICT: WORDS[role]}
        again = reask(self.config.prompts.reask, answers)
        question = Question(role, prompt, answers, again, self.config.max_reasks)
        place = Request((), f"judge:{WORDS[role][0].lower()}", 0, sample=vote, role=role, number=vote, final=True)
        found = await decide(self._models[role], question, place)
        if found.answers is not None:
            self._unreadable[role] = 0
        elif found.reason.startswith(UNREADABLE):
            self._unreadable[role] += 1
            self._said[role] = found.said
        return found

    def _no_more(self, role: str) -> JudgeUnreadable:
        place, model = f"{self.config.place}.{role}", getattr(self.config, role)
        return JudgeUnreadable(
            f"{self._unreadable[role]} decisions in a row of {place} ({model.name}) had no readable answer; "
            f'the last began with "{self._said[role]}"',
            f"Choose another judge: model@{place}=NAME; mend {self.config.place}.prompts; or raise {place}.max_tokens, "
            "if its answers are cut off.",
        )


def majority(votes: Sequence[Decision], words: tuple[str, ...]) -> Compliance:
    """The decision of most readable votes, undecided in a tie; `words` has yes first. The reason is the first reason
    given for the decision, with the counts if there were several votes."""
    counts = Counter(vote.verdict for vote in votes if vote.verdict in words)
    spent = reduce(Spent.plus, votes, Spent(cached=True))
    yes, no = (counts[word] for word in words)
    met = None if yes == no else yes > no
    wanted = None if met is None else words[0] if met else words[1]
    reason = next(vote.reason for vote in votes if met is None or vote.verdict == wanted)
    if len(votes) > 1:
        reason = f"{yes} of {len(votes)} votes for, {no} against: {reason}"
    return Compliance(met, "llm", reason, **spent.fields())
