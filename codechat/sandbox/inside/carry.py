"""Values that go from one process to the other and keep their exact types: arguments, results, changed arguments.

A value is flattened to a tree of scalars, lists and tuples, in which `(kind, content, ...)` stands for every other
type. The mutable objects of a call are numbered in the order in which they are met, and `("ref", number, ...)` stands
for such an object met again: in the arguments, in their new contents, in the result. So a function that returns its
argument, or changes it in place, does the same from afar.
"""

import itertools
import math
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from types import GeneratorType
from typing import Any

KINDS = "biufcUS"  # of elements that are plain bytes
MOST_ELEMENTS = 1 << 40  # of shapes without content: more are no array of a program's, and NumPy's own error


class NotCarried(Exception):
    """A value that cannot be carried; the text says what it is."""


class Numbered:
    """The mutable objects of one call's arguments, by the order in which they were met.

    `exhausts`: an iterator counts by the items that it yields, and is used up by that. `met` counts how often a value
    refers to each object.
    """

    def __init__(self, exhausts: bool = True) -> None:
        self.objects: list[Any] = []
        self.met: list[int] = []
        self.exhausts = exhausts
        self._places: dict[int, int] = {}

    def add(self, value: Any) -> None:
        """Give an object the next number."""
        self._places[id(value)] = len(self.objects)
        self.objects.append(value)
        self.met.append(1)

    def place(self, value: Any) -> int | None:
        """The number of an object that is met; None if it has none."""
        place = self._places.get(id(value))
        if place is not None:
            self.met[place] += 1
        return place


DEEPEST = 30  # levels, three of the decoder's each
LONGEST = 100_000  # items of an iterator
MOST_BITS = 4_000_000  # of an integer: the decoder converts no longer ones
SCALARS = frozenset((int, str, float, bool, type(None), complex, bytes))
FACTORIES: dict[Any, str] = {kind: kind.__name__ for kind in (int, str, float, bool, list, dict, set, tuple)}
TYPES = {name: kind for kind, name in FACTORIES.items()}
MUTABLE = frozenset((list, dict, set, bytearray, deque, Counter, OrderedDict, defaultdict))
VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
EMPTY: tuple[Any, ...] = ([], (), "", {}, set(), {}.items(), range(0), b"")
ITERATORS: dict[Any, str] = {
    GeneratorType: "generator",
    map: "map",
    **dict.fromkeys((filter, zip, enumerate, reversed, type(reversed([]))), "iterator"),
    **{type(iter(one)): "iterator" for one in EMPTY},
    **dict.fromkeys((itertools.chain, itertools.islice, itertools.accumulate, itertools.groupby), "iterator"),
}


def flatten(value: Any, numbered: Numbered, grow: bool = False, depth: int = 0) -> Any:
    """The tree of a value. `grow`: number its mutable objects, as those of arguments. Raises `NotCarried`."""
    kind = type(value)
    if kind in SCALARS:
        if kind is int and value.bit_length() > MOST_BITS:
            raise NotCarried("an integer of more than a million digits")
        return value
    if depth > DEEPEST:
        raise NotCarried("a value nested too deeply")
    if kind in MUTABLE or is_array(kind):
        place = numbered.place(value)
        if place is not None:
            return ("ref", place, ...)
        if grow:
            numbered.add(value)
    elif kind in ITERATORS and not numbered.exhausts:
        raise NotCarried("an iterator, which the call may leave half used")
    return _tree(value, kind, lambda part: flatten(part, numbered, grow, depth + 1))


def contents(value: Any, numbered: Numbered) -> Any:
    """The tree of a numbered object's present content; new objects in it are numbered. Raises `NotCarried`."""
    return _tree(value, type(value), lambda part: flatten(part, numbered, True, 1))


def _tree(value: Any, kind: type, part: Callable[[Any], Any]) -> Any:
    if kind is list:
        return [part(item) for item in value]
    if kind is tuple:
        return tuple([part(item) for item in value])
    write = _WRITERS.get(kind)
    if write is not None:
        return write(value, part)
    if kind in ITERATORS:
        return (ITERATORS[kind], [part(item) for item in _exhaust(value)], ...)
    if kind in VIEWS:
        return (VIEWS[kind], [part(item) for item in value], ...)
    if kind.__module__ == "numpy":
        content = flatten_array(value, kind)
        if isinstance(content, str):
            raise NotCarried(content)
        return ("array", content, ...)
    raise NotCarried(f"an object of the class {kind.__qualname__}"[:200])


def _exhaust(iterator: Iterator[Any]) -> list[Any]:
    try:
        items = list(itertools.islice(iterator, LONGEST + 1))
    except Exception as error:
        raise NotCarried("an iterator that raises an exception") from error
    if len(items) > LONGEST:
        raise NotCarried("an iterator of very many values")
    return items


def _pairs(value: Any, part: Callable[[Any], Any]) -> list[Any]:
    return [[part(key), part(item)] for key, item in value.items()]


def _default(value: Any, part: Callable[[Any], Any]) -> Any:
    factory = value.default_factory
    if factory is not None and factory not in FACTORIES:
        raise NotCarried("a defaultdict with a function of its own")
    return ("defaultdict", [FACTORIES.get(factory, ""), _pairs(value, part)], ...)


def _zone(value: Any, text: str) -> Any:
    if value.tzinfo is not None and type(value.tzinfo) is not timezone:
        raise NotCarried("a time of a named zone")
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
        raise NotCarried(f"the class {value.__qualname__}"[:200])
    return ("type", FACTORIES[value], ...)


def build(tree: Any, numbered: Numbered, grow: bool = False) -> Any:
    """The value of a tree. Raises `ValueError`, `TypeError` or `ArithmeticError` if it is no tree of `flatten`."""
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
    if name == "array":
        array = read_array(content)
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


def fill(value: Any, tree: Any, numbered: Numbered, grow: bool = True) -> None:
    """Give a mutable object the content of a tree of its own type. Raises as `build`."""
    kind: Any = type(tree)
    if kind is list:
        if type(value) is not list:
            raise ValueError("a content of another type")
        value[:] = [build(item, numbered, grow) for item in tree]
        return
    name, content, _ = tree
    if name == "array" and is_array(type(value)):
        fill_array(value, content)
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


def _view(name: str) -> Callable[[Any, Callable[[Any], Any]], Any]:
    def read(content: Any, part: Callable[[Any], Any]) -> Any:
        items = [part(item) for item in content]
        if name == "items":
            return dict(items).items()
        return dict.fromkeys(items).keys() if name == "keys" else dict(enumerate(items)).values()

    return read


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
    **{name: _view(name) for name in VIEWS.values()},
}


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
