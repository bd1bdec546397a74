"""Recorded turns with verdicts on constraints, written short."""

from typing import Any

from codechat.base.records import SessionRecord, TurnRecord
from codechat.studies.multicodeif.metrics import ConstrainedTurn, ConstraintRecord

KINDS = {  # a constraint's letter: its type, its category, what decides it
    "n": ("naming", "coding_style", "rule"),
    "t": ("data_structure_type", "data_structure", "rule"),
    "o": ("data_structure_operation", "data_structure", "rule"),
    "v": ("language_version", "environment", "compiler"),
    "q": ("code_quality", "code_quality", "judge"),
    "x": ("exemplar", "exemplar", "judge"),
}
MET = {"+": True, "-": False, "?": None}


def constraint(written: str) -> ConstraintRecord:
    """`n+` is met, `n-` unmet, `n?` undecided; `n+-` is met by the guarded harness alone."""
    name, category, by = KINDS[written[0]]
    guarded, official = MET[written[1]], MET[written[-1]]
    return ConstraintRecord(
        type=name, category=category, by=by, met=guarded, reason=f"made up: {written}", guarded=guarded, official=official
    )  # fmt: skip


def turn(number: int, written: str, **fields: Any) -> TurnRecord:
    """A turn with the verdicts on its constraints, such as `n+ t-?`; fields of the protocols or of every turn."""
    constraints = [constraint(each) for each in written.split()]
    names = ConstrainedTurn.model_fields
    own = ConstrainedTurn(
        **{"level": "single", "round": number, "constraints": constraints, "parses": True}
        | {name: value for name, value in fields.items() if name in names}
    )
    passed = own.all_met("met")
    outcome = None if passed is None else "pass" if passed else "fail"
    common = {"response": "…", "code": "x", "outcome": outcome, "passed": passed, "passed_base": passed}
    further = {name: value for name, value in fields.items() if name not in names}
    return TurnRecord(turn=number, **common | further, **own.model_dump())


def session(task: str, *turns: str | TurnRecord, **fields: Any) -> SessionRecord:
    """A session of turns, written as for `turn`."""
    made = [each if isinstance(each, TurnRecord) else turn(number, each) for number, each in enumerate(turns)]
    known = {"cell_id": "c", "session_id": task, "task_id": task, "dataset": "d", "model": "m", "protocol": "repair"}
    return SessionRecord(**known | {"agenda": [], "seed": 0, "status": "completed", "turns": made} | fields)
