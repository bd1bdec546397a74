"""The judge's decisions on satisfaction conditions, to be labelled: drawn from cells of `assist`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from codechat.audit.strata import draw_by_stratum, shuffled
from codechat.datasets import DATASETS
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.metrics.assist_turns import AssistJudgement, AssistTurn
from codechat.records import SessionRecord
from codechat.report.contents import content_notes
from codechat.report.loading import load_cells
from codechat.report.study import LoadedCell
from codechat.tasks import AssistTask

PROTOCOL = "assist"
ROLE = "judge"
TEXTS = ("question", "thread", "answer")
_WORDS: Mapping[bool | None, Literal["yes", "no", "undecided"]] = {True: "yes", False: "no", None: "undecided"}


class ConditionRow(BaseModel):
    """One decision with its label `satisfied`, the fields in the order of the columns; an empty label is no label.

    `place` is the condition's number among those of the issue, from 0; `turn` that of the answer that was judged.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    sample: str
    dataset: str
    task_id: str
    turn: int
    place: int
    language: str
    condition: str
    satisfied: Literal["yes", "no", ""] = ""
    note: str = ""
    annotator: str = ""
    judge_satisfied: Literal["yes", "no", "undecided"]
    judge: str
    judge_reason: str
    cell_id: str

    @field_validator("satisfied", mode="before")
    @classmethod
    def _forgive_case(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @property
    def is_genuine(self) -> bool:
        """Whether the row is unchanged except for its labels."""
        return self.sample == condition_key(self.cell_id, self.task_id, self.place, self.judge_satisfied)

    @property
    def instruction(self) -> str:
        """What the user needs."""
        return self.condition

    @property
    def groups(self) -> Mapping[str, str]:
        """The groups by which decisions are scored."""
        return {"language": self.language}


@dataclass(frozen=True, slots=True)
class ConditionDecision:
    """A row without labels, with what the judge read: the question, the real thread, and the answer."""

    row: ConditionRow
    question: str
    thread: str
    answer: str

    @property
    def key(self) -> str:
        """Identifies the decision."""
        return self.row.sample

    @property
    def texts(self) -> tuple[str, ...]:
        """The values of `TEXTS`."""
        return (self.question, self.thread, self.answer)


@dataclass(frozen=True, slots=True)
class DrawnConditions:
    """The drawn decisions, how many there are of all, and sentences about the cells."""

    decisions: tuple[ConditionDecision, ...]
    population: int
    notes: tuple[str, ...]


def draw_conditions(runs: Iterable[Path], size: int, seed: int) -> DrawnConditions:
    """Draw `size` decisions from all completed sessions, each language, judge and decision by its share.

    Sessions without an answer are left out: no judge was asked. Raises `UserError` if there is nothing to draw, or a
    cell's issues cannot be read.
    """
    cells = [cell for cell in load_cells(list(runs)) if cell.protocol == PROTOCOL]
    found = [one for cell in cells for one in _decisions_of(cell)]
    if not found:
        raise UserError("the runs hold no decision on a satisfaction condition", "give cells of protocol=assist")
    found.sort(key=lambda one: (one.row.cell_id, one.row.task_id, one.row.place))
    strata = [(one.row.language, one.row.judge, one.row.judge_satisfied) for one in found]
    drawn = shuffled(draw_by_stratum(found, strata, size, seed, "audit/conditions"), seed)
    return DrawnConditions(tuple(drawn), len(found), tuple(content_notes(cells)))


def _decisions_of(cell: LoadedCell) -> Iterator[ConditionDecision]:
    tasks, judge = _tasks_of(cell), _judge_of(cell)
    whole = (cell.config.get("protocol") or {}).get("judged") == "dialogue"
    for session in cell.sessions():
        if session.status == "completed":
            yield from _of_session(cell, session, tasks, judge, whole=whole)


def _of_session(
    cell: LoadedCell, session: SessionRecord, tasks: Mapping[str, AssistTask], judge: str, *, whole: bool
) -> Iterator[ConditionDecision]:
    own, answers = AssistJudgement.of(session), _answers(session)
    if not answers:
        return
    task = tasks.get(session.task_id)
    if task is None or len(task.conditions) != len(own.conditions):
        raise UserError(
            f"{cell.folder}: {session.task_id} has other conditions in the dataset now, or is not there",
            "give dataset.path the file that the cell ran on, or leave the cell out",
        )
    turn, last = answers[-1]
    thread = "\n\n".join(f"{each.user}:\n{each.body}" for each in task.thread)
    for place, (met, condition) in enumerate(zip(own.conditions, task.conditions, strict=True)):
        row = ConditionRow(
            sample=condition_key(session.cell_id, session.task_id, place, _WORDS[met]),
            dataset=cell.dataset,
            task_id=session.task_id,
            turn=turn,
            place=place,
            language=session.language,
            condition=condition,
            judge_satisfied=_WORDS[met],
            judge=judge,
            judge_reason=(own.why[place] if own.why else "") or own.reason,
            cell_id=session.cell_id,
        )
        yield ConditionDecision(row, task.prompt, thread, _dialogue(session) if whole else last)


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


def _tasks_of(cell: LoadedCell) -> dict[str, AssistTask]:
    """The cell's issues: records have no condition in words. Repositories are not needed to read them."""
    values: dict[str, Any] = dict(cell.config.get("dataset") or {})
    values.pop("repos", None)
    tasks = DATASETS.build(DATASETS.validate(values)).tasks
    return {task.task_id: task for task in tasks if isinstance(task, AssistTask)}


def condition_key(cell_id: str, task_id: str, place: int, judged: str) -> str:
    """The hash of a decision: where it stands, and what it is."""
    return content_hash(["condition", cell_id, task_id, place, judged])[:16]
