"""A construction is killed again and again: no recorded reply is paid twice, and its files come out the same."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from codechat.testing import Call, OpenAIServer
from support.construction import written
from support.plugins import ROOT, install

pytestmark = pytest.mark.long

KILLS = 6
SEEDS = 24
SLOTS = 3
LATENCY_S = 0.15


async def answer(call: Call) -> str:
    await asyncio.sleep(LATENCY_S)
    text = call.messages[-1]["content"]
    if not text.startswith("Write one"):
        return "3"
    number = int(text.split("thing ")[1].split(",")[0])
    return json.dumps({"line": "short" if number % 5 == 0 else f"all about {number}", "about": f"thing {number}"})


def start(server: OpenAIServer, folder: Path, out: str) -> subprocess.Popen[bytes]:
    poet = "construct.roles.poet"
    words = ["construct", "recipe=couplets", f"out={out}", "seeds=seeds.jsonl", "tracking=none", f"{poet}.cache=false"]
    words += [f"{poet}.base_url={server.base_url}", f"{poet}.name=x", f"{poet}.api_key_env=null"]
    path = os.pathsep.join((str(folder), str(ROOT)))
    return subprocess.Popen(
        [sys.executable, "-m", "codechat", *words, f"{poet}.max_concurrency={SLOTS}"],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_nothing_is_paid_twice_and_no_byte_differs(tmp_path: Path) -> None:
    install(tmp_path, "couplets", ("construct",))
    lines = (json.dumps({"id": f"s{number}", "subject": f"thing {number}"}) for number in range(SEEDS))
    (tmp_path / "seeds.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with OpenAIServer(answer) as server:
        assert start(server, tmp_path, "whole").wait(300) == 0
        asked = Counter(call.messages[-1]["content"] for call in server.calls)
        assert asked.total() == 2 * SEEDS
        server.calls.clear()
        chosen, kills = random.Random(7), 0
        while kills < KILLS:
            process, before = start(server, tmp_path, "killed"), len(server.calls)
            while process.poll() is None and len(server.calls) == before:
                time.sleep(0.005)
            time.sleep(chosen.uniform(0, 3 * LATENCY_S))
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            kills += 1
        assert kills == KILLS, "it ended before the last kill: nothing is shown by that"
        assert start(server, tmp_path, "killed").wait(300) == 0
        again = Counter(call.messages[-1]["content"] for call in server.calls) - asked
        assert again.total() <= KILLS * SLOTS, "only calls under way when it was killed"
        paid = len(server.calls)
        assert start(server, tmp_path, "killed").wait(300) == 0
        assert len(server.calls) == paid
    assert written(tmp_path / "killed") == written(tmp_path / "whole")
