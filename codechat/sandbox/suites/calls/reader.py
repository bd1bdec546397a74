"""The verdict on one candidate's stream: results are compared in order, and the first failure decides."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from codechat.base.domain import Failure, Outcome, Verdict
from codechat.sandbox import Ended
from codechat.sandbox.inside import wire
from codechat.sandbox.inside.decode import Opaque
from codechat.sandbox.suites.calls.conform import UNDEFINED, conform
from codechat.sandbox.suites.calls.oracle import Comparison
from codechat.sandbox.suites.calls.reference_results import FLOATS, UNEQUAL, Expected, ReferenceResults
from codechat.sandbox.suites.calls.show import show, show_bytes
from codechat.sandbox.suites.endings import ADDRESS, SHOWN, explain_end, read_exception
from codechat.sandbox.suites.values import read_or_opaque
from codechat.sandbox.watch import Frames, Malformed

Part = Literal["base", "plus"]
LARGER = 17  # times: a number takes 1 to 17 bytes (True, 1+0j), and an integer 17 times as many as its float


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
        self._entry_point, self._inputs, self._base, self._results = entry_point, inputs, base, results
        self._room, self._foreign = output_limit, foreign
        self._frames = Frames()
        self._compare_anew = comparison
        self._comparison = comparison()
        self._asked: bytes | None = None
        self.index = 0  # results found right so far
        self.started = self.loaded = self.done = False
        self.outcome: Outcome | None = None
        self.failure: Failure | None = None

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
        if (kind == wire.CANONICAL) != (self._asked is not None):
            raise Malformed("an answer to no question")
        self._asked = None
        expected = self._results.expected[self.index]
        if kind == wire.VALUE:
            right = self._same_bytes(expected, payload, 0) or self._value_right(expected, payload)
        elif kind == wire.DIGEST:
            size = int.from_bytes(payload[32:40], "little")
            right = self._same_bytes(expected, payload[:32], size)
            if not right and expected.canonical is not None:
                self._asked = payload
                return wire.ASK_CANONICAL
        else:
            right = payload == expected.canonical
        if not right:
            shown = self._show(payload) if kind == wire.VALUE else "a value too long to be shown"
            wanted = "a value too long to be shown" if expected.size else self._show(expected.data)
            self._fail("fail", "wrong result", expected=wanted, actual=shown)
            return b""
        self.index += 1
        if self.index == self._base:
            self._comparison = self._compare_anew()
        return wire.NEXT if kind == wire.DIGEST else b""

    def _show(self, data: bytes) -> str:
        return "undefined" if self._foreign and data == UNDEFINED else show_bytes(data)

    def _same_bytes(self, expected: Expected, data: bytes, size: int) -> bool:
        """Whether the bytes, which are unique for a value, are the expected ones."""
        if data != expected.data or size != expected.size or expected.flags & UNEQUAL:
            return False
        if expected.flags & FLOATS:
            self._comparison.note(0.0)
        return True

    def _value_right(self, expected: Expected, payload: bytes) -> bool:
        if expected.size:
            return False
        fits = len(payload) <= LARGER * (len(expected.data) + 4)
        actual = read_or_opaque(payload) if fits else Opaque("a value too long to be right")
        right = read_or_opaque(expected.data)
        actual = conform(actual, right) if self._foreign else actual
        return self._comparison.holds(actual, right, self._inputs[self.index])

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
