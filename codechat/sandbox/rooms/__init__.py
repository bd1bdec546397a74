"""Rooms: folders in which hostile commands run one after the other, in a process that stays until the room is closed.

`checkout` environments give a repository to a maintainer, and coding agents work in one. `inside/` is that process's
code; `box.py` puts it into bubblewrap.
"""

import asyncio
import codecs
import marshal
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from codechat.base.domain import CommandEnd
from codechat.base.environment import PACKAGE
from codechat.base.errors import InfrastructureError
from codechat.base.files import write_atomically
from codechat.base.texts import visible
from codechat.sandbox.rooms.inside.starter import LENGTH

UNPRIVILEGED = 65534  # the user that runs a room's processes if codechat runs as root
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
LONGEST = 1 << 17
"""Bytes of one argument that the system accepts: of a command."""
CODE = {"sandbox": PACKAGE / "sandbox", "sandbox/rooms": PACKAGE / "sandbox" / "rooms"}
"""The folders whose `inside` runs in a room's process."""
HIDDEN = (str(PACKAGE),)
"""Folders that no room shows, because the embedded datasets contain answers."""
BOOT = """
import sys
places = {{"codechat.sandbox": [{code[sandbox]!r}], "codechat.sandbox.rooms": [{code[sandbox/rooms]!r}]}}
for package in places:
    parts = package.split(".")
    for name in (".".join(parts[:end]) for end in range(1, len(parts) + 1)):
        sys.modules[name] = type(sys)(name)
        sys.modules[name].__path__ = places.get(name, [])
from codechat.sandbox.rooms.inside.{call}
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command: head and tail of its `total` bytes of output; no status after a limit or a signal."""

    status: int | None
    ended: CommandEnd
    head: bytes
    tail: bytes
    total: int
    seconds: float


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

    async def run(self, command: bytes, seconds: float) -> Ended:
        """Run a command. Raises `InfrastructureError` if the process is gone."""
        if self._broken:
            raise InfrastructureError("the room is broken")
        self._broken = True  # until it has answered: a cancelled command leaves its answer behind
        try:
            await self._send({"command": command, "seconds": seconds})
            answer = await asyncio.wait_for(self._receive(), seconds + GRACE_S)
        except (OSError, EOFError, TimeoutError) as error:
            raise InfrastructureError(f"the room broke: {self._last_errors()}") from error
        self._broken = False
        return Ended(**answer)

    async def end_command(self) -> None:
        """End the command under way, whose `run` then returns."""
        await self._send({"end": "killed"})

    async def listen(self, port: int) -> socket.socket:
        """A socket that listens on the room's own loopback interface. Only for a room with its own network."""
        return socket.socket(fileno=await self._handle({"listen": port}))

    async def save(self, target: Path, most: int) -> bool:
        """Write the room's files as a tar archive; False, and a part of it, if they have more than `most` bytes."""
        with os.fdopen(await self._handle({"save": most}), "rb") as source:
            pieces = iter(partial(source.read, 1 << 20), b"")
            await asyncio.to_thread(write_atomically, target, pieces)
        return not (await self._receive())["problem"]

    async def load(self, source: IO[bytes]) -> None:
        """Unpack an archive of `save` in a room that has no files yet. Raises `InfrastructureError`."""
        handle = await self._handle({"load": True})
        with os.fdopen(handle, "wb") as target:
            await asyncio.to_thread(shutil.copyfileobj, source, target, 1 << 20)
        if problem := (await self._receive())["problem"]:
            raise InfrastructureError(f"the room's files cannot be unpacked: {problem}")

    async def _handle(self, order: dict[str, Any]) -> int:
        """The descriptor that the process sends for an order."""
        await self._send(order)

        def receive() -> int:
            self._control.settimeout(START_S)
            try:
                return socket.recv_fds(self._control, 1, 1)[1][0]
            finally:
                self._control.setblocking(False)

        try:
            return await asyncio.to_thread(receive)
        except (OSError, IndexError) as error:
            self._broken = True
            raise InfrastructureError(f"the room broke: {self._last_errors()}") from error

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
        if self._errors.closed:
            return "it was closed"
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 1000))
        return self._errors.read().decode(errors="replace").strip() or "it printed nothing"

    async def aclose(self) -> None:
        """Hang up. The process ends, and with it everything in the worktree; a command under way raises."""
        self._broken = True
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # who waits at a closed socket waits forever
        await asyncio.to_thread(self._stop)
        self._control.close()

    def _stop(self) -> None:
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._errors.close()


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
