"""The process that stays in a worktree and starts its commands, from outside: start, ask, end."""

import asyncio
import marshal
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from codechat.base.domain import Build, Output
from codechat.base.environment import PACKAGE
from codechat.base.errors import InfrastructureError
from codechat.studies.cab.environments.inside.starter import LENGTH
from codechat.studies.cab.environments.limits import Limits, Slot, legible

START_S = 120.0
GRACE_S = 20.0  # beyond a command's limit, for a busy machine
STOP_S = 10.0
LONGEST = 1 << 17  # bytes of one argument that the system takes
CODE = {"sandbox": PACKAGE / "sandbox", "environments": Path(__file__).parent}
"""The folders whose `inside` runs in a worktree's process."""
_STUDY = CODE["environments"].parent
HIDDEN = (str(PACKAGE), *(() if _STUDY.is_relative_to(PACKAGE) else (str(_STUDY),)))
"""The folders that no worktree shows: the embedded datasets hold their own answers."""
BOOT = """
import sys
places = {{"codechat.sandbox": [{code[sandbox]!r}], "codechat.studies.cab.environments": [{code[environments]!r}]}}
for package in places:
    parts = package.split(".")
    for name in (".".join(parts[:end]) for end in range(1, len(parts) + 1)):
        sys.modules[name] = type(sys)(name)
        sys.modules[name].__path__ = places.get(name, [])
from codechat.studies.cab.environments.inside.starter import {function}
{function}({arguments})
"""


class Process(Protocol):
    """A process, as `subprocess.Popen` shows it."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises `subprocess.TimeoutExpired`."""

    def kill(self) -> None:
        """End it at once."""


class Resident:
    """One started process; one command at a time."""

    def __init__(self, process: Process, control: socket.socket, errors: IO[bytes]) -> None:
        self._process, self._control, self._errors = process, control, errors
        self._broken = False

    @classmethod
    async def start(
        cls, command: Callable[[list[str], str], list[str]], root: str, config: Mapping[str, Any], *, meeting: str
    ) -> "Resident":
        """Start it and wait until its worktree is furnished.

        `command` wraps the interpreter's arguments, and gets a folder in which the process connects to the path
        `meeting`. Raises `InfrastructureError` with its error output.
        """
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `aclose`
        arguments = boot("main", repr(meeting), root=root)
        process, control = await asyncio.to_thread(_meet, command, arguments, errors)
        return await cls.furnished(process, control, errors, config)

    @classmethod
    async def furnished(
        cls, process: Process, control: socket.socket, errors: IO[bytes], config: Mapping[str, Any]
    ) -> "Resident":
        """A started process, once it has furnished its worktree. Raises `InfrastructureError` with its error output."""
        resident = cls(process, control, errors)
        try:
            await resident._send(dict(config))
            hello = await asyncio.wait_for(resident._receive(), START_S)
        except (OSError, EOFError, TimeoutError):
            hello = {"problem": ""}
            resident._broken = True
        except BaseException:  # cancelled
            await resident.aclose()
            raise
        if resident._broken or hello["problem"]:
            problem = hello["problem"] or errors_tail(resident._errors)
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
            raise InfrastructureError(f"the room broke: {errors_tail(self._errors)}") from error
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

    async def aclose(self) -> None:
        """Hang up: the process ends, and with it everything in its worktree."""
        self._broken = True
        self._control.close()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


class ResidentWorktree:
    """A worktree whose commands a resident process starts; `build` tries a build, in a thread."""

    def __init__(
        self, limits: Limits, resident: Resident, slot: Slot, build: Callable[[Mapping[str, str], str | None], Build]
    ) -> None:
        self._limits, self._resident, self._slot, self._build = limits, resident, slot, build
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
            self._slot.free()


def boot(function: str, arguments: str = "", *, root: str | None = None) -> list[str]:
    """The interpreter's arguments that call a function of `inside.starter`. `root` has copies of `CODE` by its keys."""
    code = {part: str(folder) if root is None else f"{root}/{part}" for part, folder in CODE.items()}
    return ["-S", "-s", "-P", "-B", "-c", BOOT.format(code=code, function=function, arguments=arguments)]


def errors_tail(errors: IO[bytes]) -> str:
    """The last that a process wrote to its file of errors."""
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - 1000))
    return errors.read().decode(errors="replace").strip() or "it printed nothing"


def _meet(
    command: Callable[[list[str], str], list[str]], arguments: list[str], errors: IO[bytes]
) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start the process and wait until it connects to a socket in a folder; else its end is met by reading."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        Path(folder).chmod(0o711)
        server.bind(f"{folder}/control")
        Path(folder, "control").chmod(0o666)
        server.listen(1)
        server.settimeout(0.1)
        process = popen(command(arguments, folder), subprocess.DEVNULL, errors)
        for _ in range(int(START_S * 10)):
            with suppress(TimeoutError):
                ours = server.accept()[0]
                ours.setblocking(False)
                return process, ours
            if process.poll() is not None:
                break
        process.kill()
        nobody, ours = socket.socketpair()
        nobody.close()
        ours.setblocking(False)
        return process, ours


def popen(command: list[str], stdin: int, errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a program outside of this one's session, without output."""
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=dict(os.environ),
        cwd="/",
        start_new_session=True,
    )
