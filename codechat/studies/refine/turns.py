"""A refinement turn: its selection and answer, its grading, and its record."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from codechat.domain import Adherence, Extraction, Failure, Instruction, Message, Reply, Usage
from codechat.protocols.grading import Graded
from codechat.protocols.kit import Kit
from codechat.records import INSIDE, AdherenceRecord, CandidateRecord, InstructionRecord, TurnRecord
from codechat.suites import Suite


@dataclass(frozen=True, slots=True)
class Selection:
    """The choice of AGDIS for a turn: no instruction if none applies (SKIP)."""

    instruction: Instruction | None
    candidates: tuple[CandidateRecord, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """A reply to a request, and the code `before` it."""

    turn: int
    selection: Selection | None
    request: tuple[Message, ...]
    reply: Reply
    extraction: Extraction
    before: str
    suite: Suite


async def grade(kit: Kit, answer: TurnAnswer, earlier: Graded | None) -> TurnRecord:
    """Test and judge an answer. The earlier turn is recorded first, even if this one fails."""
    try:
        if kit.judge_offline:  # decided at once: a task would cost as much as the decision
            adherence = await _adherence(kit, answer)
            verdict = await kit.check(answer.turn, answer.extraction, answer.suite)
        else:
            testing = kit.check(answer.turn, answer.extraction, answer.suite)
            verdict, adherence = await asyncio.gather(testing, _adherence(kit, answer))
    finally:
        if earlier is not None:
            await earlier
    selection, reply = answer.selection, answer.reply
    judging = (selection.usage if selection else Usage()) + (adherence.usage if adherence else Usage())
    record = TurnRecord.of(
        answer.turn,
        answer.request,
        (reply, answer.extraction),
        verdict,
        instruction=_instruction(selection.instruction) if selection else None,
        candidates=list(selection.candidates) if selection else [],
        adherence=_adherence_record(adherence),
        judge_usage=judging,
    )
    kit.finish_turn(record)
    return record


async def _adherence(kit: Kit, answer: TurnAnswer) -> Adherence | None:
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
        decided=before.decided,
        failure=before.failure,
        judge_usage=selection.usage,
        **({INSIDE: before.forced_by} if before.forced_by else {}),
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
            request=list(request) if asked else [],
            outcome="no_code",
            passed=False,
            passed_base=False,
            decided="outside",
            failure=Failure(reason="the conversation no longer fits the model's context"),
            judge_usage=selection.usage if asked and selection else Usage(),
        )
        kit.finish_turn(record)
    kit.log.ended = "context_overflow"
    return record


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
