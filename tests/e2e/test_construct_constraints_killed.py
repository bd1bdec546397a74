"""`recipe=constraints` is killed at ten random points, over two rounds: the same file, and no recorded reply paid twice."""

import asyncio
import json
import random
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from codechat.testing import Call, OpenAIServer
from support import processes
from support.construction import ROLES, Agents, snippet, written

pytestmark = pytest.mark.long

KILLS = 10
SLOTS = 3
LATENCY_S = 0.1


def start(server: OpenAIServer, folder: Path, out: str) -> BaseProcess:
    place = "construct.roles"
    keys = (f"base_url={server.base_url}", "api_key_env=null", f"max_concurrency={SLOTS}", "cache=false")
    at = [f"{place}.{role}.{key}" for role in ROLES for key in (*keys, f"name={role}")]
    models = [f"model@{place}.{role}=openai" for role in ROLES]
    words = ["types=[library,data_structure_size]", "expand=[data_structure_size]", "languages=[python]", "number=3"]
    words += ["levels=2", "rounds=2", f"seeds={folder / 'seeds.jsonl'}", f"out={folder / out}", "tracking=none"]
    return processes.start(folder, "construct", "recipe=constraints", *words, *models, *at)


def test_it_makes_the_same_file(tmp_path: Path) -> None:
    agents = Agents({1: "malformed", 2: "unpassable", 4: "related"})

    async def answer(call: Call) -> str:
        await asyncio.sleep(LATENCY_S)
        return agents(call)

    (tmp_path / "seeds.jsonl").write_text("".join(json.dumps(snippet(number)) + "\n" for number in range(9)))
    with OpenAIServer(answer, models=ROLES) as server:
        assert processes.ended(start(server, tmp_path, "whole")) == 0
        paid = Counter(json.dumps(call.messages) for call in server.calls)
        items = (tmp_path / "whole" / "items.jsonl").read_text().splitlines()
        assert {json.loads(line)["provenance"]["snippet"]["id"] for line in items} >= {"snippet/6", "snippet/7"}, (
            "rounds"
        )
        server.calls.clear()
        chosen, kills = random.Random(11), 0
        while kills < KILLS:
            process, before = start(server, tmp_path, "killed"), len(server.calls)
            while process.is_alive() and len(server.calls) == before:
                time.sleep(0.005)
            time.sleep(chosen.uniform(0, 2 * LATENCY_S))
            if not process.is_alive():
                break
            process.kill()
            process.join()
            kills += 1
        assert kills == KILLS, "it ended before the last kill: nothing is shown by that"
        assert processes.ended(start(server, tmp_path, "killed")) == 0
        again = Counter(json.dumps(call.messages) for call in server.calls) - paid
        assert again.total() <= KILLS * SLOTS * len(ROLES), "only calls under way when it was killed"
    assert written(tmp_path / "killed") == written(tmp_path / "whole")
