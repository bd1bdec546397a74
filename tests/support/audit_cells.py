"""Cells as a run leaves them, written without a run: for tests of what reads them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from codechat.base.domain import Instruction
from codechat.base.files import write_atomically
from codechat.base.records import CandidateRecord, InstructionRecord, SessionRecord, TurnRecord
from codechat.report.metrics import Effort
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.metrics import refine_metrics

POOL: tuple[Instruction, ...] = read_pool(EMBEDDED, {}).instructions
CODE = "def double(x):\n    # twice\n    return x * 2\n"


def turn(number: int, chosen: Instruction, tried: Sequence[Instruction] = (), **values: Any) -> TurnRecord:
    """A follow-up turn: what was tried in vain, then what was chosen; judged as adhered unless told otherwise."""
    candidates = [CandidateRecord(id=one.id, applicable=False, by="rules") for one in tried]
    candidates.append(CandidateRecord(id=chosen.id, applicable=True, by="rules"))
    given = {"id": chosen.id, "text": chosen.text, "scope": chosen.scope, "change": chosen.change}
    fields = {
        "turn": number, "instruction": InstructionRecord.model_validate(given), "candidates": candidates,
        "response": "…", "code": CODE + f"# {number}\n", "outcome": "pass", "passed": True, "passed_base": True,
        "adherence": {"verdict": "adhered", "by": "rules", "reason": "seen"}, **values,
    }  # fmt: skip
    return TurnRecord.model_validate(fields)


def session(cell: str, task: str, turns: Sequence[TurnRecord], **values: Any) -> SessionRecord:
    """A completed session, whose turn 0 is `CODE`."""
    first = TurnRecord(turn=0, response="…", code=CODE, outcome="pass", passed=True, passed_base=True)
    fields = {
        "cell_id": cell, "session_id": f"{cell}-{task}", "task_id": task, "dataset": "d", "model": "m",
        "protocol": "refine", "agenda": ["cosmetic"] * len(turns), "seed": 0, "status": "completed",
        "turns": [first, *turns], **values,
    }  # fmt: skip
    return SessionRecord.model_validate(fields)


def write_cell(folder: Path, sessions: Sequence[SessionRecord], **config: Any) -> Path:
    """A finished cell's folder."""
    metrics = refine_metrics(list(sessions), seed=0, effort=Effort(wall_s=1.0))
    values = {"instructions": {"kind": "default"}, "seed": 0, **config}
    write_atomically(folder / "config.yaml", yaml.safe_dump(values))
    write_atomically(folder / "sessions.jsonl", "".join(one.line() + "\n" for one in sessions))
    write_atomically(folder / "metrics.json", json.dumps(metrics))
    return folder


def of(scope: str, change: str) -> list[Instruction]:
    """The embedded pool's instructions of one type."""
    return [one for one in POOL if (one.scope, one.change) == (scope, change)]
