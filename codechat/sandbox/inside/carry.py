"""Values that go from one process to the other and keep their exact types: arguments, results, changed arguments.

A value is flattened to a tree of scalars, lists and tuples; `(kind, content, ...)` stands for every other type. The
mutable objects of a call are numbered in order, and `("ref", number, ...)` stands for a second reference to one: in the
arguments, in their new contents, in the result. So a function may return an argument or change it in place.
"""

import functools
import itertools
import math
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from types import GeneratorType
from typing import Any, Literal

from codechat.sandbox.inside.encode import BASES

KINDS = "biufcUS"  # of elements that are plain bytes
WIDEST = {"i": "<i8", "u": "<i8", "f": "<f8", "c": "<c16"}
WIDE_BYTES = {"i": 8, "u": 8, "f": 8, "c": 16}
MOST_SIGNED = (1 << 63) - 1
MOST_ELEMENTS = 1 << 40  # of shapes without content: more are no array of a program's, and NumPy's own error


class NotCarried(Exception):
    """A value that cannot be carried; the text is one of the reasons in `wire`."""


class Numbered:
    """The mutable objects of one call's arguments, in order. `exhausts`: iterators are used up and sent as their items.
    `met` counts the references to each object. `reads`: how the values of a program are read for tests; None changes no
    value."""

    def __init__(self, exhausts: bool = True, reads: "Reads | None" = None) -> None:
        self.objects: list[Any] = []
        self.met: list[int] = []
        self.exhausts, self.reads = exhausts, reads
        self._places: dict[int, int] = {}

    def add(self, value: Any) -> None:
        """Give an object the next number."""
        self._places[id(value)] = len(self.objects)
        self.objects.append(value)
        self.met.append(1)

    def swap(self, place: int, value: Any) -> None:
        """Replace the object of a number."""
        self.objects[place], self._places[id(value)] = value, place

    def place(self, value: Any) -> int | None:
        """The number of an object, one reference more counted; None without a number."""
        place = self._places.get(id(value))
        if place is not None:
            self.met[place] += 1
        return place

    def reference(self, value: Any, grow: bool) -> Any:
        """The tree of a reference to an object with a number; else None, and with `grow` it gets a number."""
        place = self.place(value)
        if place is None and grow:
            self.add(value)
        return None if place is None else ("ref", place, ...)


@dataclass(frozen=True)
class Reads:
    """How tests read values. `arrays`: whether they use NumPy, and the types of its numbers. `ask` is called with an
    attribute that an object of the program's own class has and its base class lacks."""

    arrays: Literal["none", "values", "types"]
    ask: Callable[[str], Any]


DEEPEST = 30  # levels, three of the decoder's each
LONGEST = 100_000  # items of an iterator
MOST_BITS = 4_000_000  # of an integer: the decoder converts no longer ones
SCALARS = frozenset((int, str, float, bool, type(None), complex, bytes))
FACTORIES: dict[Any, str] = {kind: kind.__name__ for kind in (int, str, float, bool, list, dict, set, tuple)}
TYPES = {name: kind for kind, name in FACTORIES.items()}
MUTABLE = frozenset((list, dict, set, bytearray, deque, Counter, OrderedDict, defaultdict))
COPIES: dict[Any, Callable[[Any], Any]] = {  # of the base class's own content
    **{kind: copy for kind, copy in BASES.items() if kind is not bytearray},
    bytearray: lambda value: bytearray(memoryview(value)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    deque: lambda value: deque(deque.__iter__(value), value.maxlen),
    dict: lambda value: dict(dict.items(value)),
    OrderedDict: lambda value: OrderedDict(OrderedDict.items(value)),
    Counter: lambda value: Counter(dict(dict.items(value))),
    defaultdict: lambda value: defaultdict(value.default_factory, dict.items(value)),
    Decimal: Decimal,
    Fraction: Fraction,
}
VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
EMPTY: tuple[Any, ...] = ([], (), "", {}, set(), {}.items(), range(0), b"")
ITERATORS: dict[Any, str] = {
    GeneratorType: "generator",
    map: "map",
    **dict.fromkeys((filter, zip, enumerate, reversed, type(reversed([]))), "iterator"),
    **{type(iter(empty)): "iterator" for empty in EMPTY},
    **dict.fromkeys((itertools.chain, itertools.islice, itertools.accumulate, itertools.groupby), "iterator"),
}


def flatten(value: Any, numbered: Numbered, grow: bool = False, depth: int = 0) -> Any:
    """The tree of a value. `grow`: number the mutable objects, as in arguments. Raises `NotCarried`."""
    kind = type(value)
    if kind in SCALARS:
        if kind is int and value.bit_length() > MOST_BITS:
            raise NotCarried("plain")  # more than a million digits
        return value
    if depth > DEEPEST:
        raise NotCarried("plain")
    if kind in MUTABLE or is_array(kind):
        if reference := numbered.reference(value, grow):
            return reference
    elif kind in ITERATORS and not numbered.exhausts:
        raise NotCarried("argument")  # the call may leave it half used
    elif kind not in EXACT and kind.__module__ != "numpy" and numbered.exhausts:
        base = next((parent for parent in kind.__mro__ if parent in COPIES), None)
        if base is not None:
            return _of_own_class(value, base, numbered, grow, depth)
    return _tree(value, kind, lambda part: flatten(part, numbered, grow, depth + 1))


def _of_own_class(value: Any, base: type, numbered: Numbered, grow: bool, depth: int) -> Any:
    if base in MUTABLE and (reference := numbered.reference(value, grow)):
        return reference
    plain = COPIES[base](value)
    if base in SCALARS:
        tree = flatten(plain, numbered, grow, depth)
    else:
        tree = _tree(plain, base, lambda part: flatten(part, numbered, grow, depth + 1))
    return ("own", [type(value).__name__, base.__name__, tree], ...)


def contents(value: Any, numbered: Numbered) -> Any:
    """The tree of a numbered object's present content; new objects get numbers. Raises `NotCarried`."""
    return _tree(value, type(value), lambda part: flatten(part, numbered, True, 1))


def _tree(value: Any, kind: type, part: Callable[[Any], Any]) -> Any:
    if kind in (list, tuple):
        return kind([part(item) for item in value])
    if kind in _WRITERS:
        return _WRITERS[kind](value, part)
    if kind in ITERATORS:
        return (ITERATORS[kind], [part(item) for item in _exhaust(value)], ...)
    if kind in VIEWS:
        return (VIEWS[kind], [part(item) for item in value], ...)
    if kind.__module__ == "numpy":
        return ("array", flatten_array(value, kind), ...)
    raise NotCarried("object" if kind.__module__ == "candidate" else "plain")


def _exhaust(iterator: Iterator[Any]) -> list[Any]:
    try:
        items = list(itertools.islice(iterator, LONGEST + 1))
    except Exception as error:
        raise NotCarried("plain") from error
    if len(items) > LONGEST:
        raise NotCarried("plain")
    return items


def _pairs(value: Any, part: Callable[[Any], Any]) -> list[Any]:
    return [[part(key), part(item)] for key, item in value.items()]


def _default(value: Any, part: Callable[[Any], Any]) -> Any:
    factory = value.default_factory
    if factory is not None and factory not in FACTORIES:
        raise NotCarried("plain")
    return ("defaultdict", [FACTORIES.get(factory, ""), _pairs(value, part)], ...)


def _zone(value: Any, text: str) -> Any:
    if value.tzinfo is not None and type(value.tzinfo) is not timezone:
        raise NotCarried("plain")
    return (text, value.isoformat(), ...)


_WRITERS: dict[Any, Callable[[Any, Callable[[Any], Any]], Any]] = {
    type(...): lambda value, part: ("ellipsis", None, ...),
    type(NotImplemented): lambda value, part: ("NotImplemented", None, ...),
    dict: lambda value, part: ("dict", _pairs(value, part), ...),
    OrderedDict: lambda value, part: ("OrderedDict", _pairs(value, part), ...),
    Counter: lambda value, part: ("Counter", _pairs(value, part), ...),
    defaultdict: _default,
    set: lambda value, part: ("set", [part(item) for item in value], ...),
    frozenset: lambda value, part: ("frozenset", [part(item) for item in value], ...),
    deque: lambda value, part: ("deque", [[part(item) for item in value], value.maxlen], ...),
    bytearray: lambda value, part: ("bytearray", bytes(value), ...),
    range: lambda value, part: ("range", [value.start, value.stop, value.step], ...),
    Decimal: lambda value, part: ("Decimal", str(value), ...),
    Fraction: lambda value, part: ("Fraction", [value.numerator, value.denominator], ...),
    date: lambda value, part: ("date", value.isoformat(), ...),
    datetime: lambda value, part: _zone(value, "datetime"),
    time: lambda value, part: _zone(value, "time"),
    timedelta: lambda value, part: ("timedelta", [value.days, value.seconds, value.microseconds], ...),
    type: lambda value, part: _type(value),
}


def _type(value: type) -> Any:
    if value not in FACTORIES:
        raise NotCarried("plain")
    return ("type", FACTORIES[value], ...)


EXACT = frozenset((list, tuple, *_WRITERS, *VIEWS, *ITERATORS))


def build(tree: Any, numbered: Numbered, grow: bool = False) -> Any:
    """The value of a tree. Raises `ValueError`, `TypeError` or `ArithmeticError` if `flatten` did not make it."""
    kind: Any = type(tree)
    if kind is list:
        made: list[Any] = []
        if grow:
            numbered.add(made)
        made.extend(build(item, numbered, grow) for item in tree)
        return made
    if kind is not tuple:
        if kind not in SCALARS:
            raise ValueError("not a carried value")
        return tree
    if not tree or tree[-1] is not ...:
        return tuple([build(item, numbered, grow) for item in tree])
    return _build_marked(tree, numbered, grow)


def _build_marked(tree: Any, numbered: Numbered, grow: bool) -> Any:
    name, content, _ = tree
    if name == "ref":
        if type(content) is not int or not 0 <= content < len(numbered.objects):
            raise ValueError("a reference to no argument")
        return numbered.objects[content]
    if name == "own":
        return _build_own(content, numbered, grow)
    if name == "array":
        array = read_array(content)
        if numbered.reads is not None:
            array = as_compared(array, numbered.reads.arrays)
        if grow and is_array(type(array)):
            numbered.add(array)
        return array
    if name in _FILLERS:
        empty = _EMPTY[name](content)
        if grow:
            numbered.add(empty)
        fill(empty, tree, numbered, grow)
        return empty
    return _READERS[name](content, lambda part: build(part, numbered, grow))


def _build_own(content: Any, numbered: Numbered, grow: bool) -> Any:
    """An object of a class that replaces the program's own: only what the base class defines."""
    name, base, tree = content
    place, kind = len(numbered.objects), _BASES[base]
    if numbered.reads is None or not (type(name) is str and name.isidentifier()):
        raise ValueError("no class")
    value = _exactly(kind, build(tree, numbered, grow))
    make: Any = _own_class(name, kind, numbered.reads.ask)
    if kind is deque:
        made = make(value, value.maxlen)
    else:
        made = make(value.default_factory, value) if kind is defaultdict else make(value)
    if grow and kind in MUTABLE:
        numbered.swap(place, made)
    return made


@functools.cache
def _own_class(name: str, base: type, ask: Callable[[str], Any]) -> type:
    def look(self: Any, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return ask(attribute)

    return type(name, (base,), {"__getattr__": look, "__module__": "candidate"})


def fill(value: Any, tree: Any, numbered: Numbered, grow: bool = True) -> None:
    """Give a mutable object the content of a tree of the same type. Raises as `build`."""
    kind: Any = type(tree)
    if kind is list:
        if type(value) is not list:
            raise ValueError("a content of another type")
        value[:] = [build(item, numbered, grow) for item in tree]
        return
    name, content, _ = tree
    if name == "array" and is_array(type(value)):
        new = read_array(content)
        if not is_array(type(new)) or (new.dtype, new.shape) != (value.dtype, value.shape):
            raise ValueError("a content of another type")
        value[...] = new
        return
    if type(value) is not _OF_KIND[name]:
        raise ValueError("a content of another type")
    _FILLERS[name](value, content, lambda part: build(part, numbered, grow))


def _fill_pairs(value: Any, content: Any, part: Callable[[Any], Any]) -> None:
    pairs = [(part(key), part(item)) for key, item in content]
    value.clear()
    for key, item in pairs:
        value[key] = item


def _fill_items(value: Any, content: Any, part: Callable[[Any], Any]) -> None:
    items = [part(item) for item in content]
    value.clear()
    (value.update if type(value) is set else value.extend)(items)


_FILLERS: dict[Any, Callable[[Any, Any, Callable[[Any], Any]], None]] = {
    **dict.fromkeys(("dict", "OrderedDict", "Counter"), _fill_pairs),
    "defaultdict": lambda value, content, part: _fill_pairs(value, content[1], part),
    "set": _fill_items,
    "deque": lambda value, content, part: _fill_items(value, content[0], part),
    "bytearray": lambda value, content, part: value.__setitem__(slice(None), _exactly(bytes, content)),
}
_OF_KIND: dict[Any, Any] = {kind.__name__: kind for kind in MUTABLE}
_BASES: dict[Any, Any] = {kind.__name__: kind for kind in COPIES}
_EMPTY: dict[Any, Callable[[Any], Any]] = {
    "dict": lambda content: {},
    "OrderedDict": lambda content: OrderedDict(),
    "Counter": lambda content: Counter(),
    "defaultdict": lambda content: defaultdict(TYPES[content[0]] if content[0] else None),
    "set": lambda content: set(),
    "deque": lambda content: deque(maxlen=content[1]),
    "bytearray": lambda content: bytearray(),
}


def _exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"not a value of the type {kind.__name__}")
    return value


def _integers(content: Any, count: int) -> list[int]:
    if len(content) != count:
        raise ValueError("not so many numbers")
    return [_exactly(int, number) for number in content]


def _same(item: Any) -> Any:
    return item


_READERS: dict[Any, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "frozenset": lambda content, part: frozenset([part(item) for item in content]),
    "ellipsis": lambda content, part: ...,
    "NotImplemented": lambda content, part: NotImplemented,
    "range": lambda content, part: range(*_integers(content, 3)),
    "Decimal": lambda content, part: Decimal(_exactly(str, content)),
    "Fraction": lambda content, part: Fraction(*_integers(content, 2)),
    "date": lambda content, part: date.fromisoformat(content),
    "datetime": lambda content, part: datetime.fromisoformat(content),
    "time": lambda content, part: time.fromisoformat(content),
    "timedelta": lambda content, part: timedelta(*_integers(content, 3)),
    "type": lambda content, part: TYPES[content],
    "generator": lambda content, part: (item for item in [part(item) for item in content]),
    "map": lambda content, part: map(_same, [part(item) for item in content]),
    "iterator": lambda content, part: iter([part(item) for item in content]),
    "keys": lambda content, part: dict.fromkeys([part(item) for item in content]).keys(),
    "values": lambda content, part: dict(enumerate([part(item) for item in content])).values(),
    "items": lambda content, part: dict([part(item) for item in content]).items(),
}


def is_array(kind: type) -> bool:
    """Whether objects of this class are arrays, which can change."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and kind is numpy.ndarray


def flatten_array(value: Any, kind: type) -> list[Any]:
    """The type, shape, bytes of an array or number, and whether it is an array. Raises `NotCarried`."""
    numpy: Any = sys.modules["numpy"]
    if not (kind is numpy.ndarray or (issubclass(kind, numpy.generic) and kind is value.dtype.type)):
        raise NotCarried("plain")
    if value.dtype.kind not in KINDS:
        raise NotCarried("array")
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
    if not all(type(size) is int and size >= 0 for size in shape) or math.prod(filter(None, shape)) > MOST_ELEMENTS:
        raise ValueError("not the shape of an array")
    array = numpy.frombuffer(data, dtype=kind).reshape(shape).copy()
    if kind.kind == "b":
        array = array.view("u1") != 0  # a byte of 2 would be true, and not equal to it
    return array if whole else array[()]


def as_compared(array: Any, reads: str) -> Any:
    """An array or number of a program as tests may compare it: by exact values, for every type the program chose.

    `float16('inf')` equals any large number, and `int8` wraps in the tests' arithmetic: so numbers are Python's, or of
    the widest type if tests use NumPy. Raises `NotCarried` for arrays without items, which are close to everything, and
    for arrays that tests read without NumPy.
    """
    kind, whole = array.dtype.kind, is_array(type(array))
    wide = WIDEST.get(kind, array.dtype.str)
    if array.dtype.itemsize > WIDE_BYTES.get(kind, array.dtype.itemsize) or (whole and not array.size):
        raise NotCarried("array")
    if not whole and reads == "none":
        return array.item()
    if reads == "none" or (kind == "u" and array.max() > MOST_SIGNED) or (reads == "types" and array.dtype.str != wide):
        raise NotCarried("array")
    return array.astype(wide)
