"""What stalls or disturbs nobody: neighbours' verdicts beside attacks, a parent that is late, and every way to end."""

import asyncio
import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attack_stalling import PRELUDE, STALLING

from codechat.base.domain import Program, Target
from codechat.base.errors import UserError
from codechat.sandbox import PYTHON, SANDBOXES, Command, Ended, Job
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.endings import explain_end, judge_status
from codechat.sandbox.suites.exit_status import ExitStatus
from codechat.sandbox.watch import Run, Usage
from support.processes import open_handles

CALLS = Calls("f", "def f(n):\n    return n * 2\n", base=((1,), (2,)), plus=((3,),), name="stalling/0")
LIMITS = {"min_cpu_s": 0.5, "load_cpu_s": 0.6, "total_cpu_s": 1.0, "idle_s": 0.7, "memory_mb": 512, "processes": 16}
SPIN = "import time\ndef spin(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
HONEST = {
    "computes": SPIN + "def f(n):\n    spin(0.2)\n    return n * 2",
    "sleeps a little": "import time\ndef f(n):\n    time.sleep(0.2)\n    return n * 2",
    "has children": "import subprocess, os\ndef f(n):\n    pid = os.fork()\n    if not pid: os._exit(n)\n    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) * 2",
    "has threads": SPIN
    + "import threading\ndef f(n):\n    t = threading.Thread(target=spin, args=(0.2,))\n    t.start(); t.join()\n    return n * 2",
}
WRONG = {"is wrong": SPIN + "def f(n):\n    spin(0.1)\n    return n"}
BIG = "def f(n):\n    return ['x' * 60] * (6000 + n)\n"
WORST = ("lowest priority in a crowd", "chains beside a spinner", "bytes by one from many", "urgent bytes", "orphans")
NO_NAMESPACES = """from codechat.sandbox.inside import isolate
def refuse(*_): raise isolate.NotGranted(1, "not granted here")
isolate.enter_namespaces = refuse
from codechat.sandbox.inside.zygote import main"""


def build(kind: str, workers: int = 1, **options: Any) -> Any:
    if kind == "bare":  # the weak sandbox on a system that grants no namespaces
        kind = "process"
    try:
        return SANDBOXES.build(SANDBOXES.validate({"kind": kind, **LIMITS, **options}), workers=workers)
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["bubblewrap", "landlock", "process", "bare"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path))
    if request.param == "bare":
        from codechat.sandbox import workers

        boot = workers.BOOT.replace("from codechat.sandbox.inside.zygote import main", NO_NAMESPACES)
        assert boot != workers.BOOT
        monkeypatch.setattr(workers, "BOOT", boot)
    return str(request.param)


@contextmanager
def late_parent() -> Iterator[list[float]]:
    """Hold the interpreter for more than a second at a time, in calls of C that do not give it up."""
    sleep, ended, held = ctypes.PyDLL(None).usleep, threading.Event(), list[float]()

    def hold() -> None:
        while not ended.wait(0.3):
            sleep(1_200_000)
            held.append(1.2)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield held
    finally:
        ended.set()
        thread.join()


async def test_no_program_is_charged_for_the_parents_delay(kind: str) -> None:
    room = build(kind, workers=2)
    big = Calls("f", BIG, base=tuple((n,) for n in range(4)), name="stalling/big")
    try:
        assert (await CALLS.check(Program(CALLS.reference or ""), room)).passed
        assert (await big.check(Program(BIG), room)).passed
        script = ExitStatus(wall_s=2.5)
        with late_parent() as held:
            verdicts = dict(
                zip(
                    [*HONEST, "waits for answers", "script"],
                    await asyncio.gather(
                        *(CALLS.check(Program(program), room) for program in HONEST.values()),
                        big.check(Program("# again\n" + BIG), room),
                        script.check(Program("import time\ntime.sleep(1)"), room),
                    ),
                    strict=True,
                )
            )
            stalled = await CALLS.check(Program("import time\ndef f(n): time.sleep(600)"), room)
    finally:
        await room.aclose()
    assert len(held) >= 2
    assert {name: verdict for name, verdict in verdicts.items() if not verdict.passed} == {}
    assert stalled.outcome == "timeout"


async def test_neighbours_of_attacks_keep_their_verdicts(kind: str) -> None:
    if kind == "bare" and os.getuid() != 0:
        pytest.skip("without namespaces, and without root, all programs are one user's, and share a count of processes")
    room = build(kind, workers=2)
    ended = False

    async def attack() -> int:
        count = 0
        while not ended:
            program = STALLING[WORST[count % len(WORST)]].replace("def solve", "def f") + f"\n# {count}"
            assert not (await CALLS.check(Program(program), room)).passed
            count += 1
        return count

    async def work() -> list[str]:
        nonlocal ended
        try:
            honest = [
                (await CALLS.check(Program(f"# {turn}\n{program}"), room)).outcome
                for turn in range(2)
                for program in (*HONEST.values(), *WRONG.values())
            ]
        finally:
            ended = True
        return honest

    try:
        assert (await CALLS.check(Program(CALLS.reference or ""), room)).passed
        attacks, outcomes = await asyncio.gather(attack(), work())
    finally:
        await room.aclose()
    assert outcomes == [*["pass"] * len(HONEST), "fail"] * 2
    assert attacks > 1


DIE = (
    PRELUDE
    + """
def die(number):
    if number != signal.SIGCHLD: attempt(signal.signal, number, signal.SIG_DFL)
    timer = ctypes.c_long()
    call(222, 107, 0, struct.pack("qii48x", 0, number, 0), ctypes.byref(timer))
    call(223, 110, timer, 0, struct.pack("qqqq", 0, 0, 0, 1000), None)
    time.sleep(0.002)
    attempt(os.kill, os.getpid(), number)
    time.sleep(0.3)
"""
)


async def test_death_by_every_signal_is_an_outcome(kind: str) -> None:
    """By timers, because signals to others are refused where there are no namespaces, and without effect in them."""
    room = build(kind, workers=4, idle_s=0.4)
    outcomes: dict[int, str] = {}

    async def die(number: int) -> None:
        program = f"{DIE}def f(n):\n    die({number})\n    time.sleep(600)"
        outcomes[number] = (await CALLS.check(Program(program), room)).outcome

    async def die_in_a_child(number: int) -> None:
        script = f"{DIE}start(die, {number})\nsys.exit(os.wait()[1] & 127)"
        command = Command(argv=(PYTHON, "main.py"), files={"main.py": script.encode()})
        ran = await room.run(command)
        assert ran.status == number, ran
        assert judge_status(ran, command).outcome == "fail"

    try:
        assert (await CALLS.check(Program(f"# before\n{CALLS.reference}"), room)).passed
        await asyncio.gather(*map(die, range(1, 65)))
        await asyncio.gather(*map(die_in_a_child, (6, 9, 24, 34, 35, 64)))
        assert (await CALLS.check(Program(f"# after\n{CALLS.reference}"), room)).passed
        contained = room.contained
    finally:
        await room.aclose()
    assert set(outcomes.values()) <= {"crash", "timeout"}, outcomes
    if not contained:
        assert {number for number, outcome in outcomes.items() if outcome == "crash"} >= {6, 9, 15, *range(34, 65)}


@pytest.mark.parametrize("number", range(1, 65))
def test_every_signal_has_words(number: int) -> None:
    assert explain_end(Ended(number, 0.1, 0), 3)[0] == "crash"
    assert explain_end(Ended(number, 2.9, 0), 3)[0] == "timeout"


ENDS = {
    "computes in a child": ("spin_child()", "timeout"),
    "computes in a child and goes": ("spin_child(); os._exit(1)", "timeout"),
    "computes deaf": (
        "signal.signal(signal.SIGXCPU, signal.SIG_IGN); signal.setitimer(signal.ITIMER_PROF, 0)\n    while True: pass",
        "timeout",
    ),
    "kills itself": ("kill_self()", "crash"),
    "goes": ("os._exit(3)", "crash"),
}


async def test_want_of_cpu_time_is_a_timeout_and_a_kill_is_a_crash(kind: str) -> None:
    helpers = """
def spin_child():
    pid = os.fork()
    while pid == 0: pass
    os.waitpid(pid, 0)
def kill_self():
    try: os.kill(os.getpid(), signal.SIGKILL)
    finally: os._exit(5)
"""
    room = build(kind, workers=3, total_cpu_s=0.3, idle_s=3.0)

    async def end(name: str, body: str, expected: str) -> None:
        verdict = await CALLS.check(Program(f"import os, signal, time\n{helpers}def f(n):\n    {body}"), room)
        assert verdict.outcome == expected, (name, verdict)
        script = f"import os, signal, time\n{helpers}def f():\n    {body}\nf()"
        command = Command(argv=(PYTHON, "main.py"), files={"main.py": script.encode()}, wall_s=90.0, cpu_s=0.5)
        ran = await room.run(command)
        assert (ran.why == "cpu") == (expected == "timeout"), (name, ran)

    try:
        assert (await CALLS.check(Program(CALLS.reference or ""), room)).passed
        # without namespaces, a timeout comes about as with them
        ends = [(name, *each) for name, each in ENDS.items() if kind != "bare" or each[1] == "crash"]
        await asyncio.gather(*(end(*each) for each in ends))
    finally:
        await room.aclose()


async def test_the_tree_of_processes_is_measured_whole(kind: str) -> None:
    script = """
import os, time
def spin(s):
    end = time.process_time() + s
    while time.process_time() < end: pass
for wait in (True, False):
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0: spin(0.3); os._exit(0)
        spin(0.3)
        os.wait() if wait else None
        os._exit(0)
    os.waitpid(pid, 0)
time.sleep(0.5)
"""
    room = build(kind)
    try:
        ran = await room.run(Command(argv=(PYTHON, "main.py"), files={"main.py": script.encode()}, wall_s=90.0))
    finally:
        await room.aclose()
    assert ran.status == 0
    assert 1.1 < ran.cpu_s < 2.0, ran


def test_a_name_in_any_bytes_is_read() -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(15, b"\xff) R 1 (\n", 0, 0, 0)
        os.write(write, b"x")
        time.sleep(60)
        os._exit(0)
    try:
        assert os.read(read, 1) == b"x"
        usage = Usage()
        usage.look([pid], 0.1)
        waited = (usage.look([pid], 0.1) for _ in range(100) if not time.sleep(0.05))
        assert any(each == pytest.approx(0.1, abs=0.05) for each in waited), "it sleeps, once it got that far"
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(read)
        os.close(write)


async def test_every_process_of_a_job_is_known_by_its_first_frame(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of the program that speaks later is not taken for one of the sandbox's own."""
    room, seen = build(kind), list[list[int]]()
    follow = Run.follow

    def note(run: Run) -> Ended:
        seen.append(run.pids)
        return follow(run)

    monkeypatch.setattr(Run, "follow", note)
    program = "import os\ndef f():\n    if os.fork() == 0:\n        for n in (3, 4): os.write(n, b'x')\n    os.wait()"
    try:
        await Calls("f", None, base=((),), expected_base=(None,)).check(Program(program), room)
        await Assertions(("assert f() is None",)).check(Program(program, Target(entry_point="f")), room)
    finally:
        await room.aclose()
    if kind == "bare":  # one process, then: nothing parts two of them
        assert [len(pids) for pids in seen] == [1, 1]
        return
    assert [len(pids) for pids in seen] == [1, 2]
    assert len({pid for pids in seen for pid in pids}) == 3


REFUSED = {
    "niceness": "os.nice(5)",
    "idle class": "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))",
    "one core": "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})",
    "no zombies": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
}
ALLOWED = {
    "a pool of processes": "multiprocessing.Pool(2).map(abs, [1])",
    "a pool of futures": "concurrent.futures.ProcessPoolExecutor(2).submit(abs, 1).result()",
    "cores": "len(os.sched_getaffinity(0))",
    "a known signal": "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
    "processes": "[(one.start(), one.join()) for one in [multiprocessing.Process(target=abs, args=(1,))]]",
    "a pool of threads": "concurrent.futures.ThreadPoolExecutor(2).submit(abs, 1).result()",
    "numpy": "__import__('numpy').linalg.inv(__import__('numpy').eye(300))",
    "scipy": "__import__('scipy.stats')",
    "spawned": "os.waitpid(os.posix_spawn(PYTHON, [PYTHON, '-S', '-c', ''], os.environ), 0)",
    "subprocess": "subprocess.run([PYTHON, '-S', '-c', ''], check=True, capture_output=True)",
    "asyncio": "asyncio.run(asyncio.sleep(0))",
    "asyncio's children": "asyncio.run(child())",
}


async def test_what_is_refused_and_what_still_works(kind: str) -> None:
    room = build(kind, idle_s=10.0, load_cpu_s=10.0, min_cpu_s=10.0, total_cpu_s=30.0, memory_mb=4096, processes=32)
    program = """
import asyncio, concurrent.futures, multiprocessing, os, signal, subprocess, sys
PYTHON = sys.executable or "/python/bin/python3"
async def child(): await (await asyncio.create_subprocess_exec(PYTHON, "-S", "-c", "")).wait()
def f(n):
    try: {code}
    except PermissionError: return 0
    return n * 2
"""
    outcomes = {}
    try:
        for name, code in (REFUSED | ALLOWED).items():
            verdict = await CALLS.check(Program(program.replace("{code}", code)), room)
            outcomes[name] = verdict.failure and (verdict.failure.actual, verdict.failure.exception)
    finally:
        await room.aclose()
    assert outcomes == dict.fromkeys(REFUSED, ("0", None)) | dict.fromkeys(ALLOWED, None)


async def test_no_run_outlasts_its_ceiling_by_the_clock(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Job(b"", 5.0, 60.0, 70.0).ceiling_s == 1330.0
    monkeypatch.setattr("codechat.sandbox.watch.CEILING_S", 0.5)
    monkeypatch.setattr("codechat.sandbox.watch.CEILING_FACTOR", 0.0)
    room = build(kind, idle_s=60.0, total_cpu_s=60.0)
    calls = replace(CALLS, reference=None, expected_base=(2, 4), expected_plus=(6,))
    try:
        began = time.monotonic()
        verdict = await calls.check(Program("import time\ndef f(n): time.sleep(600)"), room)
    finally:
        await room.aclose()
    assert verdict.outcome == "timeout"
    assert verdict.failure is not None
    assert "by the clock" in verdict.failure.reason
    assert time.monotonic() - began < 40


async def test_descriptors_in_the_results_are_not_kept(kind: str) -> None:
    room = build(kind)
    try:
        assert (await CALLS.check(Program(CALLS.reference or ""), room)).passed
        before = open_handles()
        for name in ("descriptors", "descriptors of itself", "credentials of others"):
            program = STALLING[name].replace("def solve", "def f")
            assert not (await CALLS.check(Program(program), room)).passed
            assert open_handles() == before
    finally:
        await room.aclose()
