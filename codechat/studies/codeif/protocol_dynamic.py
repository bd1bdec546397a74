"""CodeIF-Bench's dynamic conversation: tests choose what is asked next and give the feedback (paper 3.1 and 4.2)."""

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

from pydantic import field_validator

from codechat.base.config import Config, original_option, result_option
from codechat.base.domain import Message
from codechat.base.errors import ContextOverflow
from codechat.base.records import SessionRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Requirement, Task
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.sandbox.languages import code_text, extract, without_thinking
from codechat.studies.codeif import conversation
from codechat.studies.codeif.conversation import CONTEXT_FULL, Check, Prompts, Round, checks_of, fail_all, turn_record
from codechat.studies.codeif.metrics import DYNAMIC, TASK, Exchange, conversation_metrics


class DynamicPrompts(Prompts):
    """The prompts; `{{name}}` is filled in."""

    feedback: str = original_option(..., "a feedback round; fills {{requirement}} and {{feedback}}")

    @field_validator("feedback")
    @classmethod
    def _check_feedback(cls, text: str) -> str:
        return require(text, "requirement", "feedback")


class DynamicConfig(Config):
    """Options of the dynamic conversation."""

    kind: Literal["dynamic"] = original_option("dynamic", "the protocol")
    prompts: DynamicPrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")
    extensions: bool = result_option(
        True, "whether functionality extensions are asked; false as in the paper's dynamic dialogues (5.2)"
    )


class Dynamic:
    """Instruction rounds and feedback rounds over the whole dialogue.

    The task is the first instruction. An instruction closes if its instruction round and its feedback round both fail
    (it is discarded), or if it is met and does not accumulate. The first open instruction that the current code fails
    is asked next, so one that breaks again is asked again. The current code is the last that a reply contained.
    """

    measures = DYNAMIC

    def __init__(self, config: DynamicConfig) -> None:
        self._prompts, self._extensions = config.prompts, config.extensions

    def turns(self, task: Task) -> int:
        """Twice as many rounds as there are instructions, the task and its initial round included (paper 4.2)."""
        return 2 * len(self._instructions(task))

    def asks(self, task: Task) -> Iterator[Ask]:
        return conversation.expected_asks(self._prompts, task, self.turns(task))

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    async def run(self, task: Task, kit: Kit) -> None:
        instructions = self._instructions(task)
        current = instructions[0]
        kind: conversation.RoundKind = "initial"
        asked, closed = {current.id}, set[str]()
        standing: list[Check] = []
        code = ""
        history: tuple[Message, ...] = (Message("user", self._instruction(task, current)),)
        turns = self.turns(task)
        for turn in range(turns):
            recorded = kit.recorded(turn)
            if recorded is not None:  # rounds stay as recorded, and so do the discarded instructions
                current, kind = conversation.recorded_instruction(recorded, instructions), Exchange.of(recorded).round
                asked.add(current.id)
            round_ = Round(turn, kind, current, history)
            try:
                reply = await kit.ask(UNDER_TEST, turn, history, code=code or None, final=turn + 1 == turns)
            except ContextOverflow:
                kit.finish_turn(turn_record(task, round_, fail_all(instructions, asked, CONTEXT_FULL), None))
                kit.log.ended = "context_overflow"
                return
            extraction = extract(code_text(reply, task.target.language), task.target)
            code = extraction.code or code
            checks = await checks_of(kit, turn, extraction, instructions, asked)
            met = conversation.verdict_on(checks, current).passed
            given_up = not met and kind == "feedback" if recorded is None else Exchange.of(recorded).discarded
            kit.finish_turn(turn_record(task, round_, checks, (reply, extraction), discarded=given_up))
            history += (Message("assistant", without_thinking(reply.text)),)
            if recorded is not None:
                if kit.ends(turn, False):
                    return
                continue
            if not met and not given_up:
                kind = "feedback"
                history += (Message("user", self._feedback(current, checks)),)
                continue
            if given_up or not current.accumulates:
                closed.add(current.id)
            if extraction.code is not None or not standing:
                standing = checks
            unmet_ones = _unmet(standing, closed)
            if not unmet_ones:
                return
            current, kind = unmet_ones[0], "instruction"
            asked.add(current.id)
            history += (Message("user", self._instruction(task, current)),)

    def _instructions(self, task: Task) -> tuple[Requirement, ...]:
        """The task, then the instructions of its conversation. Raises `UserError` if there are none."""
        asked = [each for each in conversation.requirements_of(task) if each.asked]
        kept = [each for each in asked if each.accumulates or self._extensions]  # only an extension does not accumulate
        return (conversation.task_requirement(task), *kept)

    def _instruction(self, task: Task, instruction: Requirement) -> str:
        if instruction.id == TASK:
            return self._prompts.opening(task).content
        return fill(self._prompts.requirement, requirement=instruction.text)

    def _feedback(self, instruction: Requirement, checks: Sequence[Check]) -> str:
        text = conversation.failure_text(conversation.verdict_on(checks, instruction).failure)
        return fill(self._prompts.feedback, requirement=instruction.text.strip("\n"), feedback=text)

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return conversation_metrics(sessions, self.measures, converses=True, seed=seed, effort=effort)


@PROTOCOLS.register("dynamic", DynamicConfig, uses=frozenset({"sandbox"}))
def dynamic(config: DynamicConfig, parts: Parts) -> Dynamic:
    """Tests choose the next unmet instruction; a failed one gets one round of feedback (CodeIF-Bench)."""
    return Dynamic(config)


def _unmet(checks: Sequence[Check], closed: Collection[str]) -> list[Requirement]:
    """The open instructions whose tests fail, in the conversation's order."""
    return [check.instruction for check in checks if check.instruction.id not in closed and not check.verdict.passed]
