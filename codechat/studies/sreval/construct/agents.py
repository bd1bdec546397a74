"""The agents of SR-Eval's pipeline: their prompts, and the reading of answers (sections 3.1.2 and 3.1.3)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from codechat.base.config import Config, original_option
from codechat.base.errors import ContextOverflow
from codechat.base.template import require
from codechat.judging.deciding import Form, quote
from codechat.models import ModelConfig
from codechat.models.roles import role
from codechat.run.construct import Dropped, Kit, RecipeRoles
from codechat.sandbox.languages import language_of, without_thinking
from codechat.sandbox.languages.replies import Fences, split
from codechat.studies.sreval.construct.algorithm import (
    Checked,
    Decision,
    Draft,
    Edge,
    Judged,
    Place,
    Round,
    graph_problem,
    order_steps,
    unified_check,
)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Mark = Literal["pass", "fail"]
MARKS = ("testability", "completeness", "distinctiveness", "authenticity")
MOST_STEPS = 5
"""The paper's: a decomposition has two to five."""
RECALLS = ("recall_1", "recall_2", "recall_3")
FRAMEWORKS = {
    "python": "They are one file with one or more classes of unittest.TestCase, and no main guard.",
    "java": "They are one source of JUnit 5 (org.junit.jupiter.api) in the same package as the program.",
    "inserted": "They are functions of pytest whose names begin with test, to stand beside those of the repository.",
    "maven": "They are methods of JUnit to take the place of the repository's own test, with its annotations.",
}
M = TypeVar("M", bound="Reply")


class Reply(BaseModel):
    """An agent's answer: one JSON object. Further fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Converted(Reply):
    instruction: Text


class Decomposed(Reply):
    """The decomposer's instructions, the core first; more than `MOST_STEPS` are refused later."""

    instructions: list[Text] = Field(min_length=2)


class Evaluated(Reply):
    """The evaluator's marks and decision. People settle a RETAIN with marks of fail (`failing`)."""

    testability: Mark
    completeness: Mark
    distinctiveness: Mark
    authenticity: Mark
    decision: Literal["RETAIN", "REJECT"]
    feedback: str = ""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.decision == "REJECT" and not self.failing:
            raise ValueError("decision: RETAIN needs four marks of pass, and REJECT one of fail")
        if self.decision == "REJECT" and not self.feedback.strip():
            raise ValueError("feedback: say what to change")
        return self

    @property
    def failing(self) -> list[str]:
        """The names of the marks that fail."""
        return [name for name in MARKS if getattr(self, name) == "fail"]


class Analyzed(Reply):
    """The analyzer's dependencies and order, which `graph_problem` and `order_steps` check."""

    edges: list[Edge]
    order: list[int] = []


class Aligned(Reply):
    """The alignment's marks and decision, which must agree."""

    naming: Mark
    naming_reason: str = ""
    message: Mark
    message_reason: str = ""
    decision: Decision
    feedback: str = ""
    instruction: str = ""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.decision == "RETAIN" and "fail" in (self.naming, self.message):
            raise ValueError("decision: RETAIN needs two marks of pass")
        if self.decision == "QUESTION_REFINE" and not self.instruction.strip():
            raise ValueError("instruction: a better one is needed with QUESTION_REFINE")
        if self.decision != "RETAIN" and not self.reasons:
            raise ValueError("feedback: say what to change")
        return self

    @property
    def reasons(self) -> str:
        """The feedback, and the reasons of the marks that fail."""
        marks = ((self.naming, self.naming_reason), (self.message, self.message_reason))
        found = [self.feedback, *(reason for mark, reason in marks if mark == "fail")]
        return "\n".join(dict.fromkeys(each.strip() for each in found if each.strip()))


class StepsRoles(RecipeRoles):
    """The models. The ones that may know a repository by heart are optional."""

    converter: SerializeAsAny[ModelConfig] = role("qwen3_235b", "model that asks for a repository's function in words")
    decomposer: SerializeAsAny[ModelConfig] = role("qwen3_235b", "model that takes a requirement apart")
    evaluator: SerializeAsAny[ModelConfig] = role("qwen3_235b", "model that judges the parts")
    analyzer: SerializeAsAny[ModelConfig] = role("qwen3_235b", "model that orders them")
    coder: SerializeAsAny[ModelConfig] = role("claude_sonnet4", "model that writes programs and tests")
    alignment: SerializeAsAny[ModelConfig] = role("qwen3_235b", "model that compares tests with their requirement")
    recall_1: SerializeAsAny[ModelConfig] | None = role("none", "model that may know a repository", default=None)
    recall_2: SerializeAsAny[ModelConfig] | None = role("none", "another one", default=None)
    recall_3: SerializeAsAny[ModelConfig] | None = role("none", "a third one", default=None)


_FIELDS: dict[str, tuple[str, ...]] = {
    "converter": ("signature", "docstring", "body"),
    "decomposer": ("instruction", "solution"),
    "refused": ("attempt", "feedback"),
    "decomposed": (),
    "evaluator": ("instruction", "solution", "steps"),
    "analyzer": ("steps",),
    "invalid": ("attempt", "feedback"),
    "analyzed": (),
    "coder": ("requirement",),
    "previous": ("previous",),
    "grounds": ("reference", "tests"),
    "again": ("defect_code", "defect_test", "feedback"),
    "coded": ("framework",),
    "alignment": ("requirement", "earlier", "code", "tests"),
    "recall": ("signature", "docstring"),
    "reask": ("problem",),
}  # of each prompt the required fields


class StepsPrompts(Config):
    """The prompts, with fields `{{name}}`. Any may have `{{language}}`, `{{turn}}` and the mark `{{boundary}}`."""

    converter: str = original_option(..., "asks for one instruction; fills {{signature}}, {{docstring}} and {{body}}")
    decomposer: str = original_option(..., "asks for the parts; fills {{instruction}} and {{solution}}")
    refused: str = original_option(..., "follows it after a refusal; fills {{attempt}} and {{feedback}}")
    decomposed: str = original_option(..., "ends it with the form of the answer")
    evaluator: str = original_option(..., "asks if the {{steps}} are good; fills {{instruction}} and {{solution}}")
    analyzer: str = original_option(..., "asks for dependencies and an order of the {{steps}}")
    invalid: str = original_option(..., "follows it if the graph was none; fills {{attempt}} and {{feedback}}")
    analyzed: str = original_option(..., "ends it with the form of the answer")
    coder: str = original_option(..., "asks for a program and its tests; fills {{requirement}}")
    previous: str = original_option(..., "follows it after the first turn; fills {{previous}}")
    grounds: str = original_option(..., "follows it in a repository; fills {{reference}} and {{tests}}")
    again: str = original_option(..., "follows it after a defect; fills {{defect_code}}, {{defect_test}}, {{feedback}}")
    coded: str = original_option(..., "ends it with the rules for tests; fills {{framework}}")
    alignment: str = original_option(
        ..., "asks if tests fit a requirement; fills {{requirement}}, {{earlier}}, {{code}} and {{tests}}"
    )
    recall: str = original_option(..., "asks for a function from {{signature}} and {{docstring}} alone")
    reask: str = original_option(..., "follows an answer in another form; fills {{problem}}")

    @field_validator("*")
    @classmethod
    def _has_its_fields(cls, text: str, info: ValidationInfo) -> str:
        return require(text, *_FIELDS[info.field_name or ""], may=("language", "turn", "boundary"))


class Agents:
    """The agents of one task. Methods return None without a readable answer. `tests` come from the seed."""

    def __init__(self, kit: Kit, prompts: StepsPrompts, place: Place, reference: str = "", tests: str = "") -> None:
        self._kit, self._prompts, self._place = kit, prompts, place
        self._reference, self._tests = reference, tests

    async def convert(self, signature: str, docstring: str, body: str) -> str | None:
        """An instruction that asks for a repository's function."""
        parts = {"signature": signature, "docstring": docstring, "body": body}
        converted = await self._fill_in("converter", Converted, [self._prompts.converter], parts)
        return converted.instruction if converted else None

    async def decompose(self, instruction: str, refused: tuple[Sequence[str], str] | None) -> list[str] | None:
        """The parts of an instruction; `refused` has the last ones, and the feedback."""
        prompts, parts = self._prompts, {"instruction": instruction, "solution": self._reference}
        asks = [prompts.decomposer]
        if refused is not None:
            asks.append(prompts.refused)
            parts |= {"attempt": numbered(refused[0]), "feedback": refused[1]}
        decomposed = await self._fill_in("decomposer", Decomposed, [*asks, prompts.decomposed], parts)
        return decomposed.instructions if decomposed else None

    async def evaluate(self, instruction: str, steps: Sequence[str]) -> Evaluated | None:
        """Marks and decision on the parts of an instruction."""
        parts = {"instruction": instruction, "solution": self._reference, "steps": numbered(steps)}
        return await self._fill_in("evaluator", Evaluated, [self._prompts.evaluator], parts)

    async def arrange(self, steps: Sequence[str]) -> tuple[tuple[int, ...], list[Edge]] | Dropped:
        """The order of the steps and their dependencies. An invalid graph goes back once."""
        prompts, asks, parts = self._prompts, [self._prompts.analyzer], {"steps": numbered(steps)}
        problem = ""
        for _ in range(2):
            found = await self._fill_in("analyzer", Analyzed, [*asks, prompts.analyzed], parts)
            problem = graph_problem(len(steps), found.edges) if found else "the answer is no graph"
            if found and not problem:
                return order_steps(len(steps), found.edges, found.order), found.edges
            asks = [prompts.analyzer, prompts.invalid]
            parts |= {"attempt": found.model_dump_json() if found else "(none)", "feedback": problem}
        return Dropped("no graph", problem)

    async def knows_by_heart(self, role: str, signature: str, docstring: str) -> bool:
        """Whether a model's function, written without the repository, passes the seed's tests in it."""
        prompt = self._quoted([self._prompts.recall], signature=signature, docstring=docstring)
        try:
            reply = await self._kit.ask(role, prompt)
        except ContextOverflow:
            return False
        code = next(iter(self._blocks(reply.text)), "")
        return bool(code) and (await self.check_seed(code)).correct

    async def check_seed(self, code: str) -> Checked:
        """The seed's own tests on a program: on its own solution, or on the program of the last step."""
        return await self._checked(code, Draft(code, self._tests))

    # the team of Algorithm 1

    async def write(self, asked: Round) -> Draft | None:
        """See `Team`. Of the seed only a repository's function is shown (Algorithm 1, line 8)."""
        prompts, parts = self._prompts, {"requirement": asked.requirement}
        asks = [prompts.coder]
        if asked.trajectory:
            asks.append(prompts.previous)
            parts["previous"] = asked.trajectory[-1].draft.code
        kind = self._place.language
        if self._place.suite is not None:
            kind = str(self._place.suite["kind"])
            asks.append(prompts.grounds)
            parts |= {"reference": self._reference, "tests": self._tests}
        if asked.defect is not None:
            asks.append(prompts.again)
            defect = asked.defect
            parts |= {"defect_code": defect.code, "defect_test": defect.test, "feedback": asked.feedback}
        own = {"turn": str(asked.turn), "framework": FRAMEWORKS[kind]}
        prompt = self._quoted([*asks, prompts.coded], own, **parts)
        if asked.defect is None and asked.feedback:  # the last answer could not be read
            prompt = f"{prompt}\n\n{asked.feedback}"
        try:
            reply = await self._kit.ask("coder", prompt, draw=asked.attempt - 1)
        except ContextOverflow:
            return None
        blocks = self._blocks(reply.text)
        return Draft(*blocks[-2:]) if len(blocks) > 1 else None

    async def check(self, code: str | None, draft: Draft) -> Checked:
        return await self._checked(self._place.stub if code is None else code, draft)

    async def align(self, asked: Round, draft: Draft) -> Judged | None:
        earlier = numbered([turn.requirement for turn in asked.trajectory]) or "(none)"
        parts = {"requirement": asked.requirement, "earlier": earlier, "code": draft.code, "tests": draft.test}
        aligned = await self._fill_in("alignment", Aligned, [self._prompts.alignment], parts)
        return Judged(aligned.decision, aligned.reasons, aligned.instruction.strip()) if aligned else None

    async def settle(self, asked: Round, judged: Judged) -> str | None:
        reason = f"Is this requirement of turn {asked.turn} clear? {judged.feedback}"
        return self._kit.people(f"{reason}\n\n{asked.requirement}", judged.requirement)

    async def _checked(self, code: str, draft: Draft) -> Checked:
        return await unified_check(self._kit.check, self._place, code, draft)

    async def _fill_in(self, role: str, schema: type[M], asks: Sequence[str], parts: Mapping[str, str]) -> M | None:
        form = Form(self._quoted(asks, None, **parts), schema, self._prompts.reask)
        return (await self._kit.fill_in(role, form)).value

    def _quoted(self, asks: Sequence[str], own: dict[str, str] | None = None, **parts: str) -> str:
        template = "\n\n".join(each.strip("\n") for each in asks)
        return quote(template, {"language": self._place.language, **(own or {})}, **parts)

    def _blocks(self, reply: str) -> list[str]:
        """A reply's blocks of code in the task's language, or without a language."""
        names = language_of(self._place.language).names
        blocks = split(without_thinking(reply), Fences(lambda tag: tag.lower() in names)).blocks
        return [block.text for block in blocks if block.closed and (block.tag in names or not block.tag)]


def numbered(steps: Sequence[str]) -> str:
    """The steps, each with its number."""
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
