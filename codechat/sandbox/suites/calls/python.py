"""Calls of a Python program, in a fork of the warm interpreter."""

import functools
import hashlib
import marshal
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.base.domain import Program, Verdict
from codechat.base.errors import BrokenTask, InfrastructureError, UserError
from codechat.base.files import content_hash
from codechat.sandbox import Box, Job, Sandbox, SandboxConfig, WorkerDied
from codechat.sandbox.suites.calls.oracle import ORACLES, Comparison, Oracle
from codechat.sandbox.suites.calls.reader import CallsReader
from codechat.sandbox.suites.calls.reference_results import (
    Recorder,
    ReferenceResults,
    cache_path,
    compute,
    encode_expected,
    load,
    require_comparable,
    save,
)
from codechat.sandbox.suites.calls.results import Expected
from codechat.sandbox.suites.endings import explain_end, run_in_box

PYTHON = "python"
COMPARED_BY_VALUE: frozenset[Oracle] = frozenset(ORACLES) - {"not_none", "anything"}
REFERENCE_INPUT_S, REFERENCE_TOTAL_S, REFERENCE_IDLE_S = 300.0, 1200, (60.0, 1200.0)
KEPT_BYTES = 48 << 20  # of expected values and inputs in memory


@dataclass(frozen=True)
class Prepared:
    """The inputs' bytes, the expected results, and the limits in CPU seconds per input and in all."""

    inputs: bytes
    results: ReferenceResults
    limits: tuple[float, ...]
    cpu: int

    @property
    def size_in_memory(self) -> int:
        """The rough number of bytes in memory."""
        return len(self.inputs) + self.results.size_in_memory


class PreparedStore:
    """Prepared suites by key. One thread prepares a key; others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._computing: dict[str, threading.Lock] = {}
        self._kept: OrderedDict[str, Prepared] = OrderedDict()

    def get(self, key: str, make: Callable[[], Prepared]) -> Prepared:
        """From memory, else from `make`; raises what `make` raises."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            computing = self._computing.setdefault(key, threading.Lock())
        with computing:
            with self._lock:
                if key in self._kept:
                    return self._kept[key]
            prepared = make()
            with self._lock:
                self._computing.pop(key, None)
                self._kept[key] = prepared
                while sum(one.size_in_memory for one in self._kept.values()) > KEPT_BYTES and len(self._kept) > 1:
                    self._kept.popitem(last=False)
        return prepared


PREPARED = PreparedStore()  # shared by all sandboxes of this process: references give the same answers in each


@dataclass(frozen=True)
class Calls:
    """Calls of `entry_point`, whose results must be as good as the results of `reference`, a complete program.

    `base` and `plus` hold one argument tuple per call; `atol` is the absolute tolerance for floats; `oracle` names
    the comparison (see `codechat.sandbox.suites.calls.oracle`). `expected_base` and `expected_plus` hold one result per
    call if the dataset gives them; if None, the reference computes them. `name` is the task's name in messages.
    """

    entry_point: str
    reference: str | None
    base: tuple[tuple[Any, ...], ...]
    plus: tuple[tuple[Any, ...], ...] = ()
    atol: float = 0.0
    oracle: Oracle = "equal"
    expected_base: tuple[Any, ...] | None = None
    expected_plus: tuple[Any, ...] | None = None
    name: str = "this task"
    kind = "calls"

    @property
    def inputs(self) -> tuple[tuple[Any, ...], ...]:
        """Every call's arguments, base first."""
        return self.base + self.plus

    @property
    def test_counts(self) -> tuple[int, int]:
        """See `HasTestCounts`."""
        return len(self.base), len(self.plus)

    @functools.cached_property
    def key(self) -> str:
        """See `Suite.key`. Raises `UserError` for an input that is not plain data."""
        digest = hashlib.sha256(content_hash(self.rules()).encode())
        for data in (self._bytes(), *(value.data if value else b"?" for value in self._values_of_dataset())):
            digest.update(hashlib.sha256(data).digest())
        return digest.hexdigest()

    def rules(self) -> list[Any]:
        """All that decides a verdict except the values."""
        return [self.kind, self.entry_point, self.reference, self.oracle, self.atol, len(self.base)]

    @property
    def outside(self) -> dict[str, str]:
        return {}

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        if not self.inputs:
            raise BrokenTask(f"{self.name} has no tests: every program would pass", "add tests to it or leave it out")
        tools = await self.tools(sandbox.config)
        return await run_in_box(sandbox, lambda box: self.run(box, program, sandbox.config), tools)

    async def cost_s(self, sandbox: Sandbox) -> float:
        """CPU seconds of the reference over all inputs, on this machine. Raises as `check`."""
        tools = await self.tools(sandbox.config)
        prepared = await sandbox.lend(lambda box: self.find_prepared(box, sandbox.config), tools)
        return sum(prepared.results.cpu_s)

    async def tools(self, config: SandboxConfig) -> Sequence[str]:
        """The paths that a box must show; none: it has Python. Raises `UserError` if they are missing."""
        return ()

    def run(self, box: Box, program: Program, config: SandboxConfig) -> Verdict:
        """The verdict on a program, in a box with the tools."""
        prepared = self.find_prepared(box, config)
        reader = self.reader(prepared.results, config)
        job = self.job(program.source, prepared, config)
        limits = (config.idle_s, config.total_cpu_s, float(prepared.cpu))
        ended = box.python(Job(marshal.dumps(job, 2), *limits), reader.read)
        if not reader.started:
            raise WorkerDied("the program could not be confined")
        return reader.conclude(ended, prepared.cpu)

    def reader(self, results: ReferenceResults, config: SandboxConfig, *, foreign: bool = False) -> CallsReader:
        """What makes the verdict of a program's stream; see `CallsReader`."""
        return CallsReader(
            entry_point=self.entry_point,
            inputs=self.inputs,
            base=len(self.base),
            comparison=lambda: Comparison(self.oracle, self.atol),
            results=results,
            output_limit=config.output_mb << 20,
            foreign=foreign,
        )

    def job(self, source: str, prepared: Prepared, config: SandboxConfig) -> dict[str, Any]:
        """All that a process needs to run a program (`candidate.run`); no expected result is in it."""
        return self._job(source, prepared.inputs) | {
            "limits": prepared.limits,
            "load_cpu_s": config.load_cpu_s,
            "timed": False,
            "flush_after": len(self.base),
            "cpu": prepared.cpu,
        }

    def _job(self, source: str, inputs: bytes) -> dict[str, Any]:
        elements = self.oracle == "set_equal"
        return {"program": source, "entry": self.entry_point, "calls": inputs, "elements": elements}

    def find_prepared(self, box: Box, config: SandboxConfig) -> Prepared:
        """The prepared suite: from memory, from disk, or by running the reference."""
        limits = (config.min_cpu_s, config.cpu_factor, config.load_cpu_s, config.total_cpu_s)
        return PREPARED.get(f"{self.key}/{limits}/{self.environment(config)}", lambda: self._prepare(box, config))

    def _prepare(self, box: Box, config: SandboxConfig) -> Prepared:
        inputs = self._bytes()
        results = self.reference_results(box, inputs, config)
        if self.oracle in COMPARED_BY_VALUE:
            require_comparable(self.name, results)
        limits = tuple(max(config.min_cpu_s, config.cpu_factor * seconds) for seconds in results.cpu_s)
        total = min(sum(limits), max(config.total_cpu_s, config.cpu_factor * sum(results.cpu_s)))
        return Prepared(inputs, results, limits, math.ceil(config.load_cpu_s + total) + 1)

    def environment(self, config: SandboxConfig) -> str:
        """All that a reference's results depend on except the reference and the machine."""
        return config.versions_of_libraries()

    def reference_results(self, box: Box, inputs: bytes, config: SandboxConfig) -> ReferenceResults:
        """The expected results, and what they cost the reference. Raises `BrokenTask`."""
        known = self._values_of_dataset()
        whole = tuple(value for value in known if value is not None)
        if self.reference is None:
            if len(whole) < len(known):
                raise BrokenTask(f"{self.name} has neither a reference solution nor results", "add one of them to it")
            return ReferenceResults(whole, (0.0,) * len(whole))
        path = self._cache(inputs, config)
        results = load(path)
        if results is None:
            run = functools.partial(self.run_reference, box, inputs, config)
            results = compute(self.name, len(self.inputs), run)
            save(path, results)
        expected = tuple(own or found for own, found in zip(known, results.expected, strict=True))
        return ReferenceResults(expected, results.cpu_s)

    def known_results(self, config: SandboxConfig) -> ReferenceResults | None:
        """The reference's results on disk, also for calls whose results the dataset gives; None if it has not run."""
        return load(self._cache(self._bytes(), config))

    def _cache(self, inputs: bytes, config: SandboxConfig) -> Path:
        return cache_path(self.reference or "", self.entry_point, self.oracle, inputs, self.environment(config))

    def run_reference(self, box: Box, inputs: bytes, config: SandboxConfig, recorder: Recorder) -> str | None:
        """Run the reference under generous limits. Returns the reason if it failed, else None."""
        job = self._job(self.reference or "", inputs) | {
            "limits": (REFERENCE_INPUT_S,) * len(self.inputs),
            "load_cpu_s": REFERENCE_INPUT_S,
            "timed": True,
            "flush_after": -1,
            "cpu": REFERENCE_TOTAL_S,
        }
        try:
            ended = box.python(Job(marshal.dumps(job, 2), *REFERENCE_IDLE_S, REFERENCE_TOTAL_S), recorder.read)
        except WorkerDied:
            raise InfrastructureError(f"the sandbox fails on the reference of {self.name}") from None
        return None if ended.status == 0 and ended.why is None else explain_end(ended, REFERENCE_TOTAL_S)[1]

    def _bytes(self) -> bytes:
        """The inputs as the child process reads them. Raises `UserError` for one that is not plain data."""
        try:
            return marshal.dumps([tuple(arguments) for arguments in self.inputs], 2)
        except ValueError as error:
            raise UserError(f"an input of {self.name} is not plain data: {error}", "mend the dataset") from error

    def _values_of_dataset(self) -> tuple[Expected | None, ...]:
        """The expected values of the dataset, base first; None if the reference computes them."""
        known: list[Expected | None] = []
        elements = self.oracle == "set_equal"
        for calls, values in ((self.base, self.expected_base), (self.plus, self.expected_plus)):
            known += (
                [None] * len(calls)
                if values is None
                else [encode_expected(value, elements=elements) for value in values]
            )
        return tuple(known)
