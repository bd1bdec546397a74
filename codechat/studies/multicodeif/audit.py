"""Verdicts on constraints, to be labelled: drawn from cells of `repair` and `levels`, whoever decided them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar

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
from codechat.report.study import LoadedCell
from codechat.studies.multicodeif.metrics import ConstrainedTurn
from codechat.studies.multicodeif.rows import ConstrainedTask, Level


class ConstraintRow(JudgedRow):
    """One verdict with its label `met`. `place` is the constraint's number among those of the turn, from 0; `judge`
    says what decided it."""

    question: ClassVar[str] = "constraint"
    label: ClassVar[str] = "met"
    grouped: ClassVar[tuple[str, ...]] = ("category", "type")

    category: str
    type: str
    constraint: str
    met: Label = ""
    judge_met: Judged


def _decisions_of(cell: LoadedCell) -> Callable[[SessionRecord], Iterator[JudgedDecision]]:
    return partial(_of_session, cell, _levels_of(cell))


def _of_session(
    cell: LoadedCell, levels: Mapping[tuple[str, str], Level], session: SessionRecord
) -> Iterator[JudgedDecision]:
    """The verdicts on extracted code; the same reply judged again is left out."""
    for turn in session.turns:
        own = ConstrainedTurn.of(turn)
        if turn.code is None or own.carried:
            continue
        level = levels.get((session.task_id, own.level))
        if level is None or [each.type for each in level.constraints] != [each.type for each in own.constraints]:
            raise other_data(cell, session.task_id, "constraints")
        for place, (recorded, asked) in enumerate(zip(own.constraints, level.constraints, strict=True)):
            row = ConstraintRow.of(
                cell,
                session,
                (turn.turn, place),
                recorded.met,
                category=recorded.category,
                type=recorded.type,
                constraint=asked.words,
                judge=recorded.by,
                judge_reason=recorded.reason,
            )
            yield JudgedDecision(row, {"prompt": level.prompt, "code": turn.code})


def _levels_of(cell: LoadedCell) -> dict[tuple[str, str], Level]:
    """The levels of the cell's tasks by task and name: records have no constraint in words."""
    return {
        (task.task_id, level.name): level
        for task in tasks_of(cell)
        if isinstance(task, ConstrainedTask)
        for level in task.levels
    }


CONSTRAINTS = register(
    Kind(
        ConstraintRow,
        ("verdict", "constraints"),
        "verdict on a constraint",
        ("repair", "levels"),
        _decisions_of,
        "Does this code keep the constraint? (Whether the code works does not matter.)",
    )
)
