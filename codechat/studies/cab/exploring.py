"""The maintainer's side: it explores by commands until it answers; out of steps, it is asked for an answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codechat.domain import Message, Output, Reply, Usage
from codechat.errors import ContextOverflow
from codechat.judges.deciding import quote
from codechat.languages import without_thinking
from codechat.models import UNDER_TEST
from codechat.studies.cab.commands import Said, read_reply
from codechat.studies.cab.stage import NO_TEXT, Stage
from codechat.studies.cab.telling import NOTHING
from codechat.studies.cab.turns import ExploredRecord
from codechat.template import counted, fill
from codechat.texts import visible

_LONGEST_COMMAND = 300
"""Characters of a command as it is told beside its output."""
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE)
_ENDS = {
    "timeout": "stopped: it ran past the limit of time",
    "memory": "stopped: it needed more memory than there is",
    "killed": "stopped from outside",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, or none, and how it came about. `reply` is None if the last request no longer fitted the context.

    `usage` and `latency_s` are those of all calls.
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
    """The model under test over one session: its whole history is one growing conversation."""

    stage: Stage
    history: tuple[Message, ...] = ()
    found: Answered = field(default_factory=Answered)

    async def answer(self, turn: int, reply: str | None) -> Answered:
        """Its answer to what the user says; `reply` is None at the opening."""
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
            told = [await self._explore(turn, said)] if left else []
            left = max(0, left - 1)
            self._add(forced=left == 0)
            asked = "\n\n".join([*told, self._tail(left)])
        return self.found

    async def _ask(self, turn: int, text: str) -> Said | None:
        """Its reply, as it is read; None if the conversation no longer fits its context."""
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
        """Run a reply's commands; the text that feeds their outputs back."""
        found, prompts = self.found, self.stage.config.prompts
        if not said.commands:
            self._add(steps=found.steps + 1, unread=found.unread + 1)
            return prompts.unread.strip("\n")
        commands = said.commands[: self.stage.config.commands]
        outputs = [await self.stage.kit.command(turn, command) for command in commands]
        unrun = len(said.commands) - len(commands)
        explored = (*found.explored, *map(_record, commands, outputs))
        self._add(steps=found.steps + 1, explored=explored, unrun=found.unrun + unrun)
        return told_outputs(prompts.outputs, commands, outputs, unrun)

    def _add(self, **fields: object) -> None:
        self.found = replace(self.found, **fields)  # type: ignore[arg-type]

    def _opening(self, left: int) -> str:
        config, task = self.stage.config, self.stage.task
        prompts, means = config.prompts, config.prompts.blind
        if left:
            means = fill(prompts.explore, steps=counted(left, "step"), commands=counted(config.commands, "command"))
        if self.stage.builds and task.workspace is not None:
            means += "\n" + quote(prompts.files, dockerfile=(task.workspace.dockerfile or NOTHING).strip("\n"))
        repository, language = task.task_id.partition("#")[0], task.target.language
        told = {"means": means.strip("\n"), "repository": repository, "language": language}
        return quote(prompts.opening, told, question=task.prompt)

    def _followup(self, reply: str, left: int) -> str:
        return f"{quote(self.stage.config.prompts.followup, reply=reply)}\n\n{self._tail(left)}"

    def _tail(self, left: int) -> str:
        """What ends every message but the opening: how many steps are left, or that it must answer now."""
        if left:
            return fill(self.stage.config.prompts.more, left=counted(left, "step"))
        return self.stage.config.prompts.answer.strip("\n")


def told_outputs(template: str, commands: Sequence[str], outputs: Sequence[Output], unrun: int) -> str:
    """The outputs of a step, each quoted below its command and how it ended."""
    told: dict[str, str] = {}
    parts: dict[str, str] = {}
    blocks = []
    for number, (command, output) in enumerate(zip(commands, outputs, strict=True), 1):
        told[f"command_{number}"] = f"Command {number}: {_shown(command)}\n({_ended(output)})"
        parts[f"output_{number}"] = output.text.strip("\n") or NOTHING
        blocks.append(f"{{{{command_{number}}}}}\n{{{{output_{number}}}}}")
    if unrun:
        blocks.append(f"{counted(unrun, 'further command')} of that reply {'was' if unrun == 1 else 'were'} not run.")
    return quote(fill(template, outputs="\n\n".join(blocks), boundary="{{boundary}}"), told, **parts)


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
    """The text, None if it holds nothing but fences."""
    return text if _FENCE.sub("", text).strip() else None
