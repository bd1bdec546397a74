"""The engine of every kind of isolation: lends warm workers and decides who is at fault if one dies."""

import asyncio
import marshal
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from codechat.sandbox import Box, Kept, SandboxConfig, TakenDown
from codechat.sandbox.command import Command, Outputs, Ran
from codechat.sandbox.follow import Ended, Job, Reader, WorkerDied
from codechat.sandbox.inside import wire
from codechat.sandbox.stream import Frames
from codechat.sandbox.tools import check_tools
from codechat.sandbox.worker import Launch, Worker

T = TypeVar("T")
K = TypeVar("K", bound=Kept)
Launches = Callable[[tuple[str, ...]], Launch]
SPARE = 16  # idle workers kept besides those that can be busy, for different sets of tools
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
    """Runs each program once, in its own child of one of `workers` warm processes.

    `launch` says how to start a worker in which a set of tools is visible; workers of one launch are alike.
    """

    def __init__(self, config: SandboxConfig, launch: Launches, workers: int, weak: bool, notice: str | None) -> None:
        self.config, self.weak, self.notice = config, weak, notice
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        self._launch, self._launches = launch, dict[tuple[str, ...], Launch]()
        self._lock, self._most_idle = threading.Lock(), workers + SPARE
        self._idle: list[Worker] = []  # the latest last
        self._workers: set[Worker] = set()
        self._modules: tuple[str, ...] = ()
        self._closed = False

    def preload(self, modules: Sequence[str]) -> None:
        """See `Preloading`. To be called before the first program.

        Workers that see tools load nothing beforehand: few tests need them, and each would hold the set once more.
        """
        with self._lock:
            self._modules = tuple(modules)
            for worker in self._workers:
                if worker.launch is self._launches.get(()):
                    worker.modules = self._modules

    @property
    def contained(self) -> bool:
        """Whether a started worker has its own namespaces."""
        return any(worker.hello.get("namespaces") for worker in self._workers)

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
        """Start one worker now and return the isolation it found; raises `WorkerDied`."""
        worker = self._take(())
        try:
            worker.start()
        finally:
            self._give_back(worker)
        return worker.hello

    def _lend(self, work: Callable[[Box], T], tools: tuple[str, ...]) -> T:
        """Try twice, the second time on a fresh worker. If a program kills both and a trivial one runs after it, the
        program is at fault."""
        worker = self._take(tools)
        try:
            box = _Box(worker, tools, self.config.output_mb << 20)
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
                launch = self._launches[tools] = self._launch(check_tools(tools))
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

    def __init__(self, worker: Worker, tools: tuple[str, ...], output_room: int) -> None:
        self._worker, self._tools, self._room = worker, tools, output_room

    def parts_processes(self) -> bool:
        if not self._worker.hello:
            self._worker.start()
        return bool(self._worker.hello.get("namespaces"))

    def python(self, job: Job, reader: Reader) -> Ended:
        return self._worker.run(job, reader)

    def keep(self, key: str, start: Callable[[], K]) -> K:
        return self._worker.keep(key, start)

    def run(self, command: Command) -> Ran:
        if missing := set(command.tools) - set(self._tools):
            raise ValueError(f"the box was lent without the tools {missing}")
        outputs = Outputs(command.tail, self._room)
        ended = self._worker.run(command.job(), outputs.start, (outputs.stdout, outputs.stderr))
        return outputs.conclude(ended, command.cpu_limit)


def _probe(worker: Worker) -> None:
    """Run a trivial program; raises `WorkerDied` if even that fails."""
    kinds: list[bytes] = []
    frames = Frames()

    def read(data: bytes) -> tuple[bytes, bool]:
        kinds.extend(kind for kind, _ in frames.feed(data))
        return b"", False

    worker.run(Job(marshal.dumps(PROBE, 2), 30.0, 30.0, 20.0), read)
    if wire.DONE not in kinds:
        raise WorkerDied("the sandbox does not run a trivial program")
