"""Answers from a recorded sessions.jsonl: the same replies again, for another judge, sandbox or extraction.

Replies are looked up by (task, turn, role, number of the role's call). If the task or the instruction differs from the
recorded one, the session has left the recorded path, which is a user's mistake.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from codechat.base.config import original_option, place_option, result_option
from codechat.base.domain import Reply
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.files import file_hash
from codechat.base.records import CallRecord, SessionRecord, TurnRecord, read_sessions
from codechat.models import MODELS, UNDER_TEST, ModelConfig, Request
from codechat.models.reasoning import MARKS, Marks, parted

SAME_TASK = "replay with the recording's dataset and first prompt (protocol.prompts.initial)"
SAME_VERDICTS = "replay with the recording's tests and sandbox: other verdicts lead to other requests"
SAME_PATH = "replay with the recording's seed, dataset, agenda, instructions and applicability judge"


class ReplayConfig(ModelConfig):
    """The recording. The cell id covers the file's content, not its path."""

    kind: Literal["replay"] = original_option("replay", "which provider answers")
    name: str = original_option("replay", "the name that the records show", min_length=1)
    path: str = place_option(..., "a sessions.jsonl: its content, not its place, is part of the cell id", min_length=1)
    thoughts: Marks = result_option((), MARKS)

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options and the hash of the recording. Raises `UserError` if it cannot be read."""
        return {**super().identity(older), "content": file_hash(Path(self.path), "model.path names a sessions.jsonl")}

    def recorded_model(self) -> str | None:
        path = Path(self.path)  # a cell that is judged again may outlive its recording
        first = next(read_sessions(path), None) if path.is_file() else None
        return first.model if first is not None and first.model != self.name else None


@MODELS.register("replay", ReplayConfig, offline=True)
class Replay:
    """The replies of a recorded sessions.jsonl (model.path), by task and turn; offline."""

    def __init__(self, config: ReplayConfig) -> None:
        self.config = config
        self._sessions: dict[str, SessionRecord] = {}

    async def check(self) -> None:
        """Read the recording. Raises `UserError` naming the first line that is wrong."""
        if self._sessions:
            return
        for record in read_sessions(Path(self.config.path)):
            if record.task_id in self._sessions:
                what = f"{self.config.path} has two sessions of {record.task_id}"
                raise UserError(what, "replay one cell's sessions.jsonl")
            self._sessions[record.task_id] = record

    async def complete(self, request: Request) -> Reply:
        """The recorded reply. Raises `ContextOverflow` if it is recorded, and `UserError` if there is no reply."""
        await self.check()
        session = self._sessions.get(request.task_id)
        if session is None:
            raise self._absent(request, "it has no session of this task", "replay the tasks that were recorded")
        turn = next((turn for turn in session.turns if turn.turn == request.turn), None)
        if turn is None:
            cause = f"its session errored: {session.error}" if session.error else "its session has fewer turns"
            raise self._absent(request, cause, "finish the recording first, or ask for fewer turns")
        if turn.skipped:
            raise self._absent(request, "the turn was skipped there", SAME_PATH)
        first = request.role == UNDER_TEST and request.number == 0
        opening = turn.first_request if turn.turn == 0 else []  # empty in imported recordings
        if first and opening and opening[-1].content != request.messages[-1].content:
            raise self._absent(request, "the task was put in other words there", SAME_TASK)
        calls = list(turn.calls())
        if request.role != UNDER_TEST and not calls:
            raise self._absent(request, f"it has no calls of {request.role}", "replay the model under test alone")
        if calls:
            return self._call(request, [call for call in calls if call.role == request.role])
        if request.again:
            raise self._absent(request, "the model was asked once there", SAME_VERDICTS)
        if turn.response is None:
            if session.ended == "context_overflow":
                raise ContextOverflow(f"the recorded session of {request.task_id} ended before turn {request.turn}")
            raise self._absent(request, "the turn has no response there", "")
        for instruction in _instructions_of(turn):
            if instruction not in request.messages[-1].content:
                raise self._absent(request, f"it answers another instruction there: {instruction:.80}", SAME_PATH)
        return self._reply(turn)

    def _call(self, request: Request, calls: list[CallRecord]) -> Reply:
        """The reply among the recorded calls of the role at this turn."""
        if request.number >= len(calls):
            remedy = SAME_VERDICTS if request.again else SAME_PATH
            raise self._absent(request, f"{request.role} was asked {len(calls)} times there", remedy)
        call = calls[request.number]
        if call.response is None:
            raise ContextOverflow(f"the recorded call of {request.task_id} did not fit the model")
        return self._reply(call)

    def _reply(self, said: TurnRecord | CallRecord) -> Reply:
        done = said.trajectory if isinstance(said, TurnRecord) else None
        reply = Reply(said.response or "", said.finish_reason, said.latency_s, usage=said.usage, trajectory=done)
        return parted(replace(reply, reasoning=said.reasoning or ""), self.config.thoughts)

    def _absent(self, request: Request, cause: str, remedy: str) -> UserError:
        place = f"turn {request.turn} of {request.task_id}"
        return UserError(f"{self.config.path} holds no reply for {place}: {cause}", remedy)

    async def aclose(self) -> None:
        self._sessions = {}


def _instructions_of(turn: TurnRecord) -> list[str]:
    """The texts of the turn's instructions: refinements, or the `requirement` that other protocols record."""
    requirement = (turn.model_extra or {}).get("requirement")
    if isinstance(requirement, dict) and isinstance(requirement.get("text"), str):
        return [str(requirement["text"]).strip()]
    return [asked.text for asked in turn.asked]
