"""Shared parts of the protocols over tasks with constraints: the checks of a turn's code, and the turn's record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import field_validator

from codechat.base.config import Config, original_option
from codechat.base.domain import Extraction, Failure, Message, Reply, Spent, Target, Usage, Verdict
from codechat.base.records import TurnRecord
from codechat.base.template import fill, require
from codechat.datasets.tasks import Task
from codechat.judging import CONSTRAINT, SOLUTION, ConstraintQuestion, JudgeConfig
from codechat.models import UNDER_TEST
from codechat.run.protocols import Ask, Kit
from codechat.run.protocols.dialogue import PROSE, length_of
from codechat.sandbox.languages import extract, language_of
from codechat.sandbox.languages.grammar import Parsed
from codechat.studies.multicodeif.constraints import RULES_VERSION, Constraint, Finding, Harness, constraint_type
from codechat.studies.multicodeif.constraints.examining import Examination, Inquiry, Parsing
from codechat.studies.multicodeif.constraints.published import extracted
from codechat.studies.multicodeif.metrics import ConstrainedTurn, ConstraintRecord, OfficialTurn, all_met
from codechat.studies.multicodeif.rows import ConstrainedTask, Level
from codechat.studies.multicodeif.verbs import comply, examine
from codechat.studies.multicodeif.versions import finding_of, suite_of

GUARDED: Harness = "guarded"
OFFICIAL: Harness = "official"
NO_CODE = "the reply holds no code"
CONTEXT_FULL = "the conversation no longer fits the model's context"


class ConstrainedPrompts(Config):
    """The prompt that both protocols have; `{{name}}` is filled in."""

    initial: str = original_option(..., "the task, or a level of it; fills {{prompt}} and {{language}}")

    @field_validator("initial")
    @classmethod
    def _check_initial(cls, text: str) -> str:
        return require(text, "prompt", may=("language",))

    def opening(self, task: Task, level: Level) -> Message:
        """The message that states a level."""
        return Message("user", fill(self.initial, prompt=level.prompt.strip("\n"), language=task.target.language))


class ConstrainedConfig(Config):
    """The options that both protocols have."""

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
    """One turn: its place, its level, how many repairs came before it, and its request (empty if carried over)."""

    turn: int
    level: Level
    request: tuple[Message, ...]
    number: int = 0
    carried: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found of one constraint: by the harness that counts (`met`, `reason`), and by both."""

    constraint: Constraint
    met: bool | None
    reason: str
    guarded: bool | None
    official: bool | None


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a turn's code; `usage` is the judge's."""

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
        """The constraints that are known to be unmet."""
        return [check for check in self.checks if check.met is False]


def levels_of(task: Task) -> tuple[Level, ...]:
    """The task's levels; tasks of another kind are refused before."""
    assert isinstance(task, ConstrainedTask)
    return task.levels


def checkable_levels(task: Task) -> tuple[Level, ...]:
    """The task's levels. Raises `UserError` if something is not installed that their rules need."""
    levels = levels_of(task)
    for level in levels:
        for constraint in level.constraints:
            constraint.require()
    return levels


def expected_asks(
    judge: JudgeConfig, task: Task, round_: Round, characters: float, replies: int = 0, *, shared: float = 0.0
) -> Iterator[Ask]:
    """The calls of one turn whose request has so many characters beside earlier replies, for estimates.

    It begins with all the replies and so many `shared` characters of earlier requests.
    """
    answer = length_of(task) + PROSE
    yield Ask(UNDER_TEST, round_.turn, characters, answer, replies=replies, shared=shared, shared_replies=replies)
    judged = [each for each in round_.level.constraints if constraint_type(each.type).by == "judge"]
    for each in judged if judge.votes_on_constraint() else ():
        asked, shown = CONSTRAINT, length_of(task)
        if constraint_type(each.type).solved and judge.question_length(SOLUTION):
            asked, shown = SOLUTION, shown + len(each.answer.raw)
        question = judge.question_length(asked) + len(round_.level.prompt) + len(each.words) + shown
        head = judge.head_length(asked)
        yield Ask(CONSTRAINT, round_.turn, question, times=judge.votes_on_constraint(), shared=head)


@dataclass(frozen=True, slots=True)
class Checking:
    """Checks the replies of one session, by the harness that counts."""

    kit: Kit
    task: Task
    harness: Harness

    async def found(self, round_: Round, reply: Reply) -> Found:
        """What a reply's code keeps."""
        guarded, official = self._extract(round_.level, reply)
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
            pair = answers[place], answers[len(constraints) + place]
            match constraint_type(constraint.type).by:
                case "judge":
                    decided, judged = await self._judged(round_, place, chosen.code)
                    pair, spent = (decided, decided), spent.plus(judged)
                case "compiler":
                    pair = await self._compiled(round_, constraint, guarded, official)
                case _:
                    pass
            counts = pair[0] if self.harness == "guarded" else pair[1]
            checks.append(Checked(constraint, counts.met, counts.reason, pair[0].met, pair[1].met))
        return Found(chosen, tuple(checks), parses, spent.usage)

    def record(self, round_: Round, reply: Reply, found: Found) -> TurnRecord:
        """The record of a turn that was answered, or carried over."""
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
        """The record of a turn whose request no longer fitted the model's context: nothing is met."""
        checks = [Checked(each, False, CONTEXT_FULL, False, False) for each in round_.level.constraints]
        verdict = Verdict.without_run("no_code", CONTEXT_FULL)
        return TurnRecord.of(round_.turn, round_.request, None, verdict, **_fields(round_, checks, None))

    def _target(self, level: Level) -> Target:
        """The task's target; of one that names no language, the language of its constraints."""
        named = [each.answer.language for each in level.constraints if each.answer.language]
        return self.task.target if self.task.target.language or not named else Target(named[0])

    def _extract(self, level: Level, reply: Reply) -> tuple[Extraction, Extraction]:
        """The code of a reply as it should be found, and as the published harness finds it."""
        code = extracted(reply.text)
        problem: Literal["no_code"] | None = None if code else "no_code"
        official = Extraction(code or None, code or None, problem, "as MultiCodeIF's harness takes it")
        return extract(reply.text, self._target(level)), official

    async def _judged(self, round_: Round, place: int, code: str | None) -> tuple[Finding, Spent]:
        """What the judge says of the constraint at a place, and what it used."""
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

    async def _compiled(
        self, round_: Round, constraint: Constraint, guarded: Extraction, official: Extraction
    ) -> tuple[Finding, Finding]:
        """What a compiler of the version says under each harness, of the code as it was written."""
        findings = []
        for harness, code in ((GUARDED, guarded.code), (OFFICIAL, official.code)):
            suite = suite_of(constraint, harness)
            verdict = None if code is None else await self.kit.check_program(round_.turn, code, suite)
            findings.append(Finding(False, NO_CODE) if verdict is None else finding_of(verdict))
        return findings[0], findings[1]


def _fields(
    round_: Round, checks: Sequence[Checked], parses: bool | None, grammar: str | None = None
) -> dict[str, object]:
    """The further fields of a turn's record."""
    official = all_met([check.official for check in checks])
    broken = next((check.constraint.type for check in checks if check.official is False), None)
    outcome: Literal["pass", "fail"] | None = None if official is None else "pass" if official else "fail"
    turn = ConstrainedTurn(
        level=round_.level.name,
        round=round_.number,
        carried=round_.carried,
        constraints=[_record(check) for check in checks],
        parses=parses,
        grammar=grammar,
        official=OfficialTurn(passed=official, outcome=outcome, reason=broken and f"{broken} is not met"),
    )
    return turn.model_dump()


def _record(check: Checked) -> ConstraintRecord:
    kind = constraint_type(check.constraint.type)
    return ConstraintRecord(
        type=kind.name,
        category=kind.category,
        by=kind.by,
        met=check.met,
        reason=check.reason,
        guarded=check.guarded,
        official=check.official,
    )
