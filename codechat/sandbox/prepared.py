"""Tasks made ready to be run: their inputs as bytes, what their references answer, and the limits from that."""

import hashlib
import marshal
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from codechat.domain import Task
from codechat.errors import InfrastructureError, UserError
from codechat.sandbox import SandboxConfig
from codechat.sandbox.follow import Ended, Job, Reader, WorkerDied
from codechat.sandbox.truth import Recorder, Truth, cache_folder, compute, given_by, inputs_bytes, key_of, load, save
from codechat.sandbox.verdicts import how_it_ended
from codechat.sandbox.worker import Worker

REFERENCE_INPUT_S, REFERENCE_TOTAL_S, REFERENCE_IDLE_S = 300.0, 1200, (60.0, 1200.0)
KEPT_BYTES = 48 << 20  # of expected values and inputs in memory
REMEMBERED = 20_000  # tasks


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
