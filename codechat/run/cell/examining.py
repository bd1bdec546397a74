"""A cell's judge is examined before the first session: questions with known answers, `codechat.judging.fitness`.

The answers are steps of the journal, in a unit for each role and paid like the role's decisions: a killed examination
is resumed, and one that was passed is not repeated. After a refusal the next run asks again, in a new unit, since the
server may have been mended.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import content_hash
from codechat.datasets.tasks import Task
from codechat.judging import APPLICABILITY, QUESTIONS
from codechat.judging.deciding import VERDICT, Decision
from codechat.judging.fitness import KNOWN, NEEDED, Known, examined
from codechat.judging.llm import LlmJudge, LlmJudgeConfig
from codechat.models.calls.batches import BatchScheduler
from codechat.run.cell import Cell
from codechat.run.journal import Journal
from codechat.run.protocols import Ask
from codechat.run.protocols.kit import Unit
from codechat.run.protocols.services import CheckOnce, Services

UNIT = "judge.check"
SCORE = "score"
ATTEMPTS = 20
"""The most examinations of a role that are looked at."""


def units() -> list[str]:
    """The journal's units of examinations, which shards hand on."""
    return [f"{UNIT}/{role}/{attempt}" for role in QUESTIONS for attempt in range(ATTEMPTS)]


def expected_asks(cell: Cell, tasks: Iterable[Task], journals: Iterable[Path]) -> Iterator[Ask]:
    """The calls of the examination that the sessions of some tasks still need, for estimates."""
    judge, roles = _needed(cell, tasks)
    if judge is None:
        return
    for path in journals:
        with contextlib.closing(Journal(path)) as journal:
            roles = [each for each in roles if _score(journal, judge, each) is None]
    yield from _asks(judge, roles)


def recorded_asks(cell: Cell, journal: Journal) -> Iterator[Ask]:
    """The calls of examinations that were passed."""
    if (judge := examined(cell.config.judge)) is not None:
        yield from _asks(judge, scores(cell, journal))


def _asks(judge: LlmJudgeConfig, roles: Iterable[str]) -> Iterator[Ask]:
    for role in roles:
        for known in KNOWN[role]:
            length = judge.question_length(role) + sum(map(len, known.quoted.values()))
            yield Ask(role, 0, length, shared=judge.head_length(role))


def scores(cell: Cell, journal: Journal) -> dict[str, int]:
    """The number of right answers, of twelve, of each role that has passed."""
    judge = examined(cell.config.judge) if "judge" in cell.uses else None
    roles = [role for role in QUESTIONS if judge is not None and getattr(judge, role) is not None]
    found = {role: _score(journal, judge, role) for role in roles if judge is not None}
    return {role: score for role, score in found.items() if score is not None}


async def examine(
    cell: Cell, tasks: Iterable[Task], services: Services, scheduler: BatchScheduler, note: Callable[[str], None]
) -> None:
    """Examine the roles that have not passed. Raises `UserError` if one fails.

    After a budget or an interruption the examination is left to the next run, and so are the sessions; the brake is
    pulled too if the judge cannot be asked.
    """
    judge, roles = _needed(cell, tasks)
    if judge is None or not (roles := [role for role in roles if _score(services.journal, judge, role) is None]):
        return
    examinee = services.opened.get(UNIT, lambda: LlmJudge(judge, brakes=False))
    gate = CheckOnce(examinee)
    attempts = {role: _attempt(services.journal, role) for role in roles}
    seed = cell.config.seed
    units_of = {role: Unit(f"{UNIT}/{role}/{attempt}", UNIT, seed, services) for role, attempt in attempts.items()}

    async def ask(role: str, number: int, known: Known) -> Decision:
        async def call() -> Decision:
            services.brake.check()
            await gate.check()
            return await examinee.ask(role, attempts[role], **known.quoted)

        name, digest = f"known/{role}", _digest(judge, role)
        return await units_of[role].step_at(number, name, digest, Decision, call, payer=role)

    with contextlib.ExitStack() as stack:
        for _ in roles:
            stack.enter_context(scheduler.working())
        questions = [ask(role, *each) for role in roles for each in enumerate(KNOWN[role], 1)]
        answers = await asyncio.gather(*questions, return_exceptions=True)
    if errors := [each for each in answers if isinstance(each, BaseException)]:
        error = next((each for each in errors if not isinstance(each, InfrastructureError)), errors[0])
        if not isinstance(error, InfrastructureError):
            raise error
        services.brake.pull(f"the judge could not be examined: {error}", "Run the same command again: it resumes.")
        return
    given = iter(each for each in answers if isinstance(each, Decision))
    found = {role: [next(given) for _ in KNOWN[role]] for role in roles}
    for role, unit in units_of.items():
        right = _right(role, found[role])
        await unit.step_at(0, SCORE, _digest(judge, role), int, partial(asyncio.sleep, 0, right))
    _refuse(judge, found)
    said = ", ".join(f"{role} {_right(role, each)} of {len(each)}" for role, each in found.items())
    note(f"judge.check: right answers to questions whose answers are known: {said}")


def _needed(cell: Cell, tasks: Iterable[Task]) -> tuple[LlmJudgeConfig | None, list[str]]:
    """The language models of the cell's judge, and their roles that the sessions of some tasks ask."""
    judge = examined(cell.config.judge) if "judge" in cell.uses else None
    if judge is None:
        return None, []
    asked = {ask.role for task in tasks for ask in cell.protocol.asks(task) if ask.times}
    if cell.is_recorded:
        asked.discard(APPLICABILITY)  # it is on the path of the dialogue, and not judged again
    return judge, [role for role in QUESTIONS if role in asked and getattr(judge, role) is not None]


def _refuse(config: LlmJudgeConfig, found: dict[str, list[Decision]]) -> None:
    """Raises `UserError` with the answers of the roles that failed."""
    failed = {role: answers for role, answers in found.items() if _right(role, answers) < NEEDED}
    lines = list[str]()
    for role, answers in failed.items():
        place, name, right = f"{config.place}.{role}", getattr(config, role).name, _right(role, answers)
        lines.append(
            f"{place} ({name}) is right in {right} of {len(answers)} questions with known answers, and a judge needs "
            f"{NEEDED}: a coin gets as many in 1 of 52 tries"
        )
        lines.append(_listed(role, answers))
    if lines:
        models = " and ".join(f"model@{config.place}.{role}=NAME" for role in failed)
        remedy = f"choose another judge: {models}; mend {config.place}.prompts or max_tokens; "
        raise UserError("\n".join(lines), f"{remedy}or judge all the same: {config.place}.check=false")


def _listed(role: str, answers: Sequence[Decision]) -> str:
    """The numbers of the questions by their answers: `no readable answer to 1; right: 4; wrong, KEPT: 2, 3, …`."""
    groups: dict[str, list[str]] = {}
    quoted = ""
    for number, (known, answer) in enumerate(zip(KNOWN[role], answers, strict=True), 1):
        if answer.answers is None:
            kind = "no readable answer to"
            quoted = quoted or f', the first: "{answer.said or answer.reason}"'
        else:
            kind = "right:" if _is_right(known, answer) else f"wrong, {answer.verdict}:"
        groups.setdefault(kind, []).append(str(number))
    return "; ".join(f"{kind} {', '.join(numbers)}" for kind, numbers in sorted(groups.items())) + quoted


def _right(role: str, answers: Sequence[Decision]) -> int:
    return sum(map(_is_right, KNOWN[role], answers))


def _is_right(known: Known, answer: Decision) -> bool:
    return answer.answers is not None and answer.answers[VERDICT] == known.right


def _digest(judge: LlmJudgeConfig, role: str) -> str:
    """A hash of the model, the prompts and the questions: another judge is examined anew."""
    prompts = [getattr(judge.prompts, role), judge.prompts.reask, judge.max_reasks]
    return content_hash([getattr(judge, role).identity(), prompts, [[one.quoted, one.right] for one in KNOWN[role]]])


def _score(journal: Journal, judge: LlmJudgeConfig, role: str) -> int | None:
    """The score of an examination that was passed; None if there is none."""
    names, digest = (f"{UNIT}/{role}/{attempt}" for attempt in range(ATTEMPTS)), _digest(judge, role)
    found = (journal.recorded(name, f"0/{SCORE}", digest) for name in names)
    return next((score for each in found if each is not None and (score := int(each)) >= NEEDED), None)


def _attempt(journal: Journal, role: str) -> int:
    """The number of earlier examinations of a role; one that was killed is gone on with.

    It numbers the sample too: no cached reply of a judge that was refused refuses it again.
    """
    names = (f"{UNIT}/{role}/{attempt}" for attempt in itertools.count())
    return next(number for number, name in enumerate(names) if journal.recorded(name, f"0/{SCORE}") is None)
