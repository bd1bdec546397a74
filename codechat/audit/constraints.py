"""Verdicts on constraints, to be labelled: drawn from cells of `repair` and `levels`, whoever decided them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from codechat.audit.strata import draw_by_stratum, shuffled
from codechat.datasets import DATASETS
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.metrics.constrained import ConstrainedTurn
from codechat.records import SessionRecord
from codechat.report.contents import content_notes
from codechat.report.loading import load_cells
from codechat.report.study import LoadedCell
from codechat.tasks import ConstrainedTask, Level

PROTOCOLS = ("repair", "levels")
TEXTS = ("prompt", "code")
_WORDS: Mapping[bool | None, Literal["yes", "no", "undecided"]] = {True: "yes", False: "no", None: "undecided"}


class ConstraintRow(BaseModel):
    """One verdict with its label `met`, the fields in the order of the columns; an empty label is no label.

    `constraint` is in words, `place` its number among those of the turn; `judge` says what decided it.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    sample: str
    dataset: str
    task_id: str
    turn: int
    place: int
    category: str
    type: str
    constraint: str
    met: Literal["yes", "no", ""] = ""
    note: str = ""
    annotator: str = ""
    judge_met: Literal["yes", "no", "undecided"]
    judge: str
    judge_reason: str
    cell_id: str

    @field_validator("met", mode="before")
    @classmethod
    def _forgive_case(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @property
    def is_genuine(self) -> bool:
        """Whether the row is unchanged except for its labels."""
        return self.sample == constraint_key(self.cell_id, self.task_id, self.turn, self.place, self.judge_met)

    @property
    def instruction(self) -> str:
        """What was asked, in words."""
        return self.constraint

    @property
    def groups(self) -> Mapping[str, str]:
        """The groups by which verdicts are scored."""
        return {"category": self.category, "type": self.type}


@dataclass(frozen=True, slots=True)
class ConstraintDecision:
    """A row without labels, with the task's prompt and the code that was checked."""

    row: ConstraintRow
    prompt: str
    code: str

    @property
    def key(self) -> str:
        """Identifies the verdict."""
        return self.row.sample

    @property
    def texts(self) -> tuple[str, ...]:
        """The values of `TEXTS`."""
        return (self.prompt, self.code)


@dataclass(frozen=True, slots=True)
class DrawnConstraints:
    """The drawn verdicts, how many there are of all, and sentences about the cells."""

    decisions: tuple[ConstraintDecision, ...]
    population: int
    notes: tuple[str, ...]


def draw_constraints(runs: Iterable[Path], size: int, seed: int) -> DrawnConstraints:
    """Draw `size` verdicts on extracted code from all completed sessions, each type and decider by its share.

    The same reply judged again is left out. Raises `UserError` if there is none, or a cell's tasks cannot be read.
    """
    cells = [cell for cell in load_cells(list(runs)) if cell.protocol in PROTOCOLS]
    found = [one for cell in cells for one in _decisions_of(cell)]
    if not found:
        raise UserError("the runs hold no verdict on a constraint", "give cells of protocol=repair or protocol=levels")
    found.sort(key=lambda one: (one.row.cell_id, one.row.task_id, one.row.turn, one.row.place))
    strata = [(one.row.type, one.row.judge, "") for one in found]
    drawn = shuffled(draw_by_stratum(found, strata, size, seed, "audit/constraints"), seed)
    return DrawnConstraints(tuple(drawn), len(found), tuple(content_notes(cells)))


def _decisions_of(cell: LoadedCell) -> Iterator[ConstraintDecision]:
    levels = _levels_of(cell)
    for session in cell.sessions():
        if session.status == "completed":
            yield from _of_session(cell, session, levels)


def _of_session(
    cell: LoadedCell, session: SessionRecord, levels: Mapping[tuple[str, str], Level]
) -> Iterator[ConstraintDecision]:
    for turn in session.turns:
        own = ConstrainedTurn.of(turn)
        if turn.code is None or own.carried:
            continue
        level = levels.get((session.task_id, own.level))
        if level is None or [each.type for each in level.constraints] != [each.type for each in own.constraints]:
            raise UserError(
                f"{cell.folder}: {session.task_id} has other constraints in the dataset now, or is not there",
                "give dataset.path the file that the cell ran on, or leave the cell out",
            )
        for place, (recorded, asked) in enumerate(zip(own.constraints, level.constraints, strict=True)):
            met = _WORDS[recorded.met]
            row = ConstraintRow(
                sample=constraint_key(session.cell_id, session.task_id, turn.turn, place, met),
                dataset=cell.dataset,
                task_id=session.task_id,
                turn=turn.turn,
                place=place,
                category=recorded.category,
                type=recorded.type,
                constraint=asked.words,
                judge_met=met,
                judge=recorded.by,
                judge_reason=recorded.reason,
                cell_id=session.cell_id,
            )
            yield ConstraintDecision(row, level.prompt, turn.code)


def _levels_of(cell: LoadedCell) -> dict[tuple[str, str], Level]:
    """The levels of the cell's tasks by task and name: records have no constraint in words."""
    values: dict[str, Any] = dict(cell.config.get("dataset") or {})
    tasks = DATASETS.build(DATASETS.validate(values)).tasks
    return {
        (task.task_id, level.name): level
        for task in tasks
        if isinstance(task, ConstrainedTask)
        for level in task.levels
    }


def constraint_key(cell_id: str, task_id: str, turn: int, place: int, judged: str) -> str:
    """The hash of a verdict: where it stands, and what it is."""
    return content_hash(["constraint", cell_id, task_id, turn, place, judged])[:16]
