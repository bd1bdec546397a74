"""The limits of a worktree, and who may have one."""

import asyncio
import codecs
import tempfile
from pathlib import Path
from typing import Any

from codechat.base.config import result_option
from codechat.base.texts import visible
from codechat.datasets.tasks import Workspace
from codechat.sandbox.inside.beside import clear
from codechat.studies.cab.environments import EnvironmentConfig
from codechat.studies.cab.environments.cache import HeldFolder
from codechat.studies.cab.environments.commits import unpacked

NOBODY = 65534
"""The user of the machine that a worktree's processes are if codechat runs as root."""
VARIABLES = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "/home/maintainer",
    "USER": "maintainer",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",  # looking changes nothing
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""The environment variables of commands."""


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
        """The limits as the resident process knows them, in the system's units."""
        return {
            "memory": self.memory_mb << 20,
            "processes": self.processes,
            "disk": self.disk_mb << 20,
            "open_files": self.open_files,
            "output": self.output_kb << 10,
        }

    def notice(self, ended: str, seconds: float, before: str) -> str:
        """A line for the end of an output: the limit that a command met; empty if it met none."""
        reason = {
            "timeout": f"a command may take {self.command_s:g} s, all together {self.room_s:g} s; it had {seconds:g} s",
            "memory": f"a room's processes may use {self.memory_mb} MiB of memory",
            "disk": f"a room's commands may write {self.disk_mb} MiB",
        }.get(ended)
        return (
            "" if reason is None else f"{'' if not before or before.endswith(chr(10)) else chr(10)}[killed: {reason}]\n"
        )


class Slots:
    """At most `count` worktrees at once."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self) -> "Slot":
        """One of them, once it is free."""
        await self._free.acquire()
        return Slot(self._free)


class Slot:
    """A place for one worktree, and what the worktree keeps from being cleared."""

    def __init__(self, of: asyncio.Semaphore) -> None:
        self._of: asyncio.Semaphore | None = of
        self._commit: HeldFolder | None = None
        self._own: Path | None = None

    async def hold(self, workspace: Workspace, owner: int | None) -> Path:
        """The folder of an unpacked commit, which is kept until the worktree is closed."""
        self._commit = await asyncio.to_thread(unpacked, workspace, owner)
        return self._commit.folder

    def make_folder(self) -> Path:
        """An empty folder for the worktree alone, which goes with it."""
        self._own = Path(tempfile.mkdtemp(prefix="codechat-room-")).resolve()
        return self._own

    def free(self) -> None:
        """Give it back, once."""
        of, self._of = self._of, None
        if self._own is not None and self._own.exists():
            clear(str(self._own))
            self._own.rmdir()
        if self._commit is not None:
            self._commit.release()
        if of is not None:
            of.release()


def legible(head: bytes, tail: bytes, total: int, kept_kb: int) -> str:
    r"""The head and the tail of an output of `total` bytes, with what is left out stated between them.

    Bytes that are no UTF-8 and characters that are hidden, or that a terminal obeys, are shown by their codes
    (`\xff`, `\x1b`); a carriage return before a line end is left out.
    """
    missing = total - len(head) - len(tail)
    if missing <= 0:
        return _shown((head + tail).decode("utf-8", "backslashreplace"))
    first = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(head)  # without a character cut in two
    start = next((place for place in range(min(4, len(tail))) if tail[place] & 0xC0 != 0x80), 0)
    last = tail[start:].decode("utf-8", "backslashreplace")
    note = f"[{missing:,} bytes left out: of an output the first and the last {kept_kb / 2:g} KiB are kept]"
    return f"{_shown(first)}\n{note}\n{_shown(last)}"


def _shown(text: str) -> str:
    return visible(text.replace("\r\n", "\n"))
