"""The programs of one turn as EvalPlus's samples, so that EvalPlus itself can confirm the verdicts."""

import json
import re
from typing import Literal

from codechat.base.config import original_option
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, read_sessions
from codechat.base.template import counted
from codechat.report.exporting import EXPORTS, ExportConfig, Exported

TASK = re.compile(r"(HumanEval|Mbpp)/\d+")
"""The ids of EvalPlus's tasks."""


class EvalPlusExport(ExportConfig):
    """Options of `evalplus`."""

    format: Literal["evalplus"] = original_option("evalplus", "the tool that is to read it")
    turn: int = original_option(..., "the turn whose programs are written; 0 is the initial generation", ge=0)


@EXPORTS.register("evalplus", EvalPlusExport)
def evalplus_samples(config: EvalPlusExport) -> Exported:
    """One turn's programs, to be checked by `evalplus.evaluate --samples FILE`."""
    sessions = [session for session in read_sessions(config.sessions) if session.status == "completed"]
    foreign = next((session.task_id for session in sessions if not TASK.fullmatch(session.task_id)), None)
    if foreign is not None:
        raise UserError(f"EvalPlus does not know the task {foreign}", "export cells of humaneval or mbpp")
    reached = [session for session in sessions if len(session.turns) > config.turn]
    if not reached:
        last = max((len(session.turns) for session in sessions), default=0) - 1
        remedy = f"the last turn is {last}" if last >= 0 else "no session of the cell is complete"
        raise UserError(f"no complete session has a turn {config.turn}", remedy)
    lines = [{"task_id": session.task_id, "solution": program_at(session, config.turn)} for session in reached]
    empty = sum(not line["solution"] for line in lines)
    remarks = [f"{counted(empty, 'reply', 'replies')} had no code: an empty program, which fails"] if empty else []
    remarks.append("EvalPlus takes only files with every task: no cell with errors or dataset.limit")
    text = (json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return Exported(text, f"{counted(len(lines), 'program')} of turn {config.turn}", remarks, ".jsonl")


def program_at(session: SessionRecord, turn: int) -> str:
    """The program tested at a turn, empty without code in the reply. A skipped turn repeats the turn before."""
    asked = next(place for place in range(turn, -1, -1) if not session.turns[place].skipped)
    return session.turns[asked].code or ""
