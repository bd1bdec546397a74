"""Verdicts on constraints for labelling, from cells of `repair` and `levels`: of rules, judges and compilers."""

from collections.abc import Iterator, Mapping
from functools import partial

from codechat.base.records import SessionRecord
from codechat.report.audit.kinds import WORDS, Finder, Kind, Question, Row, other_data, place_of, register, tasks_of
from codechat.report.comparison import LoadedCell
from codechat.studies.multicodeif.metrics import ConstrainedTurn
from codechat.studies.multicodeif.rows import ConstrainedTask, Level


def _decisions_of(cell: LoadedCell) -> Finder:
    """The decisions on a cell's tasks; records lack the constraints in words, which the tasks have."""
    tasks = [task for task in tasks_of(cell) if isinstance(task, ConstrainedTask)]
    return partial(_of_session, cell, {(task.task_id, level.name): level for task in tasks for level in task.levels})


def _of_session(cell: LoadedCell, levels: Mapping[tuple[str, str], Level], session: SessionRecord) -> Iterator[Row]:
    """The verdicts on extracted code; the same reply judged again is left out."""
    for turn in session.turns:
        own = ConstrainedTurn.of(turn)
        if turn.code is None or own.carried:
            continue
        level = levels.get((session.task_id, own.level))
        if level is None or [each.type for each in level.constraints] != [each.type for each in own.constraints]:
            raise other_data(cell, session.task_id, "constraints")
        for place, (recorded, asked) in enumerate(zip(own.constraints, level.constraints, strict=True)):
            yield CONSTRAINTS.row(
                {"prompt": level.prompt, "code": turn.code},
                **place_of(cell, session, turn.turn, place),
                category=recorded.category,
                type=recorded.type,
                constraint=asked.words,
                judge_met=WORDS[recorded.met],
                judge=recorded.by,
                judge_reason=recorded.reason,
            )


CONSTRAINTS = register(
    Kind(
        "constraints",
        noun="verdict",
        one="verdict on a constraint",
        questions=(Question("constraint", "met"),),
        groups=("category", "type"),
        ask="Does this code keep the constraint? (Whether the code works does not matter.)",
        protocols=("repair", "levels"),
        find=_decisions_of,
    )
)
