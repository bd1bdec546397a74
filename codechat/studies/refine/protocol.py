"""CodeChat-Eval: an initial generation, then functionality-preserving refinements chosen by AGDIS (paper III)."""

import asyncio
import random
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from codechat.base.config import Config, Within, original_option, result_option
from codechat.base.domain import NO_USAGE, Adherence, Failure, Instruction, Message
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.records import AdherenceRecord, AskedRecord, SessionRecord, TurnRecord
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
from codechat.studies.refine.agendas import AGENDAS, AgendaConfig, draw, type_of, types_at
from codechat.studies.refine.agendas.learned import learn
from codechat.studies.refine.gate import ASSUMED, PROMPT, Answered, Gate, GateKind, GateTests
from codechat.studies.refine.gate_metrics import with_gate
from codechat.studies.refine.metrics import REFINE, refine_metrics


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """The answer to a request, and the code `before` it that the request's instructions were found to apply to."""

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

    def ask(self, instructions: Sequence[Instruction], task: Task) -> str:
        """The request of a later turn; several instructions are a numbered list."""
        texts = [one.text for one in instructions]
        numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))
        return fill(self.followup, instruction=numbered if len(texts) > 1 else texts[0], language=task.target.language)

    def begin(self, task: Task) -> tuple[Message, ...]:
        """The first request."""
        system = (Message("system", self.system.strip("\n")),) if self.system else ()
        return (*system, self.opening(task))


class RefineConfig(Config):
    """Options of the refinement protocol; turns and types come from the agenda."""

    within: ClassVar[Within] = {
        "gate_tries": ("gate", ("silent", "tests")),
        "gate_tests": ("gate", ("silent", "tests")),
    }

    kind: Literal["refine"] = original_option("refine", "the protocol")
    prompts: RefinePrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")
    gate: GateKind = result_option(
        "none", "asks again after code that fails the tests: by the same request, or with the first failing test"
    )
    gate_tries: int = result_option(2, "how often it asks again at a turn, before the turn is rolled back", ge=1, le=10)
    gate_tests: GateTests = result_option("base", "the tests that the gate sees; a verdict is always of all tests")

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options that can change a result: the gate's prompt only if the gate uses it."""
        found = super().identity(older)
        if self.gate != "tests":
            found["prompts"] = {name: text for name, text in found["prompts"].items() if name != "gate"}
        return found


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
        several = self._agenda.composite
        code = length_of(task)
        dialogue = growing_dialogue(
            task,
            self._agenda.turns,
            len(self._prompts.system) + len(self._prompts.initial),
            len(self._prompts.followup) + several * asked,
        )
        yield from chain.from_iterable(map(self._gate.asks, dialogue))
        share = sum(self._judge.asks(one) for one in self._instructions) / max(1, len(self._instructions))
        together = self._agdis.together
        step = self._agdis.lookahead if together == 1 else together
        checks = several * -(-CHECKS // step) * step / together
        unruled = sum(one.rule is None for one in self._instructions) / max(1, len(self._instructions))
        pairs = several * (several - 1) / 2 * (1 - (1 - unruled) ** 2)  # about which the judge is asked
        for turn in range(1, self._agenda.turns):
            if share:
                question = self._judge.question_length(APPLICABILITY) + together * asked + code
                head = self._judge.head_length(APPLICABILITY)
                yield Ask(APPLICABILITY, turn, question, times=share * checks, shared=head)
                if pairs:
                    yield Ask(APPLICABILITY, turn, question + (2 - together) * asked, times=pairs, shared=head)
                question = self._judge.question_length(ADHERENCE) + asked + 2 * code
                head = self._judge.head_length(ADHERENCE)
                yield Ask(ADHERENCE, turn, question, times=several * share, shared=head)

    def agenda(self, generator: random.Random) -> list[str]:
        return draw(self._agenda, generator, self._instructions)

    async def run(self, task: Task, kit: Kit) -> None:
        agenda, config = kit.log.agenda, self._agenda
        draws = [kit.generator(f"agenda/{place}", config.seed) for place in range(config.composite)]
        agendas = [types_at(config, agenda, place, drawn, self._instructions) for place, drawn in enumerate(draws)]
        turns = len(agenda) + 1
        history = self._prompts.begin(task)
        pool = {name: {one.id: one for one in each} for name, each in self._by_type(task.target.language).items()}
        firsts: set[str] = set()
        further: set[str] = set()
        selection: Selection | None = None
        codes = Codes()
        async with grade_in_order() as grading:
            for turn in range(turns):
                if turn > 0:
                    if (recorded := kit.recorded(turn)) is not None:  # applicability is not judged again
                        selection = recorded_selection(recorded, ChainMap(*pool.values()))
                        skipped = recorded.skipped
                    else:
                        lists = [list(pool.get(types[turn - 1], {}).values()) for types in agendas]
                        lists[0] = [one for one in lists[0] if one.id not in firsts]
                        selection = await self._agdis.select(kit, turn, codes, lists, firsts | further)
                        skipped = not selection.instructions
                    if skipped:
                        grading.start(partial(skip, kit, turn, selection))
                        continue
                    if selection.instructions:  # a recorded overflow has none; no instruction is given twice
                        firsts.add(selection.instructions[0].id)
                        further.update(one.id for one in selection.instructions[1:])
                        history += (Message("user", self._prompts.ask(selection.instructions, task)),)
                chosen = selection.instructions if selection else ()
                is_last, suite = turn + 1 == turns, suite_of(task)
                asked = partial(kit.ask, instruction=next(iter(chosen), None), further=chosen[1:])
                ask = partial(asked, UNDER_TEST, turn, code=codes.at(None) or None)
                try:
                    answered = await self._gate.answer(kit, turn, history, suite, ask, final=is_last)
                except ContextOverflow:
                    remaining = range(turn, turns)
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
        learns = AGENDAS.of(self._agenda).traits.learns
        learned = learn(self._agenda, self._instructions) if learns and self._pool else None
        return self._metrics(sessions, seed=seed, effort=effort, learned=learned, uneven=learns)


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
    judging = sum((each.usage for each in followed), selection.usage if selection else NO_USAGE)
    pairs = zip(selection.instructions, followed, strict=True) if selection else ()
    record = TurnRecord.of(
        answer.turn,
        answer.request,
        (answered.reply, answered.extraction),
        verdict,
        asked=[_asked(*pair) for pair in pairs],
        candidates=list(selection.candidates) if selection else [],
        read_turn=selection.read_turn if selection else None,
        judge_usage=judging,
        **answered.fields,
    )
    kit.finish_turn(record)
    return before if answered.rolled_back and before is not None else record


async def _adherence(kit: Kit, answer: TurnAnswer) -> Sequence[Adherence]:
    """The decisions on the instructions, each on its own."""
    asked = answer.selection.instructions if answer.selection else ()
    after = answer.answered.extraction.code
    if after is None:
        return [Adherence("violated", "rules", f"no code: {answer.answered.extraction.reason}")] * len(asked)
    judged = [
        adherence(kit, answer.turn, answer.before, after, instruction, place=place)
        for place, instruction in enumerate(asked)
    ]
    return [await each for each in judged] if kit.services.asked().offline else await asyncio.gather(*judged)


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


def _asked(instruction: Instruction, followed: Adherence) -> AskedRecord:
    judged = AdherenceRecord(verdict=followed.verdict, by=followed.by, reason=followed.reason)
    return AskedRecord(
        id=instruction.id, text=instruction.text, scope=instruction.scope, change=instruction.change, adherence=judged
    )
