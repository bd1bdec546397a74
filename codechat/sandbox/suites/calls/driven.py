"""Calls of a program in any language that has a driver, each program in another process."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

from codechat.base.domain import Program, Verdict
from codechat.sandbox import Box, Ended, Reader, SandboxConfig
from codechat.sandbox.suites.calls.conform import NONE, UNDEFINED
from codechat.sandbox.suites.calls.drivers import ARGUMENTS, PRINTED, SAID, Called, Driver, Ready, driver_of
from codechat.sandbox.suites.calls.python import REFERENCE_IDLE_S, REFERENCE_INPUT_S, REFERENCE_TOTAL_S, Calls
from codechat.sandbox.suites.calls.reference_results import Recorder, ReferenceResults
from codechat.sandbox.suites.endings import explain_end
from codechat.sandbox.watch import Pace


@dataclass(frozen=True)
class Driven(Calls):
    """Calls of `entry_point` in a `language`; `reference` is in that language too, and its cost gives the limits.

    `signature` is the function's head, from which a typed language takes types. The expected results are the results of
    `model`, the same calls in Python. The language's own reference counts for the inputs `own` (by place), without a
    model, and where the model's None stands for no value at all.
    """

    language: str = ""
    signature: str = ""
    model: Calls | None = None
    own: frozenset[int] = frozenset()

    @classmethod
    def of(cls, calls: Calls, language: str, signature: str) -> Self:
        """The same calls in another language."""
        return cls(**{field.name: getattr(calls, field.name) for field in fields(Calls)}).spoken(language, signature)

    def spoken(self, language: str, signature: str) -> Self:
        """These calls in another language."""
        return replace(self, language=language, signature=signature)

    @cached_property
    def _driver(self) -> Driver:
        return driver_of(self.language)

    def rules(self) -> list[Any]:
        of_model = [self.model.key, sorted(self.own)] if self.model is not None else []
        return [*super().rules(), self.language, self._driver.version, self.signature, *of_model]

    async def tools(self, config: SandboxConfig) -> Sequence[str]:
        return await asyncio.to_thread(self._driver.tools, config, lambda text: None)

    def make_ready(self, config: SandboxConfig, note: Callable[[str], None]) -> None:
        """See `NeedsSetup`."""
        self._driver.tools(config, note)

    def inexpressible(self) -> dict[int, str]:
        """The inputs that the language cannot express, by their places, and why. Raises `ValueError`."""
        reasons = (self._driver.inexpressible(each, self.signature) for each in self.inputs)
        return {place: reason for place, reason in enumerate(reasons) if reason}

    def environment(self, config: SandboxConfig) -> str:
        return f"{super().environment(config)} {self.language} {self._driver.version} {self.signature}"

    def reference_results(self, box: Box, inputs: bytes, config: SandboxConfig) -> ReferenceResults:
        own = super().reference_results(box, inputs, config)
        if self.model is None:
            return own
        model = self.model.find_prepared(box, config).results.expected
        chosen = (
            mine if place in self.own or (right.data, mine.data) == (NONE, UNDEFINED) else right
            for place, (right, mine) in enumerate(zip(model, own.expected, strict=True))
        )
        return ReferenceResults(tuple(chosen), own.cpu_s)

    def run(self, box: Box, program: Program, config: SandboxConfig) -> Verdict:
        prepared = self.find_prepared(box, config)
        made = self._driver.ready(self._called(program.source, prepared.inputs, timed=False), box, config)
        if isinstance(made, Verdict):
            return made
        reader = self.reader(prepared.results, config, foreign=True)
        reader.started = True  # the sandbox says so of a command by itself

        def pace() -> tuple[int, float]:
            if not reader.loaded:
                return -1, config.load_cpu_s
            return reader.index, prepared.limits[min(reader.index, len(prepared.limits) - 1)]

        idle = (config.idle_s, config.total_cpu_s)
        ended = self._follow(box, made, prepared.inputs, reader=reader.read, pace=pace, idle=idle, cpu=prepared.cpu)
        verdict = reader.conclude(ended, prepared.cpu)
        return replace(verdict, cpu_s=round(verdict.cpu_s + made.cpu_s, 4))

    def run_reference(self, box: Box, inputs: bytes, config: SandboxConfig, recorder: Recorder) -> str | None:
        made = self._driver.ready(self._called(self.reference or "", inputs, timed=True), box, config)
        if isinstance(made, Verdict):
            return made.failure.reason if made.failure is not None else None

        def pace() -> tuple[int, float]:
            return len(recorder.values), REFERENCE_INPUT_S

        idle, cpu = REFERENCE_IDLE_S, REFERENCE_TOTAL_S
        ended = self._follow(box, made, inputs, reader=recorder.read, pace=pace, idle=idle, cpu=cpu)
        return None if recorder.done else explain_end(ended, REFERENCE_TOTAL_S)[1]

    def _called(self, source: str, inputs: bytes, *, timed: bool) -> Called:
        return Called(source, self.entry_point, self.signature, timed, inputs)

    def _follow(
        self, box: Box, made: Ready, inputs: bytes, *, reader: Reader, pace: Pace, idle: tuple[float, float], cpu: int
    ) -> Ended:
        command = replace(
            made.command,
            files={ARGUMENTS: inputs, **made.command.files},
            wall_s=math.inf,
            cpu_s=cpu - 1,
            idle_s=idle[1],
            tail=2 * PRINTED,
            alone=made.alone,
        )
        ended = box.stream(command, reader, pace, idle[0])
        _, _, said = ended.stdout.partition(SAID)
        return replace(ended, stdout=said)


def only_expressible(calls: Driven, what: str) -> Driven:
    """The calls, if the language can express them all. Raises `ValueError` that names the first that it cannot."""
    for place, reason in calls.inexpressible().items():
        raise ValueError(f"{what} {place}: {calls.language} cannot express {reason}")
    return calls
