"""A candidate's side of a run, in this process: what it reports, and when that is sent."""

import mmap
import random
import socket
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from codechat.sandbox.inside import candidate, tester, wire
from codechat.sandbox.inside.candidate import Channel, Head, load
from codechat.sandbox.inside.encode import canonical, encode
from codechat.sandbox.watch import Frames

LONG = ["x" * 100] * 4000


class Kept:
    """A channel that keeps its frames, and whose parent asks for the second digest."""

    def __init__(self) -> None:
        self.frames, self.flushes = list[tuple[bytes, bytes]](), 0

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.frames.append((kind, payload))

    def ask(self, kind: bytes, payload: bytes) -> bytes:
        self.send(kind, payload)
        return wire.ASK_CANONICAL

    def flush(self) -> None:
        self.flushes += 1


@pytest.fixture
def channel() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs, mmap.mmap(-1, wire.SHARED_SIZE) as shared:
        yield Channel(ours, shared, Head(1, 10, lambda data, at: None)), theirs


def test_frames_gather_until_they_are_old_or_fill_the_memory(
    channel: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, parent), now = channel, [1000.0]
    monkeypatch.setattr("codechat.sandbox.inside.candidate.time.monotonic", lambda: now[0])
    one.flushed = now[0]
    one.send(wire.VALUE, b"first")
    with pytest.raises(BlockingIOError):
        parent.recv(10)
    assert wire.CURSOR.unpack_from(one.shared) == (len(b"first") + wire.HEADER.size, wire.HEADER.size)
    now[0] += 0.03
    one.send(wire.VALUE, b"second")
    frames = Frames()
    assert list(frames.feed(parent.recv(1000))) == [(wire.VALUE, b"first"), (wire.VALUE, b"second")]
    assert wire.CURSOR.unpack_from(one.shared) == (0, 11 + 3 * wire.HEADER.size)
    one.send(wire.VALUE, b"third")
    one.send(wire.VALUE, b"x" * (wire.FRAMES_SIZE - wire.HEADER.size))
    assert list(frames.feed(parent.recv(1000))) == [(wire.VALUE, b"third")], "there was no room for both"


def calls(function: Any, *inputs: tuple[Any, ...], timed: bool = False, flush_after: int = 1) -> Kept:
    kept = Kept()
    job = {"timed": timed, "elements": False, "limits": [0.0] * len(inputs), "flush_after": flush_after}
    candidate._call(function, inputs, job, kept)  # type: ignore[arg-type]
    return kept


def test_each_call_is_reported_in_turn_and_an_error_ends_them() -> None:
    kept = calls(lambda a, b: a // b, (7, 2), (1, 0), (1, 1))
    assert [kind for kind, _ in kept.frames] == [wire.VALUE, wire.ERROR] and kept.flushes == 1
    assert kept.frames[0] == (wire.VALUE, encode(3, False)[0])
    timed = calls(lambda: 1, (), (), timed=True, flush_after=5)
    assert [kind for kind, _ in timed.frames] == [wire.CPU, wire.VALUE] * 2 + [wire.DONE] and timed.flushes == 0
    assert 0 <= wire.DOUBLE.unpack(timed.frames[0][1])[0] < 1


def test_a_long_value_is_its_digest_with_its_size_and_the_second_if_asked_for() -> None:
    digest, size, _ = encode(LONG, False)
    wanted = [(wire.DIGEST, digest + size.to_bytes(8, "little")), (wire.CANONICAL, canonical(LONG)), (wire.DONE, b"")]
    assert calls(lambda: LONG, ()).frames == wanted


def test_a_program_s_names_and_what_the_tests_lend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "candidate", None)
    kept = Kept()
    names = load(
        "def f(): return math.pi\nsqrt = 1",
        "<f>",
        0.0,
        kept.send,
        lent="import math\nfrom math import sqrt\nimport nil",
    )
    assert names is not None and names["f"]() > 3 and names["sqrt"] == 1 and kept.frames == []
    assert load("1 +", "<f>", 0.0, kept.send) is None and load("1 / 0", "<f>", 0.0, kept.send) is None
    assert [kind for kind, _ in kept.frames] == [wire.SYNTAX, wire.ERROR]


def test_a_broken_exchange_is_not_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Garbled(Exception):
        pass

    def garbled(self: tester.Tester, reason: str) -> None:
        raise Garbled(reason)

    monkeypatch.setattr(tester.Tester, "_garbled", garbled)
    one = object.__new__(tester.Tester)
    one._waits = True
    with pytest.raises(Garbled, match="while another one waits"):
        one._exchange(wire.CALL, b"")


def test_random_numbers_are_those_of_seed_0() -> None:
    before, of_numpy = random.getstate(), numpy.random.get_state()
    try:
        candidate.seed_numbers()
        assert random.random() == random.Random(0).random()
        assert numpy.random.random() == numpy.random.RandomState(0).random_sample()
    finally:
        random.setstate(before)
        numpy.random.set_state(of_numpy)
