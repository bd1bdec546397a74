"""Follows one child from its first frame to its end, and kills it at its limits."""

import fcntl
import math
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codechat.errors import InfrastructureError
from codechat.sandbox.inside import wire

POLL_S = 0.1  # seconds between looks at a child that sends nothing
CROWD_S = 1.0  # seconds after which a program's own processes are measured too
END_S = 10.0  # seconds that the system may take to end a killed child
TICKS = os.sysconf("SC_CLK_TCK")  # the unit of CPU time in /proc, per second
F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1033, 1, 2, 4, 8


@dataclass(frozen=True)
class Job:
    """One program's run: the child's input, and the seconds that it may wait between two results, wait in all, compute
    in all, and take by the clock. `warm`: it needs the modules of assertion tests. `candidate`: the input of a second
    process that runs the program, if the first one only tests it."""

    data: bytes
    idle_s: float
    idle_total_s: float
    cpu_s: float
    wall_s: float = math.inf
    warm: bool = False
    candidate: bytes = b""


@dataclass
class Ended:
    """The end of a child. `why` is the parent's reason if it killed the child."""

    status: int
    cpu_s: float
    peak_kb: int
    why: Literal["wall", "cpu", "idle"] | None = None
    stdout: bytes = b""


class WorkerDied(InfrastructureError):
    """The zygote is gone or broke the protocol."""


# Takes bytes of the stream; returns the answer to send back, and whether the verdict is decided.
Reader = Callable[[bytes], tuple[bytes, bool]]


class Run:
    """Follows one child from its first frame to its end. `outputs` are the reading ends of pipes."""

    def __init__(
        self,
        control: socket.socket,
        results: socket.socket,
        shared: int,
        job: Job,
        reader: Reader,
        *,
        outputs: Mapping[int, Reader],
    ) -> None:
        self.control, self.results, self.shared, self.reader = control, results, shared, reader
        self.job, self.outputs = job, outputs
        self.received = 0
        self.decided = False
        self.why: Literal["wall", "cpu", "idle"] | None = None
        self.pid: int | None = None
        self.began = time.monotonic()
        self.busy = 0.0  # seconds of this side, during which the child may have waited
        self.killed_at: float | None = None
        self.written, self.idle, self.idle_before = 0, 0.0, 0.0

    def follow(self) -> Ended:
        """Read the child's streams until its end; raises `WorkerDied`."""
        poll = select.poll()
        poll.register(self.results, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        for output in self.outputs:
            poll.register(output, select.POLLIN)
        looked = time.monotonic()
        while True:
            ready = dict(poll.poll(POLL_S * 1000))
            woken = time.monotonic()
            if self.control.fileno() in ready:
                return self._end(self._status())
            if self.results.fileno() in ready and not self._receive():
                poll.unregister(self.results)
            for output in self.outputs:
                if output in ready and not self._read(output):
                    poll.unregister(output)
            self.busy += time.monotonic() - woken
            if woken - looked > POLL_S:
                looked = woken
                self._look(woken)

    def _receive(self) -> bool:
        """Take the received bytes; False at the end of the stream."""
        if self.pid is None:
            try:
                data, ancillary, _, _ = self.results.recvmsg(1 << 18, socket.CMSG_SPACE(12))
            except OSError:
                return False
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                    self.pid = struct.unpack("iii", content[:12])[0]
        else:
            data = self._recv()
        self._take(data)
        return bool(data)

    def _recv(self) -> bytes:
        try:
            return self.results.recv(1 << 18)
        except OSError:
            return b""

    def _take(self, data: bytes) -> None:
        self.received += len(data)
        if self.decided or not data:
            return
        answer, self.decided = self.reader(data)
        if answer and not self.decided:
            with suppress(OSError):
                self.results.send(answer)
        if self.decided:
            self._kill()

    def _read(self, output: int) -> bool:
        """Take the bytes of an output; False if there are none, as at its end."""
        try:
            data = os.read(output, 1 << 16)
        except BlockingIOError:
            return False
        if data and not self.decided:
            _, self.decided = self.outputs[output](data)
            if self.decided:
                self._kill()
        return bool(data)

    def _kill(self) -> None:
        if self.killed_at is None:
            self.killed_at = time.monotonic()
            with suppress(OSError):
                self.control.send(wire.KILL)

    def _look(self, now: float) -> None:
        """Kill a child that sleeps or waits for too long; raise if it does not die."""
        if self.killed_at is not None:
            if now - self.killed_at > END_S:
                raise WorkerDied("a killed program does not end")
            return
        if now - self.began > self.job.wall_s:
            self.why = "wall"
            self._kill()
            return
        idle = now - self.began - self.busy - self._on_cpu(now)
        if (written := self._written()) != self.written:
            self.written, self.idle_before = written, self.idle
        self.idle = idle
        if idle - self.idle_before > self.job.idle_s or idle > self.job.idle_total_s:
            self.why = "idle"
            self._kill()
        elif now - self.began > CROWD_S and self.pid is not None and crowd_cpu_s(self.pid) > self.job.cpu_s:
            self.why = "cpu"
            self._kill()

    def _on_cpu(self, now: float) -> float:
        """Seconds that the child's main thread computed or queued for a processor or, if that is more, that all its
        threads and its ended children computed.

        If the kernel does not report them, a tenth of the time counts as idle.
        """
        folder = Path(f"/proc/{self.pid}")
        try:
            computing, queueing, _ = (folder / "schedstat").read_text().split()
            ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:15]
        except (OSError, ValueError):
            return (now - self.began) * 0.9
        return max((int(computing) + int(queueing)) / 1e9, sum(map(int, ticks)) / TICKS)

    def _written(self) -> int:
        """The position of the child's stream, its buffer included: a claim, bounded by `idle_total_s`."""
        waiting, start = wire.CURSOR.unpack(os.pread(self.shared, wire.CURSOR.size, 0))
        return int(waiting + start)

    def _status(self) -> tuple[int, float, float, int]:
        try:
            message = self.control.recv(256)
        except OSError:
            message = b""
        if len(message) != wire.STATUS.size:
            raise WorkerDied("the sandbox's process is gone")
        status, user, system, peak = wire.STATUS.unpack(message)
        return status, user, system, peak

    def _end(self, status: tuple[int, float, float, int]) -> Ended:
        """Read the rest of the socket and of shared memory: the child is gone."""
        self.results.setblocking(False)
        while not self.decided and (data := self._recv()):
            self._take(data)
        for output in self.outputs:
            while self._read(output):
                pass
        waiting, start = wire.CURSOR.unpack(os.pread(self.shared, wire.CURSOR.size, 0))
        ahead = self.received - start
        if not self.decided and 0 <= ahead <= waiting <= wire.FRAMES_ROOM:
            self._take(os.pread(self.shared, waiting - ahead, wire.FRAMES_AT + ahead))
        stdout = os.pread(self.shared, wire.STDOUT_ROOM, wire.STDOUT_AT).rstrip(b"\0")
        return Ended(status[0], status[1] + status[2], status[3], self.why, stdout)


def crowd_cpu_s(pid: int) -> float:
    """CPU seconds of a process and its living descendants: together they may use no more than one."""
    total, waiting = 0.0, [pid]
    while waiting:
        folder = Path(f"/proc/{waiting.pop()}")
        try:
            total += int((folder / "schedstat").read_text().split()[0]) / 1e9
            for task in (folder / "task").iterdir():
                waiting += [int(word) for word in (task / "children").read_text().split()]
        except (OSError, ValueError):
            continue
    return total


def shared_memory() -> int:
    """A file in memory of fixed size: the child writes it and cannot resize it."""
    handle = os.memfd_create("frames", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(handle, wire.SHARED_SIZE)
    _seal(handle, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
    return handle


def sealed_file(name: str, data: bytes) -> int:
    """A read-only file in memory."""
    handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    _seal(handle, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
    return handle


def _seal(handle: int, seals: int) -> None:
    fcntl.fcntl(handle, F_ADD_SEALS, seals)
