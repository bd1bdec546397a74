"""What user and judge are told: every text that somebody else wrote stands quoted, each in a block of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from codechat.judges.deciding import quote
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.cab.turns import BuildRecord
from codechat.template import fill

NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer of the maintainer and the user's reply to it, None while there is none."""

    answer: str
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """The last build, None if nothing was built, and the changes of the last answer that do not count."""

    build: BuildRecord | None = None
    refused: Sequence[str] = ()


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
        """Whether the build succeeded, with its log if it failed, and the changes that do not count."""
        blocks = [("refused_changes", "\n".join(built.refused))] if built.refused else []
        if built.build is None:
            self.show("build", *blocks, before="Nothing was built.")
        elif built.build.ok:
            self.show("build", *blocks, before="The build succeeded.")
        else:
            self.show("build", ("build_log", built.build.log), *blocks, before="The build failed. The end of its log:")
