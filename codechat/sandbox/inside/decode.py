"""Reads a candidate's values from bytes without executing anything.

The candidate's side writes the interpreter's marshal format, version 2 (no references, no interning). This is a
separate decoder for only its plain data types: code objects and everything unknown are refused, depth and counts are
bounded by the input, and the time is linear, because integers of more than `MAX_DIGITS` digits stay bytes.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 100  # results of real tasks nest ten deep; the reader takes five frames a level
MAX_DIGITS = 300_000  # of 15 bits


class Undecodable(ValueError):
    """Bytes that are not a plain value."""


@dataclass(frozen=True, eq=False)
class Opaque:
    """A value that is not plain data, known by its type's name; equal to nothing."""

    name: str


@dataclass(frozen=True, eq=False)
class Iterated:
    """The items of an iterator, if the oracle compares elements; equal to nothing."""

    items: list[Any]


@dataclass(frozen=True)
class Huge:
    """An integer too long to be converted here: equal to the same integer, and not ordered."""

    digits: bytes


class _End:
    """The mark that closes a dictionary."""


_END = _End()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 0, 0

    def take(self, count: int) -> bytes:
        start, end = self.at, self.at + count
        if count < 0 or end > len(self.data):
            raise Undecodable("the value is cut short")
        self.at = end
        return self.data[start:end]

    def count(self) -> int:
        number = int(struct.unpack("<i", self.take(4))[0])
        if not 0 <= number <= len(self.data) - self.at:
            raise Undecodable("a length is beyond the data")
        return number

    def value(self) -> Any:
        code = self.take(1)
        read = _READERS.get(code)
        if read is None:
            raise Undecodable(f"the type code {code!r} is not plain data")
        if self.depth >= MAX_DEPTH:
            raise Undecodable("the value is nested too deeply")
        self.depth += 1
        result = read(self)
        self.depth -= 1
        return result

    def plain(self) -> Any:
        value = self.value()
        if value is _END:
            raise Undecodable("an end mark outside a dictionary")
        return value

    def items(self) -> list[Any]:
        return [self.plain() for _ in range(self.count())]


def _integer(reader: _Reader) -> Any:
    size = int(struct.unpack("<i", reader.take(4))[0])
    raw = reader.take(2 * abs(size))
    if abs(size) > MAX_DIGITS:
        return Huge(raw + (b"-" if size < 0 else b"+"))
    digits = struct.unpack(f"<{abs(size)}H", raw)
    if any(digit >> 15 for digit in digits):
        raise Undecodable("an integer has a malformed digit")
    magnitude = _join(digits, 0, len(digits))
    return -magnitude if size < 0 else magnitude


def _join(digits: tuple[int, ...], start: int, end: int) -> int:
    """The integer of base-2**15 digits, least significant first; by halves, so that long ones stay cheap."""
    if end - start <= 64:
        result = 0
        for digit in reversed(digits[start:end]):
            result = result << 15 | digit
        return result
    middle = (start + end) // 2
    return _join(digits, middle, end) << (15 * (middle - start)) | _join(digits, start, middle)


def _text(reader: _Reader) -> str:
    try:
        return reader.take(reader.count()).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Undecodable("a text is not UTF-8") from error


def _tuple(reader: _Reader) -> Any:
    items = tuple(reader.items())
    if items and items[0] is ...:
        return _marked(items)
    return items


def _marked(items: tuple[Any, ...]) -> Any:
    """A tuple that begins with an ellipsis stands for a value without a plain form."""
    if len(items) == 3 and items[1] == "opaque" and isinstance(items[2], str):
        return Opaque(items[2][:200])
    if len(items) == 3 and items[1] == "iterator" and isinstance(items[2], list):
        return Iterated(items[2])
    raise Undecodable("an unknown mark")


def _dict(reader: _Reader) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    while (key := reader.value()) is not _END:
        try:
            result[key] = reader.plain()
        except TypeError as error:
            raise Undecodable("a dictionary's key cannot be hashed") from error
    return result


def _set(reader: _Reader) -> frozenset[Any]:
    try:
        return frozenset(reader.items())
    except TypeError as error:
        raise Undecodable("a set's element cannot be hashed") from error


def _float(reader: _Reader) -> float:
    return float(struct.unpack("<d", reader.take(8))[0])


_READERS: dict[bytes, Callable[[_Reader], Any]] = {
    b"N": lambda reader: None,
    b"T": lambda reader: True,
    b"F": lambda reader: False,
    b".": lambda reader: ...,
    b"0": lambda reader: _END,
    b"i": lambda reader: int(struct.unpack("<i", reader.take(4))[0]),
    b"l": _integer,
    b"g": _float,
    b"y": lambda reader: complex(_float(reader), _float(reader)),
    b"u": _text,
    b"s": lambda reader: reader.take(reader.count()),
    b"(": _tuple,
    b"[": lambda reader: reader.items(),
    b"{": _dict,
    b"<": _set,
    b">": _set,
}


def decode(data: bytes) -> Any:
    """The value that `data` holds; raises `Undecodable` unless it is one whole plain value."""
    reader = _Reader(data)
    value = reader.plain()
    if reader.at != len(data):
        raise Undecodable("bytes are left over")
    return value
