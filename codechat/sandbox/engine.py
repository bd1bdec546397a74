"""What every kind of isolation shares: workers, expected values, one run per program, verdicts."""

import asyncio
import contextlib
import marshal
import math
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from codechat.domain import Failure, ProgramTests, RepositoryTests, Task, Verdict
from codechat.errors import InfrastructureError, UserError
from codechat.files import content_hash
from codechat.sandbox import SandboxConfig
from codechat.sandbox.asserted import AssertionJudge
from codechat.sandbox.follow import Job, WorkerDied
from codechat.sandbox.prepared import Prepared, Tasks, run_job
from codechat.sandbox.repository import in_repository
from codechat.sandbox.scripts import Script, ScriptReader
from codechat.sandbox.truth import Recorder
from codechat.sandbox.verdicts import Judge
from codechat.sandbox.worker import Launch, Worker

REMEMBERED = 20_000  # verdicts
PROBE = "def probe():\n    return 1\n"


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
        self._verdicts: dict[str, Verdict] = {}
        self._running: dict[str, asyncio.Future[Verdict]] = {}

    @property
    def contained(self) -> bool:
        """Whether a worker that started found itself in namespaces of its own."""
        return any(worker.hello.get("namespaces") for worker in self._workers)

    async def verify(self, program: str, task: Task) -> Verdict:
        """See `Sandbox.verify`: calls first, then assertions. What was run before is not run again."""
        has_calls = bool(task.tests.base or task.tests.plus)
        if not has_calls and task.assertions is None:
            raise UserError(f"{task.task_id} has no tests: every program would pass", "add tests to it or leave it out")
        if not has_calls:
            assert task.assertions is not None
            return await self.assess(program, task.assertions, task.entry_point)
        verdict = await self._once((program, self._tasks.key(task)), lambda: self._verify(program, task))
        if not verdict.passed or task.assertions is None:
            return verdict
        asserted = await self.assess(program, task.assertions, task.entry_point)
        return replace(asserted, passed_base=True, cpu_s=round(verdict.cpu_s + asserted.cpu_s, 4))

    async def assess(self, program: str, tests: ProgramTests, entry_point: str = "") -> Verdict:
        """See `Sandbox.assess`."""
        if isinstance(tests, RepositoryTests):
            return await self._once((program, repr(tests)), lambda: self._script(in_repository(program, tests)))
        if not tests.snippets:
            raise UserError("there are no assertions to run: every program would pass", "add tests to the requirement")
        key = (program, "assert", entry_point, *tests.snippets)
        return await self._once(key, lambda: self._assess(program, tests.snippets, entry_point))

    async def run_script(self, source: str, wall_s: float) -> Verdict:
        """See `Sandbox.run_script`."""
        return await self._once((source, "script", str(wall_s)), lambda: self._script(Script(source, wall_s)))

    async def _once(self, parts: tuple[str, ...], run: Callable[[], Verdict]) -> Verdict:
        """The verdict of `run`, which is called in a thread of the pool unless the same was, or is being, run."""
        key = content_hash(list(parts))
        if key in self._verdicts:
            return self._verdicts[key]
        running = self._running.get(key)
        if running is None:
            running = asyncio.get_running_loop().run_in_executor(self._pool, run)
            self._running[key] = running
            running.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(running)

    def _keep(self, key: str, done: asyncio.Future[Verdict]) -> None:
        self._running.pop(key, None)
        if not done.cancelled() and done.exception() is None:
            self._verdicts[key] = done.result()
            if len(self._verdicts) > REMEMBERED:
                del self._verdicts[next(iter(self._verdicts))]

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
        with self._worker() as worker:
            return self._tasks.prepared(task, worker)

    def _verify(self, program: str, task: Task) -> Verdict:
        with self._worker() as worker:
            prepared = self._tasks.prepared(task, worker)
            return _twice(worker, lambda: self._calls(worker, program, prepared))

    def _assess(self, program: str, snippets: tuple[str, ...], entry_point: str) -> Verdict:
        with self._worker() as worker:
            return _twice(worker, lambda: self._assertions(worker, program, snippets, entry_point))

    def _script(self, script: Script) -> Verdict:
        with self._worker() as worker:
            return _twice(worker, lambda: run_script(worker, script))

    @contextlib.contextmanager
    def _worker(self) -> Iterator[Worker]:
        worker = self._idle.get()
        try:
            yield worker
        finally:
            self._idle.put(worker)

    def _calls(self, worker: Worker, program: str, prepared: Prepared) -> Verdict:
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

    def _assertions(self, worker: Worker, program: str, snippets: tuple[str, ...], entry_point: str) -> Verdict:
        config = self._config
        judge = AssertionJudge(snippets, entry_point, config.output_mb << 20)
        cpu = math.ceil(config.load_cpu_s + config.total_cpu_s) + 1
        job = {
            "program": program if program.endswith("\n") else program + "\n",  # a style checker asks for it
            "entry": entry_point,
            "snippets": list(snippets),
            "token": judge.token,
            "load_cpu_s": config.load_cpu_s,
            "cpu": cpu,
        }
        data = marshal.dumps(job, 2)
        ended = worker.run(Job(data, config.idle_s, config.total_cpu_s, cpu, warm=True), judge.read)
        if not judge.started:
            raise WorkerDied("the program could not be confined")
        return judge.conclude(ended, cpu)


def _twice(worker: Worker, run: Callable[[], Verdict]) -> Verdict:
    """Infrastructure is tried twice, the second time on a fresh process; a program that takes down two while others
    run is at fault itself."""
    try:
        return run()
    except WorkerDied:
        try:
            return run()
        except WorkerDied:
            _probe(worker)
            return Verdict("crash", False, Failure("the program takes the sandbox's process down"))


def run_script(worker: Worker, script: Script) -> Verdict:
    """Run a script on a worker; raises `InfrastructureError` where what it needs could not be made ready."""
    cpu = math.ceil(script.wall_s) + 1
    job = {
        "script": script.source,
        "arguments": list(script.arguments),
        "archive": script.archive,
        "folder": script.folder,
        "imports": list(script.imports),
        "token": script.token,
        "cpu": cpu,
    }
    if script.file_mb is not None:
        job["file"] = script.file_mb << 20
    reader = ScriptReader()
    ended = worker.run(Job(marshal.dumps(job, 2), math.inf, math.inf, cpu, wall_s=script.wall_s), reader.read)
    if not reader.started:
        raise InfrastructureError("the sandbox could not make a script's files ready")
    return reader.conclude(ended, script, cpu)


def _probe(worker: Worker) -> None:
    """Run a trivial program; raises `WorkerDied` where even that is not possible."""
    job = {"program": PROBE, "entry": "probe", "calls": marshal.dumps([()], 2), "limits": (10.0,), "load_cpu_s": 10.0}
    recorder = Recorder()
    run_job(
        worker, {**job, "timed": False, "elements": False, "flush_after": -1, "cpu": 20}, (30.0, 30.0), recorder.read
    )
    if not recorder.done:
        raise WorkerDied("the sandbox does not run a trivial program")
