"""A cell of dialogues is killed again and again: no recorded reply is paid twice, and its records come out the same."""

import asyncio
import json
import random
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from codechat.base.files import content_hash
from codechat.testing import Call, OpenAIServer
from support import processes
from support.cab import judges, says

pytestmark = pytest.mark.long

KILLS = 10
LATENCY_S = 0.1
SLOTS = 4
SAID = [
    "EXPLORE: echo a >> note; cat note\nEXPLORE: ls",
    "EXPLORE: cat note; git log --oneline",
    "ANSWER: first",
    "EXPLORE: echo b >> note; cat note",
    "ANSWER: second",
    "EXPLORE: cat note",
    "ANSWER: third",
]


async def speak(call: Call) -> str:
    """The maintainer leaves notes in the repository, and reads them after later answers."""
    await asyncio.sleep(LATENCY_S)
    said = call.messages[0]["content"]
    match call.body["model"]:
        case "model":
            return SAID[sum(message["role"] == "assistant" for message in call.messages)]
        case "user":
            return says("Done.", "FULLY_SATISFIED") if "MAINTAINER_3" in said else says("Go on.")
        case _:
            return judges(*[True] * sum(f"CONDITION {number}:" in said for number in range(1, 9)))


def comparable(value: Any) -> Any:
    """Without times."""
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items() if not key.endswith("_s")}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def start(server: OpenAIServer, folder: Path) -> BaseProcess:
    words = ["protocol=assist", "dataset=assist_starter", "tracking=none", "runs_dir=runs", "model=openai"]
    for place, name in (("model", "model"), ("protocol.roles.user", "user"), ("protocol.roles.judge", "judge")):
        words += [] if place == "model" else [f"model@{place}=openai"]
        words += [f"{place}.base_url={server.base_url}", f"{place}.api_key_env=null", f"{place}.name={name}"]
        words += [f"{place}.max_concurrency={SLOTS}", f"{place}.cache=false"]
    folder.mkdir(exist_ok=True)
    return processes.start(folder, *words)


def sessions(folder: Path) -> list[Any]:
    (cell,) = (folder / "runs").iterdir()
    return [comparable(json.loads(line)) for line in (cell / "sessions.jsonl").read_text().splitlines()]


def test_nothing_is_paid_twice_and_nothing_differs(tmp_path: Path) -> None:
    with OpenAIServer(speak, models=["model", "user", "judge"]) as server:
        assert processes.ended(start(server, tmp_path / "whole")) == 0
        needed = len(server.calls)
        assert needed == 3 * (7 + 3 + 1)
        server.calls.clear()
        chosen, kills = random.Random(4), 0
        while kills < KILLS:
            process, asked = start(server, tmp_path / "killed"), server.answered
            while process.is_alive() and server.answered == asked:  # it starts, and resumes what is recorded
                time.sleep(0.005)
            time.sleep(chosen.uniform(0, 4 * LATENCY_S))
            if not process.is_alive():
                break
            process.kill()
            process.join()
            kills += 1
        assert kills >= 3, "it was killed in its midst"
        assert processes.ended(start(server, tmp_path / "killed")) == 0
        asked_for = Counter(content_hash([call.body["model"], call.messages]) for call in server.calls)
    repeated = sum(asked_for.values()) - len(asked_for)
    assert len(asked_for) == needed, "the same requests, commands and their files included"
    assert repeated <= kills * 3, "of each of three dialogues at most the call under way is asked again"
    assert sessions(tmp_path / "killed") == sessions(tmp_path / "whole")
