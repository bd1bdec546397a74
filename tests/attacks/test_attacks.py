"""No hostile program passes, outlives its limits, leaves anything behind, or disturbs the next verdict.

Programs run some at a time, each followed by a right one, and after each group right ones must pass in every worker.
"""

import asyncio
import dataclasses
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attack_forging import FORGING
from attack_harming import HARMING, PORT_MARK, SECRET
from attack_malformed import MALFORMED
from attack_stalling import STALLING
from attack_values import SLOW, VALUES

from codechat.base.domain import Program, Verdict
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.calls.oracle import Oracle
from support.processes import descendants

BESIDE = "def twice(n):\n    return 2 * n\n"
REFERENCE = "import math\ndef solve(n):\n    return [math.sqrt(n), math.sqrt(n + 1), math.sqrt(n + 2)]\n"
CALLS = Calls("solve", REFERENCE, base=((2,), (5,)), plus=((70,), (1000,)), atol=1e-6)
LIMITS = {"min_cpu_s": 0.3, "load_cpu_s": 0.6, "total_cpu_s": 1.0, "idle_s": 0.7, "memory_mb": 512, "processes": 16}
LONGEST_S = (
    60.0  # load + total CPU + idle, and what a busy machine adds: who yields for ever spends a second of CPU slowly
)
WORKERS, GROUP = 4, 10
# One of so many programs runs there, since a part stands for all if a strong kind is tested with all.
SHARES = {"bubblewrap": 1, "landlock": 1, "process": 3, "docker": 6}
WATCHED = [Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm", "/") if Path(name).is_dir()]

CORPUS: dict[str, str] = {
    f"{group}: {name}": program
    for group, programs in (
        ("forging", FORGING),
        ("harming", HARMING),
        ("malformed", MALFORMED),
        ("stalling", STALLING),
        ("values", VALUES),
    )
    for name, program in programs.items()
}


async def right_in_all(room: Any, remark: str) -> None:
    """Right programs pass in every worker at once: each takes so long that no worker gets two."""
    program = f"import time\ntime.sleep(0.3)\n{REFERENCE}"
    verdicts = await asyncio.gather(*(right(room, f"{remark}, {place}", program) for place in range(WORKERS)))
    assert all(verdict.passed for verdict in verdicts), (remark, verdicts)


@pytest.fixture(scope="module")
def sandbox(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    of_kind: Callable[[str], dict[str, str]],
) -> Iterator[Any]:
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("CODECHAT_ATTACK_SECRET", SECRET)
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    config = SANDBOXES.validate({**of_kind(request.param), **LIMITS})
    try:
        room: Any = SANDBOXES.build(config, workers=WORKERS)
    except UserError as error:
        pytest.skip(str(error))
    assert asyncio.run(CALLS.check(Program(REFERENCE), room)).passed
    asyncio.run(right_in_all(room, "first in a worker"))  # no worker is to be taken for what a program left
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


# Where the system grants no namespaces, the weak sandbox cannot keep these from the temporary folders or the name.
NEED_NAMESPACES = {"disk filled", "files everywhere", "everything deleted", "host name", "shared memory"}


def names() -> set[str]:
    return {
        str(path) for folder in WATCHED for path in folder.glob("*") if "was-here" in path.name or "fill" in path.name
    }


def groups() -> Iterator[Any]:
    """The kinds of sandboxes, each with the programs that meet it, some at a time."""
    for kind, share in SHARES.items():
        met = [name for name in CORPUS if zlib.crc32(name.encode()) % share == 0]
        for needing in (False, True):
            alike = [name for name in met if (name.partition(": ")[2] in NEED_NAMESPACES) == needing]
            for start in range(0, len(alike), GROUP):
                yield pytest.param(kind, alike[start : start + GROUP], id=f"{kind}-{alike[start]}")


@pytest.mark.parametrize(("sandbox", "together"), [*groups()], indirect=["sandbox"])
async def test_attacks_fail_and_leave_nothing(sandbox: Any, together: list[str]) -> None:
    if sandbox.weak and not sandbox.contained and together[0].partition(": ")[2] in NEED_NAMESPACES:
        pytest.skip("the system grants no namespaces")
    processes, files, places = descendants(), names(), asyncio.Semaphore(WORKERS)

    async def attack(name: str) -> None:
        async with places:
            await fails(sandbox, name)

    await asyncio.gather(*(attack(name) for name in together))
    assert descendants() == processes, f"a process of {together} was left, or the sandbox's own died"
    assert names() == files, together
    await right_in_all(sandbox, f"after {together}")


async def fails(sandbox: Any, name: str) -> None:
    """A program of the corpus does not pass, ends in time, tells and reaches nothing; the next program is right."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        program = CORPUS[name].replace(PORT_MARK, str(listener.getsockname()[1]))
        began = time.monotonic()
        verdict = await CALLS.check(Program(program), sandbox)
        took = time.monotonic() - began
        with pytest.raises(BlockingIOError):
            pytest.fail(f"{name} connected from {listener.accept()[1]}")
    assert not verdict.passed, name
    assert not verdict.passed_base, name
    assert verdict.failure is not None, name
    assert took < LONGEST_S, name
    assert SECRET not in str(verdict), name
    assert socket.gethostname() not in str(verdict), name
    following = await right(sandbox, f"after {name}")
    assert following.passed, (name, following)


async def right(sandbox: Any, remark: str, program: str = REFERENCE) -> Verdict:
    return await CALLS.check(Program(f"# {remark}\n{program}"), sandbox)


@pytest.mark.parametrize("oracle", ["equal", "set_equal"])
async def test_what_is_slow_to_read_disturbs_no_program_beside_it(oracle: Oracle) -> None:
    config = SANDBOXES.validate({"kind": "process", **LIMITS, "load_cpu_s": 5})
    room: Any = SANDBOXES.build(config, workers=2)
    hostile = dataclasses.replace(CALLS, oracle=oracle)
    honest = Calls("twice", BESIDE, base=tuple((n,) for n in range(300)))
    try:
        for name, program in SLOW.items():
            lie = asyncio.create_task(hostile.check(Program(program), room))
            beside = 0
            while not lie.done() or not beside:
                assert (await honest.check(Program(f"# {name}, {beside}\n{BESIDE}"), room)).passed, name
                beside += 1
            assert not (await lie).passed, name
    finally:
        await room.aclose()


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= 170
