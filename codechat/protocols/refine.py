"""CodeChat-Eval: an initial generation, then functionality-preserving refinements chosen by AGDIS (paper III)."""

import asyncio
import random
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from pydantic import field_validator

from codechat.agendas import draw, type_of
from codechat.config import Config, result_option
from codechat.domain import Adherence, Extraction, Instruction, Message, Reply, Task, Usage, Verdict
from codechat.errors import ContextOverflow
from codechat.extraction import extract, without_thinking
from codechat.metrics import REFINE, Effort, refine_metrics
from codechat.protocols import PROTOCOLS, Kit, Parts
from codechat.protocols.grading import Graded, in_order
from codechat.records import (
    AdherenceRecord,
    CandidateRecord,
    FailureRecord,
    InstructionRecord,
    MessageRecord,
    SessionRecord,
    TurnRecord,
    UsageRecord,
)
from codechat.template import fill, require


class RefinePrompts(Config):
    """What is said to the model; `{{name}}` is filled in."""

    initial: str = result_option(..., "turn 0; fills {{prompt}} and {{signature}}")
    followup: str = result_option(..., "later turns; fills {{instruction}}")

    @field_validator("initial")
    @classmethod
    def _initial_asks_for_the_task(cls, text: str) -> str:
        return require(text, "prompt", may=("signature",))

    @field_validator("followup")
    @classmethod
    def _followup_carries_the_instruction(cls, text: str) -> str:
        return require(text, "instruction")


class RefineConfig(Config):
    """Options of the refinement protocol; turns and types come from the agenda."""

    kind: Literal["refine"] = result_option("refine", "the protocol")
    prompts: RefinePrompts = result_option(..., "the prompts (files in conf/prompts)")


@dataclass(frozen=True, slots=True)
class Selection:
    """What AGDIS found for a turn: None where nothing applies (SKIP)."""

    instruction: Instruction | None
    candidates: tuple[CandidateRecord, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to a request, with what it was a change of."""

    turn: int
    selection: Selection | None
    request: tuple[Message, ...]
    reply: Reply
    extraction: Extraction
    before: str


class Refine:
    """Algorithm 1 over the full conversation history. Tests and adherence run while the next turn is generated."""

    measures = REFINE

    def __init__(self, config: RefineConfig, parts: Parts) -> None:
        self._prompts, self._agenda, self._lookahead = config.prompts, parts.agenda, parts.lookahead
        self._pool: dict[str, list[Instruction]] = {}
        for instruction in parts.pool.instructions:
            self._pool.setdefault(type_of(instruction, parts.agenda.axis), []).append(instruction)

    def turns(self, task: Task) -> int:
        return self._agenda.turns

    def agenda(self, generator: random.Random) -> list[str]:
        return draw(self._agenda, generator)

    async def run(self, task: Task, kit: Kit) -> None:
        agenda = kit.log.agenda
        history: tuple[Message, ...] = (
            Message("user", fill(self._prompts.initial, prompt=task.prompt.strip("\n"), signature=task.signature)),
        )
        pool = {kind: list(instructions) for kind, instructions in self._pool.items()}
        selection: Selection | None = None
        code = ""
        async with in_order() as grading:
            for turn in range(self._agenda.turns):
                if turn > 0:
                    candidates = pool.get(agenda[turn - 1], [])
                    selection = await self._select(kit, turn, code, list(candidates))
                    if selection.instruction is None:
                        grading.start(partial(skip, kit, turn, selection))
                        continue
                    candidates.remove(selection.instruction)
                    history += (Message("user", fill(self._prompts.followup, instruction=selection.instruction.text)),)
                chosen = selection.instruction if selection else None
                try:
                    reply = await kit.complete(turn, history, chosen, code or None)
                except ContextOverflow:
                    remaining = range(turn, self._agenda.turns)
                    grading.start(partial(overflow, kit, remaining, selection, history))
                    break
                extraction = extract(reply.text, task.entry_point)
                answer = Answer(turn, selection, history, reply, extraction, code)
                grading.start(partial(grade, kit, answer))
                history += (Message("assistant", without_thinking(reply.text)),)
                code = extraction.code or code

    async def _select(self, kit: Kit, turn: int, code: str, candidates: list[Instruction]) -> Selection:
        """Shuffled candidates, the first applicable one; `lookahead` are asked at once, in the same order."""
        kit.generator(f"agdis/{turn}").shuffle(candidates)
        tried: list[CandidateRecord] = []
        usage = Usage()
        if not code:  # nothing was ever extracted: no instruction applies to no code
            return Selection(None, (), usage)
        for start in range(0, len(candidates), self._lookahead):
            batch = candidates[start : start + self._lookahead]
            checks = await asyncio.gather(*(kit.applicable(turn, code, each) for each in batch), return_exceptions=True)
            for instruction, check in zip(batch, checks, strict=True):
                if isinstance(check, BaseException):  # raised only where one at a time would have met it
                    raise check
                usage += check.usage
                tried.append(CandidateRecord(id=instruction.id, applicable=check.applicable, by=check.by))
                if check.applicable:
                    return Selection(instruction, tuple(tried), usage)
        return Selection(None, tuple(tried), usage)

    def metrics(self, sessions: Collection[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        """The contract's metrics (section 2)."""
        return refine_metrics(sessions, seed=seed, effort=effort)


@PROTOCOLS.register("refine", RefineConfig, uses=frozenset({"agenda", "instructions", "judge"}))
def refine(config: RefineConfig, parts: Parts) -> Refine:
    """An implementation, then functionality-preserving refinements (CodeChat-Eval)."""
    return Refine(config, parts)


async def grade(kit: Kit, answer: Answer, earlier: Graded | None) -> TurnRecord:
    """Test and judge an answer; its record follows the earlier turn's, which is kept even where this one fails."""
    try:
        verdict, adherence = await asyncio.gather(_verdict(kit, answer), _adherence(kit, answer))
    finally:
        if earlier is not None:
            await earlier
    selection, reply = answer.selection, answer.reply
    judging = (selection.usage if selection else Usage()) + (adherence.usage if adherence else Usage())
    record = TurnRecord(
        turn=answer.turn,
        instruction=_instruction(selection.instruction) if selection else None,
        candidates=list(selection.candidates) if selection else [],
        request=_messages(answer.request),
        response=reply.text,
        finish_reason=reply.finish_reason,
        code=answer.extraction.code,
        outcome=verdict.outcome,
        passed=verdict.passed,
        passed_base=verdict.passed_base,
        failure=_failure(verdict),
        cpu_s=verdict.cpu_s,
        adherence=_adherence_record(adherence),
        usage=_usage(reply.usage),
        judge_usage=_usage(judging),
        latency_s=reply.latency_s,
    )
    kit.finish_turn(record)
    return record


async def _verdict(kit: Kit, answer: Answer) -> Verdict:
    problem = answer.extraction.problem
    if problem is not None:
        return Verdict.without_run(problem, answer.extraction.reason)
    return await kit.verify(answer.turn, answer.extraction)


async def _adherence(kit: Kit, answer: Answer) -> Adherence | None:
    if answer.selection is None or answer.selection.instruction is None:
        return None
    if answer.extraction.code is None:
        return Adherence("violated", "rules", f"no code: {answer.extraction.reason}")
    return await kit.adherence(answer.turn, answer.before, answer.extraction.code, answer.selection.instruction)


async def skip(kit: Kit, turn: int, selection: Selection, earlier: Graded | None) -> TurnRecord:
    """SKIP (Algorithm 1, line 13): the code, and so its verdict, of the turn before."""
    if earlier is None:
        raise ValueError("turn 0 is never skipped")
    before = await earlier
    record = TurnRecord(
        turn=turn,
        skipped=True,
        candidates=list(selection.candidates),
        code=before.code,
        outcome=before.outcome,
        passed=before.passed,
        passed_base=before.passed_base,
        failure=before.failure,
        judge_usage=_usage(selection.usage),
    )
    kit.finish_turn(record)
    return record


async def overflow(
    kit: Kit,
    remaining: range,
    selection: Selection | None,
    request: Sequence[Message],
    earlier: Graded | None,
) -> TurnRecord:
    """The conversation no longer fits: this turn and all later ones are failures without code; returns the last."""
    if earlier is not None:
        await earlier
    for turn in remaining:
        asked = turn == remaining.start
        record = TurnRecord(
            turn=turn,
            candidates=list(selection.candidates) if asked and selection else [],
            request=_messages(request) if asked else [],
            outcome="no_code",
            passed=False,
            passed_base=False,
            failure=FailureRecord(reason="the conversation no longer fits the model's context"),
            judge_usage=_usage(selection.usage if asked and selection else Usage()),
        )
        kit.finish_turn(record)
    kit.log.ended = "context_overflow"
    return record


def _messages(messages: Sequence[Message]) -> list[MessageRecord]:
    return [MessageRecord(role=message.role, content=message.content) for message in messages]


def _instruction(instruction: Instruction | None) -> InstructionRecord | None:
    if instruction is None:
        return None
    return InstructionRecord(
        id=instruction.id, text=instruction.text, scope=instruction.scope, change=instruction.change
    )


def _adherence_record(adherence: Adherence | None) -> AdherenceRecord | None:
    if adherence is None:
        return None
    return AdherenceRecord(verdict=adherence.verdict, by=adherence.by, reason=adherence.reason)


def _failure(verdict: Verdict) -> FailureRecord | None:
    return None if verdict.failure is None else FailureRecord.model_validate(asdict(verdict.failure))


def _usage(usage: Usage) -> UsageRecord:
    return UsageRecord.model_validate(asdict(usage))
