"""No hostile program passes, outlives its limits, leaves anything behind, or disturbs the next verdict."""

import asyncio
import dataclasses
import shutil
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

from codechat.domain import Program
from codechat.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.suites.calls import Calls
from codechat.suites.calls.oracle import Oracle
from support.processes import descendants

BESIDE = "def twice(n):\n    return 2 * n\n"
REFERENCE = "import math\ndef solve(n):\n    return [math.sqrt(n), math.sqrt(n + 1), math.sqrt(n + 2)]\n"
CALLS = Calls("solve", REFERENCE, base=((2,), (5,)), plus=((70,), (1000,)), atol=1e-6)
LIMITS = {"min_cpu_s": 0.3, "load_cpu_s": 0.6, "total_cpu_s": 1.0, "idle_s": 0.7, "memory_mb": 512, "processes": 16}
LONGEST_S = (
    60.0  # load + total CPU + idle, and what a busy machine adds: who yields for ever spends a second of CPU slowly
)
# One of so many programs runs there, since a part stands for all if bubblewrap is tested with all.
SHARES = {"bubblewrap": 1, "process": 3, "docker": 6} if shutil.which("bwrap") else {"process": 1, "docker": 1}
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
        room: Any = SANDBOXES.build(config, workers=1)
    except UserError as error:
        pytest.skip(str(error))
    assert asyncio.run(CALLS.check(Program(REFERENCE), room)).passed
    yield room
    asyncio.run(room.aclose())
    monkeypatch.undo()


# Where the system grants no namespaces, the weak sandbox cannot keep these from the temporary folders or the name.
NEED_NAMESPACES = {"disk filled", "files everywhere", "everything deleted", "host name", "shared memory"}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def names() -> set[str]:
    return {
        str(path) for folder in WATCHED for path in folder.glob("*") if "was-here" in path.name or "fill" in path.name
    }


@pytest.mark.parametrize(
    ("sandbox", "name"),
    [(kind, name) for kind, share in SHARES.items() for name in CORPUS if zlib.crc32(name.encode()) % share == 0],
    indirect=["sandbox"],
)
async def test_an_attack_fails_and_leaves_nothing(sandbox: Any, listener: socket.socket, name: str) -> None:
    if not sandbox.contained and name.partition(": ")[2] in NEED_NAMESPACES:
        pytest.skip("the system grants no namespaces")
    processes, files = descendants(), names()
    began = time.monotonic()
    program = CORPUS[name].replace(PORT_MARK, str(listener.getsockname()[1]))
    verdict = await CALLS.check(Program(program), sandbox)
    took = time.monotonic() - began

    assert not verdict.passed
    assert not verdict.passed_base
    assert verdict.failure is not None
    assert took < LONGEST_S
    assert descendants() == processes, "a process was left, or the sandbox's own died"
    assert names() == files
    assert SECRET not in str(verdict)
    assert socket.gethostname() not in str(verdict)
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert (await CALLS.check(Program(f"# after {name}\n{REFERENCE}"), sandbox)).passed


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
