"""A session's options, task and verbs; and how a role is asked: what it is shown, and how its reply is read.

Every text that somebody else wrote is shown quoted, each in a block of its own. Labelled lines of a reply are read
strictly: `VERDICT: PARTIALLY CORRECT` stands alone on its line, and once.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from codechat.base.domain import Message, Reply
from codechat.base.template import fill
from codechat.judging import deciding
from codechat.judging.deciding import MAX_REASON, is_quoted, quote
from codechat.run.protocols import Kit
from codechat.sandbox.languages import without_thinking
from codechat.studies.cab.config import AssistConfig
from codechat.studies.cab.environments import EnvironmentConfig
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import BuildRecord
from codechat.studies.cab.verbs import environment_of

_MARKS = r"[\s>*_`#-]*"


def after_label(label: str, line: str) -> str | None:
    """What stands behind a label on its line; None if the line does not begin with the label and a colon."""
    name = "[ _]+".join(re.escape(part) for part in label.split())
    match = re.match(rf"{_MARKS}{name}[\s*_`]*:(.*)$", line, re.IGNORECASE)
    return match.group(1) if match else None


def only_word(label: str, words: Sequence[str], lines: Sequence[str]) -> str | None:
    """The word of a label, if one line alone begins with the label and has nothing but one of the words behind it."""
    found = [(is_quoted(line), said) for line in lines if (said := after_label(label, line)) is not None]
    plain = [f"{'> ' * quoted}{label}: {said.strip(' *_`.')}" for quoted, said in found]
    return deciding.only_word(label, words, plain)


def bounded(text: str) -> str:
    """A reason for the record: one line of at most 300 characters."""
    line = " ".join(text.strip(" \t*_`").split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


NOTHING = "(nothing)"
OWN_BUILD = "The repository builds as it is; no answer changed a file of it."


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer of the maintainer and the user's reply to it, None while there is none."""

    answer: str
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """The last build of changes, None if nothing was changed, and the changes of the last answer that do not count.

    `own` is the build of the row's own image, None if there is none or it cannot be built here.
    """

    build: BuildRecord | None = None
    refused: Sequence[str] = ()
    own: BuildRecord | None = None

    @property
    def last(self) -> BuildRecord | None:
        """The image as the last answer leaves it."""
        return self.build or self.own


@dataclass
class Telling:
    """The fields of a prompt: texts of our own, and quoted parts, which are never read as a template."""

    fields: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    def say(self, name: str, text: str) -> None:
        """Fill a field with a text of our own."""
        self.fields[name] = text

    def show(self, name: str, *blocks: tuple[str, str], before: str = "") -> None:
        """Fill a field with quoted blocks, each given by its name and its text."""
        self.parts |= {block: text.strip("\n") or NOTHING for block, text in blocks}
        places = [f"{{{{{block}}}}}" for block, _ in blocks]
        self.fields[name] = "\n".join([*([before] if before else []), *places]) or NOTHING

    def fill(self, template: str) -> str:
        """The prompt."""
        return quote(fill(template, boundary="{{boundary}}", **self.fields), **self.parts)

    def conditions(self, task: AssistTask) -> None:
        """The conditions, numbered, one a line."""
        lines = [f"{number}. {' '.join(text.split())}" for number, text in enumerate(task.conditions, 1)]
        self.show("conditions", ("conditions", "\n".join(lines)))

    def dialogue(self, name: str, task: AssistTask, dialogue: Sequence[Exchange]) -> None:
        """The opening, and every answer with the reply to it."""
        blocks = [("user_0", task.prompt)]
        for number, each in enumerate(dialogue, 1):
            blocks.append((f"maintainer_{number}", each.answer))
            if each.reply is not None:
                blocks.append((f"user_{number}", each.reply))
        self.show(name, *blocks)

    def build(self, built: Built) -> None:
        """Whether the build succeeded, with its log if it failed, the test's output, and changes that do not count."""
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
        """What is read of a role's reply, and the last reply without its thinking; None if none can be read.

        `again` is sent after a reply that cannot be read, at most `max_reasks` times. A prompt that does not fit the
        role's context cannot be read either, since it is the candidate's text that makes it long.
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
