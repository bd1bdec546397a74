"""What every kind of isolation shares: workers, expected values, one run per program, verdicts."""

import asyncio
import hashlib
import marshal
import math
import queue
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from codechat.domain import AssertionTests, Failure, InputOutputTests, Task, Verdict
from codechat.errors import InfrastructureError, UserError
from codechat.sandbox import SandboxConfig
from codechat.sandbox.follow import Ended, Job, Reader, WorkerDied
from codechat.sandbox.truth import Recorder, Truth, cache_folder, compute, given_by, inputs_bytes, key_of, load, save
from codechat.sandbox.verdicts import Judge, how_it_ended
from codechat.sandbox.worker import Launch, Worker

REFERENCE_INPUT_S, REFERENCE_TOTAL_S, REFERENCE_IDLE_S = 300.0, 1200, (60.0, 1200.0)
KEPT_BYTES = 48 << 20  # of expected values and inputs in memory
REMEMBERED = 20_000  # verdicts, and tasks
SNIPPET = Task("snippet", "", "", "", None, InputOutputTests((), (), expected_base=(), expected_plus=()))
PROBE = "def probe():\n    return 1\n"


@dataclass(frozen=True)
class Prepared:
    """A task ready to be run: its inputs' bytes, what its reference answers, and the limits from that."""

    task: Task
    key: str
    inputs: bytes
    truth: Truth
    limits: tuple[float, ...]
    cpu: int

    @property
    def weight(self) -> int:
        return len(self.inputs) + self.truth.weight


class ZygoteSandbox:
    """Runs each program once, in a child of its own, on one of `workers` warm processes."""

    def __init__(self, config: SandboxConfig, launch: Launch, workers: int, weak: bool, notice: str | None) -> None:
        self._config, self.weak, self.notice = config, weak, notice
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")
        self._workers = [Worker(launch) for _ in range(workers)]
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._tasks = Tasks(config)
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._running: dict[tuple[str, str], asyncio.Future[Verdict]] = {}

    @property
    def contained(self) -> bool:
        """Whether a worker that started found itself in namespaces of its own."""
        return any(worker.hello.get("namespaces") for worker in self._workers)

    async def verify(self, program: str, task: Task) -> Verdict:
        """See `Sandbox.verify`. The same program and tests are run once, also when asked for at the same time."""
        key = (hashlib.sha256(program.encode("utf-8", "surrogatepass")).hexdigest(), self._tasks.key(task))
        if key in self._verdicts:
            return self._verdicts[key]
        running = self._running.get(key)
        if running is None:
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._pool, self._verify, program, task)
            self._running[key] = running
            running.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(running)

    def _keep(self, key: tuple[str, str], done: asyncio.Future[Verdict]) -> None:
        self._running.pop(key, None)
        if not done.cancelled() and done.exception() is None:
            self._verdicts[key] = done.result()
            if len(self._verdicts) > REMEMBERED:
                del self._verdicts[next(iter(self._verdicts))]

    async def assess(self, program: str, tests: AssertionTests) -> Verdict:
        """See `Sandbox.assess`."""
        return await self.verify("\n".join([program, *tests.snippets, ""]), SNIPPET)

    async def reference_cpu_s(self, task: Task) -> float:
        """CPU seconds that the task's reference takes over all inputs, on this machine."""
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self._pool, self._prepare, task)
        return sum(prepared.truth.cpu_s)

    async def aclose(self) -> None:
        """End every zygote; a program that still runs is killed."""
        for worker in self._workers:
            worker.close()
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    def _stop(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.stop()

    def start(self) -> dict[str, object]:
        """Start one worker now, and answer what isolation it found; raises `WorkerDied`."""
        worker = self._workers[-1]
        worker.start()
        return worker.hello

    def _prepare(self, task: Task) -> Prepared:
        worker = self._idle.get()
        try:
            return self._tasks.prepared(task, worker)
        finally:
            self._idle.put(worker)

    def _verify(self, program: str, task: Task) -> Verdict:
        """In a thread of the pool: infrastructure is tried twice."""
        worker = self._idle.get()
        try:
            prepared = self._tasks.prepared(task, worker)
            try:
                return self._once(worker, program, prepared)
            except WorkerDied:
                return self._again(worker, program, prepared)
        finally:
            self._idle.put(worker)

    def _again(self, worker: Worker, program: str, prepared: Prepared) -> Verdict:
        """A second try on a fresh process; a program that takes down two while others run is at fault itself."""
        try:
            return self._once(worker, program, prepared)
        except WorkerDied:
            _probe(worker)
            return Verdict("crash", False, Failure("the program takes the sandbox's process down"))

    def _once(self, worker: Worker, program: str, prepared: Prepared) -> Verdict:
        task = prepared.task
        judge = Judge(task, prepared.truth, self._config.output_mb << 20)
        job = {
            "program": program,
            "entry": task.entry_point,
            "calls": prepared.inputs,
            "limits": prepared.limits,
            "load_cpu_s": self._config.load_cpu_s,
            "timed": False,
            "elements": task.tests.oracle == "set_equal",
            "flush_after": len(task.tests.base),
            "cpu": prepared.cpu,
        }
        ended = run_job(worker, job, (self._config.idle_s, self._config.total_cpu_s), judge.read)
        if not judge.started:
            raise WorkerDied("the program could not be confined")
        return judge.conclude(ended, prepared.cpu)


class Tasks:
    """Prepared tasks, the latest in memory, their expected values on disk."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._computing: dict[str, threading.Lock] = {}
        self._kept: OrderedDict[str, Prepared] = OrderedDict()
        self._keys: dict[int, tuple[Task, str]] = {}

    def key(self, task: Task) -> str:
        """The hash of everything that decides the task's expected values and verdicts."""
        known = self._keys.get(id(task))
        if known is None:
            tests = task.tests
            given = hashlib.sha256(b"".join(value.data if value else b"?" for value in given_by(task))).hexdigest()
            rules = f"{tests.oracle}/{tests.atol}/{len(tests.base)}/{given}"
            known = (task, f"{key_of(task, inputs_bytes(task))}/{rules}")
            if len(self._keys) >= REMEMBERED:
                self._keys.clear()
            self._keys[id(task)] = known  # holds the task, so that its id stays its own
        return known[1]

    def prepared(self, task: Task, worker: Worker) -> Prepared:
        """From memory, from disk, or by running the reference on `worker`."""
        key = self.key(task)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            computing = self._computing.setdefault(key, threading.Lock())
        with computing:
            with self._lock:
                if key in self._kept:
                    return self._kept[key]
            prepared = self._make(task, key, worker)
            with self._lock:
                self._kept[key] = prepared
                while sum(one.weight for one in self._kept.values()) > KEPT_BYTES and len(self._kept) > 1:
                    self._kept.popitem(last=False)
        return prepared

    def _make(self, task: Task, key: str, worker: Worker) -> Prepared:
        inputs = inputs_bytes(task)
        truth = self._truth(task, key, inputs, worker)
        config = self._config
        limits = tuple(max(config.min_cpu_s, config.cpu_factor * seconds) for seconds in truth.cpu_s)
        total = min(sum(limits), max(config.total_cpu_s, config.cpu_factor * sum(truth.cpu_s)))
        return Prepared(task, key, inputs, truth, limits, math.ceil(config.load_cpu_s + total) + 1)

    def _truth(self, task: Task, key: str, inputs: bytes, worker: Worker) -> Truth:
        given = given_by(task)
        whole = tuple(value for value in given if value is not None)
        if task.reference is None:
            if len(whole) < len(given):
                raise UserError(f"{task.task_id} has neither a reference solution nor results", "add one of them to it")
            return Truth(whole, (0.0,) * len(whole))
        path = cache_folder() / f"{key.partition('/')[0]}.bin"
        truth = load(path)
        if truth is None:
            truth = compute(task, lambda recorder: run_reference(worker, task, inputs, recorder))
            save(path, truth)
        expected = tuple(own or found for own, found in zip(given, truth.expected, strict=True))
        return Truth(expected, truth.cpu_s)


def run_reference(worker: Worker, task: Task, inputs: bytes, recorder: Recorder) -> str | None:
    """Run the reference under generous limits; answer how it ended if not well."""
    calls = len(task.tests.base) + len(task.tests.plus)
    job = {
        "program": task.reference,
        "entry": task.entry_point,
        "calls": inputs,
        "limits": (REFERENCE_INPUT_S,) * calls,
        "load_cpu_s": REFERENCE_INPUT_S,
        "timed": True,
        "elements": task.tests.oracle == "set_equal",
        "flush_after": -1,
        "cpu": REFERENCE_TOTAL_S,
    }
    try:
        ended = run_job(worker, job, REFERENCE_IDLE_S, recorder.read)
    except WorkerDied:
        raise InfrastructureError(f"the sandbox fails on the reference of {task.task_id}") from None
    return None if ended.status == 0 and ended.why is None else how_it_ended(ended, REFERENCE_TOTAL_S)[1]


def run_job(worker: Worker, job: dict[str, Any], idle_s: tuple[float, float], reader: Reader) -> Ended:
    """Hand a job to the worker and follow it; `idle_s` is what it may wait between two results, and in all."""
    return worker.run(Job(marshal.dumps(job, 2), *idle_s, cpu_s=float(job["cpu"])), reader)


def _probe(worker: Worker) -> None:
    """Run a trivial program; raises `WorkerDied` where even that is not possible."""
    job = {"program": PROBE, "entry": "probe", "calls": marshal.dumps([()], 2), "limits": (10.0,), "load_cpu_s": 10.0}
    recorder = Recorder()
    run_job(
        worker, {**job, "timed": False, "elements": False, "flush_after": -1, "cpu": 20}, (30.0, 30.0), recorder.read
    )
    if not recorder.done:
        raise WorkerDied("the sandbox does not run a trivial program")
