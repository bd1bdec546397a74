"""Values that a candidate claims: equal as in Python, read in little time, and no bytes raise anything but a refusal."""

import array
import datetime
import marshal
import struct
import time
from collections import Counter, deque
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from codechat.base.domain import OUTCOMES
from codechat.sandbox import Ended
from codechat.sandbox.inside import wire
from codechat.sandbox.inside.decode import Iterated, Marked, Opaque, Undecodable, decode
from codechat.sandbox.inside.encode import encode
from codechat.sandbox.suites.assertions import AssertionsReader
from codechat.sandbox.suites.calls.oracle import ORACLES, Comparison, Oracle
from codechat.sandbox.suites.calls.reader import CallsReader
from codechat.sandbox.suites.calls.reference_results import Recorder, ReferenceResults, encode_expected
from codechat.sandbox.suites.calls.show import show
from codechat.sandbox.suites.values import Table, decode_value, equals_itself, opaque_in, read_or_opaque

MOST_S = 2.0  # far above what any takes (0.3 s), far below what a set of equal hashes took
P = 2**61 - 1


def claimed(value: Any, *, elements: bool = False) -> Any:
    return decode_value(encode(value, elements)[0])


zones = st.integers(-1439, 1439).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)))
few = st.integers(-2, 2)
numbers = (
    few | st.booleans() | few.map(float) | st.floats(allow_nan=False) | st.integers() | st.fractions()
    | st.decimals(allow_nan=False, places=2) | few.map(Decimal) | st.complex_numbers(allow_nan=False)
    | few.map(lambda number: Fraction(number, 3))
)  # fmt: skip
times = (
    st.dates() | st.datetimes() | st.datetimes(timezones=zones) | st.times() | st.times(timezones=zones)
    | st.timedeltas() | st.just(datetime.datetime(2024, 1, 1)) | st.just(datetime.date(2024, 1, 1))
)  # fmt: skip
ranges = st.builds(range, few, few, st.sampled_from([1, 2, -1]))
hashable = st.none() | numbers | st.text(max_size=2) | st.binary(max_size=2) | times | ranges
values = st.recursive(
    hashable | st.binary(max_size=2).map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.frozensets(hashable, max_size=3)
        | st.sets(hashable, max_size=3)
        | st.lists(inner, max_size=2).map(deque)
        | st.dictionaries(hashable, st.just(1), max_size=2).map(lambda each: each.keys())
    ),
    max_leaves=6,
)


@given(values, values)
@example(range(0), range(5, 3))
@example(deque([1]), [1])
@example({1: 2}.keys(), {1.0})
@example(Decimal("0.1"), Fraction(1, 10))
@example(Decimal("0.1"), 0.1)
@example(datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1))
@example({(1, True): 0.0}, {(1.0, 1): False})
@example([-0.0, complex(-0.0, 1)], [0, 1j])
def test_values_are_equal_across_the_sandbox_where_they_are_in_python(one: Any, other: Any) -> None:
    assert (claimed(one) == claimed(other)) is bool(one == other)
    assert claimed(one) == claimed(one)
    assert equals_itself(claimed(one))


def is_blurred(value: Any) -> bool:
    """Whether a part of a value arrives as what sets can hold, and is not: a set, a view of keys, a bytearray."""
    if isinstance(value, (list, tuple, deque)):
        return any(isinstance(each, set) or is_blurred(each) for each in value)
    return isinstance(value, (type({}.keys()), bytearray))


@given(values, values)
def test_sets_of_elements_are_equal_where_they_are_in_python(one: Any, other: Any) -> None:
    assume(not is_blurred(one) and not is_blurred(other))

    def wanted() -> bool:
        try:
            return bool(set(one) == set(other))
        except TypeError:
            return False

    claims = claimed(one, elements=True), claimed(other, elements=True)
    assert Comparison("set_equal", 0.0).holds(*claims, ()) is wanted()


@given(values)
def test_decoding_into_the_languages_own_containers_agrees_with_itself(value: Any) -> None:
    assert decode(encode(value, False)[0]) == decode(encode(value, False)[0])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (numpy.arange(3), numpy.arange(3, dtype="u1"), True),
        (numpy.arange(3), numpy.arange(3.0), False),
        (numpy.zeros((2, 3)), numpy.zeros((3, 2)), False),
        (numpy.zeros((0, 3)), numpy.zeros((0, 2)), False),
        (numpy.zeros(2), [0.0, 0.0], False),
        (numpy.array(["a"]), numpy.array(["a"]), True),
        (numpy.array([1, "a", None], dtype=object), numpy.array([1, "a", None], dtype=object), True),
        (numpy.array([float("nan")]), numpy.array([float("nan")]), False),
        ({"a": numpy.ones(2)}, {"a": numpy.ones(2)}, True),
        (iter("ab"), iter(["a", "b"]), True),
        (iter("ab"), ["a", "b"], False),
        (memoryview(b"a"), b"a", True),
        (Counter("a"), {"a": 1}, True),
        (Decimal("NaN"), Decimal("NaN"), False),
        ({float("nan")}, {float("nan")}, False),
        ({1: object()}, {1: object()}, False),
    ],
)
def test_values_of_libraries(one: Any, other: Any, same: bool) -> None:
    assert (claimed(one) == claimed(other)) is same


def test_tolerance_holds_for_arrays_of_one_shape_and_kind() -> None:
    near, exact = claimed(numpy.array([0.3])), claimed(numpy.array([0.1 + 0.2]))
    assert Comparison("equal", 0.0).holds(near, exact, ())
    assert not Comparison("equal", 0.0).holds(claimed(numpy.array([[0.3]])), exact, ())
    assert not Comparison("equal", 0.0).holds([0.3], exact, ())


def packed(code: bytes, parts: list[bytes]) -> bytes:
    return code + struct.pack("<i", len(parts)) + b"".join(parts)


COLLIDING = [marshal.dumps(P * (number + 1) + 7, 2) for number in range(19_000)]
COSTLY: dict[str, bytes] = {
    "equal hashes": packed(b"<", COLLIDING),
    "equal hashes as keys": b"{" + b"".join(part + b"N" for part in COLLIDING) + b"0",
    "tuples of equal hashes": packed(b"<", [packed(b"(", [part]) for part in COLLIDING[:14_000]]),
    "sets of equal hashes": packed(b"<", [packed(b"<", [part]) for part in COLLIDING[:14_000]]),
    "tuples with a long head": packed(b"<", [packed(b"(", [b"N"] * 900 + [b"i" + bytes([k, 1, 0, 0])]) for k in range(250)]),
    "one value 300,000 times": packed(b"<", [b"N"] * 300_000),
    "nothings": packed(b"[", [b"N"] * 300_000),
    "empty dictionaries": packed(b"[", [b"{0"] * 150_000),
    "empty sets": packed(b"<", [b"<\0\0\0\0"] * 60_000),
    "deep sets": packed(b"<", [b"<\1\0\0\0" * 190 + b"N"] * 300),
    "deep tuples": packed(b"<", [b"(\1\0\0\0" * 190 + b"N"] * 300),
    "a huge integer": b"l" + struct.pack("<i", 150_000) + b"\xff\x7f" * 150_000,
    "bytes": b"s" + struct.pack("<i", 300_000) + bytes(300_000),
    "deep marks": (b"(\3\0\0\0.u\5\0\0\0range" * 190) + b"N",
}  # fmt: skip


@pytest.mark.parametrize("name", COSTLY)
@pytest.mark.long
def test_no_bytes_take_long(name: str) -> None:
    data = COSTLY[name]
    assert len(data) < wire.DIGEST_OVER + 80_000
    for oracle in ORACLES:
        began = time.process_time()
        with suppress(Undecodable):
            value, same = decode_value(data), decode_value(data)
            show(value)
            Comparison(oracle, 1e-6).holds(value, same, (9, 20))
        assert time.process_time() - began < MOST_S


def test_a_long_claim_is_not_read_for_oracles_that_do_not_ask_for_its_content() -> None:
    reader = reading("anything", 5)
    data = framed([(b"P", b""), (b"L", b""), (b"V", COSTLY["nothings"])])
    began = time.process_time()
    assert not reader.read(data)[1]
    assert time.process_time() - began < 0.1
    assert reader.index == 1


def test_a_view_of_memory_is_its_bytes_if_it_is_a_row_of_bytes() -> None:
    assert claimed(memoryview(b"ab")) == b"ab"
    for view in (memoryview(array.array("i", [1])), memoryview(b"abcd").cast("B", (2, 2))):
        assert isinstance(claimed(view), Opaque)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({3, 1, 2}, "{1, 2, 3}"),
        ({"b": [1], "a": (2,)}, "{'a': (2,), 'b': [1]}"),
        (set(), "set()"),
        ({}, "{}"),
        (set(range(20)), "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...}"),
        ([object()], "[<builtins.object>]"),
        (iter([1]), "<iterator of [1]>"),
        (numpy.ones(2), "<array [1.0, 1.0]>"),
        (datetime.date(2024, 1, 2), "<date '2024-01-02'>"),
        (Fraction(1, 3), "<fraction (1, 3)>"),
    ],
)
def test_what_failures_show(value: Any, shown: str) -> None:
    assert show(claimed(value)) == shown


ENDED = Ended(0, 0.1, 1000, None, b"printed")
mess = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5) | st.just(...),
    lambda inner: st.lists(inner, max_size=4)
    | st.lists(inner, max_size=4).map(tuple)
    | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
    | st.tuples(st.just(...), st.sampled_from(["array", "iterator", "opaque", "fraction", "x"]), inner),
    max_leaves=8,
)  # fmt: skip
exceptions = st.tuples(st.text(max_size=3) | mess, st.text(max_size=3) | mess, st.lists(mess, max_size=2) | mess, mess)
payloads = st.binary(max_size=60) | (mess | exceptions).map(lambda value: marshal.dumps(value, 2))
kinds = st.sampled_from([b"P", b"L", b"M", b"S", b"V", b"V", b"V", b"D", b"C", b"X", b"T", b"Z", b"A", b"?"])
frames = st.lists(st.tuples(kinds, payloads), max_size=6)


def framed(sent: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(wire.HEADER.pack(kind, len(payload), 5) + payload for kind, payload in sent)


def reading(oracle: Oracle, expected: Any = (1.5, {2})) -> CallsReader:
    wanted = encode_expected(expected, elements=oracle == "set_equal")
    return CallsReader(
        entry_point="f",
        inputs=(([1, 2], 3), (4, 5)),
        base=1,
        comparison=lambda: Comparison(oracle, 0.0),
        results=ReferenceResults((wanted, wanted), (0.0, 0.0)),
        output_limit=1 << 20,
    )


@given(frames, st.sampled_from(ORACLES), st.integers(0, 3))
def test_whatever_is_claimed_there_is_a_verdict(sent: list[tuple[bytes, bytes]], oracle: Oracle, head: int) -> None:
    data = framed([(b"P", b""), (b"L", b"")][:head] + sent)
    for reader in (reading(oracle), AssertionsReader(("assert f(1)",), "f", 1 << 20)):
        reader.read(data)
        verdict = reader.conclude(ENDED, 10)
        assert verdict.outcome in OUTCOMES
        assert (verdict.failure is None) == (verdict.outcome == "pass")
        if isinstance(reader, AssertionsReader):
            assert not verdict.passed


def test_the_first_value_that_equals_nothing_is_found_wherever_it_is() -> None:
    first, then = Opaque("first"), Opaque("then")
    for value in (
        first,
        [1, first, then],
        (1, [first]),
        Marked("deque", (1, [first])),
        Iterated([first]),
        [Marked("x", first)],
    ):
        assert opaque_in(value) == "first"
    assert opaque_in([1, Marked("deque", (1, 2)), "x", None]) is None


def test_what_cannot_be_read_is_no_value() -> None:
    assert isinstance(read_or_opaque(b"rubbish"), Opaque) and read_or_opaque(marshal.dumps(None, 2)) is None


@given(frames)
def test_a_reference_that_writes_into_the_channel_raises_nothing(sent: list[tuple[bytes, bytes]]) -> None:
    recorder = Recorder()
    recorder.read(framed(sent))
    assert recorder.problem is None or recorder.problem


def test_the_size_of_a_digested_value_decides_what_is_asked_next() -> None:
    """Its low byte comes first; up to the bound a second digest is asked for, and that is kept with the first."""
    for size, asked in ((wire.CANONICAL_UP_TO, wire.ASK_CANONICAL), (wire.CANONICAL_UP_TO + 1, wire.NEXT)):
        recorder = Recorder()
        digest = bytes(range(32))
        assert recorder.read(framed([(wire.DIGEST, digest + size.to_bytes(8, "little"))])) == (asked, False)
        assert (recorder.values[0].data, recorder.values[0].size) == (digest, size)
        recorder.read(framed([(wire.CANONICAL, b"other"), (wire.CPU, wire.DOUBLE.pack(0.5)), (wire.DONE, b"")]))
        assert (recorder.values[0].canonical, recorder.cpu_s, recorder.done) == (b"other", [0.5], True)


def test_classes_of_decoded_values() -> None:
    assert isinstance(claimed({1}), Table)
    assert isinstance(claimed(object()), Opaque)
    assert isinstance(claimed(range(2)), Marked)
    assert isinstance(claimed(iter([])), Iterated)
