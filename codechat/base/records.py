"""sessions.jsonl: a cell's records, one session a line (contract, section 2)."""

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from codechat.base.domain import (
    AdherenceVerdict,
    Change,
    Decided,
    Extraction,
    Failure,
    Message,
    Outcome,
    Reply,
    Scope,
    Trajectory,
    Usage,
    Verdict,
)
from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.texts import read_json

SCHEMA = 1
"""The version of the format. A later one migrates older records in `SessionRecord`, so that they stay readable."""


INSIDE = "inside"
"""The field of a turn whose verdict was decided inside: the reason why program and tests shared one process."""
BY_PROGRAM = "inside_by_program"
"""The field, then true, of such a turn if the program itself caused that when it ran."""
ONLY_REASONING = "the reply is empty: all its text is reasoning, which the endpoint sends apart"
"""Why a turn without an answer failed whose model did write something."""
CALLS = "calls"
"""The field of a turn with the calls of each role, in protocols with further roles."""
GATE = "gate"
"""The field of a turn whose model was asked again because the tests between turns refused the code of a reply."""
UNDER_TEST = "model"
"""The role of the model under test; a protocol may declare further roles."""
TRACKED = "tracking.json"
"""The file of a finished cell with the values of its tracked run, such as the content hash of its dataset."""
JUDGE_TAG = "codechat.judge_version"
"""The tag with the version of a judge's rules."""
GROUP_TAG = "codechat.repeats"
"""The tag that is equal for cells that differ in the seed alone: a hash of all other options of results."""


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class InstructionRecord(Record):
    id: str
    text: str
    scope: Scope
    change: Change


class ConflictRecord(Record):
    """Why an applicable instruction is not asked at a turn: it contradicts the turn's `instruction` (an id), or, if
    `contradicts` is null, this could not be decided."""

    instruction: str
    contradicts: bool | None
    by: str
    reason: str


class CandidateRecord(Record):
    """An instruction that was checked for applicability; `applicable` is null if undecided.

    `unreadable`: undecided because no answer of the judge could be read. A candidate with a `conflict` is not asked.
    """

    id: str
    applicable: bool | None
    by: str
    unreadable: bool = Field(default=False, exclude_if=operator.not_)
    conflict: ConflictRecord | None = Field(default=None, exclude_if=operator.not_)


class AdherenceRecord(Record):
    verdict: AdherenceVerdict
    by: str
    reason: str


class AskedRecord(InstructionRecord):
    """An instruction that a turn asked for, and whether it was followed; null if that was not judged."""

    adherence: AdherenceRecord | None = None


class TurnRecord(BaseModel):
    """One turn. Protocols other than `refine` add their own fields.

    `asked` has the instructions of the turn with their adherence. A turn of one instruction also has them as
    `instruction` and `adherence`; older records have only these.

    `outcome`, `passed` and `passed_base` are null at a turn that is not scored and counts in no rate. `decided` is
    whether the verdict was out of the program's reach (null: unknown); if it was not, `inside` is the reason. Protocols
    with further roles add `usage_by_role` (tokens) and `calls` (requests and responses). `tested_as` is the earliest
    turn with the same program and tests, whose verdict this turn has. `reasoning` are the model's thoughts if they came
    apart from its reply. `truncated`: the endpoint counted too few input tokens to have read the whole request.
    `lacks_name`: a reply that is `no_code` has code, but none with the entry point's name. `read_turn` is the turn of
    the code that the judge was asked about, if the current code is a later one that the judge cannot read.
    `trajectory` is what a coding agent did.
    """

    model_config = ConfigDict(extra="allow")

    turn: int
    instruction: InstructionRecord | None = None
    skipped: bool = False
    candidates: list[CandidateRecord] = []
    request: list[Message] = []
    response: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    code: str | None = None
    outcome: Outcome | None = None
    passed: bool | None = None
    passed_base: bool | None = None
    decided: Decided | None = None
    tested_as: int | None = None
    truncated: bool | None = None
    lacks_name: bool | None = None
    read_turn: int | None = None
    trajectory: Trajectory | None = None
    failure: Failure | None = None
    cpu_s: float = 0.0
    adherence: AdherenceRecord | None = None
    asked: list[AskedRecord] = []
    usage: Usage = Usage()
    judge_usage: Usage = Usage()
    latency_s: float = 0.0

    @model_validator(mode="after")
    def _one_instruction_has_two_forms(self) -> Self:
        if self.instruction is not None and not self.asked:
            self.asked = [AskedRecord(**self.instruction.model_dump(), adherence=self.adherence)]
        elif len(self.asked) == 1 and self.instruction is None:
            (asked,) = self.asked
            self.instruction = InstructionRecord(**asked.model_dump(exclude={"adherence"}))
            self.adherence = asked.adherence
        return self

    @classmethod
    def of(
        cls,
        turn: int,
        request: Iterable[Message],
        answer: tuple[Reply, Extraction | None] | None,
        verdict: Verdict | None = None,
        /,
        **own: Any,
    ) -> "TurnRecord":
        """A turn's record; `answer` is None if the model was not asked, or its context overflowed.

        `verdict` is None if the turn is not scored; `own` are further fields.
        """
        reply, extraction = answer or (None, None)
        fields: dict[str, Any] = {"turn": turn, "request": list(request)}
        if reply is not None:
            fields |= {"response": reply.text, "finish_reason": reply.finish_reason}
            fields |= {"usage": reply.usage, "latency_s": reply.latency_s, "reasoning": reply.reasoning or None}
            fields["trajectory"] = reply.trajectory
        if extraction is not None:
            fields |= {"code": extraction.code, "lacks_name": extraction.lacks_name or None}
        if verdict is not None:
            fields |= {"outcome": verdict.outcome, "passed": verdict.passed, "passed_base": verdict.passed_base}
            fields |= {"decided": verdict.decided, "failure": verdict.failure, "cpu_s": verdict.cpu_s}
            if verdict.failure is not None and reply is not None and reply.reasoning and not reply.text.strip():
                fields["failure"] = replace(verdict.failure, reason=ONLY_REASONING)
            fields |= {INSIDE: verdict.inside} if verdict.inside else {}
            fields |= {BY_PROGRAM: True} if verdict.by_program else {}
        return cls(**{**fields, **own})

    @property
    def kind(self) -> str | None:
        """`scope/change` of the turn's instructions, a part empty where they differ; None without an instruction."""
        if not self.asked:
            return None
        found = ({each.scope for each in self.asked}, {each.change for each in self.asked})
        return "/".join(next(iter(names)) if len(names) == 1 else "" for names in found)

    @property
    def judged(self) -> "list[tuple[InstructionRecord | None, AdherenceRecord | None]]":
        """The turn's instructions, each with whether it was followed; of some imports only the latter is known."""
        return [(asked, asked.adherence) for asked in self.asked] or [(None, self.adherence)]

    @property
    def followed(self) -> AdherenceVerdict | None:
        """The verdict on all instructions of the turn together: adhered if each was followed, violated if any was not;
        None if one is not judged."""
        verdicts = {judged and judged.verdict for _, judged in self.judged}
        words: tuple[AdherenceVerdict | None, ...] = ("violated", None, "undecided", "adhered")
        return next((word for word in words if word in verdicts), None)

    @property
    def only_reasoning(self) -> bool:
        """Whether the model thought and gave no answer."""
        return self.reasoning is not None and not (self.response or "").strip()

    @property
    def forced_by(self) -> str | None:
        """The reason why program and tests shared one process; None if they did not, or it is unknown."""
        return (self.model_extra or {}).get(INSIDE)

    def shared_fields(self) -> dict[str, Any]:
        """The fields about a shared process, for a turn that repeats this verdict."""
        return {name: value for name, value in (self.model_extra or {}).items() if name in (INSIDE, BY_PROGRAM)}

    @property
    def of_protocol(self) -> dict[str, Any]:
        return {name: value for name, value in (self.model_extra or {}).items() if name not in (INSIDE, BY_PROGRAM)}

    @property
    def moved(self) -> bool:
        """Whether the program itself caused that it shared a process with its tests."""
        return bool((self.model_extra or {}).get(BY_PROGRAM))

    @property
    def rolled_back(self) -> bool:
        """Whether the turn's code was given up, so that the code before it stands."""
        return bool(((self.model_extra or {}).get(GATE) or {}).get("rolled_back"))

    def usage_of_roles(self) -> Iterator[tuple[str, Usage]]:
        """The tokens of every further role of the protocol."""
        for name, used in ((self.model_extra or {}).get("usage_by_role") or {}).items():
            yield name, Usage.of(used)

    def calls(self) -> "Iterator[CallRecord]":
        """The calls of each role at this turn, in order, if the record has them."""
        for call in (self.model_extra or {}).get(CALLS) or ():
            yield CallRecord.model_validate(call)

    @property
    def first_request(self) -> list[Message]:
        """The first request of the turn: `request`, unless the turn took several calls."""
        own = (call.request for call in self.calls() if call.role == UNDER_TEST)
        return next(own, self.request)

    def slim(self) -> "TurnRecord":
        """The turn without its texts, and without `calls`."""
        slim: dict[str, Any] = {"request": [], "response": self.response and "", "code": self.code and ""}
        slim["reasoning"] = "" if self.only_reasoning else None
        slim["trajectory"] = self.trajectory and self.trajectory.slim()
        calls: dict[str, Any] = {CALLS: []} if CALLS in (self.model_extra or {}) else {}
        return self.model_copy(update={**slim, "failure": None, **calls})


class CallRecord(Record):
    """One call of a role at a turn, in protocols with several calls a turn.

    `request` has only the new messages if the call continues the session's last request to the role, whose `earlier`
    messages come before them.
    """

    role: str
    earlier: int = 0
    request: list[Message]
    response: str | None
    finish_reason: str | None = None
    usage: Usage = Usage()
    latency_s: float = 0.0
    reasoning: str = Field("", exclude_if=operator.not_)


ADDED = ("language", "judgement")
"""Fields of a session that were added later."""
ADDED_TO_TURNS = (
    *("decided", "tested_as", "asked", "reasoning", "truncated", "lacks_name", "read_turn", "trajectory"),
)
"""Fields of a turn that were added later; None or empty where they do not apply."""


class SessionRecord(Record):
    """One dialogue in the task's `language`. `errored` sessions hold their finished turns and count in no figure.

    `judgement` is the protocol's verdict on the whole dialogue.
    """

    schema_: int = SCHEMA
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
    language: str = "python"
    judgement: Any = None

    model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True)

    @field_validator("schema_")
    @classmethod
    def _readable(cls, value: int) -> int:
        if not 1 <= value <= SCHEMA:
            raise ValueError(f"the record has schema {value}, this codechat reads up to {SCHEMA}")
        return value

    def line(self) -> str:
        """The session as one line of JSON. Fields that were added later are left out if they are empty."""
        fields = type(self).model_fields
        unsaid: dict[str, Any] = {name: True for name in ADDED if getattr(self, name) == fields[name].default}
        empty = [{name for name in ADDED_TO_TURNS if getattr(turn, name) in (None, [])} for turn in self.turns]
        unknown = {place: names for place, names in enumerate(empty) if names}
        return self.model_dump_json(by_alias=True, exclude=unsaid | ({"turns": unknown} if unknown else {}))

    def has_answer(self, turn: TurnRecord) -> bool:
        """Whether the model was asked at this turn and could answer.

        False at a skipped turn and after a context overflow: the verdicts of such turns count only in Pass@1 and MST.
        """
        return not turn.skipped and not (self.ended == "context_overflow" and turn.response is None)

    def slim(self) -> "SessionRecord":
        """The session without its texts: all that metrics need, in a small part of the memory."""
        return self.model_copy(update={"turns": [turn.slim() for turn in self.turns]})


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
                raise UserError(
                    f"{path}:{number}: not a session record: {place}: {first['msg']}",
                    "mend or drop that line, or give the sessions.jsonl that a run or an import wrote",
                ) from error


def tags_in(folder: Path) -> Mapping[str, str]:
    """The tags of a finished cell's tracked run, if its folder has them."""
    return _tracked(folder, "tags")


def dataset_in(folder: Path) -> Mapping[str, Any]:
    """The dataset of a finished cell, if its folder has it: number of `tasks`, `content_hash`, `departure`."""
    return _tracked(folder, "dataset")


def _tracked(folder: Path, key: str) -> Mapping[str, Any]:
    try:
        values = read_json((folder / TRACKED).read_bytes())[key]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return values if isinstance(values, dict) else {}
