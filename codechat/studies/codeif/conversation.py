"""Shared parts of conversations with verifiable instructions: the checks of a turn and its record.

The task itself is the first instruction, with its own tests (CodeIF-Bench, paper 3.1).
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import field_validator

from codechat.base.config import original_option
from codechat.base.domain import Extraction, Failure, Message, Reply, Verdict
from codechat.base.errors import UserError
from codechat.base.records import TurnRecord
from codechat.base.template import require
from codechat.datasets.tasks import Requirement, Task
from codechat.run.protocols import Ask, Kit
from codechat.run.protocols.dialogue import EXPLANATION, OpeningPrompt, growing_dialogue
from codechat.studies.codeif.metrics import BASE, TASK, CheckRecord, Exchange, OfficialRecord, RequirementRecord

RoundKind = Literal["initial", "instruction", "feedback"]
REASON_LENGTH = 500
CONTEXT_FULL = Verdict.without_run("no_code", "the conversation no longer fits the model's context")


class Prompts(OpeningPrompt):
    """The prompts of every such conversation; `{{name}}` is filled in."""

    requirement: str = original_option(..., "one requirement; fills {{requirement}}")

    @field_validator("requirement")
    @classmethod
    def _check_requirement(cls, text: str) -> str:
        return require(text, "requirement")


@dataclass(frozen=True, slots=True)
class Check:
    """One instruction's tests on a turn's code; `asked` is False before the conversation asks for it."""

    instruction: Requirement
    asked: bool
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Round:
    """One request: the kind of round, the instruction, and the messages."""

    turn: int
    kind: RoundKind
    instruction: Requirement
    request: tuple[Message, ...]


def task_requirement(task: Task) -> Requirement:
    """The task as the first instruction of its conversation. Raises `UserError` if it has no tests."""
    if task.suite is None:
        raise UserError(f"{task.task_id} has no tests: every program would pass", "add tests to it or leave it out")
    return Requirement(TASK, BASE, task.prompt, task.suite)


def expected_asks(prompts: Prompts, task: Task, turns: int, *, continued: bool = True) -> Iterator[Ask]:
    """The longest possible conversation, sent whole at every turn, for estimates.

    `continued`: each request begins with the one before it.
    """
    texts = [len(need.text) for need in task.requirements]
    asked = round(sum(texts) / len(texts)) if texts else 0
    around = len(prompts.initial), len(prompts.requirement) + asked
    return growing_dialogue(task, turns, *around, prose=EXPLANATION, continued=continued)


def requirements_of(task: Task) -> tuple[Requirement, ...]:
    """The task's verifiable instructions. Raises `UserError` if it has none."""
    if not task.requirements:
        raise UserError(
            f"{task.task_id} has no verifiable instructions, and this protocol asks for them turn by turn",
            "choose dataset=codeif_bench, or dataset=jsonl with `requirements` (docs/codeif.md)",
        )
    return task.requirements


def recorded_instruction(turn: TurnRecord, instructions: Sequence[Requirement]) -> Requirement:
    """The instruction of a recorded turn. Raises `UserError` if the task no longer has it."""
    asked = Exchange.of(turn).requirement
    if asked is None:
        return instructions[0]
    for each in instructions:
        if (each.id, each.text) == (asked.id, asked.text):
            return each
    raise UserError(
        f"turn {turn.turn} of the recording asks for '{asked.id}', which the task no longer has: {asked.text:.80}",
        "set dataset.path to the file that the dialogues were recorded with",
    )


async def checks_of(
    kit: Kit, turn: int, extraction: Extraction, instructions: Sequence[Requirement], asked: Collection[str]
) -> list[Check]:
    """Run the tests of every instruction separately: each has a verdict."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(kit.check(turn, extraction, each.suite)) for each in instructions]
    return [Check(each, each.id in asked, done.result()) for each, done in zip(instructions, running, strict=True)]


def fail_all(instructions: Sequence[Requirement], asked: Collection[str], verdict: Verdict) -> list[Check]:
    """The same verdict on every instruction, for a turn without a program to test."""
    return [Check(each, each.id in asked, verdict) for each in instructions]


def verdict_on(checks: Sequence[Check], instruction: Requirement) -> Verdict:
    """The verdict on one instruction."""
    return next(check.verdict for check in checks if check.instruction.id == instruction.id)


def turn_record(
    task: Task,
    round_: Round,
    checks: Sequence[Check],
    answer: tuple[Reply, Extraction] | None,
    *,
    official: Verdict | None = None,
    discarded: bool = False,
) -> TurnRecord:
    """The record of a turn; `answer` is None if the conversation no longer fitted the model's context.

    The turn passes if all instructions asked so far that accumulate pass; if the turn's own instruction does not
    accumulate, it alone has to pass.
    """
    own = round_.instruction
    holding = [check for check in checks if check.asked and check.instruction.accumulates]
    if not own.accumulates:
        holding = [check for check in checks if check.instruction.id == own.id]
    broken = next((check for check in holding if not check.verdict.passed), None)
    asked = None if own.id == TASK else RequirementRecord(id=own.id, strategy=own.strategy, text=own.text)
    exchange = Exchange(
        round=round_.kind, requirement=asked, level=task.level, checks=[_check_record(check) for check in checks],
        discarded=discarded,
        official=official and OfficialRecord(
            passed=official.passed, outcome=official.outcome, reason=_reason(official)
        ),
    )  # fmt: skip
    return TurnRecord.of(
        round_.turn,
        round_.request,
        answer,
        Verdict(
            broken.verdict.outcome if broken else "pass",
            passed_base=checks[0].verdict.passed,
            failure=_failure(broken),
            cpu_s=sum(check.verdict.cpu_s for check in checks),
            inside=_inside(holding),
            by_program=any(check.verdict.by_program for check in holding),
        ),
        **exchange.model_dump(),
    )


def _inside(checks: Sequence[Check]) -> str | None:
    """`Verdict.inside` of a turn: its verdict was out of the program's reach if all of its checks were."""
    found = [check.verdict.inside for check in checks]
    return next(filter(None, found), None if None in found else "")


def failure_text(failure: Failure | None) -> str:
    """A failure as a developer would report it: input, expected and actual value, exception."""
    if failure is None:
        return "the tests fail"
    values = {"input": failure.input, "expected": failure.expected, "got": failure.actual}
    values["exception"] = failure.exception
    return "\n".join([failure.reason, *(f"{name}: {value}" for name, value in values.items() if value)])


def _check_record(check: Check) -> CheckRecord:
    verdict, instruction = check.verdict, check.instruction
    return CheckRecord(
        id=instruction.id, strategy=instruction.strategy, asked=check.asked, accumulates=instruction.accumulates,
        outcome=verdict.outcome, passed=verdict.passed, decided=verdict.decided, reason=_reason(verdict),
    )  # fmt: skip


def _reason(verdict: Verdict) -> str | None:
    if verdict.passed:
        return None
    failure = verdict.failure
    text = ": ".join(part for part in (failure.reason, failure.exception) if part) if failure else verdict.outcome
    return text if len(text) <= REASON_LENGTH else text[: REASON_LENGTH - 1] + "…"


def _failure(broken: Check | None) -> Failure | None:
    """The failure of a check, with the name of the instruction."""
    failure = broken.verdict.failure if broken else None
    if broken is None or failure is None or broken.instruction.id == TASK:
        return failure
    return replace(failure, reason=f"{broken.instruction.id}: {failure.reason}")
