"""SR-Eval: a task grows by one requirement a turn, and each turn has a reference and tests (section 3)."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pydantic import field_validator, model_validator

from codechat.base.config import Config, original_option, result_option
from codechat.base.domain import Extraction, Message, Reply, Verdict
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Task
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.run.protocols.dialogue import PROSE, Graded, grade_in_order, length_of
from codechat.sandbox.languages import code_text, extract, fence, language_of, without_thinking
from codechat.studies.sreval.metrics import CHECKS, STEPWISE, stepwise_metrics
from codechat.studies.sreval.rows import OfFile, Step, StepTask, file_of, suite_for

CONTEXT_FULL = Verdict.without_run("no_code", "the conversation no longer fits the model's context")
ABOVE = "The code above the function in its file:\n\n{{code}}\n"
"""As in conf/prompts: a prompt newer than the first version is no part of a cell's id if it has this text."""
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class StepwisePrompts(Config):
    """The prompts, with fields `{{name}}`."""

    system: str = original_option(..., "the first message; fills {{language}}")
    problem: str = original_option(..., "the newest requirement, or all so far; fills {{instruction}}")
    edit: str = original_option(..., "a change of given code; fills {{code}} and {{instruction}}")
    above: str = result_option(ABOVE, "before the task of a repository: the code above the function; fills {{code}}")

    @field_validator("system", "problem", "edit", "above")
    @classmethod
    def _has_its_fields(cls, text: str, info: Any) -> str:
        fields = {"system": (), "problem": ("instruction",), "edit": ("code", "instruction"), "above": ("code",)}
        return require(text, *fields[info.field_name], may=("language",))


class StepwiseConfig(Config):
    kind: Literal["stepwise"] = original_option("stepwise", "the protocol")
    prompting: Literal["full_history", "code_edit", "cumulative"] = original_option(
        "full_history", "what a request holds: the dialogue, the code before and one requirement, or all requirements"
    )
    context: Literal["basic", "golden"] = original_option(
        "basic", "what earlier turns show: the model's own replies or code (basic), or the references (golden)"
    )
    harness: Literal["guarded", "official"] = original_option(
        "guarded", "official: code is extracted, and history kept, as SR-Eval's own script does"
    )
    local_context: Literal["first", "every"] | None = result_option(
        "every",
        "tasks in a repository: the code above the function stands before the first task, or before every one; null: "
        "as in the paper, every one in Python and the first in Java",
    )
    prompts: StepwisePrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")

    @model_validator(mode="after")
    def _fit(self) -> "StepwiseConfig":
        if self.prompting == "cumulative" and self.context == "golden":
            raise UserError(
                "protocol.prompting=cumulative shows no earlier code, so protocol.context=golden would change nothing",
                "leave protocol.context at basic, or choose full_history or code_edit",
            )
        return self


def settle(config: StepwiseConfig, dataset: Config) -> StepwiseConfig:
    """The options with the paper's `local_context` if it is null."""
    if config.local_context is not None:
        return config
    return config.model_copy(update={"local_context": paper_context(getattr(dataset, "kind", ""))})


def paper_context(dataset: str) -> Literal["first", "every"]:
    """The paper's `local_context` by the dataset's kind (its Table 6: the tokens)."""
    return "first" if dataset == "sreval_java_repository" else "every"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to a turn's request."""

    turn: int
    request: tuple[Message, ...]
    reply: Reply
    extraction: Extraction


class Stepwise:
    """One request a step. Tests run while the next turn is generated."""

    measures = STEPWISE

    def __init__(self, config: StepwiseConfig) -> None:
        self._config = config

    def turns(self, task: Task) -> int:
        return len(steps_of(task))

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        """The whole conversation at every turn with full history, else one message."""
        steps, answer = steps_of(task), length_of(task) + PROSE
        prompts, told = self._config.prompts, 0
        for turn, step in enumerate(steps):
            system, before = len(prompts.system), told - (len(steps[turn - 1].instruction) if turn else 0)
            told += len(step.instruction)
            around = len(prompts.system) + len(prompts.problem) + len(_code_above(self._config, task, turn))
            shown, replies = {
                "full_history": (told, turn),
                "code_edit": (len(step.instruction), min(turn, 1)),
                "cumulative": (told, 0),
            }[self._config.prompting]
            # The last request's own text has another wording once it is history.
            shared, kept = (system + before, turn - 1) if self._config.prompting == "full_history" else (system, 0)
            shared, kept = (shared, kept) if turn else (0, 0)
            yield Ask(UNDER_TEST, turn, around + shown, answer, replies=replies, shared=shared, shared_replies=kept)

    async def run(self, task: Task, kit: Kit) -> None:
        steps = steps_of(task)
        replies: list[str] = []
        codes: list[str] = []
        async with grade_in_order() as grading:
            for turn, step in enumerate(steps):
                request = layout(self._config, task, turn, replies, codes)
                before = codes[-1] if codes else None
                try:
                    # `final`: the history words each request otherwise.
                    reply = await kit.ask(UNDER_TEST, turn, request, code=before, reference=step.reference, final=True)
                except ContextOverflow:
                    grading.start(partial(self._overflow, kit, len(steps), turn, request))
                    break
                extraction = self._extract(task, step, reply)
                grading.start(partial(self._grade, kit, task, Answer(turn, request, reply, extraction)))
                replies.append(reply.text if self._config.harness == "official" else without_thinking(reply.text))
                codes.append(extraction.code or (codes[-1] if codes else ""))

    def _extract(self, task: Task, step: Step, reply: Reply) -> Extraction:
        if reply.trajectory is not None and isinstance(step.suite, OfFile):
            return file_of(reply.trajectory, step.suite)
        if self._config.harness == "guarded":
            return extract(code_text(reply, task.target.language), task.target)
        code = official_code(code_text(reply, task.target.language), task.target.language)
        return Extraction(code, code, None, "as SR-Eval's script takes it")

    async def _grade(self, kit: Kit, task: Task, answer: Answer, earlier: Graded | None) -> TurnRecord:
        steps, turn = steps_of(task), answer.turn
        try:
            verdict = await kit.check(turn, answer.extraction, suite_for(answer.reply, steps[turn].suite))
            kept = await self._kept(kit, answer, steps, verdict)
        finally:
            if earlier is not None:
                await earlier
        record = TurnRecord.of(turn, answer.request, (answer.reply, answer.extraction), verdict, **{CHECKS: kept})
        kit.finish_turn(record)
        return record

    async def _kept(self, kit: Kit, answer: Answer, steps: Sequence[Step], verdict: Verdict) -> list[dict[str, Any]]:
        """The results of earlier turns' tests on the code, if the turn's own reference passes them: of no paper.

        A later requirement may contradict an earlier one, whose tests are then no evidence of a loss. `verdict` belongs
        to the turn's own tests. Code that has run out of time passes no further tests: they are not run.
        """
        found, turn = [], answer.turn
        for number, step in enumerate(steps[:turn]):
            reference = steps[turn].reference
            if reference is not None and (await kit.check_reference(turn, reference, step.suite)).passed:
                if verdict.outcome != "timeout":
                    verdict = await kit.check(turn, answer.extraction, suite_for(answer.reply, step.suite))
                found.append({"turn": number, "passed": verdict.passed})
        return found

    async def _overflow(
        self, kit: Kit, turns: int, first: int, request: tuple[Message, ...], earlier: Graded | None
    ) -> TurnRecord:
        """The conversation no longer fits: this turn and all later ones fail; returns the last."""
        if earlier is not None:
            await earlier
        for turn in range(first, turns):
            record = TurnRecord.of(turn, request if turn == first else (), None, CONTEXT_FULL)
            kit.finish_turn(record)
        kit.log.ended = "context_overflow"
        return record

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return stepwise_metrics(sessions, seed=seed, effort=effort)


@PROTOCOLS.register(
    "stepwise",
    StepwiseConfig,
    uses=frozenset({"sandbox"}),
    over=StepTask,
    settle=settle,
    with_desk={"prompting": "full_history", "context": "basic"},
)
def stepwise(config: StepwiseConfig, parts: Parts) -> Stepwise:
    """One requirement a turn, each with a reference and tests (SR-Eval)."""
    return Stepwise(config)


def steps_of(task: Task) -> tuple[Step, ...]:
    """The task's steps. Tasks of another kind were refused before."""
    assert isinstance(task, StepTask)
    return task.steps


def layout(
    config: StepwiseConfig, task: Task, turn: int, replies: Sequence[str], codes: Sequence[str]
) -> tuple[Message, ...]:
    """The messages of a turn, after the `replies` of earlier ones and the `codes` in them."""
    prompts, steps, language = config.prompts, steps_of(task), task.target.language
    asked = [step.instruction.strip() for step in steps[: turn + 1]]
    references = [step.reference or "" for step in steps[:turn]]
    earlier: list[Message] = []
    wanted = "\n".join(asked) if config.prompting == "cumulative" else asked[-1]
    newest = fill(prompts.problem, instruction=wanted, language=language)
    if config.prompting == "code_edit" and turn:
        before = references[-1] if config.context == "golden" else codes[-1]
        shown = fence(before, language).rstrip("\n")
        newest = fill(prompts.edit, code=shown, instruction=wanted, language=language)
    elif config.prompting == "full_history":
        golden = [fence(code, language).rstrip("\n") for code in references]
        for text, reply in zip(asked[:-1], golden if config.context == "golden" else replies, strict=True):
            earlier += [Message("user", text), Message("assistant", reply)]
    above = _code_above(config, task, turn)
    system = Message("system", fill(prompts.system, language=language))
    return (system, *earlier, Message("user", f"{above}\n\n{newest}" if above else newest))


def _code_above(config: StepwiseConfig, task: Task, turn: int) -> str:
    """The text with the code above the function at a turn; empty if the turn does not show it."""
    assert isinstance(task, StepTask)
    if not task.above.strip() or (turn and config.local_context == "first"):
        return ""
    language = task.target.language
    return fill(config.prompts.above, code=fence(task.above, language).rstrip("\n"), language=language)


def official_code(reply: str, language: str) -> str:
    """The code that SR-Eval's script takes: after the last `</think>`, the first closed fence of the language.

    Without one it is the first closed fence of any language, else everything.
    """
    text = reply.rpartition("</think>")[2]
    found = [(tag.strip().lower(), body) for tag, body in _FENCE.findall(text)]
    own = [body for tag, body in found if tag in language_of(language).names]
    code: str = (own or [body for _, body in found] or [text])[0]
    return code
