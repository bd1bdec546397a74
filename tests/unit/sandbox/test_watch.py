"""One side of a run without its processes: what is read, what is charged, and when it is killed."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from codechat.sandbox import watch
from codechat.sandbox.inside import wire
from codechat.sandbox.watch import Clock, Job, Run, Usage, WorkerDied, shared_memory

JOB = Job(b"", idle_s=1.0, idle_total_s=2.0, cpu_s=5.0, wall_s=60.0)


class Child:
    """The other ends of a run's sockets, and what the reader was given."""

    def __init__(self, job: Job = JOB, enough: int = 10**9) -> None:
        ours, self.control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        results, self.results = socket.socketpair()
        self.shared, self.read, self.enough = shared_memory(), b"", enough
        self.run = Run(ours, results, self.shared, job, self._reader, outputs={})
        self.control.setblocking(False)

    def _reader(self, data: bytes) -> tuple[bytes, bool]:
        self.read += data
        return b"answer", len(self.read) >= self.enough

    def end(self, status: int = 0) -> None:
        self.control.send(wire.STATUS.pack(status, 0.25, 0.5, 1000))

    def gathered(self, data: bytes, start: int) -> None:
        os.pwrite(self.shared, wire.CURSOR.pack(len(data), start), 0)
        os.pwrite(self.shared, data, wire.FRAMES_AT)

    def killed(self) -> bool:
        try:
            return self.control.recv(10) == wire.KILL
        except BlockingIOError:
            return False

    def close(self) -> None:
        for each in (self.run.control, self.run.results, self.control, self.results):
            each.close()
        os.close(self.shared)


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    made = list[Child]()

    def make(*given: Any, **named: Any) -> Child:
        made.append(Child(*given, **named))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize(("data", "start"), [(b"bcdef", 1), (b"abcdef", 0), (b"def", 3)])
def test_what_a_dead_child_left_is_read_once_and_in_order(child: Callable[..., Child], data: bytes, start: int) -> None:
    one = child()
    one.results.send(b"abc")
    one.gathered(data, start)
    os.pwrite(one.shared, b"printed", wire.STDOUT_AT)
    one.end(9)
    ended = one.run.follow()
    assert one.read == b"abcdef"
    assert (ended.status, ended.cpu_s, ended.peak_kb, ended.why, ended.stdout) == (9, 0.75, 1000, None, b"printed")


@pytest.mark.parametrize(("data", "start"), [(b"def", 5), (b"d", 1), (b"", 3)])
def test_a_claimed_position_that_does_not_fit_adds_nothing(
    child: Callable[..., Child], data: bytes, start: int
) -> None:
    one = child()
    one.results.send(b"abc")
    one.gathered(data, start)
    one.end()
    one.run.follow()
    assert one.read == b"abc"


def test_nothing_is_read_after_the_verdict_and_the_child_is_killed(child: Callable[..., Child]) -> None:
    one = child(enough=3)
    one.results.send(b"abc")
    one.run._receive()
    assert one.killed() and one.run.decided
    one.results.send(b"more")
    one.gathered(b"even more", start=3)
    one.end()
    one.run.follow()
    assert one.read == b"abc" and not one.killed()


def test_answers_are_sent_and_small_reads_counted(child: Callable[..., Child]) -> None:
    one = child()
    assert not one.run.results.getblocking() and one.run._receive(), "there is nothing to read, and nobody waits"
    one.results.send(b"abc")
    assert one.run._receive() and one.results.recv(10) == b"answer"
    assert (one.run.received, one.run.scraps) == (3, 2)
    one.results.send(b"x" * watch.SCRAP)
    assert one.run._receive() and one.run.scraps == 2
    one.results.close()
    assert not one.run._receive()


def test_outputs_of_a_command_are_read_in_turn_and_small_reads_counted(child: Callable[..., Child]) -> None:
    one, (output, written) = child(), os.pipe()
    os.set_blocking(output, False)
    read = b""

    def take(data: bytes) -> tuple[bytes, bool]:
        nonlocal read
        read += data
        return b"", len(read) > watch.SCRAP

    one.run.outputs = {output: take}
    try:
        assert not one.run._read(output) and one.run.scraps == 0, "nothing is there, and nobody waits"
        os.write(written, b"abc")
        assert one.run._read(output) and (read, one.run.scraps) == (b"abc", 1) and not one.killed()
        os.write(written, b"x" * watch.SCRAP)
        assert one.run._read(output) and one.run.scraps == 1 and one.killed() and one.run.decided
        os.write(written, b"more")
        os.close(written)
        assert one.run._read(output) and len(read) == 3 + watch.SCRAP, "nothing is taken once it is decided"
        assert not one.run._read(output)
    finally:
        os.close(output)


@pytest.mark.parametrize(
    ("clock", "cpu_s", "idle", "why"),
    [
        (59.0, 4.4, 0.9, None), (60.5, 0.0, 0.0, "wall"), (0.0, 4.6, 0.0, "cpu"), (0.0, 0.0, 1.1, "idle"),
    ],
)  # fmt: skip
def test_who_uses_too_much_is_killed(
    child: Callable[..., Child], monkeypatch: pytest.MonkeyPatch, *, clock: float, cpu_s: float, idle: float, why: Any
) -> None:
    one = child()
    monkeypatch.setattr(one.run.usage, "look", lambda pids, waited: idle)
    one.run.clock.s, one.run.usage.cpu_s = clock, cpu_s
    one.run._look()
    assert (one.run.why, one.killed()) == (why, why is not None)


def test_results_make_a_child_wait_anew_but_not_for_ever(
    child: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = child()
    monkeypatch.setattr(one.run.usage, "look", lambda pids, waited: 0.9)
    for written in (1, 2):
        one.gathered(b"x" * written, start=0)
        one.run._look()
        assert one.run.why is None
    one.gathered(b"xxx", start=0)
    one.run._look()
    assert one.run.why == "idle", "2.7 of the 2 seconds in all"


def test_who_queues_is_not_killed_for_idling(child: Callable[..., Child], monkeypatch: pytest.MonkeyPatch) -> None:
    one = child()
    monkeypatch.setattr(one.run.usage, "look", lambda pids, waited: 1.1)
    computing = [True]
    monkeypatch.setattr(one.run.usage, "in_state", lambda state: computing[0])
    one.run._look()
    assert one.run.why is None and not one.killed()
    computing[0] = False
    one.run._look()
    assert one.run.why == "idle" and one.killed()


def test_a_thread_that_computes_is_told_from_one_that_sleeps_or_ended() -> None:
    usage = Usage()
    sleeps, ended = subprocess.Popen(["sleep", "60"]), subprocess.Popen(["true"])
    try:
        ended.wait()
        usage._tasks = {sleeps.pid: 0, ended.pid: 0}
        while usage.in_state(b"R"):  # until it sleeps
            time.sleep(0.01)
        usage._tasks |= {threading.get_native_id(): 0}
        assert usage.in_state(b"R")
    finally:
        sleeps.kill()
        sleeps.wait()


VFORK = """
import ctypes, platform, time
number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
if ctypes.CDLL(None).syscall(number, 0x4000 | 17, 0, 0, 0, 0) == 0:  # CLONE_VFORK: the parent waits as for a disk
    time.sleep(60)
"""


def test_who_waits_for_the_disk_does_not_sleep_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "DISK_S", 0.25)
    usage = Usage()
    with subprocess.Popen([sys.executable, "-c", VFORK], start_new_session=True) as waits:
        try:
            while usage.look([waits.pid], 0.0) or not usage.in_state(b"D"):
                time.sleep(0.01)
            time.sleep(0.1)
            usage.look([waits.pid], 0.0)
            slept = [usage.look([waits.pid], 0.1) for _ in range(5)]
            assert slept == [0.0, 0.0, 0.0, pytest.approx(0.1), pytest.approx(0.1)]
        finally:
            os.killpg(waits.pid, signal.SIGKILL)


def test_a_killed_child_that_does_not_end_is_the_systems_fault(child: Callable[..., Child]) -> None:
    one = child()
    one.run._kill("wall")
    one.run._look()
    one.run.clock.s = watch.END_S + 0.1
    with pytest.raises(WorkerDied):
        one.run._look()


def test_a_run_stalls_at_ten_times_what_it_may_compute_and_wait() -> None:
    assert JOB.ceiling_s == 100.0


def test_a_wait_is_charged_without_that_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, now, switches = Clock(), [10.0], [7]
    monkeypatch.setattr("codechat.sandbox.watch.time.monotonic", lambda: now[0])
    monkeypatch.setattr(watch, "_switches", lambda: switches[0])
    clock.begin()
    now[0], switches[0] = 10.05, 8
    assert clock.waited(0.1, False) == pytest.approx(0.05)
    clock.begin()
    now[0], switches[0] = 10.1, 13  # four switches too many: 20 ms of these 50 went by in the queue
    assert clock.waited(0.1, False) == pytest.approx(0.03)
    clock.begin()
    now[0] = 20.0
    assert (clock.waited(0.1, False), clock.waited(0.1, True)) == (0.1, 0.1)
    assert clock.s == pytest.approx(0.28)


def test_who_computes_or_queues_does_not_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    usage, found, parents = Usage(), list[tuple[float, dict[int, int]]](), list[int]()
    monkeypatch.setattr(watch, "_read_tree", lambda roots: found.pop(0))
    monkeypatch.setattr(watch, "_parent", parents.append)
    found += [(0.0, {1: 0}), (0.04, {1: 50_000_000}), (0.04, {1: 20_000_000}), (0.03, {1: 220_000_000})]
    assert [usage.look([], 0.1), *(pytest.approx(usage.look([5], 0.1)) for _ in range(3))] == [0.1, 0.05, 0.1, 0.0]
    assert usage.cpu_s == 0.04 and parents == [5] * 3
    found += [(0.04, {1: 220_000_000}), (0.04, {1: 220_000_000}), (0.04, {})]
    assert [pytest.approx(usage.look([5], 0.1)) for _ in range(3)] == [0.0, 0.1, 0.01], "work that is reported late"


def test_the_time_that_a_runs_bytes_take_here_counts() -> None:
    clock = Clock()
    clock.begin()
    clock.waited(0.0, whole=True)
    began = time.thread_time()
    while time.thread_time() - began < 0.02:
        pass
    clock.handled()
    assert clock.s >= 0.02
