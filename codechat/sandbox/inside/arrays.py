"""NumPy arrays and numbers as plain bytes: their type, their shape, and their elements."""

import math
import sys
from typing import Any

KINDS = "biufcUS"  # of elements that are plain bytes
MOST_ELEMENTS = 1 << 40  # of shapes without content: more are no array of a program's, and NumPy's own error


def is_array(kind: type) -> bool:
    """Whether objects of this class are arrays, which can change."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and kind is numpy.ndarray


def flatten_array(value: Any, kind: type) -> list[Any] | str:
    """The type, shape, bytes of an array or number, and whether it is an array; else what it is."""
    numpy: Any = sys.modules["numpy"]
    if not (kind is numpy.ndarray or (issubclass(kind, numpy.generic) and kind is value.dtype.type)):
        return f"an object of the class numpy.{kind.__qualname__}"
    if value.dtype.kind not in KINDS:
        return "an array of objects"
    return [value.dtype.str, list(value.shape), value.tobytes(), kind is numpy.ndarray]


def read_array(content: Any) -> Any:
    """The array or number that `flatten_array` described. Raises `ValueError` and `TypeError`."""
    import numpy

    text, shape, data, whole = content
    if type(text) is not str or type(data) is not bytes or type(whole) is not bool:
        raise ValueError("not an array")
    kind = numpy.dtype(text)
    if kind.kind not in KINDS or kind.str != text:
        raise ValueError("not an array of plain elements")
    if not all(type(one) is int and one >= 0 for one in shape) or math.prod(filter(None, shape)) > MOST_ELEMENTS:
        raise ValueError("not the shape of an array")
    array = numpy.frombuffer(data, dtype=kind).reshape(shape).copy()
    return array if whole else array[()]


def fill_array(value: Any, content: Any) -> None:
    """Give an array the elements of another of the same type and shape. Raises as `read_array`."""
    new = read_array(content)
    if not is_array(type(new)) or (new.dtype, new.shape) != (value.dtype, value.shape):
        raise ValueError("a content of another type")
    value[...] = new
