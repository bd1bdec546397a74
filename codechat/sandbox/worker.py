"""One zygote process and the protocol with it: start, run a job, kill, restart."""

import array
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from codechat.errors import InfrastructureError
from codechat.sandbox.inside import wire

START_S = 30.0
POLL_S = 0.1  # seconds between looks at a child that sends nothing
END_S = 10.0  # seconds that the system may take to end a killed child
BOOT = "import sys; sys.path.insert(0, {root!r}); from inside.zygote import main; main({config!r})"
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Inside:
    """What the zygote is told: its module path, the user to become, what stays readable or hidden, the limits."""

    paths: list[str]
    limits: Mapping[str, int]
    uid: int | None = None
    reach: list[str] = field(default_factory=list)
    hide: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Launch:
    """How to start a zygote: `command(arguments)` wraps the interpreter's arguments; `root` is where `inside` lies."""

    command: Callable[[list[str]], list[str]]
    root: str
    inside: Inside
    strict: bool  # namespaces are required


@dataclass(frozen=True)
class Job:
    """One program's run: what the child is handed, and the seconds that it may sleep or wait in all."""

    data: bytes
    idle_s: float


@dataclass
class Ended:
    """How a child ended. `why` is the parent's own reason for killing it, if it did."""

    status: int
    cpu_s: float
    peak_kb: int
    why: str | None = None
    stdout: str = ""


class WorkerDied(InfrastructureError):
    """The zygote is gone, or did not behave."""


# Takes bytes of the stream; answers what to send back, and whether the verdict is decided.
Reader = Callable[[bytes], tuple[bytes, bool]]


class Worker:
    """Owns one zygote; used by one thread at a time."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._errors: IO[bytes] | None = None
        self.hello: dict[str, object] = {}

    def start(self) -> None:
        """Start the zygote and wait until it is warm; raises `WorkerDied` with what it said."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = json.dumps(asdict(self._launch.inside))
        boot = BOOT.format(root=self._launch.root, config=config)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
        with theirs:
            self._process = subprocess.Popen(
                self._launch.command(["-S", "-s", "-P", "-B", "-c", boot]),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        self._control = ours
        ours.settimeout(START_S)
        try:
            hello = ours.recv(65536)
        except OSError:
            hello = b""
        if not hello:
            said = self._said()
            self.stop()
            raise WorkerDied(f"the sandbox did not start: {said}")
        ours.settimeout(None)
        self.hello = json.loads(hello)
        if self._launch.strict and not self.hello["namespaces"]:
            self.stop()
            raise WorkerDied(f"the system grants no namespaces to the sandbox: {self.hello['refusal']}")
        if self.hello["blind"]:
            self.stop()
            raise WorkerDied(f"the sandbox's user cannot read the interpreter's folder {self.hello['blind']}")

    def _said(self) -> str:
        """The tail of what the zygote wrote to its standard error."""
        if self._errors is None:
            return ""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 1000))
        return self._errors.read().decode(errors="replace").strip() or "it said nothing"

    def stop(self) -> None:
        """Hang up, which ends the zygote and its child, and reap it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._errors is not None:
            self._errors.close()
        self._process = self._control = self._errors = None

    def run(self, job: Job, reader: Reader) -> Ended:
        """Run one job, feeding its stream to `reader`; raises `WorkerDied` where the zygote does not hold."""
        if self._process is None:
            self.start()
        shared, data = _shared_memory(), sealed_file("job", job.data)
        results, theirs = socket.socketpair()
        results.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            with theirs:
                self._hand_over([data, shared, theirs.fileno()])
            return _Run(self._need(), results, shared, job.idle_s, reader).follow()
        except WorkerDied as error:
            said = self._said()
            self.stop()
            raise WorkerDied(f"{error}: {said}") from error
        finally:
            results.close()
            os.close(shared)
            os.close(data)

    def _need(self) -> socket.socket:
        if self._control is None:
            raise WorkerDied("the sandbox's process is gone")
        return self._control

    def _hand_over(self, handles: list[int]) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))]
        try:
            self._need().sendmsg([wire.RUN], ancillary)
        except OSError as error:
            raise WorkerDied("the sandbox's process is gone") from error


class _Run:
    """Follows one child from its first frame to its end."""

    def __init__(
        self, control: socket.socket, results: socket.socket, shared: int, idle_s: float, reader: Reader
    ) -> None:
        self.control, self.results, self.shared, self.reader = control, results, shared, reader
        self.idle_s = idle_s
        self.received = 0
        self.decided = False
        self.why: str | None = None
        self.pid: int | None = None
        self.began = time.monotonic()
        self.busy = 0.0  # seconds that this side took, during which the child may have waited for us
        self.killed_at: float | None = None

    def follow(self) -> Ended:
        poll = select.poll()
        poll.register(self.results, select.POLLIN)
        poll.register(self.control, select.POLLIN)
        looked = time.monotonic()
        while True:
            ready = dict(poll.poll(POLL_S * 1000))
            woken = time.monotonic()
            if self.control.fileno() in ready:
                return self._end(self._status())
            if self.results.fileno() in ready and not self._receive():
                poll.unregister(self.results)
            self.busy += time.monotonic() - woken
            if woken - looked > POLL_S:
                looked = woken
                self._look(woken)

    def _receive(self) -> bool:
        """Take what has come; False at the end of the stream."""
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

    def _kill(self) -> None:
        if self.killed_at is None:
            self.killed_at = time.monotonic()
            with suppress(OSError):
                self.control.send(wire.KILL)

    def _look(self, now: float) -> None:
        """Kill a child that sleeps or waits for more than it may; complain of one that does not die."""
        if self.killed_at is not None:
            if now - self.killed_at > END_S:
                raise WorkerDied("a killed program does not end")
            return
        if now - self.began - self.busy - self._on_cpu(now) > self.idle_s:
            self.why = "idle"
            self._kill()

    def _on_cpu(self, now: float) -> float:
        """Seconds that the child's main thread computed or stood in the queue for a processor.

        Where the kernel does not tell, a tenth of the time counts as idle.
        """
        try:
            computing, queueing, _ = Path(f"/proc/{self.pid}/schedstat").read_text().split()
        except (OSError, ValueError):
            return (now - self.began) * 0.9
        return (int(computing) + int(queueing)) / 1e9

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
        """Read what is left in the socket and in shared memory: the child is gone."""
        self.results.setblocking(False)
        while not self.decided and (data := self._recv()):
            self._take(data)
        waiting, start = wire.CURSOR.unpack(os.pread(self.shared, wire.CURSOR.size, 0))
        ahead = self.received - start
        if not self.decided and 0 <= ahead <= waiting <= wire.FRAMES_ROOM:
            self._take(os.pread(self.shared, waiting - ahead, wire.FRAMES_AT + ahead))
        stdout = os.pread(self.shared, wire.STDOUT_ROOM, wire.STDOUT_AT).rstrip(b"\0").decode(errors="replace")
        return Ended(status[0], status[1] + status[2], status[3], self.why, stdout)


def _shared_memory() -> int:
    """A file in memory of fixed size: the child writes it and cannot resize it."""
    handle = os.memfd_create("frames", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(handle, wire.SHARED_SIZE)
    _seal(handle, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
    return handle


def sealed_file(name: str, data: bytes) -> int:
    """A read-only file in memory that nobody can change."""
    handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    _seal(handle, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
    return handle


F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1033, 1, 2, 4, 8


def _seal(handle: int, seals: int) -> None:
    fcntl.fcntl(handle, F_ADD_SEALS, seals)
