"""Reads a candidate's values from bytes without executing anything.

The candidate's side writes the interpreter's marshal format, version 2 (no references, no interning). This decoder
reads only the plain data types: code objects and everything unknown are refused, and the input bounds depth and counts.
The time is linear except for the hashing of sets and dictionaries: for untrusted values pass a `make` that hashes none.
"""

import marshal
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 200  # results of real tasks nest ten deep
MOST_CONTAINERS = 65_536  # the most in a value short enough to be sent, empty dictionaries aside


class Undecodable(ValueError):
    """Bytes that are not a plain value."""


@dataclass(frozen=True, eq=False)
class Opaque:
    """A value that is not plain data, known by the name of its type; equal to nothing."""

    name: str


@dataclass(frozen=True)
class Iterated:
    """The items of an iterator: equal to another iterator of the same items."""

    items: list[Any]


@dataclass(frozen=True)
class Marked:
    """A value of another type of the standard library or of NumPy. Equal values have the same kind and content. The
    content of an `array` is the kind of its dtype, the shape, and a list of all items."""

    kind: str
    content: Any


Make = Callable[[int, list[Any]], Any]
"""Makes a set (code `SET`) of items, or a dictionary (code `DICT`) of keys and values in turn."""

LIST, TUPLE, DICT, SET, END = b"[({<0"
_CONTAINERS = frozenset(b"[({<>")
_CONSTANTS = {ord("N"): None, ord("T"): True, ord("F"): False, ord("."): ...}
_RUN = re.compile(rb"[NTF.]*")
_KINDS = frozenset(
    ("range", "deque", "fraction", "date", "datetime", "instant", "time", "clock", "timedelta", "array", "items")
)
_INT, _DOUBLE, _COMPLEX = struct.Struct("<i"), struct.Struct("<d"), struct.Struct("<dd")


def _count(data: bytes, at: int) -> tuple[int, int]:
    number = int(_INT.unpack_from(data, at)[0])
    if not 0 <= number <= len(data) - at - 4:
        raise Undecodable("a length is beyond the data")
    return number, at + 4


def _integer(data: bytes, at: int) -> tuple[int, int]:
    digits = abs(int(_INT.unpack_from(data, at)[0]))
    end = at + 4 + 2 * digits
    if end > len(data):
        raise Undecodable("the value is cut short")
    return marshal.loads(data[at - 1 : end]), end  # of this one type code: an integer, in linear time


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _count(data, at)
    return data[at : at + size], at + size


def _text(data: bytes, at: int) -> tuple[str, int]:
    raw, at = _bytes(data, at)
    return raw.decode("utf-8", "surrogatepass"), at


_LEAVES: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    ord("i"): lambda data, at: (_INT.unpack_from(data, at)[0], at + 4),
    ord("l"): _integer,
    ord("g"): lambda data, at: (_DOUBLE.unpack_from(data, at)[0], at + 8),
    ord("y"): lambda data, at: (complex(*_COMPLEX.unpack_from(data, at)), at + 16),
    ord("u"): _text,
    ord("s"): _bytes,
}


def _marked(items: list[Any]) -> Any:
    """A tuple that begins with an ellipsis stands for a value without a plain form."""
    if len(items) == 3 and isinstance(items[1], str):
        _, kind, content = items
        if kind == "opaque" and isinstance(content, str):
            return Opaque(content[:200])
        if kind == "iterator" and isinstance(content, list):
            return Iterated(content)
        if kind in _KINDS and (kind != "array" or (isinstance(content, tuple) and len(content) == 3)):
            return Marked(kind, content)
    raise Undecodable("an unknown mark")


def built_in(code: int, items: list[Any]) -> Any:
    """Python's set or dictionary. The hashes of the content decide the time."""
    return dict(zip(items[::2], items[1::2], strict=True)) if code == DICT else frozenset(items)


def _read(data: bytes, make: Make) -> tuple[Any, int]:
    """The value at the beginning of `data`, and where it ends."""
    outer: list[tuple[int, list[Any], int]] = []
    code, wanted, at, containers = LIST, 1, 0, 0
    items: list[Any] = []
    while True:
        while len(items) == wanted:
            if not outer:
                return items[0], at
            if code == TUPLE:
                value = _marked(items) if items and items[0] is ... else tuple(items)
            else:
                value = items if code == LIST else make(DICT if code == DICT else SET, items)
            code, items, wanted = outer.pop()
            items.append(value)
        kind = data[at]
        at += 1
        if kind in _LEAVES:
            value, at = _LEAVES[kind](data, at)
            items.append(value)
        elif kind in _CONSTANTS:
            run = _RUN.match(data, at - 1, len(data) if wanted < 0 else at - 1 + wanted - len(items))
            assert run is not None
            items += map(_CONSTANTS.__getitem__, run[0])
            at = run.end()
        elif kind in _CONTAINERS:
            containers += 1
            if len(outer) >= MAX_DEPTH or containers > MOST_CONTAINERS:
                raise Undecodable("the value is nested too deeply" if len(outer) >= MAX_DEPTH else "too many parts")
            outer.append((code, items, wanted))
            code, items = kind, []
            wanted, at = (-1, at) if kind == DICT else _count(data, at)
        elif kind == END and code == DICT and len(items) % 2 == 0:
            wanted = len(items)
        else:
            raise Undecodable(f"the type code {bytes([kind])!r} is not plain data here")


def decode(data: bytes, make: Make = built_in) -> Any:
    """The value that `data` holds; raises `Undecodable` unless it is one whole plain value."""
    try:
        value, end = _read(data, make)
    except (struct.error, IndexError) as error:
        raise Undecodable("the value is cut short") from error
    except (TypeError, ValueError) as error:
        raise Undecodable(str(error)) from error
    if end != len(data):
        raise Undecodable("bytes are left over")
    return value
