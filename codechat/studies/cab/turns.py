"""The records of a maintainer's turns and of the judgement of a whole dialogue (docs/codeassist.md)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from codechat.base.domain import Build
from codechat.base.records import SessionRecord, TurnRecord

Status = Literal["FULLY_SATISFIED", "PARTIALLY_SATISFIED", "NOT_SATISFIED"]
Grade = Literal["CORRECT", "PARTIALLY_CORRECT", "INCORRECT"]
Verbosity = Literal["CONCISE", "APPROPRIATE", "VERBOSE"]
Ending = Literal["exit", "timeout", "memory", "killed"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ExploredRecord(_Part):
    """A command of the maintainer, its end, and whether its output was cut. The output stays in the calls.

    `status` is null if it did not end by itself.
    """

    command: str
    status: int | None
    ended: Ending
    cut: bool
    seconds_s: float = 0.0


class TestRecord(_Part):
    """The end and the output of the row's test command in a built image. `status` is null as in `ExploredRecord`."""

    __test__ = False  # for pytest

    status: int | None
    ended: Ending
    cut: bool
    output: str
    seconds_s: float = 0.0


class BuildRecord(_Part):
    """The build of all changes so far, with the end of its log, and the row's test in it, if any."""

    ok: bool
    log: str
    seconds_s: float = 0.0
    test: TestRecord | None = None

    @classmethod
    def of(cls, build: Build) -> "BuildRecord":
        """The record of a build."""
        out = build.test
        test = out and TestRecord(
            status=out.status, ended=out.ended, cut=out.cut, output=out.text, seconds_s=out.seconds
        )
        return cls(ok=build.ok, log=build.log, seconds_s=build.seconds, test=test)

    @property
    def succeeded(self) -> bool:
        """Whether the image was built and passes the row's test."""
        return self.ok and (self.test is None or self.test.status == 0)


class UserReply(_Part):
    """The user's reply to an answer: the text for the maintainer, and fields that it does not see.

    `status` is null if no reply could be read; `references` are the ids of the replies that showed the tone.
    """

    text: str
    status: Status | None
    reason: str
    references: list[str] = []


class AssistTurn(_Part):
    """The fields that `assist` adds to a turn: an answer, its steps, and the user's reply.

    `answer` is null if there was none. `steps` counts the replies that explored or had neither commands nor an answer
    (`unread`), `unrun` the commands that were written and not run. `forced`: without a step left, it was asked for an
    answer. `changed` are the files of the answer, `refused` its refused changes, with the reason. `own_build` is the
    build of the row's own image, before the first answer; null without a test command, since its failure ends a
    session.
    """

    answer: str | None
    explored: list[ExploredRecord] = []
    steps: int = 0
    unread: int = 0
    unrun: int = 0
    forced: bool = False
    changed: list[str] = []
    refused: list[str] = []
    build: BuildRecord | None = None
    own_build: BuildRecord | None = None
    user: UserReply | None = None

    @classmethod
    def of(cls, turn: TurnRecord) -> "AssistTurn":
        """The fields of a recorded turn."""
        known = turn.model_extra or {}
        return cls.model_validate({name: known[name] for name in cls.model_fields if name in known})


class AssistJudgement(_Part):
    """The judgement of a dialogue, with the groups of its figures.

    `judged` is the judge's word; `verdict` is the same, or INCORRECT after a failed build or without an answer;
    `implied` follows from the judge's parts. All are null if no reply of the judge could be read: undecided.
    `conditions` has for every condition whether it is met, `why` has the judge's reasons. `build` is the last build,
    null if there was none; `needs_build`: the data has a Dockerfile; `unvalidated`: it has, and nothing could be built.
    `could_be_built`: the row's own image was built, before the first answer; `was_built`: so was an answer's change.
    `tested`: whether the row's test command passes in the last image, null without one. `environment` is the kind of
    the session's worktree. `rounds` counts the user's replies, `thread_turns` the maintainers' turns of the real
    thread, `thread_replies` their comments; `cohort_by` is the source of the cohort's date. `satisfied` is the status
    of the user's last reply. Fields of later versions are null in older records.
    """

    verdict: Grade | None
    judged: Grade | None
    implied: Grade | None
    technical: Grade | None
    conditions: list[bool | None]
    conditions_met: int | None
    why: list[str] = []
    verbosity: Verbosity | None
    reason: str
    build: bool | None
    needs_build: bool
    unvalidated: bool
    rounds: int
    thread_turns: int
    satisfied: Status | None
    pull: bool
    created_at: str
    could_be_built: bool | None = None
    was_built: bool | None = None
    tested: bool | None = None
    environment: str | None = None
    thread_replies: int | None = None
    cohort: Literal["recent", "all_time"] | None = None
    cohort_by: Literal["repository", "issue"] | None = None

    @classmethod
    def of(cls, session: SessionRecord) -> "AssistJudgement":
        """The judgement of a completed session."""
        return cls.model_validate(session.judgement)
