"""Warm workers, which every kind of isolation uses: a `Worker` owns one zygote process and speaks its protocol, and
`ZygoteSandbox` lends workers and decides who is at fault if one dies.
"""

import array
import asyncio
import json
import marshal
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TypeVar, cast

from codechat.base.errors import UserError
from codechat.sandbox import Box, Helper, SandboxConfig, TakenDown
from codechat.sandbox.command import Command, Outputs, Ran, check_tools, moved
from codechat.sandbox.inside import wire
from codechat.sandbox.inside.beside import clear
from codechat.sandbox.watch import Ended, Frames, Job, Pace, Reader, Run, WorkerDied, sealed_file, shared_memory

K = TypeVar("K", bound=Helper)
REMEDY = (
    "use sandbox=bubblewrap, or have it where every user can run it; "
    "what is made for programs in Java is in CODECHAT_CACHE_DIR"
)
OF_NAMESPACES = frozenset(("network", "processes"))  # needs of tests that no other isolation can meet
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
    "TMPDIR": "/tmp",
    "USER": "nobody",
    "LOGNAME": "nobody",
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


def variables_of(config: SandboxConfig) -> dict[str, str]:
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
    proc: bool = False  # programs may ask for a /proc
    landlock: list[str] | None = None  # what Landlock lets programs see; None: they get namespaces, if there are any
    version: int | None = None  # of Landlock's interface, for tests of older kernels; None: the kernel's


@dataclass(frozen=True)
class Launch:
    """How to start a zygote: `command(arguments, folder)` wraps the interpreter's arguments; `root` is the path of
    `inside`. If descriptors cannot be inherited, the zygote connects to a socket in `folder`, which it sees as
    `meeting`."""

    command: Callable[[list[str], str], list[str]]
    root: str
    inside: Inside
    place: str | None  # where programs must run (`seccomp.Place`); None: no matter
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
        self._folder = ""  # of programs without namespaces
        self._helpers: dict[str, Helper] = {}
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
            errors = self._errors_tail()
            self.stop()
            raise WorkerDied(f"the sandbox did not start: {errors}")
        ours.settimeout(None)
        answer = json.loads(hello)
        if problem := self._lacking(answer):
            self.stop()
            raise WorkerDied(problem)
        self.hello = answer

    def _lacking(self, hello: Mapping[str, object]) -> str:
        """The isolation that a started zygote needs and lacks, for a message; empty if it lacks none."""
        wanted = self.launch.place
        if (wanted is not None or self.launch.meeting is not None) and not hello["seccomp"]:
            return "the system lets the sandbox install no filter of system calls"
        if wanted is not None and hello["place"] != wanted:
            return f"the system grants no {wanted} to the sandbox: {hello['refusal']}"
        if self.launch.inside.proc and hello["place"] == "namespaces" and not hello["proc"]:
            return "the system grants programs no /proc, which tests of processes need"
        return f"the sandbox's user cannot read the interpreter's folder {hello['blind']}" if hello["blind"] else ""

    def _spawn(self, stdin: int, folder: str) -> None:
        if self.launch.meeting is None and self.launch.place != "namespaces":
            self._folder = tempfile.mkdtemp(prefix="codechat-")
            Path(self._folder).chmod(0o711)
        inside = {**asdict(self.launch.inside), "meeting": self.launch.meeting, "folder": self._folder}
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
            assert self._process is not None
            until, ended = time.monotonic() + START_S, False
            while not ended and time.monotonic() < until:
                ended = self._process.poll() is not None  # asked first: one that connected and ended still waits here
                with suppress(TimeoutError):
                    return server.accept()[0]
            errors = self._errors_tail()
            self.stop()
            raise WorkerDied(f"the sandbox did not start: {errors}")

    def _errors_tail(self) -> str:
        """The tail of the zygote's standard error."""
        if self._errors is None:
            return ""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 1000))
        return self._errors.read().decode(errors="replace").strip() or "it printed nothing"

    def close(self) -> None:
        """Hang up for good, from any thread: this ends the zygote and its child."""
        self._closed = True
        control = self._control
        if control is not None:
            with suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
        for helper in list(self._helpers.values()):
            helper.stop()

    @property
    def folder(self) -> str:
        """The folder of the first program of a run, if it has no namespace; else empty."""
        return f"{os.path.realpath(self._folder)}/0" if self._folder else ""

    def end(self) -> None:
        """Stop for good, with its helpers."""
        self.stop()
        for helper in self._helpers.values():
            helper.stop()
        self._helpers.clear()

    def keep(self, key: str, start: Callable[[], K]) -> K:
        """See `Box.keep`. It outlives the zygote, which a program may break."""
        if key not in self._helpers:
            self._helpers[key] = start()
        return cast(K, self._helpers[key])

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
        if self._folder:
            if Path(self._folder).exists():
                clear(self._folder)  # what a zygote that was killed left, which may be deeper than `rmtree` goes
                Path(self._folder).rmdir()
            self._folder = ""
        self._process = self._control = self._errors = None
        self._warm = False

    def run(self, job: Job, reader: Reader, outputs: Sequence[Reader] = ()) -> Ended:
        """Run one job, feeding its stream to `reader`; raises `WorkerDied` if the zygote breaks. `outputs` read a
        command's standard output and standard error."""
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
            errors = self._errors_tail()
            self.stop()
            raise WorkerDied(f"{error}: {errors}") from error
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
            errors = self._errors_tail()
            self.stop()
            raise WorkerDied(f"the sandbox does not load the modules of tests: {errors}") from None
        self._warm = True

    def _need(self) -> socket.socket:
        if self._control is None:
            raise WorkerDied("the sandbox's process is gone")
        return self._control

    def _hand_over(self, message: bytes, lent: list[int], given: list[int]) -> None:
        """Send the zygote a job's descriptors; those `given` are closed here."""
        handles = array.array("i", [*lent, *given])
        try:
            self._need().sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handles)])
        except OSError as error:
            raise WorkerDied("the sandbox's process is gone") from error
        finally:
            for handle in given:
                os.close(handle)


T = TypeVar("T")
Launches = Callable[[tuple[str, ...]], Launch]
SPARE = 16  # further idle workers, for different sets of tools
PROBE = {
    "program": "def probe():\n    return 1\n",
    "entry": "probe",
    "calls": marshal.dumps([()], 2),
    "limits": (10.0,),
    "load_cpu_s": 10.0,
    "timed": False,
    "elements": False,
    "flush_after": -1,
    "cpu": 20,
}


class ZygoteSandbox:
    """Runs each program once, in its own child of one of `workers` warm processes. `launch` says how to start a worker
    in which a set of tools is visible; workers of one launch are alike. Programs have `own_folders` if /tmp and the
    like are theirs alone: tools that lie there are shown elsewhere."""

    def __init__(
        self,
        config: SandboxConfig,
        launch: Launches,
        workers: int,
        weak: bool,
        notice: str | None,
        *,
        own_folders: bool = True,
    ) -> None:
        self.config, self.weak, self.notice = config, weak, notice
        self.own_folders = own_folders
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        self._launch, self._launches = launch, dict[tuple[str, ...], Launch]()
        self._lock, self._most_idle = threading.Lock(), workers + SPARE
        self._idle: list[Worker] = []  # the latest last
        self._workers: set[Worker] = set()
        self._modules: tuple[str, ...] = ()
        self._closed = False

    def preload(self, modules: Sequence[str]) -> None:
        """See `Preloading`. To be called before the first program. Workers that see tools load nothing beforehand: few
        tests need them, and each would hold the set once more."""
        with self._lock:
            self._modules = tuple(modules)
            for worker in self._workers:
                if worker.launch is self._launches.get(()):
                    worker.modules = self._modules

    @property
    def contained(self) -> bool:
        """Whether a started worker has its own namespaces."""
        return any(worker.hello.get("place") == "namespaces" for worker in self._workers)

    async def lend(self, work: Callable[[Box], T], tools: Sequence[str] = ()) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._lend, work, tuple(tools))

    async def run(self, command: Command) -> Ran:
        try:
            return await self.lend(lambda box: box.run(command), command.tools)
        except TakenDown:
            return Ran(-signal.SIGKILL, why="down")

    async def aclose(self) -> None:
        with self._lock:
            self._closed = True
            workers = list(self._workers)
        for worker in workers:
            worker.close()
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    def _stop(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.end()

    def start(self) -> dict[str, object]:
        """Start one worker, unless one waits, and return the isolation it found; raises `WorkerDied`."""
        worker = self._take(())
        try:
            if not worker.hello:
                worker.start()
        finally:
            self._give_back(worker)
        return worker.hello

    def _lend(self, work: Callable[[Box], T], tools: tuple[str, ...]) -> T:
        """Try twice, the second time on a fresh worker. If a program kills both and a trivial one runs after it, the
        program is at fault."""
        worker = self._take(tools)
        try:
            box = _Box(worker, tools, self.config.output_mb << 20, moves=self.own_folders)
            try:
                return work(box)
            except WorkerDied:
                try:
                    return work(box)
                except WorkerDied as error:
                    _probe(worker)
                    raise TakenDown(str(error)) from error
        finally:
            self._give_back(worker)

    def _take(self, tools: tuple[str, ...]) -> Worker:
        """An idle worker that sees the tools, or a new one; at most as many are busy as the pool has threads."""
        with self._lock:
            launch = self._launches.get(tools)
            if launch is None:
                launch = self._launches[tools] = self._launch(
                    check_tools(tools, own_folders=self.own_folders, movable=not self.weak)
                )
            for place in reversed(range(len(self._idle))):
                if self._idle[place].launch is launch:
                    return self._idle.pop(place)
            worker = Worker(launch, () if tools else self._modules)
            self._workers.add(worker)
            if self._closed:
                worker.close()
            return worker

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            self._idle.append(worker)
            surplus = self._idle.pop(0) if len(self._idle) > self._most_idle else None
            self._workers.discard(surplus)
        if surplus is not None:
            surplus.end()


class _Box:
    """One worker, used only by its thread."""

    def __init__(self, worker: Worker, tools: tuple[str, ...], output_limit: int, *, moves: bool) -> None:
        self._worker, self._tools, self._output_limit, self._moves = worker, tools, output_limit, moves

    def parts_processes(self, needs: Collection[str] = ()) -> bool:
        if not self._worker.hello:
            self._worker.start()
        place = self._worker.hello.get("place")
        return place == "namespaces" or (place == "landlock" and OF_NAMESPACES.isdisjoint(needs))

    def python(self, job: Job, reader: Reader) -> Ended:
        return self._worker.run(job, reader)

    def keep(self, key: str, start: Callable[[], K]) -> K:
        return self._worker.keep(key, start)

    def stream(self, command: Command, reader: Reader, pace: Pace, idle_s: float) -> Ended:
        job = replace(self._job(command), pace=pace, idle_s=idle_s)
        outputs = Outputs(command.tail, self._output_limit)
        ended = self._worker.run(job, outputs.start, (reader, outputs.stderr))
        ran = outputs.conclude(ended, command.cpu_limit, self._worker.folder)
        if ran.why == "missing":
            raise UserError(f"this sandbox does not see {command.argv[0]}", REMEDY)
        return replace(ended, stdout=ran.stderr.encode())

    def run(self, command: Command) -> Ran:
        outputs = Outputs(command.tail, self._output_limit)
        ended = self._worker.run(self._job(command), outputs.start, (outputs.stdout, outputs.stderr))
        return outputs.conclude(ended, command.cpu_limit, self._worker.folder)

    def _job(self, command: Command) -> Job:
        if missing := set(command.tools) - set(self._tools):
            raise ValueError(f"the box was lent without the tools {missing}")
        return (moved(command) if self._moves else command).job()


def _probe(worker: Worker) -> None:
    kinds: list[bytes] = []
    frames = Frames()

    def read(data: bytes) -> tuple[bytes, bool]:
        kinds.extend(kind for kind, _ in frames.feed(data))
        return b"", False

    worker.run(Job(marshal.dumps(PROBE, 2), 30.0, 30.0, 20.0), read)
    if wire.DONE not in kinds:
        raise WorkerDied("the sandbox does not run a trivial program")
