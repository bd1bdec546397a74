"""CodeChat-Eval: an initial generation, then functionality-preserving refinements chosen by AGDIS (paper III)."""

import asyncio
import random
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from codechat.base.config import Config, original_option, result_option
from codechat.base.domain import NO_USAGE, Adherence, Failure, Instruction, Message
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.records import AdherenceRecord, InstructionRecord, SessionRecord, TurnRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Task
from codechat.judging import ADHERENCE, APPLICABILITY
from codechat.models import UNDER_TEST
from codechat.report.metrics import Effort
from codechat.run.protocols import PROTOCOLS, Ask, Kit, Parts
from codechat.run.protocols.dialogue import (
    CHECKS,
    Graded,
    OpeningPrompt,
    grade_in_order,
    growing_dialogue,
    length_of,
)
from codechat.sandbox.languages import without_thinking
from codechat.sandbox.suites import Suite
from codechat.studies.refine.agdis import Agdis, Codes, Selection, adherence, recorded_selection
from codechat.studies.refine.agendas import AgendaConfig, draw, type_of
from codechat.studies.refine.gate import ASSUMED, PROMPT, Answered, Gate, GateKind, GateTests
from codechat.studies.refine.gate_metrics import with_gate
from codechat.studies.refine.metrics import REFINE, refine_metrics


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """The answer to a request, and the code `before` it that the request's instruction was found to apply to."""

    turn: int
    selection: Selection | None
    request: tuple[Message, ...]
    answered: Answered
    before: str
    suite: Suite


class RefinePrompts(OpeningPrompt):
    """The prompts; `{{name}}` is filled in."""

    followup: str = original_option(..., "later turns; fills {{instruction}} and {{language}}")
    system: str = result_option("", "stands before the dialogue as the system's message; empty: there is none")
    gate: str = result_option(PROMPT, "gate=tests: asks again after code that fails; fills {{failure}}")

    @field_validator("followup")
    @classmethod
    def _check_followup(cls, text: str) -> str:
        return require(text, "instruction", may=("language",))

    @field_validator("gate")
    @classmethod
    def _check_gate(cls, text: str) -> str:
        return require(text, "failure")

    def ask(self, instruction: Instruction, task: Task) -> str:
        """The request of a later turn."""
        return fill(self.followup, instruction=instruction.text, language=task.target.language)

    def begin(self, task: Task) -> tuple[Message, ...]:
        """The first request."""
        system = (Message("system", self.system.strip("\n")),) if self.system else ()
        return (*system, self.opening(task))


class RefineConfig(Config):
    """Options of the refinement protocol; turns and types come from the agenda."""

    kind: Literal["refine"] = original_option("refine", "the protocol")
    prompts: RefinePrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")
    gate: GateKind = result_option(
        "none", "asks again after code that fails the tests: by the same request, or with the first failing test"
    )
    gate_tries: int = result_option(2, "how often it asks again at a turn, before the turn is rolled back", ge=1, le=10)
    gate_tests: GateTests = result_option("base", "the tests that the gate sees; a verdict is always of all tests")

    @model_validator(mode="after")
    def _check_gate(self) -> Self:
        """Options of a gate that is not there would split a cell's id for nothing."""
        fields = type(self).model_fields
        unused = [name for name in ("gate_tries", "gate_tests") if getattr(self, name) != fields[name].default]
        if self.gate == "none" and unused:
            raise ValueError(f"{unused[0]} needs a gate: set gate=silent or gate=tests, or leave {unused[0]} out")
        if self.gate != "tests" and self.prompts.gate != PROMPT:
            raise ValueError("prompts.gate is asked with gate=tests alone: set it, or leave prompts.gate out")
        return self


class Refine:
    """Algorithm 1 over the full conversation history. Tests and adherence run while the next turn is generated."""

    def __init__(self, config: RefineConfig, parts: Parts) -> None:
        self._prompts, self._judge = config.prompts, parts.judge
        gated = config.gate != "none"
        self.measures = with_gate(REFINE) if gated else REFINE
        self._metrics = partial(refine_metrics, gated=gated)
        self._gate = Gate(config.gate, config.gate_tries, config.gate_tests, config.prompts.gate)
        self._agenda: AgendaConfig = parts.agenda
        self._agdis = Agdis(self._agenda.seed, parts.judge.lookahead, parts.judge.asked_together())
        self._pool, self._instructions = parts.pool, parts.pool.instructions if parts.pool else ()
        self._by_type = cache(self._candidates)

    def turns(self, task: Task) -> int:
        suite_of(task)
        return self._agenda.turns

    def asks(self, task: Task) -> Iterator[Ask]:
        """The whole conversation at every turn; then a judge checks some candidates and the change."""
        texts = [len(one.text) for one in self._instructions]
        asked = round(sum(texts) / len(texts)) if texts else 0
        code = length_of(task)
        dialogue = growing_dialogue(
            task,
            self._agenda.turns,
            len(self._prompts.system) + len(self._prompts.initial),
            len(self._prompts.followup) + asked,
        )
        yield from chain.from_iterable(map(self._gate.asks, dialogue))
        share = sum(self._judge.asks(one) for one in self._instructions) / max(1, len(self._instructions))
        together = self._agdis.together
        step = self._agdis.lookahead if together == 1 else together
        checks = -(-CHECKS // step) * step / together
        for turn in range(1, self._agenda.turns):
            if share:
                question = self._judge.question_length(APPLICABILITY) + together * asked + code
                head = self._judge.head_length(APPLICABILITY)
                yield Ask(APPLICABILITY, turn, question, times=share * checks, shared=head)
                question = self._judge.question_length(ADHERENCE) + asked + 2 * code
                head = self._judge.head_length(ADHERENCE)
                yield Ask(ADHERENCE, turn, question, times=share, shared=head)

    def agenda(self, generator: random.Random) -> list[str]:
        return draw(self._agenda, generator)

    async def run(self, task: Task, kit: Kit) -> None:
        agenda = kit.log.agenda
        history = self._prompts.begin(task)
        pool = {name: {one.id: one for one in each} for name, each in self._by_type(task.target.language).items()}
        selection: Selection | None = None
        codes = Codes()
        async with grade_in_order() as grading:
            for turn in range(self._agenda.turns):
                if turn > 0:
                    candidates = pool.get(agenda[turn - 1], {})
                    if (recorded := kit.recorded(turn)) is not None:  # applicability is not judged again
                        selection = recorded_selection(recorded, ChainMap(*pool.values()))
                        skipped = recorded.skipped
                    else:
                        selection = await self._agdis.select(kit, turn, codes, list(candidates.values()))
                        skipped = selection.instruction is None
                    if skipped:
                        grading.start(partial(skip, kit, turn, selection))
                        continue
                    if selection.instruction is not None:  # a recorded overflow has none
                        candidates.pop(selection.instruction.id, None)  # no instruction is given twice
                        history += (Message("user", self._prompts.ask(selection.instruction, task)),)
                chosen = selection.instruction if selection else None
                is_last, suite = turn + 1 == self._agenda.turns, suite_of(task)
                ask = partial(kit.ask, UNDER_TEST, turn, instruction=chosen, code=codes.at(None) or None)
                try:
                    answered = await self._gate.answer(kit, turn, history, suite, ask, final=is_last)
                except ContextOverflow:
                    remaining = range(turn, self._agenda.turns)
                    grading.start(partial(overflow, kit, remaining, selection, history))
                    break
                before = codes.at(selection.read_turn if selection else None)
                grading.start(partial(grade, kit, TurnAnswer(turn, selection, history, answered, before, suite)))
                if answered.rolled_back:
                    history = history[:-1]
                else:
                    history += (Message("assistant", without_thinking(answered.reply.text)),)
                    codes.add(turn, answered.extraction.code)

    def _candidates(self, language: str) -> dict[str, list[Instruction]]:
        """The instructions for code in a language, by their types on the agenda's axis."""
        found: dict[str, list[Instruction]] = {}
        for instruction in self._pool.of(language) if self._pool else ():
            found.setdefault(type_of(instruction, self._agenda.axis), []).append(instruction)
        return found

    def metrics(self, sessions: Iterable[SessionRecord], *, seed: int, effort: Effort) -> dict[str, Any]:
        return self._metrics(sessions, seed=seed, effort=effort)


@PROTOCOLS.register(
    "refine",
    RefineConfig,
    uses=frozenset({"agenda", "instructions", "judge", "sandbox"}),
    with_desk={"gate": "none"},
    assumes=lambda options: ASSUMED if options.gate != "none" else (),
)
def refine(config: RefineConfig, parts: Parts) -> Refine:
    """An implementation, then functionality-preserving refinements (CodeChat-Eval)."""
    return Refine(config, parts)


def suite_of(task: Task) -> Suite:
    """The task's own tests. Raises `UserError` if it has none: a refinement could not be scored."""
    if task.suite is None:
        raise UserError(
            f"{task.task_id} has no tests, and protocol=refine needs to know whether the code still works",
            "add base_input or tests to the task, or choose another protocol",
        )
    return task.suite


async def grade(kit: Kit, answer: TurnAnswer, earlier: Graded | None) -> TurnRecord:
    """Test and judge an answer; returns the record of the turn whose code stands.

    The earlier turn is recorded first, even if this one fails.
    """
    selection, answered, before = answer.selection, answer.answered, None
    try:
        if kit.services.asked().offline:  # decided at once: a task would cost as much as the decision
            followed = await _adherence(kit, answer)
            verdict = await kit.check(answer.turn, answered.extraction, answer.suite)
        else:
            testing = kit.check(answer.turn, answered.extraction, answer.suite)
            verdict, followed = await asyncio.gather(testing, _adherence(kit, answer))
    finally:
        if earlier is not None:
            before = await earlier
    judging = (selection.usage if selection else NO_USAGE) + (followed.usage if followed else NO_USAGE)
    record = TurnRecord.of(
        answer.turn,
        answer.request,
        (answered.reply, answered.extraction),
        verdict,
        instruction=_instruction(selection.instruction) if selection else None,
        candidates=list(selection.candidates) if selection else [],
        read_turn=selection.read_turn if selection else None,
        adherence=_adherence_record(followed),
        judge_usage=judging,
        **answered.fields,
    )
    kit.finish_turn(record)
    return before if answered.rolled_back and before is not None else record


async def _adherence(kit: Kit, answer: TurnAnswer) -> Adherence | None:
    if answer.selection is None or answer.selection.instruction is None:
        return None
    extraction = answer.answered.extraction
    if extraction.code is None:
        return Adherence("violated", "rules", f"no code: {extraction.reason}")
    return await adherence(kit, answer.turn, answer.before, extraction.code, answer.selection.instruction)


async def skip(kit: Kit, turn: int, selection: Selection, earlier: Graded | None) -> TurnRecord:
    """SKIP (Algorithm 1, line 13): the code that stands, and so its verdict."""
    if earlier is None:
        raise ValueError("turn 0 is never skipped")
    before = await earlier
    record = TurnRecord(
        turn=turn,
        skipped=True,
        candidates=list(selection.candidates),
        read_turn=selection.read_turn,
        code=before.code,
        outcome=before.outcome,
        passed=before.passed,
        passed_base=before.passed_base,
        decided=before.decided,
        failure=before.failure,
        judge_usage=selection.usage,
        **before.shared_fields(),
    )
    kit.finish_turn(record)
    return record


async def overflow(
    kit: Kit, remaining: range, selection: Selection | None, request: Sequence[Message], earlier: Graded | None
) -> TurnRecord:
    """The conversation no longer fits: this turn and all later ones are failures without code; returns the last."""
    if earlier is not None:
        await earlier
    for turn in remaining:
        asked = turn == remaining.start
        record = TurnRecord(
            turn=turn,
            candidates=list(selection.candidates) if asked and selection else [],
            read_turn=selection.read_turn if asked and selection else None,
            request=list(request) if asked else [],
            outcome="no_code",
            passed=False,
            passed_base=False,
            decided="outside",
            failure=Failure(reason="the conversation no longer fits the model's context"),
            judge_usage=selection.usage if asked and selection else NO_USAGE,
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
