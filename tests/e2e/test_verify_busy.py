"""A busy machine changes no verdict: limits are in CPU time, and waiting for a processor is not sleeping."""

import asyncio
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.calls import Calls

pytestmark = pytest.mark.long

CALLS = Calls("f", "def f(n):\n    return n * 2\n", base=((1,), (2,)), plus=((3,),))
SPIN = "import time\ndef spin(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
PROGRAMS = {
    "near its limit": (SPIN + "def f(n):\n    spin(0.35)\n    return n * 2", "pass"),
    "over its limit": (SPIN + "def f(n):\n    spin(0.9)\n    return n * 2", "timeout"),
    "sleeps a little": ("import time\ndef f(n):\n    time.sleep(0.3)\n    return n * 2", "pass"),
    "sleeps too long": ("import time\ndef f(n):\n    time.sleep(20)\n    return n * 2", "timeout"),
    "waits for threads": (
        SPIN + "import threading\ndef f(n):\n    t = threading.Thread(target=spin, args=(0.3,))\n"
        "    t.start(); t.join()\n    return n * 2",
        "pass",
    ),
    "wrong after work": (SPIN + "def f(n):\n    spin(0.2)\n    return n", "fail"),
}


def spin() -> None:
    while True:
        pass


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """Three processes per core that never rest."""
    context = multiprocessing.get_context("spawn")
    load = [context.Process(target=spin, daemon=True) for _ in range(3 * len(os.sched_getaffinity(0)))]
    for process in load:
        process.start()
    yield
    for process in load:
        process.kill()
        process.join()


async def test_verdicts_under_heavy_load_equal_those_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path))
    config = SANDBOXES.validate({"kind": "auto", "min_cpu_s": 0.6, "idle_s": 1.5})
    runs = []
    for fixture in (None, "busy_cores"):
        if fixture:
            request.getfixturevalue(fixture)
        room: Any = SANDBOXES.build(config, workers=2)
        try:
            verdicts = await asyncio.gather(*(CALLS.check(Program(program), room) for program, _ in PROGRAMS.values()))
        finally:
            await room.aclose()
        runs.append([verdict.outcome for verdict in verdicts])
    assert runs[0] == [outcome for _, outcome in PROGRAMS.values()]
    assert runs[1] == runs[0]
