"""Watches one child from its first frame to its end, and kills it at its limits.

`Run` follows the child; `Clock` and `Usage` measure it, by the clock and in /proc; `Frames` reads its stream.
"""

import fcntl
import math
import os
import resource
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from codechat.base.errors import InfrastructureError
from codechat.sandbox.inside import wire

TICKS = os.sysconf("SC_CLK_TCK")  # the unit of CPU time in /proc, per second
MOST = 1000  # processes that one look reads: a chain of forks cannot keep it busy
SWITCH_S = 0.005  # seconds after which a thread that waits for the interpreter wakes, to ask for it again
WORKING = 0.9  # the part of the time that counts as work if the kernel reports nothing
POLL_S = 0.1  # seconds between looks at a child
CPU_LEFT_S = 0.5  # who has no more CPU time left than this has used it up: the system kills single processes later
DISK_S = 30.0  # seconds that a run may wait for the disk in all before that counts as idle: the disk may be busy
END_S = 10.0  # seconds that the system may take to end a killed child
CEILING_S, CEILING_FACTOR = 30.0, 10.0  # by the clock, over what a run may compute and wait: no busy machine needs it
RECEIVED = 1 << 18  # bytes that are read at a time
SCRAP, SCRAPS, PAUSE_S = 4096, 1000, 0.005  # bytes, and how many reads of fewer, until each has to wait for so long
CREDENTIALS = struct.Struct("iii")
F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1033, 1, 2, 4, 8


# The number of results so far, and the CPU seconds that the next one may take.
Pace = Callable[[], tuple[int, float]]


@dataclass(frozen=True)
class Job:
    """One program's run: the child's input, and the seconds that it may wait between two results, wait in all, compute
    in all, and take by the clock. `warm`: it needs the modules of assertion tests. `candidate`: the input of a second
    process that runs the program, if the first one only tests it. The limits hold for both together. `pace` bounds a
    command's time between two results, which a child of the warm interpreter does by itself."""

    data: bytes
    idle_s: float
    idle_total_s: float
    cpu_s: float
    wall_s: float = math.inf
    warm: bool = False
    candidate: bytes = b""
    pace: Pace | None = None

    @property
    def processes(self) -> int:
        """How many processes the sandbox starts; each sends a frame before any of the candidate's code."""
        return 2 if self.candidate else 1

    @property
    def ceiling_s(self) -> float:
        """Seconds by the clock after which a run is stalling, however busy the machine is."""
        return CEILING_S + CEILING_FACTOR * (self.cpu_s + self.idle_total_s)


EndedBy = Literal["wall", "cpu", "idle", "input"]


@dataclass
class Ended:
    """The end of a child. `why` is the parent's reason if it killed the child."""

    status: int
    cpu_s: float
    peak_kb: int
    why: EndedBy | None = None
    stdout: bytes = b""


class WorkerDied(InfrastructureError):
    """The zygote is gone or broke the protocol."""


# Takes bytes of the stream; returns the answer to send back, and whether the verdict is decided.
Reader = Callable[[bytes], tuple[bytes, bool]]


class Run:
    """Follows the processes of one job to their end. `outputs` are the reading ends of pipes, which do not block."""

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
        results.setblocking(False)  # what the child sends must not keep this side from its limits
        self.received = self.scraps = 0
        self.decided = False
        self.settled: set[int] = set()  # outputs by which it was decided
        self.why: EndedBy | None = None
        self.pids: list[int] = []  # in order of arrival
        self.clock, self.usage = Clock(), Usage()
        self.killed_at: float | None = None
        self.looked_at = self.waited = 0.0  # when the clock was last looked at, seconds waited since then
        self.written, self.idle, self.idle_before, self.cpu_before = 0, 0.0, 0.0, 0.0

    def follow(self) -> Ended:
        """Read the child's streams until its end; raises `WorkerDied`."""
        poll = select.poll()
        poll.register(self.results, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        for output in self.outputs:
            poll.register(output, select.POLLIN)
        while True:
            self.clock.begin()
            if self.scraps > SCRAPS:
                time.sleep(PAUSE_S)
            ready = {handle for handle, _ in poll.poll(POLL_S * 1000)}
            self.waited += self.clock.waited(POLL_S, not ready)
            if self.control.fileno() in ready:
                return self._end()
            if self.results.fileno() in ready and not self._receive():
                poll.unregister(self.results)
            for output in self.outputs:
                if output in ready and not self._read(output):
                    poll.unregister(output)
            self.clock.handled()
            if self.clock.s - self.looked_at >= POLL_S:
                self.looked_at = self.clock.s
                self._look()

    def _receive(self) -> bool:
        """Take the received bytes; False at the end of the stream."""
        try:
            if len(self.pids) < self.job.processes:
                data, ancillary, _, _ = self.results.recvmsg(RECEIVED, socket.CMSG_SPACE(CREDENTIALS.size))
                self._note(ancillary)
            else:
                data = self.results.recv(RECEIVED)
        except BlockingIOError:  # there was nothing but an urgent byte, which is dropped
            self.scraps += 1
            return True
        except OSError:
            return False
        self.scraps += len(data) < SCRAP
        self._take(data)
        return bool(data)

    def _note(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        """Note whom a message is from: the kernel says so, and every process sends one before the candidate's code."""
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                pid = CREDENTIALS.unpack(content[: CREDENTIALS.size])[0]
                if pid and pid not in self.pids:
                    self.pids.append(pid)

    def _take(self, data: bytes) -> None:
        self.received += len(data)
        if self.decided or not data:
            return
        answer, self.decided = self.reader(data)
        if answer and not self.decided:
            with suppress(OSError):  # a child that does not read its answers waits for nothing
                self.results.send(answer)
        if self.decided:
            self._kill()

    def _read(self, output: int) -> bool:
        try:
            data = os.read(output, 1 << 16)
        except BlockingIOError:
            return False
        self.scraps += len(data) < SCRAP
        if data and output not in self.settled:  # the outputs written before the decisive one are still to come
            _, settled = self.outputs[output](data)
            if settled:
                self.settled.add(output)
                self.decided = True
                self._kill()
        return bool(data)

    def _kill(self, why: EndedBy | None = None) -> None:
        if self.killed_at is None:
            self.killed_at, self.why = self.clock.s, why
            with suppress(OSError):
                self.control.send(wire.KILL)

    def _look(self) -> None:
        """Kill a child that uses or waits for too much; raise if it does not die."""
        if self.killed_at is not None:
            if self.clock.s - self.killed_at > END_S:
                raise WorkerDied("a killed program does not end")
            return
        self.idle += self.usage.look(self.pids, self.waited)
        self.waited = 0.0
        written, limit = self.job.pace() if self.job.pace is not None else (self._position(), math.inf)
        if written != self.written:
            self.written, self.idle_before, self.cpu_before = written, self.idle, self.usage.cpu_s
        if self.clock.s > min(self.job.wall_s, self.job.ceiling_s):
            self._kill("wall")
        elif self.usage.cpu_s > self.job.cpu_s - CPU_LEFT_S:
            self._kill("cpu")
        elif self.usage.cpu_s - self.cpu_before > limit:
            self._kill("input")
        elif self._is_idle() and not self.usage.in_state(b"R"):
            self._kill("idle")

    def _is_idle(self) -> bool:
        return self.idle - self.idle_before > self.job.idle_s or self.idle > self.job.idle_total_s

    def _position(self) -> int:
        """The position of the child's stream, its buffer included: a claim, bounded by `idle_total_s`."""
        return sum(wire.CURSOR.unpack(os.pread(self.shared, wire.CURSOR.size, 0)))

    def _end(self) -> Ended:
        """Take the status of the child, which is gone, and the rest of the socket and of shared memory."""
        try:
            message = self.control.recv(256)
        except OSError:
            message = b""
        if len(message) != wire.STATUS.size:
            raise WorkerDied("the sandbox's process is gone")
        status, user, system, peak = wire.STATUS.unpack(message)
        while not self.decided and (data := self._rest()):
            self._take(data)
        for output in self.outputs:
            while self._read(output):
                pass
        waiting, start = wire.CURSOR.unpack(os.pread(self.shared, wire.CURSOR.size, 0))
        ahead = self.received - start
        if not self.decided and 0 <= ahead <= waiting <= wire.FRAMES_SIZE:
            self._take(os.pread(self.shared, waiting - ahead, wire.FRAMES_AT + ahead))
        stdout = os.pread(self.shared, wire.STDOUT_SIZE, wire.STDOUT_AT).rstrip(b"\0")
        return Ended(status, max(user + system, self.usage.cpu_s), peak, self.why, stdout)

    def _rest(self) -> bytes:
        try:
            return self.results.recv(RECEIVED)
        except OSError:
            return b""


def shared_memory() -> int:
    """A file in memory of fixed size: the child writes it and cannot resize it."""
    handle = os.memfd_create("frames", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(handle, wire.SHARED_SIZE)
    fcntl.fcntl(handle, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
    return handle


def sealed_file(name: str, data: bytes) -> int:
    """A read-only file in memory."""
    handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    fcntl.fcntl(handle, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
    return handle


class Clock:
    """Seconds by the clock, without the delays of this side: a program is not charged for them. What counts is waiting
    for the run, and the CPU time that its bytes took here."""

    def __init__(self) -> None:
        self.s = 0.0
        self._began = self._cpu = 0.0
        self._switches = 0

    def begin(self) -> None:
        """To be called just before waiting."""
        self._switches = _switches()
        self._began = time.monotonic()

    def waited(self, most: float, whole: bool) -> float:
        """The seconds of the wait that ends now, at most `most`; `whole`: it is known to have taken all of them. A
        thread that waits for the interpreter wakes every few milliseconds, one that waits for a run only once: the
        number of its switches shows how long it waited for the interpreter."""
        took = time.monotonic() - self._began
        late = (_switches() - self._switches - 1) * SWITCH_S
        waited = most if whole else min(max(0.0, took - max(0.0, late)), most)
        self.s += waited
        self._cpu = time.thread_time()
        return waited

    def handled(self) -> None:
        """To be called when what the wait brought is done with."""
        self.s += time.thread_time() - self._cpu


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class Usage:
    """The use of a run's processes and of all that they started, living or ended. A child's time moves to its parent
    when it is waited for, so the sum over the living ones holds everything. The children of the process that forked the
    run belong to it too: orphans end up there if there is no PID namespace."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._parent: int | None = None
        self._tasks: dict[int, int] = {}  # nanoseconds that a thread computed or queued for a processor
        self._spare = self._disk_s = 0.0

    def look(self, pids: Sequence[int], waited: float) -> float:
        """Seconds that all of the run's threads slept, of the `waited` ones since the last look. The state of a thread
        that waits for the disk is "D", and its program is not charged for a busy disk. The parent of a `vfork` has this
        state too, so `DISK_S` bounds the sum."""
        if pids and self._parent is None:
            self._parent = _parent(pids[0])
        cpu_s, tasks = _read_tree([*pids, *(_children(self._parent, self._parent) if self._parent else ())])
        queued = sum(max(0, spent - self._tasks.get(task, 0)) for task, spent in tasks.items()) / 1e9
        worked = max(queued, cpu_s - self.cpu_s) + self._spare
        self.cpu_s, self._tasks = max(self.cpu_s, cpu_s), tasks
        if not tasks:
            return waited * (1 - WORKING)
        # Work that the kernel reports late counts in the next look; more than that cannot be saved up for sleeping.
        self._spare = min(max(0.0, worked - waited), waited)
        slept = max(0.0, waited - worked)
        if slept and self._disk_s < DISK_S and self.in_state(b"D"):
            self._disk_s += slept
            return 0.0
        return slept

    def in_state(self, state: bytes) -> bool:
        """Whether a thread of the last look is in a state of /proc now: b"R" computes or queues for a processor. The
        kernel reports time in the queue once it is over, which on a busy machine can be later than a limit."""
        for task in self._tasks:
            with suppress(OSError, IndexError):  # it has ended
                if _stat(task)[0] == state:
                    return True
        return False


def _read_tree(roots: list[int]) -> tuple[float, dict[int, int]]:
    """The CPU seconds of processes and their descendants, and the nanoseconds of each of their threads. Parents are
    read before their children: a child that ends meanwhile is missed until the next look, none counts twice."""
    cpu_s, tasks, seen, waiting = 0.0, dict[int, int](), set[int](), roots
    while waiting and len(seen) < MOST:
        pid = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        with suppress(OSError):  # it has ended
            cpu_s += sum(map(int, _stat(pid)[11:15])) / TICKS
            for task in map(int, os.listdir(f"/proc/{pid}/task")):  # noqa: PTH208  called ten times a second
                waiting += _children(pid, task)
                with suppress(OSError, ValueError):
                    computing, queueing, _ = _read(f"/proc/{pid}/task/{task}/schedstat").split()
                    tasks[task] = int(computing) + int(queueing)
    return cpu_s, tasks


def _parent(pid: int) -> int | None:
    try:
        return int(_stat(pid)[1])
    except (OSError, IndexError):
        return None


def _children(pid: int, task: int) -> list[int]:
    try:
        return [int(word) for word in _read(f"/proc/{pid}/task/{task}/children").split()]
    except OSError:
        return []


def _stat(pid: int) -> list[bytes]:
    """The fields after the process's name, which may be any bytes."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 1 << 16)
    finally:
        os.close(handle)


LONGEST = wire.DIGEST_OVER + 64 * 1024


class Malformed(ValueError):
    """The stream does not consist of frames."""


class Frames:
    """Collects bytes and yields whole frames. Holds at most one unfinished frame."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.printed = 0  # bytes printed before the latest frame

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The frames that `data` completes, as (kind, payload); raises `Malformed`."""
        self._data += data
        at = 0
        try:
            while len(self._data) - at >= wire.HEADER.size:
                kind, size, printed = wire.HEADER.unpack_from(self._data, at)
                if size > LONGEST:
                    raise Malformed(f"a frame of {size} bytes")
                end = at + wire.HEADER.size + size
                if end > len(self._data):
                    break
                payload = bytes(self._data[at + wire.HEADER.size : end])
                at = end
                self.printed = printed
                yield kind, payload
        finally:
            del self._data[:at]
