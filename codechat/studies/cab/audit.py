"""What people label of cells of `assist`: the judge's decisions, the data's conditions, and the simulated user.

Conditions are labelled as for the paper's Table 4: is each accurate, and are they complete? The simulated user is at
fault if it calls itself satisfied wrongly, or tells what the person who asked could not know.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from codechat.base.records import SessionRecord
from codechat.report.audit.kinds import (
    WORDS,
    Finder,
    Kind,
    Question,
    Row,
    Stratum,
    other_data,
    place_of,
    register,
    tasks_of,
)
from codechat.report.comparison import LoadedCell
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import AssistJudgement, AssistTurn, UserReply

EXTRACTION = "the data"
"""In place of a judge's name for what the dataset says."""


class _Conditions(Kind):
    """The judge's decisions. `place` is the condition's number among those of the issue, from 0; `turn` that of the
    answer that was judged."""

    def stratum(self, row: Row) -> Stratum:
        """The language, the judge and the decision."""
        return row["language"], row["judge"], row["judge_satisfied"]


def _decisions_of(cell: LoadedCell) -> Finder:
    tasks = {task.task_id: task for task in tasks_of(cell) if isinstance(task, AssistTask)}
    return partial(_of_session, cell, tasks)


def _of_session(cell: LoadedCell, tasks: Mapping[str, AssistTask], session: SessionRecord) -> Iterator[Row]:
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
        yield CONDITIONS.row(
            texts,
            **place_of(cell, session, turn, place),
            language=session.language,
            condition=condition,
            judge_satisfied=WORDS[met],
            judge=_model_of(cell, "judge"),
            judge_reason=(own.why[place] if own.why else "") or own.reason,
        )


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


Asked = Callable[[LoadedCell, AssistTask, SessionRecord], Iterator[Row]]


def _over_tasks(ask: Asked, cell: LoadedCell) -> Finder:
    """What is asked of a cell's sessions, each with its task."""
    tasks = {task.task_id: task for task in tasks_of(cell) if isinstance(task, AssistTask)}

    def of_session(session: SessionRecord) -> Iterator[Row]:
        task = tasks.get(session.task_id)
        if task is None or len(task.conditions) != len(AssistJudgement.of(session).conditions):
            raise other_data(cell, session.task_id, "conditions")
        return ask(cell, task, session)

    return of_session


def _thread_of(task: AssistTask) -> dict[str, str]:
    return {"question": task.prompt, "thread": "\n\n".join(f"{each.user}:\n{each.body}" for each in task.thread)}


def _of_data(cell: LoadedCell, task: AssistTask, language: str, place: int) -> dict[str, object]:
    """The columns of what the data says: the same of all cells over an issue, so that it is drawn once."""
    return {"dataset": cell.dataset, "task_id": task.task_id, "turn": 0, "place": place, "language": language,
            "judge": EXTRACTION}  # fmt: skip


def _accuracy(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[Row]:
    for place, condition in enumerate(task.conditions):
        columns = _of_data(cell, task, session.language, place)
        yield ACCURACY.row(
            {**_thread_of(task), "answer": condition}, **columns, extracted_condition=condition, judge_accurate="yes"
        )


def _completeness(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[Row]:
    columns, every = _of_data(cell, task, session.language, 0), _numbered(task)
    yield COMPLETENESS.row(
        {**_thread_of(task), "answer": every}, **columns, extracted_conditions=every, judge_complete="yes"
    )


def _statuses(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[Row]:
    """The user's readable statuses. People do not see the reply itself, which gives the status away."""
    for turn, reply in _replies(session):
        yield STATUSES.row(
            {"question": task.prompt, "answer": _dialogue(session, turn, unreplied=True)},
            **_of_user(cell, session, turn, reply),
            user_conditions=_numbered(task),
            judge_full=WORDS[reply.status == "FULLY_SATISFIED"],
        )


def _knowledge(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[Row]:
    """The user's readable replies. People see the conditions and the thread: everything that the user could know."""
    for turn, reply in _replies(session):
        texts = {**_thread_of(task), "conditions": _numbered(task), "answer": _dialogue(session, turn)}
        yield REPLIES.row(texts, **_of_user(cell, session, turn, reply), user_reply=reply.text, judge_fair="yes")


def _replies(session: SessionRecord) -> Iterator[tuple[int, UserReply]]:
    """The user's readable replies, each with its turn."""
    found = ((turn.turn, AssistTurn.of(turn).user) for turn in session.turns)
    return ((turn, reply) for turn, reply in found if reply is not None and reply.status is not None)


def _of_user(cell: LoadedCell, session: SessionRecord, turn: int, reply: UserReply) -> dict[str, object]:
    known = {"language": session.language, "judge": _model_of(cell, "user"), "judge_reason": reply.reason}
    return {**place_of(cell, session, turn, 0), **known}


def _numbered(task: AssistTask) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(task.conditions, 1))


_ASSIST: Any = {"groups": ("language",), "protocols": ("assist",)}
CONDITIONS = register(
    _Conditions(
        "conditions",
        one="decision on a satisfaction condition",
        questions=(Question("condition", "satisfied"),),
        ask="Does the maintainer's answer meet this condition? (What the user said does not matter.)",
        heading="Answer",
        find=_decisions_of,
        by_turn=False,  # an issue is judged once
        **_ASSIST,
    )
)
ACCURACY = register(
    Kind(
        "accuracy",
        one="condition of an issue",
        questions=(Question("extracted_condition", "accurate"),),
        ask="Does this condition say what the user needs, by the thread? (Not how it is done.)",
        heading="Condition",
        find=partial(_over_tasks, _accuracy),
        **_ASSIST,
    )
)
COMPLETENESS = register(
    Kind(
        "completeness",
        one="list of an issue's conditions",
        questions=(Question("extracted_conditions", "complete"),),
        ask="Do these conditions say all that the user needs, by the thread?",
        heading="Conditions",
        find=partial(_over_tasks, _completeness),
        **_ASSIST,
    )
)
STATUSES = register(
    Kind(
        "statuses",
        one="status of a simulated user",
        questions=(Question("user_conditions", "full"),),
        ask="Would somebody with these conditions be fully satisfied by what the maintainer has said so far?",
        heading="Dialogue",
        find=partial(_over_tasks, _statuses),
        **_ASSIST,
    )
)
REPLIES = register(
    Kind(
        "replies",
        one="reply of a simulated user",
        questions=(Question("user_reply", "fair"),),
        ask="Does the user's last reply say only what the person who opened the issue could know at that point?",
        heading="Dialogue",
        find=partial(_over_tasks, _knowledge),
        **_ASSIST,
    )
)
