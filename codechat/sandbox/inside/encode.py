"""Values as deterministic bytes: marshal version 2 of plain data, digests of big values. Other values that can be
compared are sent as a mark, a tuple (..., kind, content); the rest is "opaque" and equals nothing.
"""

import array
import datetime
import hashlib
import marshal
import sys
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from codechat.sandbox.inside.wire import DIGEST_OVER, MANY

MAX_DEPTH = 190  # a little less than is decoded
MOST_YIELDED = 100_000  # items of an iterator
SCALARS = frozenset((int, str, float, bool, type(None), complex, bytes, type(...)))
PLAIN = SCALARS | {list, tuple, dict, set, frozenset}


def encode(value: Any, elements: bool) -> tuple[bytes, int, Any]:
    """The bytes of `value` and 0, or a digest and the number of bytes; and the plain value, iterators run. `elements`:
    the oracle compares elements, so repeated ones are left out."""
    if elements:
        value = only_elements(value)
    if type(value) not in PLAIN or "numpy" in sys.modules:
        value = plain(value, 0)
    if type(value) in (list, tuple) and len(value) > MANY:
        return _digest_slices(value)
    try:
        data = marshal.dumps(value, 2)
    except ValueError:
        value = plain(value, 0)
        data = marshal.dumps(value, 2)
    if len(data) <= DIGEST_OVER:
        if type(value) not in SCALARS and b"s" in data and not _comes_back(data, value):
            value = plain(value, 0)
            data = marshal.dumps(value, 2)
        return data, 0, value
    if OPAQUE in data:
        return _opaque_whole()
    return hashlib.sha256(data).digest(), len(data), value


def _comes_back(data: bytes, value: Any) -> bool:
    """Whether the bytes hold the value: marshal writes every buffer, such as an array, as bytes."""
    try:
        return bool(marshal.loads(data) == value)
    except (ValueError, RecursionError):
        return False


def _digest_slices(value: Any) -> tuple[bytes, int, Any]:
    digest = hashlib.sha256(b"%s %d" % (type(value).__name__.encode(), len(value)))
    size = 0
    for start in range(0, len(value), 4096):
        try:
            data = marshal.dumps(value[start : start + 4096], 2)
        except ValueError:
            return _digest_slices(plain(value, 0))
        if OPAQUE in data:
            return _opaque_whole()
        digest.update(data)
        size += len(data)
    return digest.digest(), max(size, DIGEST_OVER + 1), value


def only_elements(value: Any) -> Any:
    """`value` with each element once, if elements can be in a set; any other iterable as an iterator."""
    kind = type(value)
    for base, make in SEQUENCES.items():
        if issubclass(kind, base):
            try:
                items = dict.fromkeys(base.__iter__(value))
            except TypeError:
                return value
            return value if len(items) == base.__len__(value) else make(items)
    if issubclass(kind, (set, frozenset)) or not hasattr(kind, "__iter__"):
        return value
    marked = _yielded(iter(value), 1)
    try:
        return marked if marked[1] == "opaque" else (..., "iterator", list(dict.fromkeys(marked[2])))
    except TypeError:
        return marked


SEQUENCES: dict[Any, Callable[[Any], Any]] = {str: "".join, bytes: bytes, list: list, tuple: tuple}


def plain(value: Any, depth: int) -> Any:
    """`value` in exact built-in types: subclasses as their base value, numbers of other libraries as numbers."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if depth > MAX_DEPTH:
        return opaque("a value nested too deeply")
    for base, convert in CONVERTERS:
        if issubclass(kind, base):
            return convert(value, depth + 1)
    for base, scalar in BASES.items():
        if issubclass(kind, base):
            return scalar(value)
    return _of_library(value, kind, depth + 1)


def opaque(name: str) -> Any:
    """The mark of a value that equals nothing."""
    return (..., "opaque", name[:200])


OPAQUE = marshal.dumps(opaque(""), 2)[:-4]  # how it begins


def _opaque_whole() -> tuple[bytes, int, Any]:
    value = opaque("a large value that is not all plain data")
    return marshal.dumps(value, 2), 0, value


def _set(items: Any, depth: int) -> Any:
    try:
        return frozenset([plain(item, depth) for item in items])
    except TypeError:  # the mark of an element cannot be in a set
        return opaque("a set of what is not plain data")


def _dict(pairs: Any, depth: int) -> Any:
    try:
        return {plain(key, depth): plain(item, depth) for key, item in pairs}
    except TypeError:
        return opaque("a dictionary with a key that is not plain data")


CONTAINERS: dict[type, Callable[[Any, int], Any]] = {
    list: lambda value, depth: [plain(item, depth) for item in list.__iter__(value)],
    tuple: lambda value, depth: tuple([plain(item, depth) for item in tuple.__iter__(value)]),
    dict: lambda value, depth: _dict(dict.items(value), depth),
    set: lambda value, depth: _set(set.__iter__(value), depth),
    frozenset: lambda value, depth: _set(frozenset.__iter__(value), depth),
}
BASES: dict[type, Callable[[Any], Any]] = {
    int: lambda value: int.__add__(value, 0),
    float: lambda value: float.__add__(value, 0.0),
    complex: lambda value: complex.__add__(value, 0j),
    str: str.__str__,
    bytes: lambda value: bytes(memoryview(value)),
    bytearray: lambda value: bytes(memoryview(value)),
}


def _range(value: range, depth: int) -> Any:
    size = len(value)
    return (..., "range", (size, value.start if size else None, value.step if size > 1 else None))


def _datetime(value: datetime.datetime, depth: int) -> Any:
    offset = datetime.datetime.utcoffset(value)
    if offset is None:
        return (..., "datetime", datetime.datetime.isoformat(value))
    since = datetime.datetime.replace(value, tzinfo=None) - datetime.datetime(1970, 1, 1) - offset
    return (..., "instant", _microseconds(since))


def _time(value: datetime.time, depth: int) -> Any:
    offset = datetime.time.utcoffset(value)
    if offset is None:
        return (..., "time", datetime.time.isoformat(value))
    since = datetime.timedelta(0, 60 * (60 * value.hour + value.minute) + value.second, value.microsecond)
    return (..., "clock", _microseconds(since - offset))


def _microseconds(value: datetime.timedelta) -> int:
    return (value.days * 86400 + value.seconds) * 1_000_000 + value.microseconds


def _memory(value: memoryview, depth: int) -> Any:
    return value.tobytes() if value.format in ("B", "b", "c") and value.ndim == 1 else opaque("memoryview")


def _rational(value: Any, depth: int) -> Any:
    """A Decimal or Fraction as the int or float that it equals, or exactly."""
    if value != value:  # noqa: PLR0124  a Decimal that is not a number
        return float("nan")
    for convert in (int, float):
        try:
            if convert(value) == value:
                return convert(value)
        except (ValueError, ArithmeticError):
            continue
    return (..., "fraction", value.as_integer_ratio())


def _yielded(value: Any, depth: int) -> Any:
    items = [plain(item, depth) for item in islice(value, MOST_YIELDED + 1)]
    if len(items) > MOST_YIELDED:
        return opaque(f"an iterator of more than {MOST_YIELDED} items")
    return (..., "iterator", items)


MARKS: dict[type, Callable[[Any, int], Any]] = {
    range: _range,
    deque: lambda value, depth: (..., "deque", [plain(item, depth) for item in deque.__iter__(value)]),
    type({}.keys()): _set,
    type({}.items()): _set,
    datetime.datetime: _datetime,
    datetime.date: lambda value, depth: (..., "date", datetime.date.isoformat(value)),
    datetime.time: _time,
    datetime.timedelta: lambda value, depth: (..., "timedelta", datetime.timedelta.__str__(value)),
    Decimal: _rational,
    Fraction: _rational,
    memoryview: _memory,
    array.array: lambda value, depth: (..., "items", array.array.tolist(value)),
}


CONVERTERS = (*CONTAINERS.items(), *MARKS.items())


def _of_library(value: Any, kind: type, depth: int) -> Any:
    if kind.__module__ == "numpy":
        if kind.__name__ == "ndarray":
            return _array(value, depth)
        item = value.item() if hasattr(kind, "item") else value
        return opaque(f"numpy.{kind.__name__}") if type(item) is kind else plain(item, depth)
    return _yielded(value, depth) if hasattr(kind, "__next__") else opaque(f"{kind.__module__}.{kind.__qualname__}")


def _array(value: Any, depth: int) -> Any:
    letter = "i" if value.dtype.kind == "u" else value.dtype.kind
    if letter not in "bifcSUO":
        return opaque(f"numpy.ndarray of {value.dtype}")
    return (..., "array", (letter, tuple(value.shape), [plain(item, depth) for item in value.ravel().tolist()]))


def canonical(value: Any) -> bytes:
    """A digest, the same for plain values that compare equal: number types and the order of keys do not count."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.digest()


def _feed(digest: Any, value: Any) -> None:
    kind = type(value)
    if kind in (list, tuple):
        digest.update(b"%s %d" % (kind.__name__.encode(), len(value)))
        for item in value:
            _feed(digest, item)
    elif kind in (set, frozenset):
        digest.update(b"set" + b"".join(sorted(canonical(item) for item in value)))
    elif kind is dict:
        pairs = sorted(canonical(key) + canonical(item) for key, item in value.items())
        digest.update(b"dict" + b"".join(pairs))
    else:
        digest.update(simplest(value))


def simplest(value: Any) -> bytes:
    """The bytes of a scalar, the same for numbers that are equal."""
    kind = type(value)
    if kind is complex:
        value = value.real if value.imag == 0 else complex(value.real + 0.0, value.imag)  # 0.0 for -0.0
    if kind is bool or (type(value) is float and value.is_integer()):
        value = int(value)
    return marshal.dumps(value, 2)
