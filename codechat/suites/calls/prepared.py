"""Suites of calls prepared for checking; the latest stay in memory."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from codechat.suites.calls.truth import Truth

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
