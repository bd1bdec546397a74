"""Fresh arguments like the ones in a task's tests: typed mutation, seeded, within the types and shapes of the tests.

The scheme is EvalPlus's (`evalplus.gen.type_mut`): values of the task are changed by type, in several steps, with its
own constants as ingredients. That generator is not used: the ingredients follow the hash seed of the process, it adds
and drops arguments, makes values of types that no test has, and runs contracts in this process.
"""

import ast
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

Arguments = tuple[Any, ...]
LONGEST, LARGEST, DEEPEST, STEPS = 160, 10**6, 5, 4  # characters, magnitude of a number, nesting, changes at a time
MANY = 20  # tests, of which none would lack a common property by chance
SHORT, NUDGE = 1024, 1e-10  # the denominator of floats that arithmetic keeps exact; a relative change of the others
NUMBERS = (int, float, complex)


def text_of(value: Any) -> str:
    """The literal of a value, the same in every process: elements of sets are in the order of the literals."""
    if isinstance(value, (set, frozenset)) and value:
        return "{" + ", ".join(sorted(map(text_of, value))) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(text_of, value)) + ("," if isinstance(value, tuple) and len(value) == 1 else "")
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def value_of(text: str) -> Any:
    """The value of a literal. Raises `ValueError` for any other text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"no literal: {error}") from error


def is_bounded(value: Any, depth: int = 0) -> bool:
    """Whether no number in a value is large, not finite or a negative zero, and no nesting is deep."""
    if isinstance(value, NUMBERS):
        return math.isfinite(abs(value)) and abs(value) <= LARGEST and "-0.0" not in repr(value)
    return depth <= DEEPEST and all(is_bounded(item, depth + 1) for item in _inner(value))


def nudged(value: Any, salt: str) -> Any:
    """The value with every float that is no short binary fraction changed a little, equal ones equally: a result that
    changes too depends on rounding."""
    if isinstance(value, float) and not (value * SHORT).is_integer():
        return value * (1 + random.Random(f"{salt} {value!r}").choice((-NUDGE, NUDGE)))
    if isinstance(value, dict):
        return {nudged(key, salt): nudged(item, salt) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(nudged(item, salt) for item in value)
    return value


class Shape:
    """What the arguments of tests have in common: types and lengths of records. Signs, order and small sizes count too
    if nothing else says which arguments are valid (no `contract`), or if so many tests show what is meant."""

    def __init__(self, calls: Sequence[Arguments], *, contract: bool) -> None:
        self._strict = not contract or len(calls) >= MANY
        self._known = {mark for arguments in calls for mark in self._marks(arguments)}

    def fits(self, arguments: Arguments) -> bool:
        """Whether the arguments have no property that none of the tests has."""
        return all(mark in self._known for mark in self._marks(arguments))

    def _marks(self, arguments: Arguments) -> Iterator[tuple[Any, ...]]:
        yield ("arguments", len(arguments))
        for place, argument in enumerate(arguments):
            yield from self._of(argument, (place,))

    def _of(self, value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        yield (path, type(value).__name__)
        if self._strict:
            yield from ((path, word) for word in _properties(value))
        inner = list(_inner(value))
        kinds = [type(item).__name__ for item in inner]
        if isinstance(value, tuple) and len(path) > 1:
            yield (path, "length", len(value))
        if len(set(kinds)) > 1:  # a record, whose fields have an order, or a mixture
            yield (path, *(kinds if isinstance(value, tuple) else sorted(set(kinds))))
        if len({len(item) for item in inner if isinstance(item, (list, tuple))}) > 1:
            yield (path, "ragged")
        if isinstance(value, dict):
            for key, item in value.items():
                yield from self._of(key, (*path, "key"))
                yield from self._of(item, (*path, "value"))
        else:
            for item in inner:
                yield from self._of(item, (*path, "item"))


def _properties(value: Any) -> Iterator[str]:
    if isinstance(value, (int, float)):
        yield "negative" if value < 0 else "zero" if value == 0 else "positive"
    elif isinstance(value, str):
        yield from {
            "upper" if c.isupper() else "lower" if c.islower() else "digit" if c.isdigit() else c for c in value
        }
    if hasattr(value, "__len__") and len(value) < 2:
        yield "single" if value else "empty"
    if isinstance(value, (list, tuple)) and len(value) > 1:
        yield "ordered" if _ordered(value) else "unordered"
        if len(set(map(text_of, value))) < len(value):
            yield "repeats"


def _ordered(values: Sequence[Any]) -> bool:
    try:
        return all(one <= other for one, other in pairwise(values))
    except TypeError:
        return False


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (*value, *value.values())
    return value if isinstance(value, (list, tuple, set, frozenset)) else ()


class Mutator:
    """Draws arguments by changing earlier ones, of which `feed` adds more. Short ones are preferred."""

    def __init__(self, calls: Sequence[Arguments], generator: random.Random) -> None:
        self._random = generator
        self._pool: list[tuple[int, Arguments]] = []
        self._constants: dict[type, dict[Any, None]] = {}
        self.feed(sorted(calls, key=lambda call: len(text_of(call))))

    def feed(self, calls: Iterable[Arguments]) -> None:
        """Let these be changed too, and their constants be used."""
        for call in calls:
            size = len(text_of(call))
            if size <= LONGEST or not self._pool:
                self._pool.append((size, call))
            if size <= 4 * LONGEST:
                self._gather(call)

    def _gather(self, value: Any) -> None:
        for item in (value,) if isinstance(value, (*NUMBERS, str)) else ():
            known = self._constants.setdefault(type(item), {})
            if len(known) < 200:
                known.update(dict.fromkeys((item, *(item.split() if isinstance(item, str) else ()))))
        for item in sorted(_inner(value), key=text_of) if isinstance(value, (set, frozenset)) else _inner(value):
            self._gather(item)

    def draw(self) -> Arguments:
        """Changed arguments, which may be invalid, too long, or known."""
        _, call = min(self._random.choice(self._pool), self._random.choice(self._pool), key=lambda pair: pair[0])
        for _ in range(self._random.randint(1, STEPS)):
            if call:
                place = self._random.randrange(len(call))
                call = (*call[:place], self._change(call[place]), *call[place + 1 :])
        return call

    def _change(self, value: Any) -> Any:
        kind = type(value)
        known = self._constants.get(kind)
        if known and self._random.random() < 0.25:
            return self._random.choice(list(known))
        change = _CHANGES.get(kind)
        return value if change is None else change(self, value)

    def _bool(self, value: bool) -> bool:
        return not value

    def _int(self, value: int) -> int:
        r = self._random
        near, small = value + r.choice((-2, -1, 1, 2)), r.randint(-10, 20)
        return r.choice(
            (near, near, small, r.randint(0, 200), -value, value // 2, value * 2, value * 10 + r.randint(0, 9))
        )

    def _float(self, value: float) -> float:
        r = self._random
        return r.choice(
            (
                float(self._int(int(value) if abs(value) <= LARGEST else 0)),
                round(value + r.uniform(-2, 2), 2),
                round(value, 1),
                -value,
                value / 2,
            )
        )

    def _complex(self, value: complex) -> complex:
        return complex(self._float(value.real), self._float(value.imag))

    def _str(self, value: str) -> str:
        r = self._random
        letters = [*dict.fromkeys("".join(self._constants.get(str, ())))] or ["a"]
        start, end = sorted(r.choices(range(len(value) + 1), k=2))
        part, letter = value[start:end], r.choice(letters)
        if letter.isalnum() and r.random() < 0.3:
            letter = r.choice("0123456789" if letter.isdigit() else "abcdeopxyzABCXYZ")
        words = value.split(" ")
        return r.choice(
            (
                value[:start] + letter + value[start:],
                value[:start] + letter + value[start + 1 :],
                value[:start] + value[start + 1 :],
                value[:start] + value[end:],
                value[:end] + part + value[end:],
                part,
                value[:start] + part[::-1] + value[end:],
                value[:start] + part.swapcase() + value[end:],
                " ".join(r.sample(words, len(words))),
                value + r.choice(list(self._constants.get(str) or ("",))),
            )
        )

    def _list(self, value: Sequence[Any]) -> list[Any]:
        r, items = self._random, list(value)
        if not items:
            return [self._change(item) for item in r.choice(self._siblings(value))[: r.randint(0, 3)]]
        at, other = r.randrange(len(items)), r.randrange(len(items))
        choice = r.randrange(8)
        if choice == 0:
            del items[at]
        elif choice == 1:
            items.insert(other, items[at])
        elif choice == 2:
            items.insert(other, self._change(items[at]))
        elif choice == 3:
            items[at], items[other] = items[other], items[at]
        elif choice == 4:
            items = items[min(at, other) : max(at, other) + 1]
        elif choice == 5:
            items = r.choice((items[::-1], r.sample(items, len(items)), _sorted(items)))
        else:
            items[at] = self._change(items[at])
        return items

    def _siblings(self, value: Any) -> list[Any]:
        found = [part for _, call in self._pool for part in call if type(part) is type(value) and part]
        return found or [value]

    def _tuple(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self._list(value))

    def _set(self, value: set[Any]) -> set[Any]:
        return set(self._list(sorted(value, key=text_of)))

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        r, pairs = self._random, list(value.items())
        if not pairs:
            return dict(r.choice(self._siblings(value)))
        at = r.randrange(len(pairs))
        choice = r.randrange(4)
        if choice == 0:
            del pairs[at]
        elif choice == 1:
            pairs.append((self._change(pairs[at][0]), self._change(pairs[at][1])))
        elif choice == 2:
            pairs = r.sample(pairs, len(pairs))
        else:
            pairs[at] = (pairs[at][0], self._change(pairs[at][1]))
        return dict(pairs)


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return items


_CHANGES: dict[type, Callable[[Any, Any], Any]] = {
    bool: Mutator._bool,
    int: Mutator._int,
    float: Mutator._float,
    complex: Mutator._complex,
    str: Mutator._str,
    list: Mutator._list,
    tuple: Mutator._tuple,
    set: Mutator._set,
    dict: Mutator._dict,
}
