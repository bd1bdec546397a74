"""The maintainer's side: it explores by commands until it answers. Without a step left it is asked for an answer.

A reply has `EXPLORE: command` lines, or the answer after `ANSWER:`. The files of an answer stand between
`CREATE_FILE[path]:` and `END_FILE`, or `MODIFY_DOCKERFILE:` and `END_DOCKERFILE`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from codechat.base.domain import Message, Output, Reply, Usage
from codechat.base.errors import ContextOverflow
from codechat.base.template import counted, fill
from codechat.base.texts import visible
from codechat.judging.deciding import NO_TEXT, quote
from codechat.models import UNDER_TEST
from codechat.sandbox.languages import without_thinking
from codechat.studies.cab.stage import NOTHING, Stage
from codechat.studies.cab.turns import ExploredRecord
from codechat.studies.cab.verbs import run_command

_LIST_OR_QUOTE = re.compile(r"^(?:>[ \t]*)*(?:(?:[-*+]|#{1,6}|\d{1,3}[.)])[ \t]+)?")
_MARKED = re.compile(r"(\*{0,3}|_{0,3}|`)(EXPLORE|ANSWER)(?::\1|\1[ \t]*:)[ \t]*(.*)$", re.DOTALL)
_WHOLE = re.compile(r"(\*{1,3}|_{1,3}|`)((?:EXPLORE|ANSWER)[ \t]*:.*)\1$", re.DOTALL)
"""A line that is emphasised, or in backticks, from its mark to its end."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply's commands before its answer, the answer (None if it has none), and the text without commands."""

    commands: tuple[str, ...]
    answer: str | None
    text: str


def read_reply(reply: str) -> Said:
    """Read a reply without thinking.

    A command is the text after `EXPLORE:`, in capitals, at the begin of a line; the line may be indented, quoted, an
    item of a list, a heading, or in a fence; it, or its mark alone, may be bold or in backticks. The answer is
    everything after the first `ANSWER:` that begins a line: later lines are never commands. An answer or a command
    without text is none.
    """
    commands: list[str] = []
    text: list[str] = []
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for place, line in enumerate(lines):
        mark, said = _marked(line)
        if mark == "ANSWER":
            answer = "\n".join([said, *lines[place + 1 :]]).strip()
            return Said(tuple(commands), answer or None, "\n".join([*text, answer]).strip())
        if mark is None:
            text.append(line)
        elif said:
            commands.append(said)
    return Said(tuple(commands), None, "\n".join(text).strip())


def _marked(line: str) -> tuple[str | None, str]:
    """The mark at the begin of a line, and the text after it, for a command without backticks around it."""
    begun = _LIST_OR_QUOTE.sub("", line.lstrip(), count=1).strip()
    whole = _WHOLE.match(begun)
    if whole is not None and whole[1] not in whole[2]:
        begun = whole[2]
    match = _MARKED.match(begun)
    if match is None:
        return None, ""
    text = match[3]
    if match[2] == "EXPLORE":
        text = text.strip()
        if len(text) > 1 and text[0] == text[-1] == "`" and "`" not in text[1:-1]:
            text = text[1:-1].strip()
    return match[2], text


DOCKERFILE = "Dockerfile"  # the recorded name of a changed Dockerfile
_OPENING = re.compile(r"[ \t>*_`]*(?:CREATE_FILE\[(?P<path>[^\n]*)\]|MODIFY_DOCKERFILE)[*_`]*:[*_`]*[ \t]*$")
_FILE_ENDS = {"END_FILE", "END_DOCKERFILE"}
_FILE_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LONGEST_PATH = 1_000


@dataclass(frozen=True, slots=True)
class Changes:
    """Files by their path in the build context, the whole text of a changed Dockerfile, and refused changes."""

    files: Mapping[str, str] = field(default_factory=dict)
    dockerfile: str | None = None
    refused: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [*sorted(self.files), *([DOCKERFILE] if self.dockerfile is not None else [])]

    def then(self, later: "Changes") -> "Changes":
        """These changes followed by later ones: of a file or Dockerfile that both have, the later counts."""
        dockerfile = self.dockerfile if later.dockerfile is None else later.dockerfile
        return Changes({**self.files, **later.files}, dockerfile, later.refused)


def read_changes(answer: str) -> Changes:
    """The changes of an answer. Blocks without an end, and paths outside the build context, are refused."""
    files: dict[str, str] = {}
    dockerfile: str | None = None
    refused: list[str] = []
    lines = answer.split("\n")
    place = 0
    while place < len(lines):
        opening = _OPENING.match(lines[place])
        place += 1
        if opening is None:
            continue
        path = opening["path"]
        what = "MODIFY_DOCKERFILE" if path is None else f"CREATE_FILE[{path[:200]}]"
        end = _end(lines, place, "END_DOCKERFILE" if path is None else "END_FILE")
        if end is None:
            refused.append(f"{what}: its end is missing")
            continue
        content, place = _content(lines[place:end]), end + 1
        problem = "" if path is None else _problem_of(path.strip())
        if problem:
            refused.append(f"{what}: {problem}")
        elif path is None:
            dockerfile = content
        else:
            files[str(PurePosixPath(path.strip()))] = content
    return Changes(files, dockerfile, tuple(refused))


def _end(lines: list[str], start: int, word: str) -> int | None:
    """The line that ends a block; None if another block begins, or ends, before."""
    for place in range(start, len(lines)):
        said = lines[place].strip(" \t>*_`")
        if said in _FILE_ENDS or _OPENING.match(lines[place]):
            return place if said == word else None
    return None


def _content(lines: list[str]) -> str:
    """The text of a block, without a fence around all of it."""
    filled = [place for place, line in enumerate(lines) if line.strip()]
    opened = _FILE_FENCE.match(lines[filled[0]]) if len(filled) > 1 else None
    if opened and lines[filled[-1]].strip() == opened[1]:
        lines = lines[filled[0] + 1 : filled[-1]]
    return "".join(line + "\n" for line in lines)


def _problem_of(path: str) -> str:
    """The reason to refuse a path; empty if it can be written."""
    parts = PurePosixPath(path).parts
    if not parts or len(path) > _LONGEST_PATH or any(ord(letter) < 32 or letter == "\\" for letter in path):
        return "it names no file"
    if path.startswith(("/", "~")) or ".." in parts:
        return "it leaves the repository"
    if ".git" in (part.lower() for part in parts):
        return "it is a part of git's own folder"
    return ""


NO_NETWORK, NETWORK = "There is no network.", "The network can be reached."
_LONGEST_COMMAND = 300  # characters of a command above its output
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE)
_ENDS = {
    "timeout": "stopped: it ran past the limit of time",
    "memory": "stopped: it needed more memory than there is",
    "killed": "stopped from outside",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, or none, and its steps. `reply` is None if the last request no longer fitted the context.

    `usage` and `latency_s` sum up all calls.
    """

    request: tuple[Message, ...] = ()
    reply: Reply | None = None
    answer: str | None = None
    explored: tuple[ExploredRecord, ...] = ()
    steps: int = 0
    unread: int = 0
    unrun: int = 0
    forced: bool = False
    usage: Usage = field(default_factory=Usage)
    latency_s: float = 0.0


@dataclass
class Maintainer:
    """The model under test over one session: its history is one growing conversation."""

    stage: Stage
    history: tuple[Message, ...] = ()
    found: Answered = field(default_factory=Answered)

    async def answer(self, turn: int, reply: str | None) -> Answered:
        """The answer to the user's `reply`, which is None at the opening."""
        self.found = Answered()
        left = self.stage.config.steps_before(turn) if self.stage.explores else 0
        asked = self._opening(left) if reply is None else self._followup(reply, left)
        while (said := await self._ask(turn, asked)) is not None:
            unmarked = left == 0 and (self.found.forced or not said.commands)
            answer = said.answer or (_without_fences(said.text) if unmarked else None)
            if left == 0 or answer is not None:
                self._add(unrun=self.found.unrun + len(said.commands))
            if answer is not None or (left == 0 and self.found.forced):
                self._add(answer=answer)
                break
            outputs = [await self._explore(turn, said)] if left else []
            left = max(0, left - 1)
            self._add(forced=left == 0)
            asked = "\n\n".join([*outputs, self._tail(left, later=turn > 0)])
        return self.found

    async def _ask(self, turn: int, text: str) -> Said | None:
        request = (*self.history, Message("user", text))
        self._add(request=request)
        try:
            reply = await self.stage.kit.ask(UNDER_TEST, turn, request)
        except ContextOverflow:
            self._add(reply=None)
            return None
        said = without_thinking(reply.text).strip()
        self.history = (*request, Message("assistant", said or NO_TEXT))
        used, seconds = self.found.usage + reply.usage, self.found.latency_s + reply.latency_s
        self._add(reply=reply, usage=used, latency_s=seconds)
        return read_reply(said)

    async def _explore(self, turn: int, said: Said) -> str:
        """Run a reply's commands. Returns the text that feeds the outputs back."""
        found, prompts = self.found, self.stage.config.prompts
        if not said.commands:
            self._add(steps=found.steps + 1, unread=found.unread + 1)
            return prompts.unread.strip("\n")
        commands = said.commands[: self.stage.config.commands]
        outputs = [await run_command(self.stage.kit, turn, each) for each in commands]
        unrun = len(said.commands) - len(commands)
        explored = (*found.explored, *map(_record, commands, outputs))
        self._add(steps=found.steps + 1, explored=explored, unrun=found.unrun + unrun)
        return format_outputs(prompts.outputs, commands, outputs, unrun)

    def _add(self, **fields: object) -> None:
        self.found = replace(self.found, **fields)  # type: ignore[arg-type]

    def _opening(self, left: int) -> str:
        config, task = self.stage.config, self.stage.task
        prompts, means = config.prompts, config.prompts.blind
        if left:
            means = fill(prompts.explore, steps=counted(left, "step"), commands=counted(config.commands, "command"))
            if self.stage.networked:
                means = means.replace(NO_NETWORK, NETWORK)
        if self.stage.builds and task.workspace is not None:
            means += "\n" + quote(prompts.files, dockerfile=(task.workspace.dockerfile or NOTHING).strip("\n"))
        repository, language = task.task_id.partition("#")[0], task.target.language
        texts = {"means": means.strip("\n"), "repository": repository, "language": language}
        return quote(prompts.opening, texts, question=task.prompt)

    def _followup(self, reply: str, left: int) -> str:
        return f"{quote(self.stage.config.prompts.followup, reply=reply)}\n\n{self._tail(left, later=True)}"

    def _tail(self, left: int, *, later: bool) -> str:
        """The end of every message but the opening: the number of steps left, or the order to answer now.

        Before a `later` answer it begins with the order to repeat everything, if the prompts have one.
        """
        prompts = self.stage.config.prompts
        end = fill(prompts.more, left=counted(left, "step")) if left else prompts.answer.strip("\n")
        return "\n\n".join([prompts.again.strip("\n"), end]) if later and prompts.again else end


def format_outputs(template: str, commands: Sequence[str], outputs: Sequence[Output], unrun: int) -> str:
    """The outputs of a step, each quoted below its command and its end."""
    texts: dict[str, str] = {}
    parts: dict[str, str] = {}
    blocks = []
    for number, (command, output) in enumerate(zip(commands, outputs, strict=True), 1):
        texts[f"command_{number}"] = f"Command {number}: {_shown(command)}\n({_ended(output)})"
        parts[f"output_{number}"] = output.text.strip("\n") or NOTHING
        blocks.append(f"{{{{command_{number}}}}}\n{{{{output_{number}}}}}")
    if unrun:
        blocks.append(f"{counted(unrun, 'further command')} of that reply {'was' if unrun == 1 else 'were'} not run.")
    return quote(fill(template, outputs="\n\n".join(blocks), boundary="{{boundary}}"), texts, **parts)


def _shown(command: str) -> str:
    text = visible(command)
    return text if len(text) <= _LONGEST_COMMAND else text[: _LONGEST_COMMAND - 1] + "…"


def _ended(output: Output) -> str:
    end = _ENDS.get(output.ended) or f"exit status {output.status}"
    return f"{end}; the output was cut" if output.cut else end


def _record(command: str, output: Output) -> ExploredRecord:
    return ExploredRecord(
        command=command, status=output.status, ended=output.ended, cut=output.cut, seconds_s=output.seconds
    )


def _without_fences(text: str) -> str | None:
    """The text; None if it has nothing but fences."""
    return text if _FENCE.sub("", text).strip() else None
