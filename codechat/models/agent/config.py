"""Options of a coding agent."""

from typing import Literal

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import field_validator, model_validator

from codechat.base.config import Config, original_option, result_option, run_option
from codechat.base.template import require
from codechat.models.remote import EndpointConfig

Words = tuple[str, ...]
CONTINUED = "{continued}"
"""The word of a command in place of which the words of `continued` stand at later turns."""
HERE = "The code stands in the file {{file}} of the current folder: write it there, since only that file is read."


class OutputConfig(Config):
    """How the agent's output is read. Expressions are JMESPath; on JSON lines they are asked of each line."""

    format: Literal["text", "json", "jsonl"] = result_option("text", "what the agent prints")
    file: str | None = result_option(None, "a file in its HOME that is read in place of its output; null: none")
    reply: str = result_option("@", "the last message; of several lines with one, the last; of a text, all of it")
    session: str = result_option("null", "the conversation's name, for `continued`")
    steps: str = result_option(
        "null",
        "a list of {kind (command, edit, tool), text, output, status, id}: steps; parts of one step have one id",
    )

    @field_validator("reply", "session", "steps")
    @classmethod
    def _is_expression(cls, text: str) -> str:
        try:
            jmespath.compile(text)
        except JMESPathError as error:
            raise ValueError(f"no JMESPath expression: {error}".splitlines()[0]) from None
        return text


class AgentLimits(Config):
    """Limits of a turn, except disk, which is a limit of the whole session. Null: none."""

    seconds: float = result_option(1800.0, "seconds by the clock", gt=0)
    requests: int = result_option(200, "requests to the endpoint", ge=1)
    tokens: int | None = result_option(None, "tokens sent and received", ge=1)
    usd: float | None = result_option(None, "US dollars, by the model's prices", gt=0)
    memory_mb: int = result_option(4096, "MiB of memory of all its processes", ge=64)
    processes: int = result_option(512, "processes and threads at once", ge=8)
    disk_mb: int = result_option(1024, "MiB of its files, which lie in memory", ge=16)


class ExpectedTurn(Config):
    """What a turn is expected to take, for estimates."""

    requests: int = run_option(6, "requests to the endpoint", ge=1)
    overhead_tokens: int = run_option(18_000, "tokens of the agent's instructions and tools, in each request", ge=0)


class AgentConfig(EndpointConfig):
    """The agent's command, and the endpoint that it talks to.

    Words may contain {prompt}, {session}, {model}, {home}, and {endpoint}: the address that stands for base_url there.
    """

    kind: Literal["agent"] = original_option("agent", "which provider answers")
    command: Words = original_option(
        ...,
        "the program and its arguments, e.g. [codex, exec, '{prompt}']; fills {prompt}, {model}, {endpoint}, {home}",
        min_length=1,
    )
    continued: Words = original_option(
        (),
        "words for {continued} in `command` at later turns, e.g. [--resume, '{session}']; empty: every turn is new",
    )
    version_command: Words = run_option(
        (), "the same that prints the agent's version, which is recorded; empty: unknown"
    )
    here: str = original_option(HERE, "the sentence added to each request; fills {{file}}")
    environment: dict[str, str] = original_option({}, "environment variables, e.g. {OPENAI_BASE_URL: '{endpoint}'}")
    output: OutputConfig = result_option(OutputConfig(), "how its output is read")
    limits_of_turn: AgentLimits = result_option(AgentLimits(), "what a turn may take")
    expected: ExpectedTurn = run_option(ExpectedTurn(), "what a turn is expected to take, for estimates")
    base_url: str = run_option(..., "the address of the model that the agent asks")
    shown: Words = run_option((), "further files and folders of this machine that it sees, read-only")
    max_concurrency: int = run_option(4, "most sessions at once, each with a process of the agent", ge=1)
    timeout_s: float = run_option(600.0, "seconds that end one request to the endpoint", gt=0)

    @model_validator(mode="after")
    def _places_continued(self) -> "AgentConfig":
        if self.continued and CONTINUED not in self.command:
            raise ValueError(f"model.continued needs the word {CONTINUED} in model.command")
        return self

    @field_validator("here")
    @classmethod
    def _names_file(cls, text: str) -> str:
        return require(text, "file")
