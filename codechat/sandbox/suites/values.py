"""Values that a candidate claims, read and compared in time that grows with their size alone.

No value of a candidate is ever hashed here: keys can be chosen so that a set of 20,000 integers takes seconds. Sets and
dictionaries are compared by sorted content, in which equal items of any number type have the same bytes.
"""

from itertools import groupby
from typing import Any

from codechat.sandbox.inside.decode import DICT, Iterated, Marked, Opaque, Undecodable, decode
from codechat.sandbox.inside.encode import simplest

MOST_ELEMENTS = 65_536  # more than a value has that is short enough to be sent and has each element once
SINGLE = {id(value): simplest(value) for value in (None, True, False)}  # the shortest: there may be 300,000 of them
SEQUENCES: dict[type, bytes] = {list: b"[", tuple: b"("}


class Table:
    """A set, or a dictionary with `items` key, value, key, value, …; equal if no NaN is in it and all else agrees."""

    __slots__ = ("_canonical", "is_dict", "items")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, code: int, items: list[Any]) -> None:
        self.is_dict, self.items = code == DICT, items
        self._canonical: bytes | None = b""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or (self.is_dict, len(self.items)) != (other.is_dict, len(other.items)):
            return False
        ours = self.canonical_bytes()
        return ours is not None and ours == other.canonical_bytes()

    def canonical_bytes(self) -> bytes | None:
        """See `canonical_bytes`."""
        if self._canonical == b"":
            parts = [SINGLE.get(id(item)) or canonical_bytes(item) for item in self.items]
            if self.is_dict:
                parts = [joined(pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
            whole = joined(sorted_or_none(parts))
            self._canonical = None if whole is None else b"%s%d:" % (b"{" if self.is_dict else b"<", len(parts)) + whole
        return self._canonical


def joined(parts: Any) -> bytes | None:
    """The parts as one; None if one of them is None."""
    try:
        return b"".join(parts)
    except TypeError:
        return None


def sorted_or_none(parts: list[bytes | None]) -> list[bytes] | None:
    """The parts in order; None if one of them is None."""
    whole = [part for part in parts if part is not None]
    return sorted(whole) if len(whole) == len(parts) else None


def canonical_bytes(value: Any) -> bytes | None:
    """Bytes that are the same for equal values and different for others; None for a value that equals nothing."""
    kind = type(value)
    if kind is Table:
        whole: bytes | None = value.canonical_bytes()
        return whole
    if kind in SEQUENCES:
        whole = joined([SINGLE.get(id(item)) or canonical_bytes(item) for item in value])
        return None if whole is None else b"%s%d:" % (SEQUENCES[kind], len(value)) + whole
    if kind is Marked:
        return joined((b"m", simplest(value.kind), canonical_bytes(value.content)))
    if kind is Iterated:
        return joined((b"t", canonical_bytes(value.items)))
    if kind is Opaque or value != value:  # noqa: PLR0124  true only for NaN
        return None
    return simplest(value)


def decode_value(data: bytes) -> Any:
    """As `decode`, with `Table` for sets and dictionaries."""
    return decode(data, Table)


def read_or_opaque(data: bytes) -> Any:
    """As `decode_value`; a value that cannot be read equals nothing."""
    try:
        return decode_value(data)
    except Undecodable as error:
        return Opaque(f"a value that cannot be read: {error}")


def elements(value: Any) -> list[bytes]:
    """The different elements of a value, in one order. Raises `TypeError` if it has none or they fit in no set, and
    `ValueError` if one equals nothing."""
    if isinstance(value, Table):
        items = value.items[::2] if value.is_dict else value.items
    elif isinstance(value, Iterated):
        items = value.items
    else:
        items = list(dict.fromkeys(value)) if isinstance(value, (str, bytes)) else list(value)
    if len(items) > MOST_ELEMENTS:
        raise ValueError("the elements are repeated")
    if not all(map(is_hashable, items)):
        raise TypeError("an element that no set can hold")
    found = sorted_or_none([canonical_bytes(item) for item in items])
    if found is None:
        raise ValueError("an element that equals nothing")
    return [each for each, _ in groupby(found)]


def is_hashable(value: Any) -> bool:
    """Whether a set could hold the value."""
    if isinstance(value, tuple):
        return all(map(is_hashable, value))
    if isinstance(value, Marked):
        return value.kind not in ("deque", "array", "items")
    return not (isinstance(value, (list, dict)) or (isinstance(value, Table) and value.is_dict))


def equals_itself(value: Any) -> bool:
    """Whether nothing in a value is opaque or NaN."""
    if isinstance(value, Table):
        return value.canonical_bytes() is not None
    if isinstance(value, Marked):
        return equals_itself(value.content)
    if isinstance(value, (list, tuple, Iterated)):
        return all(map(equals_itself, value.items if isinstance(value, Iterated) else value))
    return not isinstance(value, Opaque) and value == value  # noqa: PLR0124  false only for NaN


def opaque_in(value: Any) -> str | None:
    """The name of the first opaque value in a value, or None if there is none."""
    if isinstance(value, Opaque):
        return value.name
    if isinstance(value, Marked):
        return opaque_in(value.content)
    if isinstance(value, (list, tuple, Table, Iterated)):
        items = value if isinstance(value, (list, tuple)) else value.items
        return next((name for item in items if (name := opaque_in(item)) is not None), None)
    return None
