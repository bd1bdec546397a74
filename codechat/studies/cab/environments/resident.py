"""The process that stays in a worktree and starts its commands: its limits, and how this process talks to it."""

import asyncio
import codecs
import marshal
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from codechat.base.config import result_option
from codechat.base.domain import Build, Output
from codechat.base.environment import PACKAGE
from codechat.base.errors import InfrastructureError
from codechat.base.texts import visible
from codechat.studies.cab.environments import EnvironmentConfig
from codechat.studies.cab.environments.inside.starter import LENGTH

UNPRIVILEGED = 65534  # the user that runs a worktree's processes if codechat runs as root
VARIABLES = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "/home/maintainer",
    "USER": "maintainer",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",  # reading changes nothing
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""The environment variables of commands."""
START_S, STOP_S = 120.0, 10.0
GRACE_S = 20.0  # beyond a command's limit, for a busy machine
LONGEST = 1 << 17  # bytes of one argument that the system accepts
CODE = {"sandbox": PACKAGE / "sandbox", "environments": Path(__file__).parent}
"""The folders whose `inside` runs in a worktree's process."""
_STUDY = CODE["environments"].parent
HIDDEN = (str(PACKAGE), *(() if _STUDY.is_relative_to(PACKAGE) else (str(_STUDY),)))
"""Folders that no worktree shows, because the embedded datasets contain answers."""
BOOT = """
import sys
places = {{"codechat.sandbox": [{code[sandbox]!r}], "codechat.studies.cab.environments": [{code[environments]!r}]}}
for package in places:
    parts = package.split(".")
    for name in (".".join(parts[:end]) for end in range(1, len(parts) + 1)):
        sys.modules[name] = type(sys)(name)
        sys.modules[name].__path__ = places.get(name, [])
from codechat.studies.cab.environments.inside.{call}
"""


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


def legible(head: bytes, tail: bytes, total: int, kept_kb: int) -> str:
    r"""The head and the tail of an output of `total` bytes, with a note between them on omitted bytes.

    Bytes that are no UTF-8, hidden characters and control characters are shown as codes (`\xff`, `\x1b`). A carriage
    return before a line end is left out.
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


class Resident:
    """A started process. Runs one command at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]", control: socket.socket, errors: IO[bytes]) -> None:
        self._process, self._control, self._errors = process, control, errors
        self._broken = False

    @classmethod
    async def start(cls, command: list[str], config: Mapping[str, Any]) -> "Resident":
        """Start the process with a socket as standard input. Raises `InfrastructureError` with its error output."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `aclose`
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.to_thread(_popen, command, theirs.fileno(), errors)
        return await cls._furnished(process, ours, errors, config)

    @classmethod
    async def meet(
        cls, command: Callable[[list[str], str], list[str]], root: str, config: Mapping[str, Any], *, meeting: str
    ) -> "Resident":
        """Start a process that cannot inherit a socket, as in a container.

        `command` wraps the interpreter's arguments, given a folder that the process knows as the folder of the socket
        `meeting`. Raises `InfrastructureError` with the process's error output.
        """
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `aclose`
        process, control = await asyncio.to_thread(_meet, command, boot(meeting, root=root), errors)
        return await cls._furnished(process, control, errors, config)

    @classmethod
    async def _furnished(
        cls, process: "subprocess.Popen[bytes]", control: socket.socket, errors: IO[bytes], config: Mapping[str, Any]
    ) -> "Resident":
        control.setblocking(False)
        resident = cls(process, control, errors)
        try:
            await resident._send(dict(config))
            problem = (await asyncio.wait_for(resident._receive(), START_S))["problem"]
        except (OSError, EOFError, TimeoutError):
            problem = resident._last_errors()
        except BaseException:  # cancelled
            await resident.aclose()
            raise
        if problem:
            await resident.aclose()
            raise InfrastructureError(f"the room did not start: {problem}")
        return resident

    async def run(self, command: str, limits: Limits, seconds: float) -> Output:
        """Run a command. Raises `InfrastructureError` if the process is gone."""
        data = command.encode("utf-8", "replace")
        if b"\0" in data or len(data) >= LONGEST:
            return Output("[not run: a command holds no NUL byte, and less than 128 KiB]", None, "killed")
        if self._broken:
            raise InfrastructureError("the room is broken")
        self._broken = True  # until it has answered: a cancelled command leaves its answer behind
        try:
            await self._send({"command": data, "seconds": seconds})
            answer = await asyncio.wait_for(self._receive(), seconds + GRACE_S)
        except (OSError, EOFError, TimeoutError) as error:
            raise InfrastructureError(f"the room broke: {self._last_errors()}") from error
        self._broken = False
        text = legible(answer["head"], answer["tail"], answer["total"], limits.output_kb)
        text += limits.notice(answer["ended"], seconds, text)
        cut = answer["total"] > len(answer["head"]) + len(answer["tail"])
        return Output(text, answer["status"], answer["ended"], cut, round(answer["seconds"], 4))

    async def _send(self, message: dict[str, Any]) -> None:
        data = marshal.dumps(message, 2)
        await asyncio.get_running_loop().sock_sendall(self._control, LENGTH.pack(len(data)) + data)

    async def _receive(self) -> dict[str, Any]:
        loop, data = asyncio.get_running_loop(), b""
        while len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
            block = await loop.sock_recv(self._control, 1 << 18)
            if not block:
                raise EOFError
            data += block
        message: dict[str, Any] = marshal.loads(data[LENGTH.size :])
        return message

    def _last_errors(self) -> str:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 1000))
        return self._errors.read().decode(errors="replace").strip() or "it printed nothing"

    async def aclose(self) -> None:
        """Hang up. The process ends, and with it everything in the worktree."""
        self._broken = True
        self._control.close()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._errors.close()


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
        output = await self._resident.run(command, self._limits, max(0.0, min(self._limits.command_s, self._left_s)))
        self._left_s -= output.seconds
        return output

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        return await asyncio.to_thread(self._build, files, dockerfile)

    async def aclose(self) -> None:
        try:
            await self._resident.aclose()
        finally:
            self._held.close()


def boot(meeting: str, *, root: str | None = None) -> list[str]:
    """The interpreter's arguments for a resident process, whose socket is `meeting` or, if empty, standard input.

    `root` has copies of `CODE` by its keys.
    """
    return ["-S", "-s", "-P", "-B", "-c", boot_code(f"starter import main\nmain({meeting!r})", root)]


def boot_code(call: str, root: str | None) -> str:
    """The code that imports from `inside`, such as `starter import main`, with copies of `CODE` in `root`."""
    return BOOT.format(
        code={part: f"{root}/{part}" if root else str(folder) for part, folder in CODE.items()}, call=call
    )


def _meet(
    command: Callable[[list[str], str], list[str]], arguments: list[str], errors: IO[bytes]
) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start the process and wait until it connects. If it does not, the returned socket is at its end."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        Path(folder).chmod(0o711)
        server.bind(f"{folder}/control")
        Path(folder, "control").chmod(0o666)
        server.listen(1)
        server.settimeout(0.1)
        process = _popen(command(arguments, folder), subprocess.DEVNULL, errors)
        for _ in range(int(START_S * 10)):
            with suppress(TimeoutError):
                return process, server.accept()[0]
            if process.poll() is not None:
                break
        process.kill()
        theirs, ours = socket.socketpair()
        theirs.close()
        return process, ours


def _popen(command: list[str], stdin: int, errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=errors, cwd="/", start_new_session=True
    )
