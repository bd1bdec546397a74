"""What a maintainer's turns and the judgement of a whole dialogue record (docs/codeassist.md)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from codechat.base.domain import Build
from codechat.base.records import SessionRecord, TurnRecord

Status = Literal["FULLY_SATISFIED", "PARTIALLY_SATISFIED", "NOT_SATISFIED"]
Grade = Literal["CORRECT", "PARTIALLY_CORRECT", "INCORRECT"]
Verbosity = Literal["CONCISE", "APPROPRIATE", "VERBOSE"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ExploredRecord(_Part):
    """A command that the maintainer ran: how it ended, and whether its output was cut. The output stays in the calls.

    `status` is null if it did not end by itself.
    """

    command: str
    status: int | None
    ended: Literal["exit", "timeout", "memory", "killed"]
    cut: bool
    seconds_s: float = 0.0


class TestRecord(_Part):
    """The row's test command in a built image: how it ended, and its output.

    `status` is null if it did not end by itself.
    """

    __test__ = False  # for pytest

    status: int | None
    ended: Literal["exit", "timeout", "memory", "killed"]
    cut: bool
    output: str
    seconds_s: float = 0.0


class BuildRecord(_Part):
    """The build of what the maintainer changed so far, with the end of its log, and the row's test in it, if any."""

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
        """Whether it was built, and passes the row's test."""
        return self.ok and (self.test is None or self.test.status == 0)


class UserReply(_Part):
    """The user's reply to an answer: the text that the maintainer sees, and what it does not see.

    `status` is null if no reply could be read; `references` are the ids of the replies that showed the tone.
    """

    text: str
    status: Status | None
    reason: str
    references: list[str] = []


class AssistTurn(_Part):
    """The fields that `assist` adds to a turn: an answer, how it came about, and what the user said to it.

    `answer` is null if there was none. `steps` counts the replies that explored or held neither commands nor an answer
    (`unread`), `unrun` the commands that were written and not run. `forced`: out of steps, it was asked for an answer.
    `changed` are the files of the answer, `refused` its changes that do not count, with the reason. `own_build` is that
    of the row's own image, before the first answer; null without a test command, since its failure ends a session.
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
    """The judgement of a dialogue, with what the figures group it by.

    `judged` is the judge's own word; `verdict` is the same, or INCORRECT after a failed build or without an answer;
    `implied` is what the judge's parts come to. All are null if no reply of the judge could be read: undecided.
    `conditions` says of every condition whether it is met, `why` has the judge's reasons. `build` is the last build,
    null if there was none; `needs_build`: the data has a Dockerfile; `unvalidated`: it has, and nothing could be built.
    `could_be_built`: the row's own image was built, before the first answer; `was_built`: so was an answer's change.
    `tested`: whether the row's test command passes in the last image, null without one. `environment` is the kind of
    the session's worktree.
    `rounds` counts the user's replies, `thread_turns` the maintainers' turns of the real thread, `thread_replies` their
    comments; `cohort_by` says whose date the cohort goes by. `satisfied` is the status of the user's last reply. What
    later versions added is null in older records.
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
        known: Any = session.judgement
        return cls.model_validate(known)
