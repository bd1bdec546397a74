"""The judge's side: one judgement of the last answer, or of the dialogue, read strictly and counted here.

The judge says of every condition whether it is met; how many are is never taken from its words.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, cast, get_args

from codechat.base.template import fill
from codechat.judging import deciding
from codechat.judging.deciding import lines_of
from codechat.studies.cab.config import JUDGE
from codechat.studies.cab.sampling import cohort_of, thread_replies, thread_turns
from codechat.studies.cab.stage import Built, Exchange, Stage, Telling, after_label, bounded, only_word
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import AssistJudgement, Grade, Status, Verbosity

TECHNICAL, VERBOSITY, VERDICT, REASON = "TECHNICAL CORRECTNESS", "VERBOSITY", "VERDICT", "REASON"
GRADES: tuple[Grade, ...] = get_args(Grade)
VERBOSITIES: tuple[Verbosity, ...] = get_args(Verbosity)
MET = ("TRUE", "FALSE")
UNDECIDED = "no reply of the judge could be read"
NO_ANSWER = "the maintainer gave no answer"
_ANY_CONDITION = re.compile(r"[\s>*_`#-]*CONDITION[ _]*\d+[\s*_`]*:", re.IGNORECASE)


class Parts(NamedTuple):
    """What a judge's reply says, read whole."""

    technical: Grade
    conditions: tuple[bool, ...]
    verbosity: Verbosity
    verdict: Grade
    why: tuple[str, ...]
    reason: str


class Ended(NamedTuple):
    """How a dialogue ended, as far as a judgement records it."""

    rounds: int
    satisfied: Status | None
    built: Built
    needs_build: bool
    unvalidated: bool
    environment: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the last image was not built, or fails the row's test."""
        return self.built.last is not None and not self.built.last.succeeded


async def judge(stage: Stage, turn: int, dialogue: Sequence[Exchange], ended: Ended) -> AssistJudgement:
    """The judgement. Without any answer nothing is met, and nobody is asked; it is undecided if nothing can be read."""
    task, prompts = stage.task, stage.config.prompts
    if not dialogue:
        return _judgement(task, ended, None, verdict="INCORRECT")
    count = len(task.conditions)
    prompt, again = judge_prompt(stage, dialogue, ended.built), fill(prompts.reask_judge, form=form(count))
    found, _ = await stage.ask_until_read(JUDGE, turn, prompt, again=again, read=lambda said: read_judge(said, count))
    verdict: Grade | None = "INCORRECT" if ended.failed else None if found is None else found.verdict
    return _judgement(task, ended, found, verdict=verdict, answered=True)


def judge_prompt(stage: Stage, dialogue: Sequence[Exchange], built: Built) -> str:
    """What the judge's model is asked."""
    task = stage.task
    telling = Telling()
    telling.show("question", ("question", task.prompt))
    telling.show(
        "thread",
        *(
            (f"comment_{number}", f"{each.user}, {each.created_at}:\n{each.body}")
            for number, each in enumerate(task.thread, 1)
        ),
    )
    telling.conditions(task)
    if stage.config.judged == "dialogue":
        telling.dialogue("answer", task, dialogue)
    else:
        telling.show("answer", ("answer", dialogue[-1].answer))
    telling.build(built)
    telling.say("form", form(len(task.conditions)))
    return telling.fill(stage.config.prompts.judge)


def form(conditions: int) -> str:
    """The lines that a judge's reply ends with."""

    def line(label: str, words: Sequence[str]) -> str:
        return f"{label}: {' or '.join(word.replace('_', ' ') for word in words)}"

    numbered = [line(f"CONDITION {number}", MET) for number in range(1, conditions + 1)]
    return "\n".join([line(TECHNICAL, GRADES), *numbered, line(VERBOSITY, VERBOSITIES), line(VERDICT, GRADES)])


def read_judge(said: str, conditions: int) -> Parts | None:
    """The parts of a reply, if each label stands once, with one of its words, and the verdict on the last line."""
    lines = lines_of(said)
    numbered = [only_word(f"CONDITION {number}", MET, lines) for number in range(1, conditions + 1)]
    technical, verbosity = only_word(TECHNICAL, GRADES, lines), only_word(VERBOSITY, VERBOSITIES, lines)
    verdict = deciding.only_word(VERDICT, GRADES, lines)
    if None in (technical, verbosity, verdict, *numbered) or after_label(VERDICT, lines[-1]) is None:
        return None
    if sum(bool(_ANY_CONDITION.match(line)) for line in lines) != conditions:
        return None
    why = [bounded(" ".join(_texts(f"WHY {number}", lines))) for number in range(1, conditions + 1)]
    return Parts(
        cast(Grade, technical),
        tuple(word == "TRUE" for word in numbered),
        cast(Verbosity, verbosity),
        cast(Grade, verdict),
        tuple(why),
        bounded(" ".join(_texts(REASON, lines)[-1:])),
    )


def implied(parts: Parts, *, failed: bool) -> Grade:
    """The verdict that the parts come to: CORRECT if technically correct with every condition met.

    INCORRECT if technically incorrect, if no condition is met, or if the build failed.
    """
    if failed or parts.technical == "INCORRECT" or not any(parts.conditions):
        return "INCORRECT"
    return "CORRECT" if parts.technical == "CORRECT" and all(parts.conditions) else "PARTIALLY_CORRECT"


def _texts(label: str, lines: Sequence[str]) -> list[str]:
    return [said for line in lines if (said := after_label(label, line)) is not None]


def _judgement(
    task: AssistTask, ended: Ended, found: Parts | None, *, verdict: Grade | None, answered: bool = False
) -> AssistJudgement:
    """The record. Without parts no condition is met if there was no answer, else none is decided."""
    build, last = ended.built.build, ended.built.last
    cohort, known = cohort_of(task)
    conditions = list(found.conditions) if found else [None if answered else False] * len(task.conditions)
    return AssistJudgement(
        verdict=verdict,
        judged=found.verdict if found else None,
        implied=implied(found, failed=ended.failed) if found else None if answered else verdict,
        technical=found.technical if found else None,
        conditions=conditions,
        conditions_met=None if None in conditions else sum(map(bool, conditions)),
        why=list(found.why) if found else [],
        verbosity=found.verbosity if found else None,
        reason=found.reason if found else UNDECIDED if answered else NO_ANSWER,
        build=None if build is None else build.ok,
        needs_build=ended.needs_build,
        unvalidated=ended.unvalidated,
        rounds=ended.rounds,
        thread_turns=thread_turns(task),
        satisfied=ended.satisfied,
        pull=task.pull,
        created_at=task.created_at,
        could_be_built=ended.built.own is not None,
        was_built=build is not None and build.ok,
        tested=last.succeeded if last is not None and last.ok and last.test is not None else None,
        environment=ended.environment,
        thread_replies=thread_replies(task),
        cohort=cohort,
        cohort_by=known,
    )
