"""A value of another language in the types that Python would have written: other languages have other types.

JavaScript has one type of numbers, and only texts as keys of objects; neither it nor Java has tuples. So the expected
value decides which of Python's types is meant. The value itself stays: a text never becomes a number that is compared,
nor a list a set, nor undefined None. No value of a candidate is hashed, as in `codechat.sandbox.suites.values`.
"""

import re
from collections.abc import Sequence
from typing import Any

from codechat.sandbox.inside.decode import DICT, SET
from codechat.sandbox.suites.values import Table, canonical_bytes

UNDEFINED, NONE = b".", b"N"  # no value at all, which Python does not have, and the one that says so
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")  # as Python writes it


def conform(actual: Any, expected: Any) -> Any:
    """`actual` in the types of `expected` if the value is the same. If no value is expected, None counts too."""
    if actual is ... or expected is ...:
        return _of_nothing(actual, expected)
    if isinstance(expected, Table):
        return _table(actual, expected) if isinstance(actual, Table) else actual
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, list):
            return actual
        found = [conform(*pair) for pair in zip(actual, expected, strict=False)] + actual[len(expected) :]
        return tuple(found) if isinstance(expected, tuple) else found
    return _number(actual, expected)


def _of_nothing(actual: Any, expected: Any) -> Any:
    """The same if either is undefined: for rules that ask whether there is a value, that is none."""
    if expected is ...:
        return ... if actual is None else actual
    return actual if expected is None else None


def _number(actual: Any, expected: Any) -> Any:
    kind = type(actual)
    if type(expected) is float and kind is int and abs(actual) < 1 << 1000:
        return float(actual)
    if type(expected) is int and kind is float and actual.is_integer():
        return int(actual)
    return actual


def _table(actual: Table, expected: Table) -> Table:
    if not expected.is_dict:
        return Table(SET, [_key(item, whole=False) for item in actual.items]) if not actual.is_dict else actual
    if not actual.is_dict:
        return actual
    whole = all(type(key) in (int, float) for key in expected.items[::2])
    keys = [_key(key, whole=whole) for key in actual.items[::2]]
    values = actual.items[1::2]
    mine, other = _order(keys), _order(expected.items[::2])
    if mine is not None and other is not None and len(mine) == len(other):
        for at, place in zip(mine, other, strict=True):
            values[at] = conform(values[at], expected.items[2 * place + 1])
    return Table(DICT, [part for pair in zip(keys, values, strict=True) for part in pair])


def _key(value: Any, *, whole: bool) -> Any:
    """A key or an element, which in Python is never a list; if the keys are to be `whole` numbers, not their text."""
    if isinstance(value, list):
        return tuple(_key(item, whole=False) for item in value)
    return int(value) if whole and isinstance(value, str) and _INTEGER.fullmatch(value) else value


def _order(keys: Sequence[Any]) -> list[int] | None:
    """The places of the keys in the order of their bytes; None if one equals nothing."""
    marks = [canonical_bytes(key) for key in keys]
    return None if None in marks else sorted(range(len(marks)), key=lambda place: marks[place] or b"")
