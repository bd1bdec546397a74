"""Answers from a recorded sessions.jsonl: the same replies again, for another judge, sandbox or extraction.

What was recorded is looked up by (task, turn). A question that was not recorded means that the session takes another
path than the recording did, so the recorded reply would answer something else: a user's mistake, told as such.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codechat.config import result_option, run_option
from codechat.domain import Reply, Usage
from codechat.errors import ContextOverflow, UserError
from codechat.models import MODELS, ModelConfig, Request
from codechat.records import SessionRecord, TurnRecord, read_sessions


class ReplayConfig(ModelConfig):
    """Which recording. The cell id covers the file's content, wherever it lies."""

    kind: Literal["replay"] = result_option("replay", "which provider answers")
    name: str = result_option("replay", "the name that the records show", min_length=1)
    path: str = run_option(..., "a sessions.jsonl: its content, not its place, is part of the cell id", min_length=1)

    def identity(self) -> dict[str, Any]:
        """The options and the hash of the recording. Raises `UserError` where it cannot be read."""
        return {**super().identity(), "content": _hash_of(Path(self.path))}


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One recorded turn; `reply` is None where the model was not asked or could take no more."""

    reply: Reply | None
    instruction: str | None
    skipped: bool


@dataclass(frozen=True, slots=True)
class _Session:
    turns: dict[int, _Recorded]
    overflowed: bool
    error: str | None


@MODELS.register("replay", ReplayConfig)
class Replay:
    """The replies of a recorded sessions.jsonl (model.path), by task and turn; offline."""

    def __init__(self, config: ReplayConfig) -> None:
        self.config = config
        self._sessions: dict[str, _Session] | None = None

    async def check(self) -> None:
        """Read the recording. Raises `UserError` naming the first line that is wrong."""
        if self._sessions is None:
            self._sessions = _load(Path(self.config.path))

    async def complete(self, request: Request) -> Reply:
        """The recorded reply. Raises `ContextOverflow` where the recording did, `UserError` where it has no reply."""
        await self.check()
        assert self._sessions is not None
        session = self._sessions.get(request.task_id)
        if session is None:
            raise self._absent(request, "it has no session of this task", "replay the tasks that were recorded")
        turn = session.turns.get(request.turn)
        if turn is None:
            cause = f"its session errored: {session.error}" if session.error else "its session has fewer turns"
            raise self._absent(request, cause, "finish the recording first, or ask for fewer turns")
        if turn.skipped:
            raise self._absent(request, "the turn was skipped there", _SAME_PATH)
        if turn.reply is None:
            if session.overflowed:
                raise ContextOverflow(f"the recorded session of {request.task_id} ended before turn {request.turn}")
            raise self._absent(request, "the turn has no response there", "")
        if turn.instruction is not None and turn.instruction not in request.messages[-1].content:
            raise self._absent(request, f"it answers another instruction there: {turn.instruction:.80}", _SAME_PATH)
        return turn.reply

    def _absent(self, request: Request, cause: str, remedy: str) -> UserError:
        place = f"turn {request.turn} of {request.task_id}"
        return UserError(f"{self.config.path} holds no reply for {place}: {cause}", remedy)

    async def aclose(self) -> None:
        """Forget the recording."""
        self._sessions = None


_SAME_PATH = "replay with the recording's seed, dataset, agenda, instructions and applicability judge"


def _load(path: Path) -> dict[str, _Session]:
    sessions: dict[str, _Session] = {}
    for record in read_sessions(path):
        if record.task_id in sessions:
            raise UserError(f"{path} has two sessions of {record.task_id}", "replay one cell's sessions.jsonl")
        sessions[record.task_id] = _session(record)
    return sessions


def _session(record: SessionRecord) -> _Session:
    turns = {turn.turn: _turn(turn) for turn in record.turns}
    return _Session(turns, record.ended == "context_overflow", record.error)


def _turn(turn: TurnRecord) -> _Recorded:
    usage = Usage(turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.cached_input_tokens)
    reply = None if turn.response is None else Reply(turn.response, turn.finish_reason, usage, turn.latency_s)
    return _Recorded(reply, _asked_for(turn), turn.skipped)


def _asked_for(turn: TurnRecord) -> str | None:
    """The text that the request of a turn carried: a refinement, or the `requirement` that other protocols record."""
    requirement = (turn.model_extra or {}).get("requirement")
    if isinstance(requirement, dict) and isinstance(requirement.get("text"), str):
        return str(requirement["text"]).strip()
    return turn.instruction.text if turn.instruction else None


def _hash_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "model.path names a sessions.jsonl") from error
