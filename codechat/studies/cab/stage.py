"""The options, roles and prompts of `protocol=assist`, and a session: how a role is asked, and its reply read.

Every text of another author is shown quoted, in a separate block. Labelled lines of a reply are read strictly:
`VERDICT: PARTIALLY CORRECT` stands alone on its line, and once.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import SerializeAsAny, ValidationInfo, field_validator, model_validator

from codechat.base.config import SCORING, Config, original_option, result_option
from codechat.base.domain import Message, Reply
from codechat.base.template import fill, require
from codechat.judging import deciding
from codechat.judging.deciding import MAX_REASON, is_quoted, quote
from codechat.models import ModelConfig
from codechat.models.roles import Roles, role
from codechat.run.protocols import Kit
from codechat.sandbox.languages import without_thinking
from codechat.studies.cab.environments import EnvironmentConfig
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import BuildRecord
from codechat.studies.cab.verbs import environment_of

USER, JUDGE = "user", "judge"

_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "opening": (("question", "means"), ("repository", "language", "boundary")),
    "explore": ((), ("steps", "commands")),
    "blind": ((), ()),
    "files": (("dockerfile",), ("boundary",)),
    "outputs": (("outputs",), ("boundary",)),
    "unread": ((), ()),
    "more": ((), ("left",)),
    "answer": ((), ()),
    "followup": (("reply",), ("boundary",)),
    "again": ((), ()),
    "user": (("conditions", "dialogue"), ("references", "build", "boundary")),
    "reask_user": ((), ()),
    "judge": (("question", "thread", "conditions", "answer", "form"), ("build", "boundary")),
    "reask_judge": (("form",), ()),
}  # of each prompt the required fields and the optional ones


class AssistRoles(Roles):
    """The models other than the maintainer, which is the model under test."""

    user: SerializeAsAny[ModelConfig] = role("rehearsed_user", "model that speaks for the user who asked")
    judge: SerializeAsAny[ModelConfig] = role(
        "rehearsed_judge", "model that judges the answer in the end", marks=SCORING
    )


class AssistPrompts(Config):
    """The prompts, with fields `{{name}}`."""

    opening: str = original_option(..., "the maintainer's first message; fills {{question}} and {{means}}")
    explore: str = original_option(..., "its means where commands can run; fills {{steps}} and {{commands}}")
    blind: str = original_option(..., "its means where none can run")
    files: str = original_option(..., "its further means where a build can change; fills {{dockerfile}}")
    outputs: str = original_option(..., "feeds {{outputs}} back")
    unread: str = original_option(..., "follows a reply with neither commands nor an answer")
    more: str = original_option(..., "ends a message while {{left}} steps are left")
    answer: str = original_option(..., "ends a message when no step is left: asks for the answer")
    followup: str = original_option(..., "passes on the user's {{reply}}")
    again: str = result_option("", "orders, before later answers, to repeat all that was said; empty: nothing")
    user: str = original_option(..., "asks for the user's reply; fills {{conditions}}, {{dialogue}}, {{references}}")
    reask_user: str = original_option(..., "asks the user's model again after a reply that could not be read")
    judge: str = original_option(
        ..., "asks for the judgement; fills {{answer}}, {{thread}}, {{conditions}}, {{form}}", json_schema_extra=SCORING
    )
    reask_judge: str = original_option(..., "asks the judge again for the lines of {{form}}", json_schema_extra=SCORING)

    @field_validator("*")
    @classmethod
    def _has_its_fields(cls, text: str, info: ValidationInfo) -> str:
        must, may = _FIELDS[info.field_name or ""]
        return require(text, *must, may=may)


class AssistConfig(Config):
    kind: Literal["assist"] = original_option("assist", "the protocol")
    steps: int = original_option(5, "how often the maintainer may explore before an answer", ge=0, le=100)
    explore: Literal["every", "first"] = original_option(
        "every", "before which answers it may take all steps; first: before later answers it may take one"
    )
    rounds: int = original_option(10, "the most replies of the user, and so of the maintainer's answers", ge=1, le=100)
    commands: int = original_option(10, "the most commands of one step; further ones are not run", ge=1, le=1_000)
    references: int = original_option(3, "replies of other issues that show the user's model the tone", ge=0, le=100)
    judged: Literal["answer", "dialogue"] | None = original_option(
        None,
        "what the judge sees: the last answer, or all; null: the last if the prompts order to repeat, else all",
        json_schema_extra=SCORING,
    )
    max_reasks: int = original_option(2, "how often a reply of user or judge is asked for again", ge=0, le=10)
    roles: AssistRoles = original_option(..., "the further models")
    prompts: AssistPrompts = original_option(..., "a preset by its name, or each prompt as a text or @FILE")

    @model_validator(mode="before")
    @classmethod
    def _judges_what_holds_all(cls, values: Any) -> Any:
        """Set `judged` if it is null: an answer alone is judged only if it repeats the earlier ones."""
        if not isinstance(values, Mapping) or values.get("judged") is not None:
            return values
        prompts = values.get("prompts")
        again = prompts.get("again") if isinstance(prompts, Mapping) else getattr(prompts, "again", "")
        return {**values, "judged": "answer" if again else "dialogue"}

    def steps_before(self, turn: int) -> int:
        """How often the maintainer may explore before the answer of a turn."""
        return self.steps if turn == 0 or self.explore == "every" else min(self.steps, 1)


_MARKS = r"[\s>*_`#-]*"


def after_label(label: str, line: str) -> str | None:
    """The text after a label on its line; None if the line does not begin with the label and a colon."""
    if ":" not in line:
        return None
    name = "[ _]+".join(re.escape(part) for part in label.split())
    match = re.match(rf"{_MARKS}{name}[\s*_`]*:(.*)$", line, re.IGNORECASE)
    return match.group(1) if match else None


def only_word(label: str, words: Sequence[str], lines: Sequence[str]) -> str | None:
    """The word of a label, if exactly one line begins with the label and consists of it and one of the words."""
    labelled = [(is_quoted(line), text) for line in lines if (text := after_label(label, line)) is not None]
    plain = [f"{'> ' * quoted}{label}: {text.strip(' *_`.')}" for quoted, text in labelled]
    return deciding.only_word(label, words, plain)


def bounded(text: str) -> str:
    """A reason for the record: one line of at most 300 characters."""
    line = " ".join(text.strip(" \t*_`").split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


NOTHING = "(nothing)"
OWN_BUILD = "The repository builds as it is; no answer changed a file of it."


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer of the maintainer and the user's reply, None while there is none."""

    answer: str
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """The last build of changes, None if nothing was changed, and the refused changes of the last answer.

    `own` is the build of the row's own image, None if there is none or it cannot be built here.
    """

    build: BuildRecord | None = None
    refused: Sequence[str] = ()
    own: BuildRecord | None = None

    @property
    def last(self) -> BuildRecord | None:
        return self.build or self.own


@dataclass
class Telling:
    """The fields of a prompt: the project's texts, and quoted parts, which are never read as a template."""

    fields: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    def show(self, name: str, *blocks: tuple[str, str], before: str = "") -> None:
        """Fill a field with quoted blocks, each a pair of name and text."""
        self.parts |= {block: text.strip("\n") or NOTHING for block, text in blocks}
        places = [f"{{{{{block}}}}}" for block, _ in blocks]
        self.fields[name] = "\n".join([*([before] if before else []), *places]) or NOTHING

    def fill(self, template: str) -> str:
        return quote(fill(template, boundary="{{boundary}}", **self.fields), **self.parts)

    def conditions(self, task: AssistTask) -> None:
        """The conditions, numbered, one a line."""
        lines = [f"{number}. {' '.join(text.split())}" for number, text in enumerate(task.conditions, 1)]
        self.show("conditions", ("conditions", "\n".join(lines)))

    def dialogue(self, name: str, task: AssistTask, dialogue: Sequence[Exchange]) -> None:
        """The opening, and every answer with its reply."""
        blocks = [("user_0", task.prompt)]
        for number, each in enumerate(dialogue, 1):
            blocks.append((f"maintainer_{number}", each.answer))
            if each.reply is not None:
                blocks.append((f"user_{number}", each.reply))
        self.show(name, *blocks)

    def build(self, built: Built) -> None:
        """Whether the build succeeded, the log of a failure, the test's output, and the refused changes."""
        last, said = built.last, "Nothing was built."
        blocks = [("refused_changes", "\n".join(built.refused))] if built.refused else []
        if last is not None:
            said = OWN_BUILD if built.build is None else "The build succeeded."
            if not last.ok:
                said, blocks = "The build failed. The end of its log:", [("build_log", last.log), *blocks]
            elif last.test is not None:
                ended = "succeeded" if last.succeeded else f"failed ({last.test.ended}, status {last.test.status})"
                said += f" The repository's tests {ended} in it. What they printed:"
                blocks = [("test_output", last.test.output), *blocks]
        self.show("build", *blocks, before=said)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """One session's options, task and verbs."""

    config: AssistConfig
    task: AssistTask
    kit: Kit
    environment: EnvironmentConfig | None = None

    @property
    def explores(self) -> bool:
        """Whether the maintainer can run commands: there is a repository, and an environment to run them in."""
        environment = environment_of(self.kit)
        return self.task.workspace is not None and environment is not None and environment.commands

    @property
    def room(self) -> str:
        """The kind of the session's worktree."""
        workspace, environment = self.task.workspace, self.environment
        return "none" if workspace is None or environment is None else environment.room_of(workspace)

    @property
    def networked(self) -> bool:
        """Whether commands reach a network."""
        workspace, environment = self.task.workspace, self.environment
        return workspace is not None and environment is not None and environment.networked(workspace)

    @property
    def builds(self) -> bool:
        """Whether what the maintainer changes is built: the data has a Dockerfile, and the environment an engine."""
        workspace, environment = self.task.workspace, environment_of(self.kit)
        has_dockerfile = workspace is not None and workspace.dockerfile is not None
        return has_dockerfile and environment is not None and environment.builds

    async def ask_until_read(
        self, role: str, turn: int, prompt: str, *, again: str, read: Callable[[str], T | None]
    ) -> tuple[T | None, str]:
        """The result of `read` for a role's reply, None if no reply can be read, and the last reply without thinking.

        `again` is sent after a reply that cannot be read, at most `max_reasks` times. A prompt that does not fit the
        role's context counts as unread, since the candidate's text makes it long.
        """
        said = [""]

        async def ask(messages: tuple[Message, ...]) -> Reply:
            reply = await self.kit.ask(role, turn, messages)
            said.append(without_thinking(reply.text, quotes_code=True).strip())
            return reply

        found, *_ = await deciding.first_readable(
            ask, prompt, self.config.max_reasks,
            read=lambda text: read(text.strip()) or "not readable", again=lambda _: again.strip("\n"),
        )  # fmt: skip
        return found, said[-1]
