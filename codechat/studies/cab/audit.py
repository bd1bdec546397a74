"""The judge's decisions on satisfaction conditions, to be labelled: drawn from cells of `assist`."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar

from codechat.audit.judged import Judged, JudgedDecision, JudgedRow, Kind, Label, other_data, register, tasks_of
from codechat.audit.strata import Stratum
from codechat.records import SessionRecord
from codechat.report.study import LoadedCell
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import AssistJudgement, AssistTurn

ROLE = "judge"


class ConditionRow(JudgedRow):
    """One decision with its label `satisfied`. `place` is the condition's number among those of the issue, from 0;
    `turn` that of the answer that was judged."""

    question: ClassVar[str] = "condition"
    label: ClassVar[str] = "satisfied"
    grouped: ClassVar[tuple[str, ...]] = ("language",)
    by_turn: ClassVar[bool] = False  # an issue is judged once

    language: str
    condition: str
    satisfied: Label = ""
    judge_satisfied: Judged

    @property
    def stratum(self) -> Stratum:
        """The language, the judge and the decision."""
        return self.language, self.judge, self.judge_satisfied


def _decisions_of(cell: LoadedCell) -> Callable[[SessionRecord], Iterator[JudgedDecision]]:
    tasks = {task.task_id: task for task in tasks_of(cell) if isinstance(task, AssistTask)}
    return partial(_of_session, cell, tasks)


def _of_session(cell: LoadedCell, tasks: Mapping[str, AssistTask], session: SessionRecord) -> Iterator[JudgedDecision]:
    """The decisions of a session; none if no answer was given, since no judge was asked then."""
    own, answers = AssistJudgement.of(session), _answers(session)
    if not answers:
        return
    task = tasks.get(session.task_id)
    if task is None or len(task.conditions) != len(own.conditions):
        raise other_data(cell, session.task_id, "conditions")
    turn, last = answers[-1]
    whole = (cell.config.get("protocol") or {}).get("judged") == "dialogue"
    thread = "\n\n".join(f"{each.user}:\n{each.body}" for each in task.thread)
    texts = {"question": task.prompt, "thread": thread, "answer": _dialogue(session) if whole else last}
    for place, (met, condition) in enumerate(zip(own.conditions, task.conditions, strict=True)):
        row = ConditionRow.of(
            cell,
            session,
            (turn, place),
            met,
            language=session.language,
            condition=condition,
            judge=_judge_of(cell),
            judge_reason=(own.why[place] if own.why else "") or own.reason,
        )
        yield JudgedDecision(row, texts)


def _answers(session: SessionRecord) -> list[tuple[int, str]]:
    """The answers with their turns."""
    found = [(turn.turn, AssistTurn.of(turn).answer) for turn in session.turns]
    return [(turn, answer) for turn, answer in found if answer is not None]


def _dialogue(session: SessionRecord) -> str:
    """All answers with the user's replies to them."""
    said: list[str] = []
    for own in map(AssistTurn.of, session.turns):
        if own.answer is not None:
            said.append(f"maintainer:\n{own.answer}")
            said += [f"user:\n{own.user.text}"] if own.user is not None else []
    return "\n\n".join(said)


def _judge_of(cell: LoadedCell) -> str:
    """The model that judges, as its options name it."""
    known = ((cell.config.get("protocol") or {}).get("roles") or {}).get(ROLE) or {}
    return str(known.get("name") or known.get("kind") or ROLE)


CONDITIONS = register(
    Kind(
        ConditionRow,
        ("decision", "conditions"),
        "decision on a satisfaction condition",
        ("assist",),
        _decisions_of,
        "Does the maintainer's answer meet this condition? (What the user said does not matter.)",
        heading="Answer",
    )
)
