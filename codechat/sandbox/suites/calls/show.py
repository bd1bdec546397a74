"""Short representations of any values, in little time."""

import reprlib
from collections.abc import Iterable
from typing import Any

from codechat.sandbox.inside.decode import Iterated, Marked, Opaque, Undecodable
from codechat.sandbox.suites.endings import SHOWN
from codechat.sandbox.suites.values import MOST_ELEMENTS, Table, decode_value

ORDERED = frozenset((int, float, bool, str, bytes, type(None)))
LONGEST_INTEGER = 2000  # bits


class _Bounded(reprlib.Repr):
    """A short representation, also of integers with more digits than the interpreter prints."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 12
        self.maxstring = self.maxother = 160
        self.maxlevel = 5
        self.left = SHOWN  # values: each makes a character at least, and no more are shown

    def repr1(self, x: Any, level: int) -> str:
        self.left -= 1
        return super().repr1(x, level) if self.left >= 0 else "..."

    def repr_int(self, x: int, level: int) -> str:
        return f"<an integer of {x.bit_length()} bits>" if x.bit_length() > LONGEST_INTEGER else repr(x)

    def repr_frozenset(self, x: frozenset[Any], level: int) -> str:
        return self.repr_set(set(x), level)

    def repr_instance(self, x: Any, level: int) -> str:
        if isinstance(x, Table):
            return self._table(x, level)
        if isinstance(x, Opaque):
            return f"<{x.name}>"
        if isinstance(x, (Iterated, Marked)):
            return self._marked(x, level)
        return super().repr_instance(x, level)

    def _marked(self, x: Iterated | Marked, level: int) -> str:
        if level <= 0:
            return "<...>"
        if isinstance(x, Iterated):
            return f"<iterator of {self.repr1(x.items, level - 1)}>"
        return f"<{x.kind} {self.repr1(x.content[-1] if x.kind == 'array' else x.content, level - 1)}>"

    def _table(self, x: Table, level: int) -> str:
        if not x.items:
            return "{}" if x.is_dict else "set()"
        if level <= 0:
            return "{...}"
        pairs = _ordered(
            zip(x.items[::2], x.items[1::2], strict=True) if x.is_dict else ((one, one) for one in x.items)
        )
        shown = [self.repr1(key, level - 1) + self._item(x, item, level - 1) for key, item in pairs[: self.maxset]]
        return "{" + ", ".join([*shown, *(["..."] if len(pairs) > len(shown) else [])]) + "}"

    def _item(self, x: Table, item: Any, level: int) -> str:
        return ": " + self.repr1(item, level) if x.is_dict else ""


def _ordered(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The pairs in order of their first parts, if these are scalars of one kind or tuples of scalars."""
    kept = list(pairs)
    flat = len(kept) <= MOST_ELEMENTS and all(
        type(key) in ORDERED or (type(key) is tuple and all(type(part) in ORDERED for part in key)) for key, _ in kept
    )
    try:
        return sorted(kept, key=lambda pair: pair[0]) if flat else kept
    except TypeError:
        return kept


def show(value: object) -> str:
    """A bounded representation of plain data."""
    text = _Bounded().repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def show_bytes(data: bytes) -> str:
    """A bounded representation of encoded plain data."""
    try:
        return show(decode_value(data))
    except Undecodable:
        return "<a value that is not plain data>"
