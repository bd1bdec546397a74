"""Whether the results that a program claims are as good as the reference's.

This module, and what it imports, needs the standard library alone: `standalone` runs where codechat is not installed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from codechat.sandbox.inside import wire
from codechat.sandbox.inside.decode import Opaque
from codechat.sandbox.suites.calls.conform import conform
from codechat.sandbox.suites.calls.oracle import Comparison
from codechat.sandbox.suites.values import read_or_opaque
from codechat.sandbox.watch import Malformed

UNEQUAL, FLOATS, OPAQUE = 1, 2, 4  # flags of an expected value: equal to nothing, floats, not plain data
LARGER = 17  # times: a number takes 1 to 17 bytes (True, 1+0j), and an integer 17 times as many as its float


@dataclass(frozen=True)
class Expected:
    """One expected value: its bytes, or their digest with their size (else 0)."""

    data: bytes
    size: int
    canonical: bytes | None
    flags: int


class Results:
    """Compares one program's results in order. `inputs` are the arguments of the calls, the first `base` of base tests;
    `comparison` makes the `Comparison` for the results of one part. Claims of a `foreign` language are read as if
    Python wrote them."""

    def __init__(
        self,
        expected: Sequence[Expected],
        inputs: Sequence[tuple[Any, ...]],
        base: int,
        comparison: Callable[[], Comparison],
        *,
        foreign: bool = False,
    ) -> None:
        self.expected, self._inputs, self._base, self._foreign = expected, inputs, base, foreign
        self._compare_anew = comparison
        self._comparison = comparison()
        self._asked = False
        self.index = 0  # results found right so far

    def take(self, kind: bytes, payload: bytes) -> bytes | None:
        """The answer to send back for a right result, or for a digest that does not decide yet; None for a wrong one.
        Raises `Malformed`."""
        if (kind == wire.CANONICAL) != self._asked:
            raise Malformed("an answer to no question")
        self._asked = False
        expected = self.expected[self.index]
        if kind == wire.VALUE:
            right = self._same_bytes(expected, payload, 0) or self._value_right(expected, payload)
        elif kind == wire.DIGEST:
            size = int.from_bytes(payload[32:40], "little")
            right = self._same_bytes(expected, payload[:32], size)
            if not right and expected.canonical is not None:
                self._asked = True
                return wire.ASK_CANONICAL
        else:
            right = payload == expected.canonical
        if not right:
            return None
        self.index += 1
        if self.index == self._base:
            self._comparison = self._compare_anew()
        return wire.NEXT if kind == wire.DIGEST else b""

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
