"""The verdicts on constraints in a recording, such as published ones, for another run over the same replies.

A verdict is on a reply: code that is not in the recorded reply is undecided.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from codechat.base.config import original_option, place_option
from codechat.base.domain import Adherence, Applicability, Compliance, Instruction
from codechat.base.errors import UserError
from codechat.base.files import file_hash
from codechat.base.records import read_sessions
from codechat.judging import CONSTRAINT, JUDGES, ConstraintQuestion, JudgeConfig
from codechat.studies.multicodeif.metrics import ConstrainedTurn, ConstraintRecord

BY = "recorded"
REMEDY = "judge.path names the sessions.jsonl that is replayed (codechat import writes one of published outputs)"


class RecordedConfig(JudgeConfig):
    """The recording. The cell id covers the content of the file, not its path."""

    kind: Literal["recorded"] = original_option("recorded", "take the verdicts on constraints from a recording")
    path: str = place_option(..., "a sessions.jsonl: its content, not its place, is part of the cell id", min_length=1)

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options and the hash of the recording. Raises `UserError` if it cannot be read."""
        return {**super().identity(older), "content": file_hash(Path(self.path), REMEDY)}


@dataclass(frozen=True, slots=True)
class _Judged:
    """A recorded reply, and the verdicts on it."""

    reply: str
    constraints: list[ConstraintRecord]

    def holds(self, code: str) -> bool:
        """Whether each line of the code is in the reply."""
        return code.strip() in self.reply or _lines(code) <= _lines(self.reply)


def _read(path: Path) -> dict[str, dict[int, _Judged]]:
    """The verdicts by task and turn."""
    judged: dict[str, dict[int, _Judged]] = {}
    for session in read_sessions(path):
        name = session.task_id
        if name in judged:
            raise UserError(f"{path} has two sessions of {name}", REMEDY)
        judged[name] = {}
        for turn in session.turns:
            try:
                judged[name][turn.turn] = _Judged(turn.response or "", ConstrainedTurn.of(turn).constraints)
            except ValidationError as error:
                raise UserError(f"{path}: turn {turn.turn} of {name} has no verdicts on constraints", REMEDY) from error
    return judged


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()} - {""}


@JUDGES.register("recorded", RecordedConfig, offline=True, questions=frozenset({CONSTRAINT}))
class RecordedJudge:
    """The verdicts on constraints in a recording (judge.path), by task, turn and place; offline."""

    def __init__(self, config: RecordedConfig) -> None:
        self._path = Path(config.path)
        self._turns: dict[str, dict[int, _Judged]] | None = None

    async def check(self) -> None:
        """Read the recording. Raises `UserError` that names the first wrong line."""
        if self._turns is None:
            self._turns = _read(self._path)

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        return Applicability(None, BY, "verdicts on constraints alone are recorded")

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        return Adherence("undecided", BY, "verdicts on constraints alone are recorded")

    async def constraint(self, question: ConstraintQuestion) -> Compliance:
        """The recorded verdict, undecided without one. Raises `UserError` if the recording lacks the task."""
        await self.check()
        assert self._turns is not None
        turns = self._turns.get(question.task_id)
        if turns is None:
            raise UserError(f"{self._path} holds no session of {question.task_id}", REMEDY)
        judged = turns.get(question.turn)
        if judged is None or question.index >= len(judged.constraints):
            return Compliance(None, BY, "no verdict on this turn is recorded")
        if not judged.holds(question.code):
            return Compliance(None, BY, "the recorded verdict is on another reply")
        verdict = judged.constraints[question.index]
        return Compliance(verdict.met, BY, verdict.reason)

    async def aclose(self) -> None:
        self._turns = None
