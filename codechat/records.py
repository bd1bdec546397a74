"""sessions.jsonl: what a cell leaves, one session a line (contract, section 2)."""

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from codechat.domain import AdherenceVerdict, Change, Message, Outcome, Role, Scope
from codechat.errors import UserError
from codechat.files import write_atomically

SCHEMA = 1


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MessageRecord(Record):
    role: Role
    content: str


@functools.lru_cache(maxsize=4096)
def message_record(message: Message) -> MessageRecord:
    """The record of a message; those of a growing history are made once, not once a turn."""
    return MessageRecord(role=message.role, content=message.content)


class UsageRecord(Record):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0


class InstructionRecord(Record):
    id: str
    text: str
    scope: Scope
    change: Change


class CandidateRecord(Record):
    """An instruction that was checked for applicability; `applicable` null: nobody could decide."""

    id: str
    applicable: bool | None
    by: str


class AdherenceRecord(Record):
    verdict: AdherenceVerdict
    by: str
    reason: str


class FailureRecord(Record):
    """The first failing input with both values (bounded), or the exception."""

    reason: str
    suite: Literal["base", "plus"] | None = None
    index: int | None = None
    input: str | None = None
    expected: str | None = None
    actual: str | None = None
    exception: str | None = None
    stdout: str | None = None


class TurnRecord(BaseModel):
    """One turn. Protocols other than `refine` add fields of their own."""

    model_config = ConfigDict(extra="allow")

    turn: int
    instruction: InstructionRecord | None = None
    skipped: bool = False
    candidates: list[CandidateRecord] = []
    request: list[MessageRecord] = []
    response: str | None = None
    finish_reason: str | None = None
    code: str | None = None
    outcome: Outcome | None = None
    passed: bool | None = None
    passed_base: bool | None = None
    failure: FailureRecord | None = None
    cpu_s: float = 0.0
    adherence: AdherenceRecord | None = None
    usage: UsageRecord = UsageRecord()
    judge_usage: UsageRecord = UsageRecord()
    latency_s: float = 0.0


class SessionRecord(Record):
    """One dialogue. `errored` sessions hold the turns that were finished and are left out of every figure."""

    schema_: Literal[1] = 1
    cell_id: str
    session_id: str
    task_id: str
    dataset: str
    model: str
    protocol: str
    agenda: list[str]
    seed: int
    status: Literal["completed", "errored"]
    ended: Literal["context_overflow"] | None = None
    error: str | None = None
    turns: list[TurnRecord]

    model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True)

    def line(self) -> str:
        """The session as one line of JSON."""
        return self.model_dump_json(by_alias=True)

    def answered(self, turn: TurnRecord) -> bool:
        """Whether the model was asked at this turn and could answer.

        Not so at a skipped turn, nor once the conversation had outgrown the model: such turns carry a verdict for
        Pass@1 and MST alone.
        """
        return not turn.skipped and not (self.ended == "context_overflow" and turn.response is None)

    def slim(self) -> "SessionRecord":
        """The session without its texts: all that metrics need, in a small part of the memory."""
        turns = [
            turn.model_copy(
                update={"request": [], "response": turn.response and "", "code": turn.code and "", "failure": None}
            )
            for turn in self.turns
        ]
        return self.model_copy(update={"turns": turns})


def write_sessions(path: Path, sessions: Iterable[SessionRecord]) -> None:
    """Replace the file as a whole."""
    write_atomically(path, (session.line() + "\n" for session in sessions))


def read_sessions(path: Path) -> Iterator[SessionRecord]:
    """The sessions of a file, in order. Raises `UserError` naming the first bad line."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "give the path of a sessions.jsonl") from error
    with stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                yield SessionRecord.model_validate_json(line)
            except ValidationError as error:
                first: Any = error.errors()[0]
                place = ".".join(str(part) for part in first["loc"])
                raise UserError(f"{path}:{number}: not a session record: {place}: {first['msg']}") from error
