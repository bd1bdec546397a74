"""Values as deterministic bytes: marshal version 2 of plain data, digests of big values."""

import hashlib
import marshal
import sys
from collections.abc import Callable
from typing import Any

from codechat.sandbox.inside.wire import DIGEST_OVER, MANY

MAX_DEPTH = 400
SCALARS = frozenset((int, str, float, bool, type(None), complex, bytes))
PLAIN = SCALARS | {list, tuple, dict, set, frozenset}


def encode(value: Any, elements: bool) -> tuple[bytes, int]:
    """The bytes of `value` and 0, or a digest of them and their number.

    `elements`: the oracle compares elements, so that an iterator counts by what it yields.
    """
    if type(value) not in PLAIN or "numpy" in sys.modules:
        value = as_list(value) if elements and _is_iterable(value) else plain(value, 0)
    if type(value) in (list, tuple) and len(value) > MANY:
        return _digest_slices(value)
    try:
        data = marshal.dumps(value, 2)
    except ValueError:
        data = marshal.dumps(plain(value, 0), 2)
    if len(data) > DIGEST_OVER:
        return hashlib.sha256(data).digest(), len(data)
    return data, 0


def _digest_slices(value: Any) -> tuple[bytes, int]:
    digest = hashlib.sha256(b"%s %d" % (type(value).__name__.encode(), len(value)))
    size = 0
    for start in range(0, len(value), 4096):
        piece = value[start : start + 4096]
        try:
            data = marshal.dumps(piece, 2)
        except ValueError:
            data = marshal.dumps(plain(piece, 0), 2)
        digest.update(data)
        size += len(data)
    return digest.digest(), max(size, DIGEST_OVER + 1)


def _is_iterable(value: Any) -> bool:
    kind = type(value)
    return not issubclass(kind, (str, bytes, list, tuple, dict, set, frozenset)) and hasattr(kind, "__iter__")


def as_list(value: Any) -> Any:
    """The items of an iterable, marked as such."""
    return (..., "iterator", [plain(item, 1) for item in value])


def plain(value: Any, depth: int) -> Any:
    """`value` in exact built-in types: subclasses by their base value, numbers of other libraries as numbers."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if depth > MAX_DEPTH:
        return (..., "opaque", "a value nested too deeply")
    for base, convert in CONTAINERS.items():
        if issubclass(kind, base):
            return convert(value, depth + 1)
    for base, scalar in BASES.items():
        if issubclass(kind, base):
            return scalar(value)
    return _number_of_library(value, kind)


CONTAINERS: dict[type, Callable[[Any, int], Any]] = {
    list: lambda value, depth: [plain(item, depth) for item in list.__iter__(value)],
    tuple: lambda value, depth: tuple([plain(item, depth) for item in tuple.__iter__(value)]),
    dict: lambda value, depth: {plain(key, depth): plain(item, depth) for key, item in dict.items(value)},
    set: lambda value, depth: frozenset([plain(item, depth) for item in set.__iter__(value)]),
    frozenset: lambda value, depth: frozenset([plain(item, depth) for item in frozenset.__iter__(value)]),
}
BASES: dict[type, Callable[[Any], Any]] = {
    int: lambda value: int.__add__(value, 0),
    float: lambda value: float.__add__(value, 0.0),
    complex: lambda value: complex.__add__(value, 0j),
    str: str.__str__,
    bytes: lambda value: bytes(memoryview(value)),
    bytearray: lambda value: bytes(memoryview(value)),
}


def _number_of_library(value: Any, kind: type) -> Any:
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray" and hasattr(kind, "item"):
        item = value.item()
        return item if type(item) in SCALARS else (..., "opaque", kind.__name__)
    if kind.__module__ in ("decimal", "fractions"):
        return _rational(value, kind)
    return (..., "opaque", f"{kind.__module__}.{kind.__qualname__}"[:200])


def _rational(value: Any, kind: type) -> Any:
    """A Decimal or Fraction as the int or float that it equals."""
    for convert in (int, float):
        try:
            if convert(value) == value:
                return convert(value)
        except (ValueError, ArithmeticError):
            continue
    return (..., "opaque", kind.__name__)


def canonical(value: Any) -> bytes:
    """A digest that is the same for values that compare equal, whatever their number types and order of keys."""
    digest = hashlib.sha256()
    _feed(digest, value if type(value) in PLAIN and "numpy" not in sys.modules else plain(value, 0))
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
    elif kind in SCALARS:
        digest.update(marshal.dumps(_number(value) if kind in (bool, int, float, complex) else value, 2))
    else:
        _feed(digest, plain(value, 0))


def _number(value: Any) -> Any:
    """The simplest type that holds the number."""
    if type(value) is complex and value.imag == 0:
        value = value.real
    if type(value) is bool or (type(value) is float and value.is_integer()):
        value = int(value)
    return value
