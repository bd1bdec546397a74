"""The streams of candidates, frame by frame: each in its turn, and what comes at the end or never."""

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import Verdict
from codechat.base.errors import BrokenTask
from codechat.sandbox import SANDBOXES, Ended
from codechat.sandbox.inside import wire
from codechat.sandbox.inside.encode import canonical, encode
from codechat.sandbox.suites.assertions import AssertionsReader, SharedProcess
from codechat.sandbox.suites.calls.oracle import Comparison
from codechat.sandbox.suites.calls.python import Calls
from codechat.sandbox.suites.calls.reader import CallsReader
from codechat.sandbox.suites.calls.reference_results import (
    Expected,
    Recorder,
    ReferenceResults,
    compute,
    encode_expected,
    load,
    save,
)
from codechat.sandbox.suites.calls.show import show
from codechat.sandbox.suites.endings import SHOWN

P, L, M, S, Z = ((kind, b"") for kind in (wire.STARTED, wire.LOADED, wire.MISSING, wire.SYNTAX, wire.DONE))
LONG = ["x" * 100] * 4000
DIGEST, SIZE = encode(LONG, False)[:2]
ENDED = Ended(0, 0.5, 1000)


def framed(*frames: tuple[bytes, bytes], printed: int = 0) -> bytes:
    return b"".join(wire.HEADER.pack(kind, len(payload), printed) + payload for kind, payload in frames)


def value(claimed: Any) -> tuple[bytes, bytes]:
    return wire.VALUE, encode(claimed, False)[0]


def digest(size: int = SIZE, data: bytes = DIGEST) -> tuple[bytes, bytes]:
    return wire.DIGEST, data + size.to_bytes(8, "little")


def of_calls(*expected: Any, base: int = 1) -> CallsReader:
    results = ReferenceResults(
        tuple(encode_expected(each, elements=False) for each in expected), (0.1,) * len(expected)
    )
    inputs = tuple(("ab" * 600, number) for number in range(len(expected)))
    return CallsReader(entry_point="f", inputs=inputs, base=base, comparison=lambda: Comparison("equal", 0.0),
                       results=results, output_limit=1 << 20)  # fmt: skip


def verdict(reader: CallsReader | AssertionsReader, stream: bytes, ended: Ended = ENDED) -> Verdict:
    reader.read(stream)
    return reader.conclude(ended, cpu_limit=60)


def test_a_pass_is_every_result_in_its_turn() -> None:
    reader = of_calls(1, 2, 3)
    assert reader.read(framed(P, L, value(1))) == (b"", False) and reader.passed_base
    assert reader.read(framed(value(2), value(3))) == (b"", False)
    assert reader.read(framed(Z)) == (b"", True)
    assert reader.conclude(ENDED, 60) == Verdict("pass", True, None, 0.5, inside="")


@pytest.mark.parametrize(
    "frames",
    [
        (L,), (P, P), (P, L, L), (P, value(1)), (value(1),), (P, Z), (P, L, Z), (P, L, value(1), Z), (P, L, M),
        (P, L, S), (P, L, value(1), value(2), value(3)), (P, L, (wire.CANONICAL, b"")), (P, L, (wire.AT, b"")), (Z,),
    ],
)  # fmt: skip
def test_a_result_out_of_turn_is_a_crash(frames: tuple[tuple[bytes, bytes], ...]) -> None:
    found = verdict(of_calls(1, 2), framed(*frames))
    assert found.outcome == "crash" and found.failure is not None
    assert "out of order" in found.failure.reason or "no question" in found.failure.reason


def test_a_failure_has_its_call_and_what_was_printed_until_then() -> None:
    reader = of_calls(1, 2, 3)
    reader.read(framed(P, L, value(1), value(2), printed=3))
    found = verdict(reader, framed(value(4), printed=5), Ended(0, 0.5, 1000, stdout=b"until after"))
    assert found.outcome == "fail" and found.passed_base and found.failure is not None
    assert (found.failure.suite, found.failure.index, found.failure.stdout) == ("plus", 1, "until")
    assert (found.failure.expected, found.failure.actual) == ("3", "4")
    assert len(found.failure.input or "") <= 800


def test_of_a_long_input_as_much_is_shown_as_of_two_values() -> None:
    results = ReferenceResults((encode_expected(1, elements=False),), (0.1,))
    reader = CallsReader(entry_point="f", inputs=(("ab" * 600,) * 9,), base=1, results=results, output_limit=1 << 20,
                         comparison=lambda: Comparison("equal", 0.0))  # fmt: skip
    failure = verdict(reader, framed(P, L, value(2))).failure
    assert failure is not None and len(failure.input or "") == 2 * SHOWN


def test_a_long_collection_is_shown_by_its_first_twelve() -> None:
    assert show(list(range(13))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...]"
    assert "..." not in show(list(range(12)))


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (Ended(signal.SIGKILL, 1.0, 1000), "crash"),
        (Ended(signal.SIGKILL, 1.0, 1000, "idle"), "timeout"),
        (Ended(wire.TIMED_OUT << 8, 1.0, 1000), "timeout"),
        (Ended(signal.SIGKILL, 61.0, 1000, "cpu"), "timeout"),
    ],
)
def test_a_program_that_ends_at_a_later_call_fails_on_that_call(ended: Ended, outcome: str) -> None:
    found = verdict(of_calls(1, 2, 3), framed(P, L, value(1), value(2)), ended)
    assert (found.outcome, found.passed_base) == (outcome, True)
    assert found.failure is not None and (found.failure.suite, found.failure.index) == ("plus", 1)
    snippets = AssertionsReader(("first", "second"), "f", 1 << 20)
    at = [(wire.AT, wire.INDEX.pack(number)) for number in (0, 1)]
    found = verdict(snippets, framed(P, P, L, *at), ended)
    assert found.outcome == outcome and found.failure is not None
    assert (found.failure.index, found.failure.input) == (1, "second")


def test_a_long_result_is_right_by_its_digest_or_asked_for_once() -> None:
    assert of_calls(LONG, 1).read(framed(P, L, digest()))[0] == wire.NEXT
    for size, data in ((SIZE + 256, DIGEST), (SIZE, DIGEST[::-1])):
        reader = of_calls(LONG, 1)
        assert reader.read(framed(P, L, digest(size, data)))[0] == wire.ASK_CANONICAL and reader.index == 0
        assert verdict(reader, framed(value(LONG))).outcome == "crash", "no answer to the question"
        reader = of_calls(LONG, 1)
        reader.read(framed(P, L, digest(size, data)))
        reader.read(framed((wire.CANONICAL, canonical(LONG))))
        assert reader.index == 1
    assert verdict(of_calls(LONG), framed(P, L, digest(size, data), (wire.CANONICAL, b"other"))).outcome != "pass"


def test_recorded_results_are_the_reference_s_with_their_times(tmp_path: Any) -> None:
    recorder = Recorder()
    cpu = (wire.CPU, wire.DOUBLE.pack(0.25))
    assert recorder.read(framed(P, L, value(1.5), cpu, digest())) == (wire.ASK_CANONICAL, False)
    assert recorder.read(framed((wire.CANONICAL, b"blind"), cpu, value(float("nan")), cpu, Z)) == (b"", False)
    assert recorder.done and recorder.cpu_s == [0.25] * 3
    results = ReferenceResults(tuple(recorder.values), tuple(recorder.cpu_s))
    assert [each.size for each in results.expected] == [0, SIZE, 0] and [each.flags for each in results.expected] == [
        2,
        0,
        3,
    ]
    assert results.expected[1] == Expected(DIGEST, SIZE, b"blind", 0)
    save(tmp_path / "results.bin", results)
    assert load(tmp_path / "results.bin") == results


@pytest.mark.parametrize("shared", [None, SharedProcess("why")])
def test_snippets_pass_by_the_token_alone(shared: SharedProcess | None) -> None:
    starts = [P] if shared else [P, P]
    at = [(wire.AT, wire.INDEX.pack(number)) for number in (0, 1)]

    def found(*frames: tuple[bytes, bytes], printed: int = 0) -> Verdict:
        reader = AssertionsReader(("first", "second" * 400), "f", 1 << 20, shared)
        token = [(kind, reader.token if payload == b"token" else payload) for kind, payload in frames]
        return verdict(reader, framed(*token, printed=printed), Ended(0, 0.5, 1000, stdout=b"until after"))

    passed = found(*starts, L, *at, (wire.DONE, b"token"), printed=5)
    assert (passed.outcome, passed.failure, passed.inside) == ("pass", None, "why" if shared else "")
    for wrong in [
        (*starts[1:], L), (*starts, P), (*starts, at[0]), (*starts, L, L), (*starts, L, at[1]), (*starts, L, *at, Z),
        (*starts, L, M), (*starts, L, S), (*starts, L, (wire.INSIDE, b"unknown")),
    ]:  # fmt: skip
        assert found(*wrong).outcome == "crash"
    failed = found(*starts, L, *at, value(1), printed=5).failure
    assert failed is not None and failed.stdout == "until" and failed.index == 1 and len(failed.input or "") == 800


def test_a_reference_gives_a_result_and_a_time_for_every_input() -> None:
    took = wire.CPU, wire.DOUBLE.pack(0.5)

    def stream(*frames: tuple[bytes, bytes]) -> Any:
        return lambda recorder: recorder.read(framed(P, L, *frames)) and None

    results = compute("f", 2, stream(took, value(1), took, value(2), Z))
    assert (len(results.expected), results.cpu_s) == (2, (0.5, 0.5))
    for frames in [
        (took, value(1), took, value(2)), (took, value(1), Z), (took, value(1), value(2), Z),
        (took, took, value(1), Z), (took, value(1), took, value(2), took, value(3), Z),
    ]:  # fmt: skip
        with pytest.raises(BrokenTask, match="the reference of f fails"):
            compute("f", 2, stream(*frames))


def test_a_program_may_take_some_times_as_long_as_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = SANDBOXES.validate(
        {"kind": "process", "min_cpu_s": 1, "cpu_factor": 4, "load_cpu_s": 3, "total_cpu_s": 20}
    )
    for seconds, limits, whole in [
        ((0.1, 0.5), (1.0, 2.0), 3.0), ((4.0, 2.0), (16.0, 8.0), 24.0), ((0.1,) * 50, (1.0,) * 50, 20.0),
    ]:  # fmt: skip
        results = ReferenceResults((encode_expected(1, elements=False),) * len(seconds), seconds)
        monkeypatch.setattr(Calls, "reference_results", lambda *_, results=results: results)
        prepared = Calls("f", "", (((1,),) * len(seconds)))._prepare(SimpleNamespace(), config)  # type: ignore[arg-type]
        assert (prepared.limits, prepared.cpu) == (limits, 3 + whole + 1)
