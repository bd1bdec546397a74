"""The programs that serve models: each is a module with the same functions."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from codechat.base.errors import UserError
from codechat.models.endpoints import LLAMA_CPP, VLLM
from codechat.models.hardware import HardwareConfig
from codechat.models.serving import llama_cpp, vllm
from codechat.models.serving.planning import Placement
from codechat.models.serving.server import Need, Server

HOST = "127.0.0.1"
LONGEST_LINE = 240
PORT_TAKEN = re.compile(r"address already in use", re.IGNORECASE)


class Program(Protocol):
    """A program that serves a model at `--host` and `--port`.

    `CAUSES` are reasons of a failed start: a pattern of a log line, the problem, and the remedy.
    """

    CAUSES: tuple[tuple[str, str, str], ...]

    def command(self, need: Need) -> list[str]:
        """The command without its arguments. Raises `UserError` if the program is not installed."""

    def arguments_of(self, server: Server, place: Placement, hardware: HardwareConfig) -> list[str]:
        """The arguments, as they are recorded: without host and port."""

    def environment_of(self, place: Placement) -> dict[str, str]:
        """The variables of the process. Raises `UserError`."""

    def is_ready(self, port: int) -> bool:
        """Whether the server on a port of this machine takes calls."""


PROGRAMS: Mapping[str, Program] = {VLLM: vllm, LLAMA_CPP: llama_cpp}


def failure(server: Server, place: str, output: str, ended: str, log: Path) -> UserError:
    """The error of a server that was never ready. `ended`: how it ended; `place`: the model's key in the config."""
    name = server.name
    lines = [line for line in output.splitlines() if line.strip()]
    for pattern, problem, remedy in PROGRAMS[server.program].CAUSES:
        if matching := [line for line in lines if re.search(pattern, line, re.IGNORECASE)]:
            message = f"{name} cannot be served: {problem} (log: {log})\n  {_short(matching[-1])}"
            return UserError(message, remedy.format(place=place, name=name))
    last = f"\n  {_short(lines[-1])}" if lines else ""
    return UserError(f"{name} cannot be served: {server.program} {ended}{last}", f"its log says more: {log}")


def _short(line: str) -> str:
    """The line without the prefixes of vLLM and Python."""
    text = re.sub(r"^(\(\S+ pid=\d+\)\s*)?((ERROR|WARNING|INFO|CRITICAL)\s+[\d: .-]+\[[^\]]*\]\s*)?", "", line.strip())
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
