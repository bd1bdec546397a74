"""Calls whose results must equal the reference's (EvalPlus style): compared outside the program's process."""

import functools
import hashlib
import marshal
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from codechat.config import Config, result_option, run_option
from codechat.domain import Program, Verdict
from codechat.errors import BrokenTask, InfrastructureError, UserError
from codechat.files import content_hash
from codechat.sandbox import Box, Job, Sandbox, SandboxConfig, WorkerDied
from codechat.suites import SUITES
from codechat.suites.calls.oracle import ORACLES, Comparison, Oracle
from codechat.suites.calls.reader import CallsReader
from codechat.suites.calls.truth import (
    Expected,
    Recorder,
    Truth,
    compute,
    encode_expected,
    load,
    place,
    require_comparable,
    save,
)
from codechat.suites.endings import explain_end, run_in_box

COMPARED_BY_VALUE: frozenset[Oracle] = frozenset(ORACLES) - {"not_none", "anything"}
REFERENCE_INPUT_S, REFERENCE_TOTAL_S, REFERENCE_IDLE_S = 300.0, 1200, (60.0, 1200.0)
KEPT_BYTES = 48 << 20  # of expected values and inputs in memory


@dataclass(frozen=True)
class Prepared:
    """The inputs' bytes, the expected results, and the limits in CPU seconds per input and in all."""

    inputs: bytes
    truth: Truth
    limits: tuple[float, ...]
    cpu: int

    @property
    def weight(self) -> int:
        """The rough number of bytes in memory."""
        return len(self.inputs) + self.truth.weight


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
                while sum(one.weight for one in self._kept.values()) > KEPT_BYTES and len(self._kept) > 1:
                    self._kept.popitem(last=False)
        return prepared


PREPARED = PreparedStore()
"""Shared by all sandboxes of this process: references give the same answers in each."""


@dataclass(frozen=True)
class Calls:
    """Calls of `entry_point`, whose results must be as good as those of `reference`, a complete program.

    `base` and `plus` hold one argument tuple per call; `atol` is the absolute tolerance for floats; `oracle` names
    the comparison (see `codechat.suites.calls.oracle`). `expected_base` and `expected_plus` hold one result per
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
    shares: ClassVar[bool] = True

    @property
    def inputs(self) -> tuple[tuple[Any, ...], ...]:
        """Every call's arguments, base first."""
        return self.base + self.plus

    @property
    def test_counts(self) -> tuple[int, int]:
        """See `Counted`."""
        return len(self.base), len(self.plus)

    @functools.cached_property
    def key(self) -> str:
        """See `Suite.key`. Raises `UserError` for an input that is not plain data."""
        rules = [self.kind, self.entry_point, self.reference, self.oracle, self.atol, len(self.base)]
        digest = hashlib.sha256(content_hash(rules).encode())
        for data in (self._bytes(), *(value.data if value else b"?" for value in self._values_of_dataset())):
            digest.update(hashlib.sha256(data).digest())
        return digest.hexdigest()

    @property
    def outside(self) -> dict[str, str]:
        return {}

    async def check(self, program: Program, sandbox: Sandbox) -> Verdict:
        if not self.inputs:
            raise BrokenTask(f"{self.name} has no tests: every program would pass", "add tests to it or leave it out")
        return await run_in_box(sandbox, lambda box: self._run(box, program, sandbox.config))

    async def cost_s(self, sandbox: Sandbox) -> float:
        """CPU seconds of the reference over all inputs, on this machine. Raises as `check`."""
        prepared = await sandbox.lend(lambda box: self._find_prepared(box, sandbox.config))
        return sum(prepared.truth.cpu_s)

    def _run(self, box: Box, program: Program, config: SandboxConfig) -> Verdict:
        prepared = self._find_prepared(box, config)
        reader = CallsReader(
            entry_point=self.entry_point,
            inputs=self.inputs,
            base=len(self.base),
            comparison=lambda: Comparison(self.oracle, self.atol),
            truth=prepared.truth,
            output_limit=config.output_mb << 20,
        )
        job = self._job(program.source, prepared.inputs) | {
            "limits": prepared.limits,
            "load_cpu_s": config.load_cpu_s,
            "timed": False,
            "flush_after": len(self.base),
            "cpu": prepared.cpu,
        }
        limits = (config.idle_s, config.total_cpu_s, float(prepared.cpu))
        ended = box.python(Job(marshal.dumps(job, 2), *limits), reader.read)
        if not reader.started:
            raise WorkerDied("the program could not be confined")
        return reader.conclude(ended, prepared.cpu)

    def _job(self, source: str, inputs: bytes) -> dict[str, Any]:
        elements = self.oracle == "set_equal"
        return {"program": source, "entry": self.entry_point, "calls": inputs, "elements": elements}

    def _find_prepared(self, box: Box, config: SandboxConfig) -> Prepared:
        """The prepared suite: from memory, from disk, or by running the reference."""
        limits = (config.min_cpu_s, config.cpu_factor, config.load_cpu_s, config.total_cpu_s)
        return PREPARED.get(f"{self.key}/{limits}/{config.versions_of_libraries()}", lambda: self._prepare(box, config))

    def _prepare(self, box: Box, config: SandboxConfig) -> Prepared:
        inputs = self._bytes()
        truth = self._truth(box, inputs, config.versions_of_libraries())
        if self.oracle in COMPARED_BY_VALUE:
            require_comparable(self.name, truth)
        limits = tuple(max(config.min_cpu_s, config.cpu_factor * seconds) for seconds in truth.cpu_s)
        total = min(sum(limits), max(config.total_cpu_s, config.cpu_factor * sum(truth.cpu_s)))
        return Prepared(inputs, truth, limits, math.ceil(config.load_cpu_s + total) + 1)

    def _truth(self, box: Box, inputs: bytes, libraries: str) -> Truth:
        known = self._values_of_dataset()
        whole = tuple(value for value in known if value is not None)
        if self.reference is None:
            if len(whole) < len(known):
                raise BrokenTask(f"{self.name} has neither a reference solution nor results", "add one of them to it")
            return Truth(whole, (0.0,) * len(whole))
        path = place(self.reference, self.entry_point, self.oracle, inputs, libraries)
        truth = load(path)
        if truth is None:
            truth = compute(self.name, len(self.inputs), functools.partial(self._run_reference, box, inputs))
            save(path, truth)
        expected = tuple(own or found for own, found in zip(known, truth.expected, strict=True))
        return Truth(expected, truth.cpu_s)

    def _run_reference(self, box: Box, inputs: bytes, recorder: Recorder) -> str | None:
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
        """The expected values of the dataset, base first; None for those that the reference computes."""
        known: list[Expected | None] = []
        elements = self.oracle == "set_equal"
        for calls, values in ((self.base, self.expected_base), (self.plus, self.expected_plus)):
            known += (
                [None] * len(calls)
                if values is None
                else [encode_expected(value, elements=elements) for value in values]
            )
        return tuple(known)


def require_results(name: str, calls: list[Any], results: list[Any] | None, source: str, reference: str | None) -> None:
    """Raise `ValueError` unless every call has a result: in the field `name`, or by the reference in `source`."""
    if results is not None and len(results) != len(calls):
        raise ValueError(f"{name} has {len(results)} results for {len(calls)} inputs")
    if results is None and calls and reference is None:
        raise ValueError(f"give {source} or {name}: without them no result is right")


class CallsConfig(Config):
    """Fields of `calls`."""

    kind: Literal["calls"] = result_option("calls", "which kind of tests")
    name: str = run_option("this task", "what messages call the task")
    entry_point: str = result_option(..., "the function that is called", min_length=1)
    reference: str | None = result_option(None, "a complete right program; null: the results are given")
    base_input: list[list[Any]] = result_option(..., "one list of arguments a call", min_length=1)
    plus_input: list[list[Any]] = result_option([], "further calls, left out of passed_base")
    atol: float = result_option(0.0, "the absolute tolerance for floats", ge=0, allow_inf_nan=False)
    oracle: Oracle = result_option("equal", "how results are compared")
    base_output: list[Any] | None = result_option(None, "the results of base_input; null: the reference's")
    plus_output: list[Any] | None = result_option(None, "the results of plus_input; null: the reference's")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        require_results("base_output", self.base_input, self.base_output, "reference", self.reference)
        require_results("plus_output", self.plus_input, self.plus_output, "reference", self.reference)
        return self


@SUITES.register("calls", CallsConfig)
def calls(config: CallsConfig) -> Calls:
    """Calls whose results must equal the reference's, compared outside the program's process."""
    return Calls(
        config.entry_point,
        config.reference,
        tuple(map(tuple, config.base_input)),
        tuple(map(tuple, config.plus_input)),
        config.atol,
        config.oracle,
        None if config.base_output is None else tuple(config.base_output),
        None if config.plus_output is None else tuple(config.plus_output),
        config.name,
    )
