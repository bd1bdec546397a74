"""Shared parts of the protocols over tasks with constraints: the checks of a turn's code, and the turn's record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import field_validator

from codechat.base.config import Config, original_option
from codechat.base.domain import Compliance, Extraction, Failure, Message, Reply, Spent, Target, Usage, Verdict
from codechat.base.files import content_hash
from codechat.base.records import TurnRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Task
from codechat.judging import CONSTRAINT, SOLUTION, ConstraintQuestion, DecidesConstraints, JudgeConfig
from codechat.models import UNDER_TEST
from codechat.run.protocols import Ask
from codechat.run.protocols.dialogue import PROSE, length_of
from codechat.run.protocols.kit import Kit, Unit
from codechat.sandbox.languages import code_text, extract, language_of
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.multicodeif.constraints import RULES_VERSION, Constraint, Finding, Harness, constraint_type
from codechat.studies.multicodeif.constraints.examining import Examination, Examiner, Inquiry, Parsing
from codechat.studies.multicodeif.constraints.published import extracted
from codechat.studies.multicodeif.metrics import ConstrainedTurn, ConstraintRecord, OfficialTurn, all_met, outcome_of
from codechat.studies.multicodeif.rows import ConstrainedTask, Level
from codechat.studies.multicodeif.versions import finding_of, suite_of


async def examine(kit: Unit, place: int | str, inquiries: Sequence[Inquiry], *, free: bool = False) -> list[Finding]:
    """The findings of rules on codes, in the order of the questions; a rule runs in a process that can be ended."""
    digest = content_hash([inquiry.key for inquiry in inquiries])
    return await kit.step_at(place, "examine", digest, list[Finding], lambda: _examiner(kit).find(inquiries), free=free)


async def parse(kit: Unit, language: str, code: str) -> Finding:
    """Whether a language's grammar reads a code; cheap and repeatable, so that no journal has it."""
    (found,) = await _examiner(kit).find([Parsing(language, code)])
    return found


def _examiner(kit: Unit) -> Examiner:
    services = kit.services
    return services.opened.get("examiner", lambda: Examiner(services.workers))


async def comply(kit: Kit, turn: int, question: ConstraintQuestion) -> Compliance:
    """The judge's decision on whether a code keeps a constraint; undecided if the judge decides no constraints."""
    asked = kit.services.asked()
    judge = asked.judge
    if not isinstance(judge, DecidesConstraints):
        return Compliance(None, "none", "the cell's judge decides no constraints; judge=llm does")

    async def call() -> Compliance:
        await asked.gate.check()
        return await judge.constraint(question)

    parts = [question.prompt, question.constraint, question.code, question.reference]
    digest = content_hash([*parts, question.like_reference] if question.like_reference else parts)
    name = f"{CONSTRAINT}/{question.index}"
    return await kit.step_at(turn, name, digest, Compliance, call, payer=CONSTRAINT, free=asked.offline)


GUARDED: Harness = "guarded"
OFFICIAL: Harness = "official"
NO_CODE = "the reply holds no code"
CONTEXT_FULL = "the conversation no longer fits the model's context"


class ConstrainedPrompts(Config):
    """The prompt of both protocols; `{{name}}` is filled in."""

    initial: str = original_option(..., "the task, or a level of it; fills {{prompt}} and {{language}}")

    @field_validator("initial")
    @classmethod
    def _check_initial(cls, text: str) -> str:
        return require(text, "prompt", may=("language",))

    def opening(self, task: Task, level: Level) -> Message:
        """The message that states a level."""
        return Message("user", fill(self.initial, prompt=level.prompt.strip("\n"), language=task.target.language))


class ConstrainedConfig(Config):
    """The options of both protocols."""

    version: ClassVar[int] = RULES_VERSION

    harness: Harness = original_option(
        "guarded",
        "official: code is extracted and constraints are checked as the published harness does, faults included; "
        "the verdicts of both are recorded",
    )


def further_questions(config: ConstrainedConfig) -> frozenset[str]:
    """The official harness asks the published judge about constraints whose answer is a whole solution."""
    return frozenset({SOLUTION} if config.harness == OFFICIAL else ())


@dataclass(frozen=True, slots=True)
class Round:
    """One turn: its place, level and request (empty if carried over), and the number of earlier repairs."""

    turn: int
    level: Level
    request: tuple[Message, ...]
    number: int = 0
    carried: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The finding on one constraint by the harness that counts (`met`, `reason`), and by both."""

    constraint: Constraint
    met: bool | None
    reason: str
    guarded: bool | None
    official: bool | None


@dataclass(frozen=True, slots=True)
class Found:
    """The findings on a turn's code, and the judge's usage."""

    extraction: Extraction
    checks: tuple[Checked, ...]
    parses: bool | None
    usage: Usage

    @property
    def passed(self) -> bool | None:
        """Whether all constraints are met; None if none is known to be unmet, but one is undecided."""
        return all_met([check.met for check in self.checks])

    @property
    def unmet(self) -> list[Checked]:
        """The constraints known to be unmet."""
        return [check for check in self.checks if check.met is False]


def levels_of(task: Task) -> tuple[Level, ...]:
    """The task's levels; tasks of another kind are refused earlier."""
    assert isinstance(task, ConstrainedTask)
    return task.levels


def checkable_levels(task: Task) -> tuple[Level, ...]:
    """The task's levels. Raises `UserError` if something that the rules need is not installed."""
    for level in levels_of(task):
        for constraint in level.constraints:
            constraint.require()
    return levels_of(task)


def expected_asks(
    judge: JudgeConfig, task: Task, round_: Round, characters: float, replies: int = 0, *, shared: float = 0.0
) -> Iterator[Ask]:
    """The calls of one turn, for estimates, if the request has so many characters and earlier `replies`.

    The request begins with the replies and `shared` characters of earlier requests.
    """
    answer, votes = length_of(task) + PROSE, judge.votes_on_constraint()
    yield Ask(UNDER_TEST, round_.turn, characters, answer, replies=replies, shared=shared, shared_replies=replies)
    for each in round_.level.constraints:
        if not votes or constraint_type(each.type).by != "judge":
            continue
        asked, shown = CONSTRAINT, length_of(task)
        if constraint_type(each.type).solved and judge.question_length(SOLUTION):
            asked, shown = SOLUTION, shown + len(each.answer.raw)
        question = judge.question_length(asked) + len(round_.level.prompt) + len(each.words) + shown
        yield Ask(CONSTRAINT, round_.turn, question, times=votes, shared=judge.head_length(asked))


@dataclass(frozen=True, slots=True)
class Checking:
    """Checks the replies of one session, by the harness that counts."""

    kit: Kit
    task: Task
    harness: Harness

    async def found(self, round_: Round, reply: Reply) -> Found:
        """The findings on a reply's code, which the harnesses extract differently."""
        target = self._target(round_.level)
        said = code_text(reply, target.language)
        guarded, code = extract(said, target), extracted(said)
        problem: Literal["no_code"] | None = None if code else "no_code"
        official = Extraction(code or None, code or None, problem, "as MultiCodeIF's harness takes it")
        chosen = guarded if self.harness == "guarded" else official
        constraints = round_.level.constraints
        inquiries: list[Inquiry] = [Examination(each, guarded.code, GUARDED) for each in constraints]
        inquiries += [Examination(each, official.code, OFFICIAL) for each in constraints]
        if guarded.code:
            inquiries.append(Parsing(self._target(round_.level).language, guarded.code))
        answers = await examine(self.kit, round_.turn, inquiries, free=True)
        parses = answers[2 * len(constraints)].met if guarded.code else None
        checks, spent = [], Spent()
        for place, constraint in enumerate(constraints):
            pair = [answers[place], answers[len(constraints) + place]]
            by = constraint_type(constraint.type).by
            if by == "judge":
                decided, judged = await self._judged(round_, place, chosen.code)
                pair, spent = [decided, decided], spent.plus(judged)
            elif by == "compiler":  # on each harness, one after the other
                codes: list[tuple[Harness, str | None]] = [(GUARDED, guarded.code), (OFFICIAL, official.code)]
                pair = [await self._compiled(round_, constraint, *each) for each in codes]
            counts = pair[0] if self.harness == "guarded" else pair[1]
            checks.append(Checked(constraint, counts.met, counts.reason, pair[0].met, pair[1].met))
        return Found(chosen, tuple(checks), parses, spent.usage)

    def record(self, round_: Round, reply: Reply, found: Found) -> TurnRecord:
        """The record of an answered or carried turn."""
        first = found.unmet[0] if found.unmet else None
        verdict = None
        if found.extraction.code is None:
            verdict = Verdict.without_run("no_code", found.extraction.reason)
        elif found.passed is not None:
            failure = None if first is None else Failure(f"{first.constraint.type}: {first.reason}")
            verdict = Verdict("fail" if first else "pass", first is None, failure, inside="")
        answer = Reply(reply.text, reply.finish_reason) if round_.carried else reply
        language = language_of(self._target(round_.level).language)
        grammar = language.grammar.release if isinstance(language, Parsed) and found.extraction.code else ""
        fields = _fields(round_, found.checks, found.parses, grammar or None)
        return TurnRecord.of(
            round_.turn, round_.request, (answer, found.extraction), verdict, judge_usage=found.usage, **fields
        )

    def overflow(self, round_: Round) -> TurnRecord:
        """The record of a turn whose request exceeds the model's context: nothing is met."""
        checks = [Checked(each, False, CONTEXT_FULL, False, False) for each in round_.level.constraints]
        verdict = Verdict.without_run("no_code", CONTEXT_FULL)
        return TurnRecord.of(round_.turn, round_.request, None, verdict, **_fields(round_, checks, None))

    def _target(self, level: Level) -> Target:
        """The task's target; the language of the constraints if the task names none."""
        named = [each.answer.language for each in level.constraints if each.answer.language]
        return self.task.target if self.task.target.language or not named else Target(named[0])

    async def _judged(self, round_: Round, place: int, code: str | None) -> tuple[Finding, Spent]:
        """The judge's finding on the constraint at a place, and its usage."""
        if code is None:
            return Finding(False, NO_CODE), Spent()
        constraint = round_.level.constraints[place]
        solved = constraint_type(constraint.type).solved
        reference = constraint.answer.raw if solved else self.task.reference
        question = ConstraintQuestion(
            *(self.task.task_id, round_.turn, place, round_.level.prompt, constraint.words, code, reference),
            like_reference=solved and self.harness == OFFICIAL,
        )
        said = await comply(self.kit, round_.turn, question)
        return Finding(said.met, said.reason), said

    async def _compiled(self, round_: Round, constraint: Constraint, harness: Harness, code: str | None) -> Finding:
        """The finding of a compiler of the version on the code as written."""
        if code is None:
            return Finding(False, NO_CODE)
        return finding_of(await self.kit.check_program(round_.turn, code, suite_of(constraint, harness)))


def _fields(
    round_: Round, checks: Sequence[Checked], parses: bool | None, grammar: str | None = None
) -> dict[str, object]:
    """The further fields of a turn's record."""
    official = all_met([check.official for check in checks])
    broken = next((check.constraint.type for check in checks if check.official is False), None)
    outcome = outcome_of(official)
    turn = ConstrainedTurn(
        level=round_.level.name,
        round=round_.number,
        carried=round_.carried,
        constraints=[
            ConstraintRecord.of(each.constraint, each.met, each.reason, each.guarded, each.official) for each in checks
        ],
        parses=parses,
        grammar=grammar,
        official=OfficialTurn(passed=official, outcome=outcome, reason=broken and f"{broken} is not met"),
    )
    return turn.model_dump()
