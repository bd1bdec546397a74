"""Labels for cells of `assist`: the judge's decisions, and the data's conditions as for the paper's Table 4.

Is each condition accurate, and are they complete?
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from codechat.base.records import SessionRecord
from codechat.datasets.reading.lines import read_values
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
from codechat.report.audit.made import ITEMS, YIELD
from codechat.report.comparison import LoadedCell
from codechat.studies.cab.tasks import AssistTask, IssueRow
from codechat.studies.cab.turns import AssistJudgement, AssistTurn

EXTRACTION = "the data"  # in place of a judge's name for the dataset's statements
Asked = Callable[[LoadedCell, AssistTask, SessionRecord], Iterator[Row]]


class _Conditions(Kind):
    """The judge's decisions. `place` is the condition's index among the issue's, `turn` the judged answer's turn."""

    def stratum(self, row: Row) -> Stratum:
        """The language, the judge and the decision."""
        return row["language"], row["judge"], row["judge_satisfied"]


def _with_tasks(ask: Asked, cell: LoadedCell) -> Finder:
    """The rows of `ask` for the cell's sessions, each with its task."""
    tasks = {task.task_id: task for task in tasks_of(cell) if isinstance(task, AssistTask)}

    def of_session(session: SessionRecord) -> Iterator[Row]:
        task = tasks.get(session.task_id)
        if task is None or len(task.conditions) != len(AssistJudgement.of(session).conditions):
            raise other_data(cell, session.task_id, "conditions")
        return ask(cell, task, session)

    return of_session


def _decisions(cell: LoadedCell, task: AssistTask, session: SessionRecord) -> Iterator[Row]:
    """The decisions of a session; none without an answer, since no judge was asked then."""
    judgement = AssistJudgement.of(session)
    answers = [(turn.turn, answer) for turn in session.turns if (answer := AssistTurn.of(turn).answer) is not None]
    whole = (cell.config.get("protocol") or {}).get("judged") == "dialogue"
    for turn, answer in answers[-1:]:
        texts = {**_thread_of(task), "answer": _dialogue(session) if whole else answer}
        for place, (met, condition) in enumerate(zip(judgement.conditions, task.conditions, strict=True)):
            yield CONDITIONS.row(
                texts,
                **place_of(cell, session, turn, place),
                language=session.language,
                condition=condition,
                judge_satisfied=WORDS[met],
                judge=_model_of(cell, "judge"),
                judge_reason=(judgement.why[place] if judgement.why else "") or judgement.reason,
            )


def _dialogue(session: SessionRecord) -> str:
    said: list[str] = []
    for turn in map(AssistTurn.of, session.turns):
        if turn.answer is not None:
            said.append(f"maintainer:\n{turn.answer}")
            said += [f"user:\n{turn.user.text}"] if turn.user is not None else []
    return "\n\n".join(said)


def _model_of(cell: LoadedCell, role: str) -> str:
    known = ((cell.config.get("protocol") or {}).get("roles") or {}).get(role) or {}
    return str(known.get("name") or known.get("kind") or role)


def _thread_of(task: AssistTask) -> dict[str, str]:
    return {"question": task.prompt, "thread": "\n\n".join(f"{each.user}:\n{each.body}" for each in task.thread)}


Statements = Callable[[str, AssistTask, str], Iterator[Row]]


@dataclass(frozen=True)
class _OfData(Kind):
    """Statements of the data: of cells over it, or of a construction's items, before any cell ran.

    `statements` takes a dataset's name, a task and its language.
    """

    statements: Statements | None = None

    def rows(self, runs: Sequence[Path]) -> tuple[list[Row], Sequence[LoadedCell]]:
        made = [folder for folder in runs if (folder / YIELD).is_file()]
        cells = [folder for folder in runs if folder not in made]
        found = [row for folder in made for row in self._of_construction(folder)]
        further, loaded = super().rows(cells) if cells or not found else ([], ())
        return [*found, *further], loaded

    def _of_construction(self, folder: Path) -> Iterator[Row]:
        """The statements of kept issues, as a cell over them would have them."""
        assert self.statements is not None
        for _, row in read_values(folder / ITEMS, IssueRow.model_validate, "give a folder that recipe=issues made"):
            task = row.task()
            yield from self.statements(folder.name, task, task.target.language)


def _of_data(dataset: str, task: AssistTask, language: str, place: int) -> dict[str, object]:
    """The columns of the data's statements: equal for all cells over an issue, so that it is drawn once."""
    return {"dataset": dataset, "task_id": task.task_id, "turn": 0, "place": place, "language": language,
            "judge": EXTRACTION}  # fmt: skip


def _accuracy(dataset: str, task: AssistTask, language: str) -> Iterator[Row]:
    for place, condition in enumerate(task.conditions):
        columns = _of_data(dataset, task, language, place)
        yield ACCURACY.row(
            {**_thread_of(task), "answer": condition}, **columns, extracted_condition=condition, judge_accurate="yes"
        )


def _completeness(dataset: str, task: AssistTask, language: str) -> Iterator[Row]:
    columns, every = _of_data(dataset, task, language, 0), _numbered(task)
    yield COMPLETENESS.row(
        {**_thread_of(task), "answer": every}, **columns, extracted_conditions=every, judge_complete="yes"
    )


def _numbered(task: AssistTask) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(task.conditions, 1))


def _registered(name: str, statements: Statements, **about: Any) -> Kind:
    found = partial(_with_tasks, lambda cell, task, session: statements(cell.dataset, task, session.language))
    groups, protocols = ("language",), ("assist",)
    return register(_OfData(name, find=found, statements=statements, groups=groups, protocols=protocols, **about))


CONDITIONS = register(
    _Conditions(
        "conditions",
        one="decision on a satisfaction condition",
        questions=(Question("condition", "satisfied"),),
        ask="Does the maintainer's answer meet this condition? (What the user said does not matter.)",
        heading="Answer",
        find=partial(_with_tasks, _decisions),
        by_turn=False,  # an issue is judged once
        groups=("language",),
        protocols=("assist",),
    )
)
ACCURACY = _registered(
    "accuracy",
    _accuracy,
    one="condition of an issue",
    questions=(Question("extracted_condition", "accurate"),),
    ask="Does this condition say what the user needs, by the thread? (Not how it is done.)",
    heading="Condition",
)
COMPLETENESS = _registered(
    "completeness",
    _completeness,
    one="list of an issue's conditions",
    questions=(Question("extracted_conditions", "complete"),),
    ask="Do these conditions say all that the user needs, by the thread?",
    heading="Conditions",
)
