"""One zygote process and the protocol with it: start, run a job, kill, restart."""

import array
import json
import marshal
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from codechat.sandbox import Kept, SandboxConfig
from codechat.sandbox.follow import Ended, Job, Reader, Run, WorkerDied, sealed_file, shared_memory
from codechat.sandbox.inside import wire

K = TypeVar("K", bound=Kept)
START_S = 30.0
WARM_S = 600.0  # a busy machine may take so long to load a whole library set
STOP_S = 5.0  # a container may take so long to stop
# The child's modules are found under their own names without importing anything else of this package.
BOOT = """
import sys
for name, path in (("codechat", []), ("codechat.sandbox", [{root!r}])):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = path
from codechat.sandbox.inside.zygote import main
main({config!r})
"""
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}

# For library sets: what they would print and how many threads they would start depend on the machine else.
OF_LIBRARIES = {
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}


def environment_of(config: SandboxConfig) -> dict[str, str]:
    """The variables that programs find."""
    return ENVIRONMENT if config.python is None else {**ENVIRONMENT, **OF_LIBRARIES}


@dataclass(frozen=True)
class Inside:
    """The zygote's config: its module path, the user to become, readable and hidden paths, the limits, and the
    folders that every program gets empty and writable, the last as its working folder."""

    paths: list[str]
    limits: Mapping[str, int]
    scratch: list[str]
    uid: int | None = None
    reach: list[str] = field(default_factory=list)
    hide: list[str] = field(default_factory=list)
    own_path: bool = False  # keep the interpreter's own module path before `paths`
    proc: bool = False  # programs may ask for a /proc of their own


@dataclass(frozen=True)
class Launch:
    """How to start a zygote: `command(arguments, folder)` wraps the interpreter's arguments; `root` is the path of
    `inside`. If descriptors cannot be inherited, the zygote connects to a socket in `folder`, which it sees as
    `meeting`."""

    command: Callable[[list[str], str], list[str]]
    root: str
    inside: Inside
    strict: bool  # namespaces are required
    meeting: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class Worker:
    """Owns one zygote; used by one thread at a time."""

    def __init__(self, launch: Launch, modules: Sequence[str] = ()) -> None:
        """`modules` are loaded before the first job of assertion tests."""
        self.launch, self.modules = launch, tuple(modules)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._errors: IO[bytes] | None = None
        self._closed = self._warm = False
        self._kept: dict[str, Kept] = {}
        self.hello: dict[str, object] = {}

    def start(self) -> None:
        """Start the zygote and wait until it is warm; raises `WorkerDied` with its error output."""
        if self._closed:
            raise WorkerDied("the sandbox is closed")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
        if self.launch.meeting is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._spawn(theirs.fileno(), "")
        else:
            ours = self._meet()
        self._control = ours
        ours.settimeout(START_S)
        try:
            hello = ours.recv(65536)
        except OSError:
            hello = b""
        if not hello:
            said = self._errors_tail()
            self.stop()
            raise WorkerDied(f"the sandbox did not start: {said}")
        ours.settimeout(None)
        told = json.loads(hello)
        if problem := self._lacking(told):
            self.stop()
            raise WorkerDied(problem)
        self.hello = told

    def _lacking(self, told: Mapping[str, object]) -> str:
        """What a started zygote lacks; empty if it has all that it needs."""
        if self.launch.strict and not told["namespaces"]:
            return f"the system grants no namespaces to the sandbox: {told['refusal']}"
        if self.launch.inside.proc and told["namespaces"] and not told["proc"]:
            return "the system grants programs no /proc of their own, which tests of processes need"
        return f"the sandbox's user cannot read the interpreter's folder {told['blind']}" if told["blind"] else ""

    def _spawn(self, stdin: int, folder: str) -> None:
        inside = {**asdict(self.launch.inside), "meeting": self.launch.meeting}
        boot = BOOT.format(root=self.launch.root, config=json.dumps(inside))
        self._process = subprocess.Popen(
            self.launch.command(["-S", "-s", "-P", "-B", "-c", boot], folder),
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=dict(self.launch.environment),
            cwd="/",
            start_new_session=True,
        )

    def _meet(self) -> socket.socket:
        """Start the zygote and wait until it connects, ends, or takes too long."""
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            Path(folder).chmod(0o711)
            server.bind(f"{folder}/control")
            Path(folder, "control").chmod(0o666)
            server.listen(1)
            server.settimeout(0.1)
            self._spawn(subprocess.DEVNULL, folder)
            until = time.monotonic() + START_S
            while self._process is not None and self._process.poll() is None and time.monotonic() < until:
                with suppress(TimeoutError):
                    return server.accept()[0]
            said = self._errors_tail()
            self.stop()
            raise WorkerDied(f"the sandbox did not start: {said}")

    def _errors_tail(self) -> str:
        """The tail of the zygote's standard error."""
        if self._errors is None:
            return ""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 1000))
        return self._errors.read().decode(errors="replace").strip() or "it said nothing"

    def close(self) -> None:
        """Hang up for good, from any thread: this ends the zygote and its child."""
        self._closed = True
        control = self._control
        if control is not None:
            with suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
        for kept in list(self._kept.values()):
            kept.stop()

    def end(self) -> None:
        """Stop for good, with what was kept."""
        self.stop()
        for kept in self._kept.values():
            kept.stop()
        self._kept.clear()

    def keep(self, key: str, start: Callable[[], K]) -> K:
        """See `Box.keep`. It outlives the zygote, which a program may break."""
        if key not in self._kept:
            self._kept[key] = start()
        return cast(K, self._kept[key])

    def stop(self) -> None:
        """Hang up and reap the zygote."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._errors is not None:
            self._errors.close()
        self._process = self._control = self._errors = None
        self._warm = False

    def run(self, job: Job, reader: Reader, outputs: Sequence[Reader] = ()) -> Ended:
        """Run one job, feeding its stream to `reader`; raises `WorkerDied` if the zygote breaks.

        `outputs` read a command's standard output and standard error.
        """
        if self._process is None:
            self.start()
        if job.warm and not self._warm:
            self._warm_up()
        shared, data = shared_memory(), [sealed_file("job", one) for one in (job.data, job.candidate) if one]
        results, theirs = socket.socketpair()
        results.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        pipes = [os.pipe() for _ in outputs]
        read = {pipe[0]: take for pipe, take in zip(pipes, outputs, strict=True)}
        for ours in read:
            os.set_blocking(ours, False)
        try:
            with theirs:
                message = wire.TESTED if job.candidate else wire.RUN
                self._hand_over(message, [data[0], shared, theirs.fileno(), *data[1:]], [pipe[1] for pipe in pipes])
            return Run(self._need(), results, shared, job, reader, outputs=read).follow()
        except WorkerDied as error:
            said = self._errors_tail()
            self.stop()
            raise WorkerDied(f"{error}: {said}") from error
        finally:
            results.close()
            for handle in (shared, *data, *read):
                os.close(handle)

    def _warm_up(self) -> None:
        """Have the zygote load what assertion tests need: it is no program's time. Raises `WorkerDied`."""
        handle = sealed_file("modules", marshal.dumps(list(self.modules), 2))
        self._hand_over(wire.WARM, [], [handle])
        control = self._need()
        control.settimeout(WARM_S)
        try:
            if control.recv(1) != wire.WARM:
                raise OSError
            control.settimeout(None)
        except OSError:
            said = self._errors_tail()
            self.stop()
            raise WorkerDied(f"the sandbox does not load the modules of tests: {said}") from None
        self._warm = True

    def _need(self) -> socket.socket:
        if self._control is None:
            raise WorkerDied("the sandbox's process is gone")
        return self._control

    def _hand_over(self, message: bytes, kept: list[int], given: list[int]) -> None:
        """Send the zygote a job's descriptors; those `given` are closed here."""
        handles = array.array("i", [*kept, *given])
        try:
            self._send(message, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handles)])
        finally:
            for handle in given:
                os.close(handle)

    def _send(self, message: bytes, ancillary: Sequence[Any] = ()) -> None:
        try:
            self._need().sendmsg([message], ancillary)
        except OSError as error:
            raise WorkerDied("the sandbox's process is gone") from error
