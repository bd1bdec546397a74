"""A call from afar does what a call in place does: results, changed arguments, shared and returned objects, errors."""

import collections
import copy
import datetime
import decimal
import fractions
import marshal
import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.sandbox.inside import responder, tester, wire
from codechat.sandbox.inside.carry import MOST_ELEMENTS, NotCarried, Numbered, build, flatten, read_array
from codechat.sandbox.inside.decode import decode

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.binary(max_size=8)
    | st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates() | st.datetimes() | st.times() | st.timedeltas()
    | st.datetimes(timezones=st.just(datetime.UTC))
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 3))
    | st.sampled_from([int, str, list, ..., NotImplemented])
)  # fmt: skip
KEYS = st.integers() | st.text(max_size=5) | st.booleans() | st.tuples(st.integers(), st.text(max_size=3))


def containers(inner: Any) -> Any:
    return (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.builds(collections.OrderedDict, st.dictionaries(KEYS, inner, max_size=3))
        | st.builds(collections.deque, st.lists(inner, max_size=3), st.sampled_from([None, 5]))
        | st.builds(lambda pairs: collections.defaultdict(list, pairs), st.dictionaries(KEYS, inner, max_size=3))
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
        | st.builds(collections.Counter, st.lists(KEYS, max_size=4))
        | st.builds(bytearray, st.binary(max_size=5))
    )


VALUES = st.recursive(SCALARS, containers, max_leaves=12)


class FarEnd:
    """Both ends of a link in one process, with the same bytes as between two."""

    def __init__(self, space: dict[str, Any]) -> None:
        self._space, self._answers = space, list[bytes]()

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        if kind == wire.NAMES:
            answer: tuple[Any, ...] = "names", responder._describe(self._space, payload.decode().split("\n")), []
        else:
            _, name, trees = marshal.loads(payload)
            answer = responder.Called(trees).answer(self._space[name], "program.py")
        self._answers.append(marshal.dumps(answer, 2))

    def receive(self) -> tuple[bytes, bytes]:
        return wire.REPLY, self._answers.pop()


class Said(BaseException):
    """What a tester reported before it would have ended."""


class Reports:
    def send(self, kind: bytes, payload: bytes = b"") -> None:
        raise Said(kind, payload.decode())


def afar(function: Callable[..., Any], arrays: str = "types") -> Callable[..., Any]:
    """A function that calls `function` as from another process."""
    link: Any = FarEnd({"function": function})
    channel: Any = Reports()
    job = {"world": [""], "entry": "function", "reads": (), "stops": True, "arrays": arrays}
    one = tester.Tester(job, channel, link)
    return lambda *positional, **named: one._call("function", positional, named)


def shape(value: Any) -> Any:
    """A value with the exact type of every part."""
    if isinstance(value, dict):
        return type(value), [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value), {(type(part), part) for part in value}
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value), [shape(part) for part in value]
    return type(value), value


@given(VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    back = afar(lambda: value)()
    assert shape(back) == shape(value)
    assert back == value


@given(VALUES, VALUES)
def test_comparison_from_afar_is_comparison_in_place(one: Any, other: Any) -> None:
    assert (afar(lambda: one)() == other) == (one == other)
    assert (afar(lambda: one)() != other) == (one != other)


@given(st.lists(VALUES, max_size=3), st.dictionaries(st.sampled_from("abc"), VALUES, max_size=2))
def test_arguments_arrive_as_they_were(positional: list[Any], named: dict[str, Any]) -> None:
    seen = afar(lambda *given, **options: (given, options))(*positional, **named)
    assert shape(seen) == shape((tuple(positional), named))


def steps() -> Any:
    place = st.integers(0, 9)
    return st.lists(st.tuples(st.integers(0, 8), place, place, st.integers(0, 3)), max_size=8)


def change(roots: list[Any], plan: list[tuple[int, int, int, int]]) -> Any:
    """Change lists, dictionaries and sets below `roots` in place, by a plan; the object of its last step."""
    last: Any = roots
    for verb, where, which, value in plan:
        found = parts(roots)
        target, other = found[where % len(found)], found[which % len(found)]
        last = other
        if isinstance(target, list):
            _change_list(target, verb, other if below(other, target) is False else value, value)
        elif isinstance(target, dict):
            if verb % 3 == 0:
                target.clear()
            elif verb % 3 == 1:
                target[value] = value
            else:
                target.pop(next(iter(target), None), None)
        else:
            (target.add, target.discard)[verb % 2](value)
    return last


def _change_list(target: list[Any], verb: int, other: Any, value: int) -> None:
    if verb == 0:
        target.append(value)
    elif verb == 1:
        target.append(other)
    elif verb == 2:
        target.reverse()
    elif verb == 3:
        del target[:1]
    elif verb == 4:
        target[:] = [*target, value]
    elif verb == 5 and target:
        target[0] = [value]
    elif verb == 6:
        target.clear()
    elif verb == 7:
        target.insert(0, {value: [value]})


def below(one: Any, other: Any) -> bool:
    """Whether `other` is `one` or a part of it."""
    return any(part is other for part in parts([one]))


def parts(roots: list[Any]) -> list[Any]:
    """All lists, dictionaries and sets among and below the roots, each once, in a fixed order."""
    found: list[Any] = []
    waiting = list(roots)
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, (list, dict, set)) and not any(one is known for known in found):
            found.append(one)
            waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return found or [[]]


def graph(values: list[Any]) -> Any:
    """The contents of values, with the places at which objects are shared."""
    found = parts(values)
    number = {id(one): place for place, one in enumerate(found)}

    def told(one: Any) -> Any:
        if id(one) in number:
            return ("object", number[id(one)])
        return (type(one), one)

    inner = [
        [(told(key), told(part)) for key, part in one.items()] if isinstance(one, dict) else sorted(map(str, one))
        if isinstance(one, set) else [told(part) for part in one]
        for one in found
    ]  # fmt: skip
    return [told(value) for value in values], inner


NESTS = st.recursive(
    st.integers(0, 3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.integers(0, 3), inner, max_size=3) | st.sets(st.integers(0, 3))
    ),
    max_leaves=8,
)


@given(st.lists(NESTS, min_size=1, max_size=3), st.booleans(), steps())
def test_changed_arguments_are_changed_and_shared_as_in_place(roots: list[Any], shared: bool, plan: Any) -> None:
    if shared:
        roots = [*roots, roots[0]]  # the same object twice among the arguments
    there, here = copy.deepcopy(roots), copy.deepcopy(roots)
    kept_there, kept_here = parts(there), parts(here)

    def call(*given: Any) -> Any:
        return change(list(given), plan)

    result_here, result_there = call(*here), afar(call)(*there)
    if result_here is not None and not isinstance(result_here, list):
        result_here, result_there = [result_here], [result_there]
    assert graph([here, kept_here]) == graph([there, kept_there])
    if any(result_here is one for one in kept_here):  # an argument that is returned is the argument
        assert any(result_there is one for one in kept_there)


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(6).reshape(2, 3),
        numpy.array([1.5, float("inf")]),
        numpy.array(["a", "bcd"]),
        numpy.array([True, False]),
        numpy.array(5),
        numpy.array([1 + 2j]),
    ],
)
def test_arrays_come_back_with_their_type_and_shape(array: Any) -> None:
    back = afar(lambda: array)()
    assert type(back) is type(array) and back.dtype == array.dtype and back.shape == array.shape
    assert (back == array).all()


def test_an_array_without_elements_has_any_shape_that_numpy_makes() -> None:
    assert read_array(["<i8", [MOST_ELEMENTS, 0], b"", True]).shape == (MOST_ELEMENTS, 0)
    for shape in ([MOST_ELEMENTS + 1, 0], [0, -1], [True, 0], [0.0]):
        with pytest.raises(ValueError, match="not the shape"):
            read_array(["<i8", shape, b"", True])


NUMBERS: dict[str, tuple[Any, tuple[Any, Any, Any]]] = {  # read by tests without NumPy, with it, and with its types
    "the widest": (numpy.int64(3), (3, numpy.int64(3), numpy.int64(3))),
    "half an infinity": (numpy.float16("inf"), (math.inf, numpy.float64("inf"), None)),
    "half of pi": (numpy.float16(3.14), (3.140625, numpy.float64(3.140625), None)),
    "short": (numpy.int8(100), (100, numpy.int64(100), None)),
    "without a sign": (numpy.uint64(3), (3, numpy.int64(3), None)),
    "too large for one": (numpy.uint64(2**63), (2**63, None, None)),
    "longer than Python's": (numpy.longdouble("1.5"), (None, None, None)),
    "a truth": (numpy.bool_(True), (True, numpy.bool_(True), numpy.bool_(True))),
    "a text": (numpy.str_("a"), ("a", numpy.str_("a"), numpy.str_("a"))),
    "an empty array": (numpy.zeros((0, 2)), (None, None, None)),
    "an array": (numpy.array([1]), (None, numpy.array([1]), numpy.array([1]))),
    "a short array": (numpy.array([1], "i1"), (None, numpy.array([1]), None)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_program_does_not_choose_the_precision_of_its_numbers(name: str) -> None:
    value, read = NUMBERS[name]
    for arrays, wanted in zip(("none", "values", "types"), read, strict=True):
        if wanted is None:
            with pytest.raises(Said, match="array"):
                afar(lambda: value, arrays)()
        else:
            back = afar(lambda: value, arrays)()
            assert type(back) is type(wanted) and back == wanted
            assert getattr(back, "dtype", None) == getattr(wanted, "dtype", None)


class Lying:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


OWN: list[Any] = [
    3, 2.5, 1j, "a", b"b", bytearray(b"c"), [1, [2]], (1,), {1: [2]}, {1}, frozenset({2}), collections.deque([1], 3),
    collections.OrderedDict(a=1), collections.Counter("aab"), collections.defaultdict(list, {1: [2]}),
    decimal.Decimal("1.5"), fractions.Fraction(1, 3),
]  # fmt: skip


@pytest.mark.parametrize("value", OWN, ids=lambda value: type(value).__name__)
def test_an_object_of_a_class_of_its_own_is_what_its_base_class_makes_of_it(value: Any) -> None:
    kind: Any = type(value)
    own: Any = type("Own", (Lying, kind), {"__iter__": None} if kind in (list, tuple) else {})
    one = own(*{collections.deque: (value, 3), collections.defaultdict: (list, value)}.get(kind, (value,)))
    for back in (afar(lambda: one)(), afar(lambda: [one])()[0]):
        assert type(back).__name__ == "Own" and isinstance(back, kind) and type(back) is not kind
        assert back == value and value == back and back != object() and not hasattr(back, "__missing_name__")
        with pytest.raises(Said, match="object"):
            back.extra  # noqa: B018


def test_a_kept_object_of_an_own_class_is_one_object() -> None:
    one = type("L", (list,), {})([1])
    first, second = afar(lambda: (one, one))()
    assert first is second and first == [1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: (n for n in range(3)),
        lambda: map(str, range(3)),
        lambda: iter([1, 2]),
        lambda: zip("ab", [1, 2], strict=True),
        lambda: enumerate("ab"),
        lambda: reversed([1, 2]),
        {1: 2}.keys,
        {1: 2}.values,
        {1: 2}.items,
    ],
)
def test_what_is_iterated_yields_the_same(make: Callable[[], Any]) -> None:
    assert list(afar(make)()) == list(make())
    assert isinstance(afar({1: 2}.keys)(), type({}.keys()))


ERRORS: list[BaseException] = [
    ValueError("no"),
    ValueError("no", 3),
    KeyError("k"),
    ZeroDivisionError("division by zero"),
    FileNotFoundError(2, "No such file", "name"),
    UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
    StopIteration(4),
    SystemExit(1),
    KeyboardInterrupt(),
    AssertionError("mine"),
    MemoryError(),
    decimal.InvalidOperation("bad"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_errors_are_raised_by_type_and_text(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        afar(fail)()
    assert type(caught.value).__name__ == type(error).__name__
    assert str(caught.value) == str(error)
    assert caught.value.args == error.args


class Own(ValueError):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


def test_a_class_of_its_own_stands_for_itself_and_its_bases() -> None:
    def fail() -> None:
        raise Own(3)

    with pytest.raises(ValueError, match=r"^code 3$") as caught:
        afar(fail)()
    assert type(caught.value).__name__ == "Own" and not isinstance(caught.value, KeyError)
    with pytest.raises(Said, match="exception"):
        caught.value.code  # type: ignore[attr-defined]  # noqa: B018


class Thing:
    pass


@pytest.mark.parametrize(
    "value",
    [
        Thing(),
        Thing,
        len,
        lambda: 1,
        fractions,
        10 ** (10**6 * 2),
        numpy.array([None]),
        object(),
        ValueError(),
        memoryview(b""),
        datetime.datetime(2020, 1, 1, tzinfo=type("Z", (datetime.tzinfo,), {})()),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("around", [lambda one: one, lambda one: [one], lambda one: {"a": (one,)}])
def test_what_is_not_carried_is_named(value: Any, around: Callable[[Any], Any]) -> None:
    with pytest.raises(NotCarried):
        flatten(around(value), Numbered())
    with pytest.raises(Said, match=r"plain|array"):
        afar(lambda: around(value))()


def test_an_iterator_without_an_end_is_not_carried() -> None:
    def endless() -> Any:
        while True:
            yield 1

    with pytest.raises(Said, match="plain"):
        afar(endless)()


PLAIN = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.just(...) | st.floats() | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner, inner) | st.tuples(inner, inner, st.just(...)),
    max_leaves=10,
)
NAMES = [
    "ref",
    "dict",
    "set",
    "deque",
    "defaultdict",
    "array",
    "range",
    "Decimal",
    "Fraction",
    "type",
    "iterator",
    "own",
]
TREES = PLAIN | st.tuples(st.sampled_from(NAMES), PLAIN, st.just(...))


@given(st.tuples(st.sampled_from(["value", "error", "inside", "x"]), TREES, TREES))
def test_whatever_a_candidate_claims_ends_in_a_value_an_exception_or_a_report(claim: Any) -> None:
    data = marshal.dumps(claim, 2)
    channel: Any = Reports()

    class Lies:
        def send(self, kind: bytes, payload: bytes = b"") -> None: ...

        def receive(self) -> tuple[bytes, bytes]:
            return wire.REPLY, data

    link: Any = Lies()
    one = tester.Tester({"world": [""], "entry": "f", "reads": (), "stops": True, "arrays": "values"}, channel, link)
    given_list = [1, [2]]
    try:
        value = one._call("f", (given_list,), {})
    except Said as said:
        assert said.args[0] in (wire.INSIDE, wire.GARBLED)
    except BaseException as error:
        assert claim[0] == "error", error
    else:
        assert claim[0] == "value"
        flatten(value, Numbered())  # plain through and through


def test_a_tree_is_read_back_only_if_flatten_could_have_made_it() -> None:
    for tree in [
        ("ref", 0, ...),
        ("ref", -1, ...),
        ("nothing", 1, ...),
        ("type", "object", ...),
        ("array", ["O", [1], b"\0" * 8, True], ...),
        ("array", ["<i8", [2], b"\0" * 8, True], ...),
        ("Fraction", [1, 0], ...),
        ("Fraction", [1.5, 2], ...),
        ("range", ["a", 1, 1], ...),
        frozenset({1}),
        {1: 2},
    ]:
        with pytest.raises((ValueError, TypeError, LookupError, ArithmeticError)):
            build(decode(marshal.dumps(tree, 2)), Numbered())


@pytest.mark.parametrize("place", [-1, 1, True, "0", None])
def test_a_reference_is_to_an_argument_that_there_is(place: Any) -> None:
    numbered, one = Numbered(), [1]
    numbered.add(one)
    assert build(("ref", 0, ...), numbered) is one
    with pytest.raises(ValueError, match="a reference to no argument"):
        build(("ref", place, ...), numbered)
