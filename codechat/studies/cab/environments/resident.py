"""Limits of the commands of a worktree, and worktrees whose process stays in a room."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from codechat.base.config import result_option
from codechat.base.domain import Build, Output
from codechat.sandbox.rooms import LONGEST, Resident, legible
from codechat.studies.cab.environments import EnvironmentConfig


class Limits(EnvironmentConfig):
    """Options of environments that run commands."""

    command_s: float = result_option(60.0, "seconds by the clock that a command may take", gt=0)
    room_s: float = result_option(1800.0, "seconds that all commands of a worktree may take together", gt=0)
    memory_mb: int = result_option(4096, "MiB of memory that a worktree's processes may use together", ge=64)
    processes: int = result_option(256, "processes and threads that a command may have at once", ge=8)
    disk_mb: int = result_option(1024, "MiB that a worktree's commands may write, all in memory", ge=16)
    open_files: int = result_option(1024, "files that a process may hold open", ge=32)
    output_kb: int = result_option(
        16, "KiB of a command's output that are kept, half of it from its end", ge=1, le=4096
    )

    def inside(self) -> dict[str, Any]:
        """The limits for the resident process, in the system's units."""
        return {
            "memory": self.memory_mb << 20,
            "processes": self.processes,
            "disk": self.disk_mb << 20,
            "open_files": self.open_files,
            "output": self.output_kb << 10,
        }

    def notice(self, ended: str, seconds: float, before: str) -> str:
        """The line after an output `before` that names the exceeded limit; empty if none was exceeded."""
        reason = {
            "timeout": f"a command may take {self.command_s:g} s, all together {self.room_s:g} s; it had {seconds:g} s",
            "memory": f"a room's processes may use {self.memory_mb} MiB of memory",
            "disk": f"a room's commands may write {self.disk_mb} MiB",
        }.get(ended)
        gap = "\n" if before and not before.endswith("\n") else ""
        return "" if reason is None else f"{gap}[killed: {reason}]\n"


async def run_within(limits: Limits, resident: Resident, command: str, seconds: float) -> Output:
    """A command's output as models see it. Raises `InfrastructureError` if the process is gone."""
    data = command.encode("utf-8", "replace")
    if b"\0" in data or len(data) >= LONGEST:
        return Output("[not run: a command holds no NUL byte, and less than 128 KiB]", None, "killed")
    done = await resident.run(data, seconds)
    text = legible(done.head, done.tail, done.total, limits.output_kb)
    text += limits.notice(done.ended, seconds, text)
    cut = done.total > len(done.head) + len(done.tail)
    return Output(text, done.status, done.ended, cut, round(done.seconds, 4))


class ResidentWorktree:
    """A worktree with a resident process. `build` tries a build, in a thread; `held` is closed at the end."""

    def __init__(
        self,
        limits: Limits,
        resident: Resident,
        held: ExitStack,
        build: Callable[[Mapping[str, str], str | None], Build],
    ) -> None:
        self._limits, self._resident, self._held, self._build = limits, resident, held, build
        self._left_s = limits.room_s

    async def run(self, command: str) -> Output:
        seconds = max(0.0, min(self._limits.command_s, self._left_s))
        output = await run_within(self._limits, self._resident, command, seconds)
        self._left_s -= output.seconds
        return output

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        return await asyncio.to_thread(self._build, files, dockerfile)

    async def aclose(self) -> None:
        try:
            await self._resident.aclose()
        finally:
            self._held.close()
