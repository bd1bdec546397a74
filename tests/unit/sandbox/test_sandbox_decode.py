"""Values cross from the child to the parent as bytes: what goes in comes out, and rubbish is refused."""

import array
import datetime
import itertools
import marshal
import sys
import time
from collections import Counter, OrderedDict, namedtuple
from contextlib import suppress
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.sandbox.inside.decode import MAX_DEPTH, Iterated, Opaque, Undecodable, decode
from codechat.sandbox.inside.encode import canonical, encode
from codechat.sandbox.inside.wire import DIGEST_OVER, HEADER, MANY
from codechat.sandbox.suites.values import canonical_bytes, decode_value, opaque_in
from codechat.sandbox.watch import Frames, Malformed

Point = namedtuple("Point", "x y")


class Colour(IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


def one_way(value: Any) -> Any:
    return decode_value(marshal.dumps(value, 2))


def claimed(value: Any, elements: bool = False) -> Any:
    return decode_value(encode(value, elements)[0])


def through(value: Any, elements: bool = False) -> Any:
    data, size, _ = encode(value, elements)
    assert size == 0
    return decode(data)


hashable = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
values = st.recursive(
    hashable | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(hashable, inner)
        | st.frozensets(hashable)
        | st.sets(hashable)
    ),
    max_leaves=20,
)


@given(values)
def test_plain_data_comes_through(value: Any) -> None:
    assert through(value) == value


@given(st.integers(min_value=-(1 << 5000), max_value=1 << 5000))
def test_integers_of_any_length(value: int) -> None:
    assert through(value) == value


def test_an_integer_of_millions_of_bits_is_read_at_once() -> None:
    value = 7**2_000_000
    data = marshal.dumps(value, 2)
    began = time.process_time()
    assert decode(data) == value
    assert time.process_time() - began < 0.2
    assert decode(marshal.dumps(-value, 2)) == -value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (Point(1, 2), (1, 2)),
        (Colour.RED, 1),
        (Text("x"), "x"),
        ([Text("x"), Point(1, Colour.RED)], ["x", (1, 1)]),
        (bytearray(b"x"), b"x"),
        (Decimal("1.5"), 1.5),
        (Fraction(4, 2), 2),
        (numpy.float64(1.5), 1.5),
        ([numpy.int64(3), numpy.bool_(True)], [3, True]),
        ({numpy.int32(1): numpy.str_("a")}, {1: "a"}),
    ],
)
def test_subclasses_and_numbers_of_libraries_become_plain(value: Any, plain: Any) -> None:
    assert through(value) == plain


@pytest.mark.parametrize(
    "value",
    [object(), len, numpy.zeros(1, "M8[s]"), {}.values(), itertools.count(), [array.array, 1], {object()}],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_compared_is_opaque_and_equals_nothing(value: Any) -> None:
    assert opaque_in(claimed(value))
    assert claimed(value) != claimed(value)


def test_an_iterator_counts_by_what_it_yields_and_is_no_list() -> None:
    assert through(iter([1, 2])) == through(x for x in (1, 2.0)) == Iterated([1, 2])
    assert through(iter([1, 2])) != [1, 2]
    assert through([map(str, [1]), 2]) == [Iterated(["1"]), 2]
    assert through((x for x in (1, 2, 1)), elements=True) == Iterated([1, 2])


def test_where_elements_are_compared_each_is_sent_once() -> None:
    assert through([1, 2, 1], elements=True) == [1, 2]
    assert through((1, 1), elements=True) == (1,)
    assert through("abcab", elements=True) == "abc"
    assert through([[1], [1]], elements=True) == [[1], [1]]


def test_long_values_are_digested() -> None:
    text = "x" * (DIGEST_OVER + 1)
    data, size, _ = encode(text, False)
    assert (len(data), size > DIGEST_OVER) == (32, True)
    assert encode(text, False)[:2] == (data, size)
    assert encode(text + "y", False)[0] != data
    many = list(range(MANY + 1))
    assert encode(many, False) == encode(list(many), False)
    assert encode(many, False)[0] != encode(tuple(many), False)[0]
    assert encode([*many, Colour.RED], False) == encode([*many, 1], False)
    for at in (0, 5000, MANY):
        assert encode([*many[:at], -1, *many[at + 1 :]], False)[0] != encode(many, False)[0]
    assert encode([None] * (MANY + 1), False)[1] > DIGEST_OVER, "a short size would be no digest's"
    assert encode([2**31 - 1] * (2 * MANY), False)[1] > 2 * MANY * 5 > DIGEST_OVER + 1


UTC, EAST = datetime.UTC, datetime.timezone(datetime.timedelta(hours=2, minutes=30))
MOMENT = datetime.datetime(2020, 1, 1, 12, 30, 15, 7)
COMPARED: list[Any] = [
    MOMENT, MOMENT.replace(second=16), MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=EAST),
    MOMENT.replace(tzinfo=UTC).astimezone(EAST), MOMENT.date(), MOMENT.time(), MOMENT.time().replace(tzinfo=UTC),
    MOMENT.time().replace(tzinfo=EAST), datetime.time(10, 0, 15, 7, tzinfo=UTC), datetime.timedelta(1, 2, 3),
    datetime.timedelta(0, 86402, 3), datetime.timedelta(2), datetime.timedelta(0, 0, 5),
    range(0), range(5, 5), range(3), range(0, 3, 1), range(0, 4, 2), range(0, 3, 2), range(0, 4, 3), range(1, 2), range(1, 9, 10),
    Decimal("0.1"), 0.1, Fraction(1, 10), Decimal("0.5"), 0.5, Fraction(1, 3), Fraction(2, 6), Decimal("1e400"), 10**400,
    Decimal("NaN"), bytearray(b"ab"), b"ab", memoryview(b"ab"), 3, 3.0, True, 1, "3", None, ..., complex(3, 0),
]  # fmt: skip


@pytest.mark.parametrize("one", COMPARED, ids=lambda value: type(value).__name__)
def test_what_is_equal_in_one_process_is_equal_in_the_other(one: Any) -> None:
    for other in COMPARED:
        assert (claimed(one) == claimed(other)) is (one == other), other


@pytest.mark.parametrize("value", [[object()] * 70_000, {"x" * DIGEST_OVER: object()}, ["x" * DIGEST_OVER, {object()}]])
def test_a_long_value_that_cannot_be_compared_has_no_digest(value: Any) -> None:
    assert isinstance(through(value), Opaque)


def test_the_digests_of_a_long_iterator_are_of_what_it_yielded() -> None:
    sent = [encode((str(x) * 100 for x in range(1000)), elements) for elements in (False, True)]
    again = [encode([[str(x) * 100 for x in range(1000)]], False)]
    assert all(size for _, size, _ in sent + again)
    assert canonical(sent[0][2]) == canonical(sent[1][2]) != canonical(again[0][2])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([1, 2], [1.0, True + 1], True),
        ({1: "a", 2: "b"}, {2.0: "b", 1: "a"}, True),
        ({1, 2}, frozenset({2, 1.0}), True),
        (Counter("ab"), {"b": 1, "a": 1}, True),
        ([1, [2]], [1, (2,)], False),
        (["ab", "c"], ["a", "bc"], False),
        ([[1], [2]], [[1, 2]], False),
        (0.5, Fraction(1, 2), True),
        ("1", 1, False),
        (None, False, False),
        ({1, 2}, {1, 3}, False),
        ({1, 2}, {1, 2, 3}, False),
        ([{(1, 2)}], [{(2, 1)}], False),
        ({1: "a"}, {1: "b"}, False),
        ({1: "a"}, {2: "a"}, False),
        ({1, "a"}, {1: "a"}, False),
        (set(range(9999)), {*range(9998), 10_000}, False),
        (complex(1, 0), 1, True),
        (complex(0.0, 1), complex(-0.0, 1), True),
        (complex(1, 2), complex(1, 3), False),
        (2**70, float(2**70), True),
        (b"a", "a", False),
    ],
)
def test_canonical_digests_agree_where_values_are_equal(one: Any, other: Any, same: bool) -> None:
    one, other = encode(one, False)[2], encode(other, False)[2]
    assert (canonical(one) == canonical(other)) is same
    assert (canonical_bytes(one_way(one)) == canonical_bytes(one_way(other))) is same


@given(st.binary(max_size=200))
def test_decoding_any_bytes_raises_nothing_but_undecodable(data: bytes) -> None:
    with suppress(Undecodable):
        decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0",
        b"N" * 2,
        b"[\xff\xff\xff\x7f",
        b"[\xff\xff\xff\xff",
        b"(\x01\0\0\0" * (MAX_DEPTH + 1) + b"N",
        b"u\x01\0\0\0\xff",
        b"{[\0\0\0\0N0",
        b"<\x01\0\0\0[\0\0\0\0",
        b"l\x01\0\0\0\xff\xff",
        b"c",
        marshal.dumps(compile("1", "x", "eval")),
        marshal.dumps(StopIteration, 2),
        marshal.dumps((..., "secret", 1), 2),
    ],
)
def test_malformed_values_are_refused(data: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(data)


@given(st.lists(st.tuples(st.sampled_from([b"V", b"Z"]), st.binary(max_size=50)), max_size=8), st.integers(1, 9))
def test_frames_come_whole_however_the_stream_is_cut(frames: list[tuple[bytes, bytes]], step: int) -> None:
    stream = b"".join(HEADER.pack(kind, len(payload), 0) + payload for kind, payload in frames)
    reader = Frames()
    got = [frame for at in range(0, len(stream), step) for frame in reader.feed(stream[at : at + step])]
    assert got == frames


def test_a_frame_longer_than_any_honest_one_is_refused_at_its_header() -> None:
    with pytest.raises(Malformed):
        list(Frames().feed(HEADER.pack(b"V", 1 << 30, 0)))


def test_what_is_loaded_changes_nothing_of_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NumPy a value is first tried as it is."""
    value: Any = {Decimal("0.1")}
    for _ in range(MAX_DEPTH + 2):
        sent = encode(value, False)[0]
        with monkeypatch.context() as bare:
            bare.delitem(sys.modules, "numpy")
            assert encode(value, False)[0] == sent
        value = [value]
    assert isinstance(claimed(value), Opaque) or opaque_in(claimed(value)) is not None
