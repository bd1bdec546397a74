"""Rooms forked out of one process in one box, from outside: start it, ask it for rooms, end it."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from codechat.environments.resident import START_S, STOP_S, Resident, boot, last_said, popen
from codechat.errors import InfrastructureError

GONE = -1


class Forked:
    """A room's process, which is no child of this one. When it has ended, so has everything in its room."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; the status is not told. Raises `subprocess.TimeoutExpired`."""
        if self._handle != GONE:
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a room", timeout or 0)
            os.close(self._handle)
            self._handle = GONE
        return 0

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)


class Box:
    """A process in a box, out of which rooms are forked. It is started for the first room, and again if it is gone."""

    def __init__(self, command: Callable[[list[str]], list[str]], root: str) -> None:
        self._command, self._root = command, root
        self._asking = threading.Lock()
        self._started: tuple[subprocess.Popen[bytes], socket.socket, IO[bytes]] | None = None

    async def open(self, config: Mapping[str, Any]) -> Resident:
        """A room, furnished. Raises `InfrastructureError` with what was said."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the room
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                process = await asyncio.to_thread(self._fork, theirs.fileno(), errors.fileno())
        except BaseException:
            ours.close()
            errors.close()
            raise
        return await Resident.furnished(process, ours, errors, config)

    def _fork(self, control: int, errors: int) -> Forked:
        """Ask for a room; ask another process if the one that was started is gone."""
        with self._asking:
            for _ in range(2):
                self._started = self._started or self._start()
                if (room := self._ask(control, errors)) is not None:
                    return room
                said = self._end()
        raise InfrastructureError(f"no room can be started: {said}")

    def _ask(self, control: int, errors: int) -> Forked | None:
        """A room, None if the process is gone: bubblewrap then ends, but keeps the socket open for open rooms."""
        assert self._started is not None
        process, asking, _ = self._started
        with suppress(OSError):
            socket.send_fds(asking, [b"r"], [control, errors])
            for _ in range(int(START_S)):
                if process.poll() is not None:
                    return None
                with suppress(TimeoutError):
                    handles = socket.recv_fds(asking, 1, 1)[1]
                    return Forked(handles[0]) if handles else None
        return None

    def _start(self) -> tuple["subprocess.Popen[bytes]", socket.socket, IO[bytes]]:
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `_end`
        ours, theirs = socket.socketpair()
        ours.settimeout(1)
        with theirs:
            return popen(self._command(boot(self._root, "forking")), theirs.fileno(), errors), ours, errors

    def _end(self) -> str:
        """End the process, without which open rooms go on; the last that it said."""
        if self._started is None:
            return ""
        (process, control, errors), self._started = self._started, None
        control.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with errors:
            return last_said(errors)

    def close(self) -> None:
        """End the process; rooms are closed by their sessions."""
        with self._asking:
            self._end()
