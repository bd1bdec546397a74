"""A tool run on the program, such as a compiler, checker or interpreter: its exit status decides."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import model_validator

from codechat.base.config import Config, result_option
from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.sandbox import PYTHON, Command, Sandbox
from codechat.sandbox.suites import NOTHING_OUTSIDE, SUITES
from codechat.sandbox.suites.endings import judge_status

PROGRAM = "{program}"  # in an argument: the program's file


@dataclass(frozen=True)
class Tool:
    """A tool with its arguments; passed if it ends with the status `passes` within `wall_s` seconds by the clock.

    `argv` begins with the tool: a name found on this machine, a path, `{python}` for the sandbox's interpreter, or
    `./NAME` for a file in the working folder. `{program}` stands for the program's `file` in that folder, which also
    has the `files`, by name; `environment` adds variables. `tools` are further paths of this machine. Versions of tool
    and interpreter are not part of the key. `executes`: the tool runs the program, which could forge its verdict.
    """

    argv: tuple[str, ...]
    file: str = "program"
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    passes: int = 0
    wall_s: float = 10.0
    executes: bool = False
    kind, outside = "tool", NOTHING_OUTSIDE

    @cached_property
    def key(self) -> str:
        given = [sorted(self.files.items()), sorted(self.environment.items())]
        return content_hash([self.kind, list(self.argv), self.file, *given, self.passes, self.wall_s])

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        command = self.command(program.source)
        ran = await sandbox.run(command)
        if ran.why == "missing" and command.tools:
            raise UserError(f"the sandbox cannot run the tool: {ran.stderr.strip()}", "see that others may execute it")
        verdict = judge_status(ran, command, expected=self.passes, output=True)
        return replace(verdict, inside="the tool runs the program" if self.executes else "")

    def command(self, source: str) -> Command:
        """The command to run; raises `UserError` if this machine has no such tool."""
        tool, arguments = self.argv[0], [word.replace(PROGRAM, self.file) for word in self.argv[1:]]
        tools = self.tools
        if tool != PYTHON and not tool.startswith("./"):
            path = shutil.which(tool)
            if path is None:
                raise UserError(f"the tool {tool} is not installed", "install it, or give its whole path")
            tool = os.path.abspath(path)  # noqa: PTH100  a link stays one
            tools = (tool, *tools)
        texts = {**self.files, self.file: source}
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
        argv = (tool, *arguments)
        return Command(argv=argv, files=files, environment=self.environment, wall_s=self.wall_s, tools=tools)


class ToolConfig(Config):
    """Fields of `tool`."""

    kind: Literal["tool"] = result_option("tool", "which kind of tests")
    argv: list[str] = result_option(..., "the tool and its arguments; {program} is the program's file", min_length=1)
    file: str = result_option("program", "the name of the program's file", min_length=1)
    files: dict[str, str] = result_option({}, "further files of the working folder: name and text")
    environment: dict[str, str] = result_option({}, "further variables that the tool finds")
    tools: list[str] = result_option([], "further paths of this machine that the tool needs, read-only")
    passes: int = result_option(0, "the exit status that passes", ge=0, le=255)
    wall_s: float = result_option(10.0, "seconds by the clock", gt=0)
    executes: bool = result_option(False, "the tool runs the program, which could forge its verdict")

    @model_validator(mode="after")
    def _inside(self) -> Self:
        for name in (self.file, *self.files):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise ValueError(f"'{name}' is no name of a file in the working folder")
        if self.file in self.files:
            raise ValueError(f"'{self.file}' is the program's own file")
        return self


@SUITES.register("tool", ToolConfig)
def tool(config: ToolConfig) -> Tool:
    """A tool run on the program's file, such as a compiler or a checker: its exit status decides."""
    fields = config.model_dump(exclude={"kind"})
    return Tool(**fields | {"argv": tuple(config.argv), "tools": tuple(config.tools)})
