"""What every kind of sandbox owes its users, whatever it isolates with."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.domain import Outcome, Task
from codechat.errors import InfrastructureError, UserError
from codechat.sandbox import SANDBOXES, SandboxConfig
from support.tasks import snippets, task_of

LIMITS = {"idle_s": 0.7, "min_cpu_s": 0.5, "memory_mb": 1024}
REFERENCE = "def total(numbers):\n    return sum(numbers)\n"
CALLS: dict[str, Any] = {"base": (([1, 2],), ([],)), "plus": (([0.5, 0.25],), ([10**30, 1],))}


def summing(task_id: str = "contract/0", reference: str = REFERENCE, **calls: Any) -> Task:
    return task_of(task_id, "def total(numbers):", reference, **{**CALLS, **calls})


TASK = summing()


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
    config = SANDBOXES.validate({"kind": kind, **LIMITS, **options})
    try:
        return SANDBOXES.of(config).factory(config, workers=workers)
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=[component.name for component in SANDBOXES])
def sandbox(request: pytest.FixtureRequest, own_cache: None) -> Iterator[Any]:
    room = build(request.param, workers=2)
    yield room
    asyncio.run(room.aclose())


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
async def test_outcomes(sandbox: Any, case: str) -> None:
    program, outcome, passed_base = CASES[case]
    verdict = await sandbox.verify(program, TASK)
    assert (verdict.outcome, verdict.passed_base) == (outcome, passed_base), verdict
    assert (verdict.failure is None) == (outcome == "pass")
    assert verdict.cpu_s >= 0


async def test_a_failure_shows_the_first_failing_input_and_both_values(sandbox: Any) -> None:
    failure = (
        await sandbox.verify("def total(numbers):\n    print('so far')\n    return int(sum(numbers))", TASK)
    ).failure
    assert (failure.suite, failure.index, failure.input) == ("plus", 0, "[0.5, 0.25]")
    assert (failure.expected, failure.actual) == ("0.75", "0")
    assert failure.stdout == "so far\n" * 3


async def test_an_exception_shows_the_programs_own_lines(sandbox: Any) -> None:
    failure = (
        await sandbox.verify("def total(n):\n    return helper(n)\ndef helper(n):\n    return n['a']", TASK)
    ).failure
    assert failure.exception.splitlines()[:2] == [
        "line 2, in total: return helper(n)",
        "line 4, in helper: return n['a']",
    ]
    assert failure.exception.splitlines()[2].startswith("TypeError: list indices")


async def test_verdicts_are_the_same_in_every_process(sandbox: Any) -> None:
    program = "import random\ndef total(n): return [object(), random.random(), hash('a'), {'b', 'a', 'c'}]"
    one = await sandbox.verify(program, TASK)
    two = await sandbox.verify(program, summing(atol=1e-9))
    assert one.failure == two.failure


async def test_the_same_program_is_run_once(sandbox: Any) -> None:
    program = "import time\ndef total(numbers):\n    time.sleep(0.1)\n    return sum(numbers)"
    verdicts = await asyncio.gather(*(sandbox.verify(program, TASK) for _ in range(20)))
    assert len({id(verdict) for verdict in verdicts}) == 1
    assert await sandbox.verify(program, TASK) is verdicts[0]


async def test_the_event_loop_goes_on(sandbox: Any) -> None:
    task = asyncio.create_task(sandbox.verify("def total(numbers):\n    while True: len(numbers)", TASK))
    rounds = 0
    while not task.done():
        await asyncio.sleep(0.005)
        rounds += 1
    assert rounds > 20, "a loop that waits for the sandbox gets round once or twice"
    assert task.result().outcome == "timeout"


async def test_a_reference_that_fails_is_the_users_mistake(sandbox: Any) -> None:
    for reference, words in (
        ("def total(numbers): return 1 / len(numbers)", "ZeroDivisionError"),
        ("def other(numbers): pass", "entry point"),
        ("def total(", "parse"),
        (None, "neither a reference"),
    ):
        task = summing("contract/bad", reference)
        with pytest.raises(UserError, match=words):
            await sandbox.verify(REFERENCE, task)
    assert (await sandbox.verify("# still well\n" + REFERENCE, TASK)).passed


async def test_results_that_the_dataset_gives_count_before_the_references(sandbox: Any) -> None:
    calls: dict[str, Any] = {"base": ((1,), (2,)), "plus": ((3,),), "expected_base": (10, 20)}
    task = task_of("contract/g", "def f(x):", **calls, expected_plus=([30],))
    assert (await sandbox.verify("def f(x): return [30] if x == 3 else 10 * x", task)).passed
    assert (await sandbox.verify("def f(x): return 10 * x", task)).passed_base
    assert not (await sandbox.verify("def f(x): return x", task)).passed_base
    mixed = task_of("contract/g", "def f(x):", "def f(x): return -x", **calls)
    assert (await sandbox.verify("def f(x): return -3 if x == 3 else 10 * x", mixed)).passed


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
async def test_a_snippet_passes_if_it_runs_to_its_end(sandbox: Any, tests: str, outcome: Outcome) -> None:
    assert (await sandbox.assess(REFERENCE, snippets(tests))).outcome == outcome


async def test_float_tolerance_and_types(sandbox: Any) -> None:
    task = task_of("contract/f", "def f(x):", "def f(x): return x * 0.1", base=((3,),), plus=((7,),))
    assert (await sandbox.verify("def f(x): return x / 10 + 1e-9", task)).passed
    assert not (await sandbox.verify("def f(x): return x / 10 + 1e-3", task)).passed


async def test_values_too_big_to_send_are_compared_by_digests(sandbox: Any) -> None:
    reference = "def f(n): return [[i, 'x' * 40] for i in range(n)]"
    task = task_of("contract/b", "def f(n):", reference, base=((20_000,),), plus=((200_000,),))
    assert (await sandbox.verify("# same\n" + reference, task)).passed
    assert (await sandbox.verify("def f(n): return [[float(i), 'x' * 40] for i in range(n)]", task)).passed_base
    assert not (await sandbox.verify("def f(n): return [[i, 'x' * 39] for i in range(n)]", task)).passed_base
    assert not (await sandbox.verify("def f(n): return [(i, 'x' * 40) for i in range(n)]", task)).passed_base


async def test_a_task_without_plus_inputs(sandbox: Any) -> None:
    task = summing(base=(([1],),), plus=())
    assert (await sandbox.verify(REFERENCE, task)).passed


@pytest.mark.parametrize("kind", ["process", "bubblewrap"])
async def test_a_killed_worker_is_replaced(kind: str) -> None:
    room = build(kind)
    try:
        assert (await room.verify(REFERENCE, TASK)).passed
        for pid in below(os.getpid()):
            with contextlib.suppress(ProcessLookupError):  # it went with the namespace of one killed before it
                os.kill(pid, signal.SIGKILL)
        assert (await room.verify("# again\n" + REFERENCE, TASK)).passed
    finally:
        await room.aclose()


async def test_closing_ends_what_runs_and_leaves_no_process() -> None:
    before = below(os.getpid())
    room = build("process")
    running = asyncio.create_task(room.verify("import time\ndef total(n): time.sleep(60)", TASK))
    await asyncio.sleep(0.4)
    assert below(os.getpid()) > before
    await room.aclose()
    with pytest.raises(InfrastructureError):
        await running
    assert below(os.getpid()) == before


async def test_a_sandbox_that_cannot_start_is_infrastructure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.sandbox.worker.BOOT", "raise SystemExit('no zygote today')  # {root} {config}")
    room = build("process")
    try:
        with pytest.raises(InfrastructureError, match="no zygote today"):
            await room.verify("# fresh\n" + REFERENCE, summing(atol=1e-3))
    finally:
        await room.aclose()


def test_a_missing_program_is_told_with_the_package_and_auto_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    config = SANDBOXES.validate({"kind": "bubblewrap"})
    with pytest.raises(UserError, match="install the package 'bubblewrap'"):
        SANDBOXES.of(config).factory(config, workers=1)
    config = SANDBOXES.validate({"kind": "auto", "idle_s": 3})
    room: Any = SANDBOXES.of(config).factory(config, workers=1)
    assert room.weak
    assert "bwrap" in room.notice
    assert "sandbox=process" in room.notice
    asyncio.run(room.aclose())


def test_every_kind_has_the_same_limits_and_they_alone_are_identity() -> None:
    wanted = SandboxConfig(kind="any").identity()
    assert set(wanted) == set(SandboxConfig.model_fields) - {"kind", "allow_weak"}
    for component in SANDBOXES:
        assert SANDBOXES.validate({"kind": component.name}).identity() == wanted


def below(root: int) -> set[int]:
    """The processes that `root` started, at any depth."""
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            new = {int(word) for word in task.read_text().split()} - found
            found |= new
            waiting += new
    return found
