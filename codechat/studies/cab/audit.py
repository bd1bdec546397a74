"""What people label of cells of `assist`: the judge's decisions, the data's conditions, and the simulated user.

Conditions are labelled as for the paper's Table 4: is each accurate, and are they complete? The simulated user is at
fault if it calls itself satisfied wrongly, or tells what the person who asked could not know.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Self

from codechat.base.records import SessionRecord
from codechat.report.audit.judged import (
    Judged,
    JudgedDecision,
    JudgedRow,
    Kind,
    Label,
    other_data,
    register,
    tasks_of,
)
from codechat.report.audit.strata import Stratum
from codechat.report.study import LoadedCell
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import AssistJudgement, AssistTurn

EXTRACTION = "the data"
"""In place of a judge's name for what the dataset says."""


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
            judge=_model_of(cell, "judge"),
            judge_reason=(own.why[place] if own.why else "") or own.reason,
        )
        yield JudgedDecision(row, texts)


def _answers(session: SessionRecord) -> list[tuple[int, str]]:
    """The answers with their turns."""
    found = [(turn.turn, AssistTurn.of(turn).answer) for turn in session.turns]
    return [(turn, answer) for turn, answer in found if answer is not None]


def _dialogue(session: SessionRecord, last: int | None = None, *, unreplied: bool = False) -> str:
    """All answers with the user's replies to them, up to a turn; `unreplied` leaves the reply of that turn out."""
    said: list[str] = []
    for turn in (turn for turn in session.turns if last is None or turn.turn <= last):
        own = AssistTurn.of(turn)
        if own.answer is not None:
            said.append(f"maintainer:\n{own.answer}")
            if own.user is not None and not (unreplied and turn.turn == last):
                said.append(f"user:\n{own.user.text}")
    return "\n\n".join(said)


def _model_of(cell: LoadedCell, role: str) -> str:
    """The model that plays a role, as its options name it."""
    known = ((cell.config.get("protocol") or {}).get("roles") or {}).get(role) or {}
    return str(known.get("name") or known.get("kind") or role)


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


class _FoundRow(JudgedRow):
    """What the data or a simulated user said of an issue, taken for right: the share of labels `yes` is what counts."""

    grouped: ClassVar[tuple[str, ...]] = ("language",)
    language: str

    @classmethod
    def of_data(cls, cell: LoadedCell, task: AssistTask, language: str, place: int, **own: str) -> Self:
        """The row of what the data says: the same of all cells over an issue, so that it is drawn once."""
        known = {"dataset": cell.dataset, "task_id": task.task_id, "cell_id": "", "language": language}
        known |= {f"judge_{cls.label}": "yes", "judge": EXTRACTION, "judge_reason": ""}
        key = cls.key_of("", task.task_id, 0, place, "yes")
        return cls.model_validate({"sample": key, "turn": 0, "place": place, **known, **own})


class AccuracyRow(_FoundRow):
    """One condition of the data with its label `accurate`: does it say what the user needs? (The paper's Table 4.)"""

    question: ClassVar[str] = "extracted_condition"
    label: ClassVar[str] = "accurate"

    extracted_condition: str
    accurate: Label = ""
    judge_accurate: Judged


class CompletenessRow(_FoundRow):
    """All conditions of an issue with their label `complete`: is there none that lacks? (The paper's Table 4.)"""

    question: ClassVar[str] = "extracted_conditions"
    label: ClassVar[str] = "complete"

    extracted_conditions: str
    complete: Label = ""
    judge_complete: Judged


class StatusRow(_FoundRow):
    """A simulated user's status with its label `full`: would somebody with these conditions be fully satisfied?"""

    question: ClassVar[str] = "user_conditions"
    label: ClassVar[str] = "full"

    user_conditions: str
    full: Label = ""
    judge_full: Judged


class KnowledgeRow(_FoundRow):
    """A simulated user's reply with its label `fair`: does it say only what the user could know at that point?"""

    question: ClassVar[str] = "user_reply"
    label: ClassVar[str] = "fair"

    user_reply: str
    fair: Label = ""
    judge_fair: Judged


Asked = Callable[[LoadedCell, AssistTask, SessionRecord], Iterator[JudgedDecision]]


def _over_tasks(ask: Asked, cell: LoadedCell) -> Callable[[SessionRecord], Iterator[JudgedDecision]]:
    """What is asked of a cell's sessions, each with its task."""
    tasks = {task.task_id: task for task in tasks_of(cell) if isinstance(task, AssistTask)}

    def of_session(session: SessionRecord) -> Iterator[JudgedDecision]:
        task = tasks.get(session.task_id)
        if task is None or len(task.conditions) != len(AssistJudgement.of(session).conditions):
            raise other_data(cell, session.task_id, "conditions")
        return ask(cell, task, session)

    return of_session


def _thread_of(task: AssistTask) -> dict[str, str]:
    return {"question": task.prompt, "thread": "\n\n".join(f"{each.user}:\n{each.body}" for each in task.thread)}


def _accuracy(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[JudgedDecision]:
    for place, condition in enumerate(task.conditions):
        row = AccuracyRow.of_data(cell, task, session.language, place, extracted_condition=condition)
        yield JudgedDecision(row, {**_thread_of(task), "answer": condition})


def _completeness(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[JudgedDecision]:
    row = CompletenessRow.of_data(cell, task, session.language, 0, extracted_conditions=_numbered(task))
    yield JudgedDecision(row, {**_thread_of(task), "answer": _numbered(task)})


def _replies(row: type[StatusRow] | type[KnowledgeRow]) -> Asked:
    """The user's readable replies, each with the dialogue up to it.

    Labellers of the status do not see the reply, because it reveals the status. Labellers of knowledge see the
    conditions and the thread: everything the simulated user could know.
    """

    def ask(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[JudgedDecision]:
        for turn in session.turns:
            reply = AssistTurn.of(turn).user
            if reply is None or reply.status is None:
                continue
            whole = row is StatusRow
            asked = {"user_conditions": _numbered(task)} if whole else {"user_reply": reply.text}
            said = {"judge": _model_of(cell, "user"), "judge_reason": reply.reason}
            at, met = (turn.turn, 0), reply.status == "FULLY_SATISFIED" if whole else True
            known = row.of(cell, session, at, met, language=session.language, **asked, **said)
            told = {"question": task.prompt} if whole else {**_thread_of(task), "conditions": _numbered(task)}
            yield JudgedDecision(known, {**told, "answer": _dialogue(session, turn.turn, unreplied=whole)})

    return ask


def _numbered(task: AssistTask) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(task.conditions, 1))


_OF_ASSIST = ("assist",)
register(
    Kind(
        AccuracyRow, ("decision", "accuracy"), "condition of an issue", _OF_ASSIST, partial(_over_tasks, _accuracy),
        "Does this condition say what the user needs, by the thread? (Not how it is done.)", heading="Condition",
    )
)  # fmt: skip
register(
    Kind(
        CompletenessRow, ("decision", "completeness"), "list of an issue's conditions", _OF_ASSIST,
        partial(_over_tasks, _completeness), "Do these conditions say all that the user needs, by the thread?",
        heading="Conditions",
    )
)  # fmt: skip
register(
    Kind(
        StatusRow, ("decision", "statuses"), "status of a simulated user", _OF_ASSIST,
        partial(_over_tasks, _replies(StatusRow)),
        "Would somebody with these conditions be fully satisfied by what the maintainer has said so far?",
        heading="Dialogue",
    )
)  # fmt: skip
register(
    Kind(
        KnowledgeRow, ("decision", "replies"), "reply of a simulated user", _OF_ASSIST,
        partial(_over_tasks, _replies(KnowledgeRow)),
        "Does the user's last reply say only what the person who opened the issue could know at that point?",
        heading="Dialogue",
    )
)  # fmt: skip
