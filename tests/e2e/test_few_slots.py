"""Servers with few slots: their conversations are continued before others begin."""

import asyncio
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.testing import Answer, Call, Fault, OpenAIServer, Result, dataset_tasks, reference_solver

SOLVE = reference_solver(dataset_tasks("starter"))
TURNS, TASKS = 4, 5
LLAMA_CPP = {"owned_by": "llamacpp"}
PYTHON = {"owned_by": "me"}
OLLAMA = {"owned_by": "library"}
PAGES: dict[str, dict[str, Any]] = {
    "llama.cpp": {"/props": {"total_slots": 2}},
    "llama.cpp, by its slots": {"/props": {}, "/slots": [{"id": 0}, {"id": 1}]},
    "llama-cpp-python": {"/openapi.json": {"info": {"title": "llama.cpp Python API"}}},
    "Ollama": {"/api/ps": {"models": []}},
    "another with the owner of llama-cpp-python": {"/openapi.json": {"info": {"title": "my gateway"}}},
}
OWNERS = dict(zip(PAGES, (LLAMA_CPP, LLAMA_CPP, PYTHON, OLLAMA, PYTHON), strict=True))
SLOTS = dict(zip(PAGES, (2, 2, 1, 1, None), strict=True))


class Local(OpenAIServer):
    """A server that describes itself by further pages, and reads again what its slots do not keep."""

    def __init__(self, pages: dict[str, Any], slots: int, **options: Any) -> None:
        super().__init__(self.reply, **options)
        self._pages, self._slots = pages, slots
        self._kept: OrderedDict[str, int] = OrderedDict()
        self.dialogues: list[str] = []
        self.again = 0

    def page(self, path: str) -> Fault | None:
        return Fault(200, self._pages[path]) if path in self._pages else None

    async def reply(self, call: Call) -> Result:
        """The reference; the least recently used of more dialogues than slots was forgotten."""
        name = call.messages[0]["content"]
        await asyncio.sleep(0.005)
        self.dialogues.append(name)
        cached = self._kept.pop(name, 0)
        prompt = len(json.dumps(call.messages)) // 4
        self.again += len(call.messages) > 1 and not cached
        self._kept[name] = prompt + 50
        while len(self._kept) > self._slots:
            self._kept.popitem(last=False)
        details = {"prompt_tokens_details": {"cached_tokens": max(cached, 10)}}  # a beginning is common to all
        usage = {"prompt_tokens": prompt, "completion_tokens": 50, **details}
        return Answer(str(SOLVE(call)), usage=usage)


def cell(server: OpenAIServer, runs: Path, *more: str) -> Any:
    words = ["model=openai", f"model.base_url={server.base_url}", "model.name=m", "model.cache=false", "tracking=none"]
    words += ["judge=rules", "sandbox.allow_weak=true", f"runs_dir={runs}", f"dataset.limit={TASKS}"]
    return run(compose([*words, f"agenda.turns={TURNS}", *more]))


def most_under_way(dialogues: list[str]) -> int:
    """The most dialogues that had begun and not ended at one time."""
    first = {name: dialogues.index(name) for name in dialogues}
    last = {name: len(dialogues) - 1 - dialogues[::-1].index(name) for name in dialogues}
    return max(sum(first[name] <= moment <= last[name] for name in first) for moment in range(len(dialogues)))


@pytest.mark.parametrize("kind", PAGES)
def test_as_many_dialogues_are_under_way_as_the_server_states_slots(tmp_path: Path, kind: str) -> None:
    slots = SLOTS[kind]
    with Local(PAGES[kind], slots or 1, models=["m"], facts=OWNERS[kind]) as server:
        outcome = cell(server, tmp_path / "runs")
    assert outcome.status == 0 and outcome.metrics["completed"] == TASKS
    assert most_under_way(server.dialogues) == (slots or TASKS)
    assert server.most_in_flight <= (slots or TASKS)
    if slots is None:
        assert server.again > TASKS * (TURNS - 1) / 2
    else:  # of several slots, a new dialogue may get the one of a dialogue that continues
        assert server.again <= (0 if slots == 1 else TASKS), "no prompt is read twice"


def test_the_option_says_what_a_server_does_not(tmp_path: Path) -> None:
    """OLLAMA_NUM_PARALLEL=3 is stated nowhere."""
    with Local(PAGES["Ollama"], 3, models=["m"], facts=OLLAMA) as server:
        assert cell(server, tmp_path / "runs", "model.slots=3").status == 0
    assert most_under_way(server.dialogues) == 3
    assert server.again <= TASKS


def test_cached_tokens_show_what_an_unknown_server_keeps(tmp_path: Path) -> None:
    """It keeps one dialogue of five: as soon as that shows, each is continued to its end."""
    with Local({}, 1, models=["m"]) as server:
        assert cell(server, tmp_path / "runs", "agenda.turns=9").status == 0
    calls = len(server.dialogues)
    alike = sum(one == other for one, other in zip(server.dialogues, server.dialogues[1:], strict=False))
    assert calls > 25 and alike > calls / 3, "a dialogue follows itself"
    assert server.dialogues[-1] == server.dialogues[-2]


def test_a_server_that_keeps_all_is_not_held_back(tmp_path: Path) -> None:
    with Local({}, 100, models=["m"]) as server:
        assert cell(server, tmp_path / "runs", "agenda.turns=9").status == 0
    assert most_under_way(server.dialogues) == TASKS


def test_a_small_budget_ends_with_finished_sessions(tmp_path: Path) -> None:
    """The sessions that wait for the one slot keep nothing of the budget from the one that has it."""
    with Local(PAGES["Ollama"], 1, models=["m"], facts=OLLAMA) as server:
        whole = cell(server, tmp_path / "whole").metrics["tokens"]["model"]
        tokens = whole["input_tokens"] + whole["output_tokens"]
        part = cell(server, tmp_path / "part", f"budget_tokens={tokens // 2}")
    assert part.status == 3 and 1 <= part.metrics["completed"] < TASKS


def test_a_failing_dialogue_leaves_its_slot(tmp_path: Path) -> None:
    """A dialogue that ends with an error lets the next begin."""
    bad = dataset_tasks("starter")[1].prompt.splitlines()[0]

    class Refusing(Local):
        async def reply(self, call: Call) -> Result:
            if bad in call.messages[0]["content"] and len(call.messages) > 1:
                return Fault(500, "no")
            return await super().reply(call)

    with Refusing(PAGES["Ollama"], 1, models=["m"], facts=OLLAMA) as server:
        outcome = cell(server, tmp_path / "runs", "model.max_retries=0")
    assert outcome.status == 3
    assert outcome.metrics["errored"] == 1 and outcome.metrics["completed"] == TASKS - 1
