"""MultiCodeIF's self-repair: while a constraint is unmet, the model gets it and repairs the code (section IV)."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import field_validator

from codechat.base.config import original_option
from codechat.base.domain import Message, Reply
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.records import SessionRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Task
from codechat.judging import CONSTRAINT, JudgeConfig
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.run.protocols.dialogue import length_of
from codechat.sandbox.languages import fence, without_thinking
from codechat.studies.multicodeif import checking
from codechat.studies.multicodeif.checking import Checking, ConstrainedPrompts, Found, Round, expected_asks, levels_of
from codechat.studies.multicodeif.constraints import constraint_type
from codechat.studies.multicodeif.metrics import REPAIR, ConstrainedTurn, repair_metrics
from codechat.studies.multicodeif.rows import ConstrainedTask

Feedback = Literal["named", "diagnosis", "paper"]


class RepairPrompts(ConstrainedPrompts):
    """The prompts; `{{name}}` is filled in."""

    repair: str = original_option(
        ..., "a repair in one message; fills {{unmet}}, {{code}}, {{prompt}} and {{language}}"
    )
    followup: str = original_option(..., "a repair that follows the dialogue so far; fills {{unmet}} and {{language}}")

    @field_validator("repair", "followup")
    @classmethod
    def _has_its_fields(cls, text: str, info: Any) -> str:
        must = ("unmet", "code", "prompt") if info.field_name == "repair" else ("unmet",)
        return require(text, *must, may=("language",))


class RepairConfig(checking.ConstrainedConfig):
    """Options of self-repair."""

    kind: Literal["repair"] = original_option("repair", "the protocol")
    rounds: int = original_option(4, "the most repairs of a task; 0: the first reply counts alone", ge=0, le=100)
    context: Literal["single", "full"] = original_option(
        "single", "what a repair's request holds: one message with the code before and the task, or the whole dialogue"
    )
    feedback: Feedback = original_option(
        "named",
        "what a repair names: the unmet constraints in words; diagnosis: also why a rule or a compiler finds them "
        "unmet; paper: their published answers, which for four categories are whole solutions",
    )
    rejudge: bool = original_option(
        False, "the paper's way: a met reply is judged again in every round, and repaired if it is then found unmet"
    )
    prompts: RepairPrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply to a request, and the findings on it."""

    request: tuple[Message, ...]
    reply: Reply
    found: Found


class Repair:
    """Rounds of repair, each after the verdicts on the one before."""

    measures = REPAIR

    def __init__(self, config: RepairConfig, judge: JudgeConfig) -> None:
        self._config, self._judge = config, judge

    def turns(self, task: Task) -> int:
        count = len(checking.checkable_levels(task))
        if count != 1:
            raise UserError(
                f"{task.task_id} is a chain of {count} levels, and protocol=repair works on one level",
                "choose a level of the chains (dataset.level=L4), or protocol=levels",
            )
        return self._config.rounds + 1

    def agenda(self, generator: random.Random) -> list[str]:
        return []

    def asks(self, task: Task) -> Iterator[Ask]:
        """The first request, and every repair as if nothing was met before the last."""
        level, prompts = levels_of(task)[0], self._config.prompts
        unmet = sum(len(each.words) for each in level.constraints)
        added = len(prompts.followup) + unmet
        for turn in range(self._config.rounds + 1):
            sent, replies, shared = len(prompts.initial) + len(level.prompt), 0, 0
            if turn and self._config.context == "single":
                sent = len(prompts.repair) + unmet + length_of(task) + len(level.prompt)
            elif turn:
                sent, replies, shared = sent + turn * added, turn, sent + (turn - 1) * added
            yield from expected_asks(self._judge, task, Round(turn, level, ()), sent, replies, shared=shared)

    async def run(self, task: Task, kit: Kit) -> None:
        level, checking = levels_of(task)[0], Checking(kit, task, self._config.harness)
        earlier: list[Answered] = []
        for turn in range(self._config.rounds + 1):
            last = earlier[-1] if earlier else None
            recorded = kit.recorded(turn)
            carried = last is not None and not last.found.unmet
            if recorded is not None:
                carried = ConstrainedTurn.of(recorded).carried
            if last is not None and carried:
                round_, reply = Round(turn, level, (), turn, carried=True), last.reply
            else:
                request = layout(self._config, task, earlier)
                round_ = Round(turn, level, request, turn)
                try:
                    code = last.found.extraction.code if last else None
                    is_last = turn == self._config.rounds
                    reply = await kit.ask(UNDER_TEST, turn, request, code=code, final=is_last)
                except ContextOverflow:
                    kit.finish_turn(checking.overflow(round_))
                    kit.log.ended = "context_overflow"
                    return
            found = await checking.found(round_, reply)
            kit.finish_turn(checking.record(round_, reply, found))
            if kit.ends(turn, not found.unmet and not self._config.rejudge):
                return
            if not round_.carried:
                earlier.append(Answered(round_.request, reply, found))
            elif last is not None:
                earlier[-1] = Answered(last.request, reply, found)

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        config = self._config
        return repair_metrics(sessions, rounds=config.rounds, rejudge=config.rejudge, seed=seed, effort=effort)


@PROTOCOLS.register(
    "repair",
    RepairConfig,
    uses=frozenset({"judge", "sandbox"}),
    questions=frozenset({CONSTRAINT}),
    further=checking.further_questions,
    over=ConstrainedTask,
)
def repair(config: RepairConfig, parts: Parts) -> Repair:
    """Code that must keep constraints, repaired round by round while one is unmet (MultiCodeIF)."""
    return Repair(config, parts.judge)


def layout(config: RepairConfig, task: Task, earlier: Sequence[Answered]) -> tuple[Message, ...]:
    """The messages of the request that follows the `earlier` ones: the task itself, or a repair."""
    prompts, level, language = config.prompts, levels_of(task)[0], task.target.language
    opening = prompts.opening(task, level)
    if not earlier:
        return (opening,)
    if config.context == "single":
        last = earlier[-1]
        code = last.found.extraction.code or without_thinking(last.reply.text)
        fields = {"code": fence(code, language).rstrip("\n"), "prompt": level.prompt.strip("\n"), "language": language}
        return (Message("user", fill(prompts.repair, unmet=_unmet(config.feedback, last.found), **fields)),)
    messages = [opening]
    for each in earlier:
        said = each.reply.text if config.harness == "official" else without_thinking(each.reply.text)
        followup = fill(prompts.followup, unmet=_unmet(config.feedback, each.found), language=language)
        messages += [Message("assistant", said), Message("user", followup)]
    return tuple(messages)


def _unmet(feedback: Feedback, found: Found) -> str:
    """The unmet constraints, a line each, without a judge's reasons, which may quote a solution."""
    lines = []
    for check in found.unmet:
        kind = constraint_type(check.constraint.type)
        why = f" ({check.reason})" if feedback == "diagnosis" and kind.by != "judge" and check.reason else ""
        published = f"{kind.published[1]}: {check.constraint.answer.raw.strip()}"
        lines.append(f"- {published}" if feedback == "paper" else f"- {check.constraint.words}{why}")
    return "\n".join(lines)
