"""The verdict on one candidate's stream: results are compared in order, and the first failure decides."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from codechat.base.domain import Failure, Outcome, Verdict
from codechat.sandbox import Ended
from codechat.sandbox.inside import wire
from codechat.sandbox.suites.calls.conform import UNDEFINED
from codechat.sandbox.suites.calls.oracle import Comparison
from codechat.sandbox.suites.calls.reference_results import ReferenceResults
from codechat.sandbox.suites.calls.results import Results
from codechat.sandbox.suites.calls.show import show, show_bytes
from codechat.sandbox.suites.endings import ADDRESS, SHOWN, explain_end, read_exception
from codechat.sandbox.watch import Frames, Malformed

Part = Literal["base", "plus"]


class CallsReader:
    """Reads one candidate's stream, which only claims results. `inputs` are the arguments of the calls, the first
    `base` of base tests; `comparison` makes the `Comparison` for the results of one part; `output_limit` is in bytes.
    Claims of a `foreign` language are read as if Python wrote them."""

    def __init__(
        self,
        *,
        entry_point: str,
        inputs: tuple[tuple[Any, ...], ...],
        base: int,
        comparison: Callable[[], Comparison],
        results: ReferenceResults,
        output_limit: int,
        foreign: bool = False,
    ) -> None:
        self._entry_point, self._inputs, self._base = entry_point, inputs, base
        self._results = Results(results.expected, inputs, base, comparison, foreign=foreign)
        self._room, self._foreign = output_limit, foreign
        self._frames = Frames()
        self.started = self.loaded = self.done = False
        self.outcome: Outcome | None = None
        self.failure: Failure | None = None

    @property
    def index(self) -> int:
        """How many results were found right so far."""
        return self._results.index

    @property
    def part(self) -> Part:
        """The part of the current call."""
        return "base" if self.index < self._base else "plus"

    @property
    def passed_base(self) -> bool:
        """Whether all base calls were right."""
        return self.loaded and self.index >= self._base

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return the answer to send back, and whether the verdict is decided."""
        self._room -= len(data)
        answer = b""
        try:
            if self._room < 0:
                raise Malformed("more output than is read")
            for kind, payload in self._frames.feed(data):
                answer = self._frame(kind, payload)
                if self.outcome is not None:
                    break
        except Malformed as error:
            self._fail("crash", f"the results cannot be read: {error}")
        return answer, self.outcome is not None

    def _frame(self, kind: bytes, payload: bytes) -> bytes:
        if kind == wire.STARTED and not self.started:
            self.started = True
        elif kind == wire.LOADED and self.started and not self.loaded:
            self.loaded = True
        elif kind == wire.MISSING and not self.loaded:
            self._fail("fail", f"the program does not define {self._entry_point}")
        elif kind == wire.SYNTAX and not self.loaded:
            self._fail("syntax_error", "the program does not parse: " + payload.decode(errors="replace")[:SHOWN])
        elif kind == wire.ERROR:
            outcome, reason, described = read_exception(payload)
            self._fail(outcome, reason, exception=described)
        elif kind == wire.DONE and self.loaded and self.index == len(self._inputs):
            self.done = True
            self.outcome = "pass"
        elif kind in (wire.VALUE, wire.DIGEST, wire.CANONICAL) and self.loaded and self.index < len(self._inputs):
            return self._result(kind, payload)
        else:
            raise Malformed("a frame out of order")
        return b""

    def _result(self, kind: bytes, payload: bytes) -> bytes:
        answer = self._results.take(kind, payload)
        if answer is None:
            expected = self._results.expected[self.index]
            shown = self._show(payload) if kind == wire.VALUE else "a value too long to be shown"
            wanted = "a value too long to be shown" if expected.size else self._show(expected.data)
            self._fail("fail", "wrong result", expected=wanted, actual=shown)
        return answer or b""

    def _show(self, data: bytes) -> str:
        return "undefined" if self._foreign and data == UNDEFINED else show_bytes(data)

    def _fail(self, outcome: Outcome, reason: str, **details: Any) -> None:
        """Decide: the program failed on the current input."""
        self.outcome = outcome
        if self.loaded and self.index < len(self._inputs):
            at = self.index - (0 if self.part == "base" else self._base)
            arguments = ", ".join(show(argument) for argument in self._inputs[self.index])
            details |= {"suite": self.part, "index": at, "input": arguments[: 2 * SHOWN]}
        self.failure = Failure(reason, **details)

    def conclude(self, ended: Ended, cpu_limit: int) -> Verdict:
        """The verdict, once the child is gone."""
        printed = ended.stdout
        if self.outcome is None:
            self._fail(*explain_end(ended, cpu_limit))
        else:  # output after the deciding frame depends on when the child was killed
            printed = printed[: self._frames.printed]
        outcome = self.outcome or "crash"
        failure = self.failure
        if failure is not None and printed:
            failure = replace(failure, stdout=ADDRESS.sub("0x…", printed.decode(errors="replace")))
        return Verdict(outcome, self.passed_base, failure, round(ended.cpu_s, 4), inside="")
