"""The response cache from the command line: what was answered once is paid for once, whatever is measured of it."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.testing import Call, OpenAIServer, dataset_tasks, reference_solver

SMALL = ("dataset.limit=2", "agenda.turns=3", "tracking=none", "sandbox=auto")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    tasks = dataset_tasks("starter")
    with OpenAIServer(reference_solver(tasks)) as started:
        yield started


def cell(url: str, runs: str, *more: str) -> int:
    return main(["model=openai", "model.name=tested", f"model.base_url={url}", *SMALL, f"runs_dir={runs}", *more])


def requests(server: OpenAIServer) -> list[Call]:
    """What was asked since the last time."""
    asked, server.calls = server.calls, []
    return asked


def records(runs: str) -> list[dict[str, Any]]:
    (folder,) = Path(runs).iterdir()
    return [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]


def without(value: Any, *left_out: str) -> Any:
    if isinstance(value, dict):
        return {key: without(each, *left_out) for key, each in value.items() if key not in left_out}
    return [without(each, *left_out) for each in value] if isinstance(value, list) else value


def test_the_same_cell_elsewhere_pays_nothing_and_needs_no_endpoint(server: OpenAIServer) -> None:
    assert cell(server.base_url, "first") == 0
    assert (len(requests(server)), server.probes) == (6, 1)
    assert cell(server.base_url, "second", "model.max_concurrency=1") == 0
    assert (requests(server), server.probes) == ([], 1)
    verdicts = ("cpu_s",)  # the sandbox runs again, and measures again
    assert without(records("second"), *verdicts) == without(records("first"), *verdicts)


def test_another_judge_pays_for_itself_alone(server: OpenAIServer) -> None:
    assert cell(server.base_url, "rules", "judge=rules") == 0
    requests(server)
    roles = [
        f"judge.{role}.{option}"
        for role in ("applicability", "adherence")
        for option in (f"base_url={server.base_url}", "name=judge", "api_key_env=null")
    ]
    assert cell(server.base_url, "asked", "judge=llm", *roles) == 0
    first_replies = 2
    asked = requests(server)
    models = [call.body["model"] for call in asked]
    assert models.count("judge") > 0
    paths_differ = models.count("tested")  # other instructions may be chosen, and lead elsewhere
    assert paths_differ <= 6 - first_replies
    assert cell(server.base_url, "asked-again", "judge=llm", *roles) == 0
    assert requests(server) == []


def test_a_seed_is_a_sample_of_its_own(server: OpenAIServer) -> None:
    sampled = ("model.temperature=0.5", "model.cache=true", "agenda.turns=2")
    paid = []
    for runs, seed in (("first", 0), ("second", 1), ("third", 1)):
        assert cell(server.base_url, runs, *sampled, f"seed={seed}") == 0
        paid.append(len(requests(server)))
    assert paid == [4, 4, 0]


@pytest.mark.parametrize(("option", "first_calls"), [("model.cache=null", 1), ("model.cache=false", 2)])
def test_sessions_that_ask_the_same_at_the_same_time_pay_once(option: str, first_calls: int) -> None:
    row = {"prompt": 'def double(x):\n    """Twice x."""\n', "entry_point": "double", "canonical_solution": "    return 2 * x\n",
           "base_input": [[1]], "plus_input": [[2]], "contract": "", "atol": 0}  # fmt: skip
    Path("tasks.jsonl").write_text("".join(json.dumps({"task_id": f"Same/{n}", **row}) + "\n" for n in range(2)))
    data = ("dataset=jsonl", "dataset.path=tasks.jsonl", "dataset.limit=2")
    solve = reference_solver(dataset_tasks("jsonl", "tasks.jsonl"))

    async def late(call: Call) -> Any:
        await asyncio.sleep(0.3)
        return solve(call)

    with OpenAIServer(late) as started:
        assert cell(started.base_url, "same", *data, option) == 0
        firsts = [call for call in requests(started) if len(call.body["messages"]) == 1]
    assert len(firsts) == first_calls
    one, other = (session["turns"][0] for session in records("same"))
    assert one["response"] == other["response"]
    assert one["usage"] == other["usage"]
    (folder,) = Path("same").iterdir()
    spent = json.loads((folder / "metrics.json").read_text())
    assert (spent["cached_replies"] > 0) == (first_calls == 1)


def test_the_command_shows_and_empties_it(server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    assert "replies         0" in capsys.readouterr().out
    assert cell(server.base_url, "first") == 0
    requests(server)
    capsys.readouterr()
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert "replies.db" in shown
    assert "bound           4000.0 MB" in shown
    assert "replies         6" in shown
    assert [line.split()[:2] for line in shown.splitlines() if "tested" in line] == [["tested", "6"]]
    assert main(["cache", "clear"]) == 0
    assert "6 replies removed" in capsys.readouterr().out
    assert cell(server.base_url, "second") == 0
    assert len(requests(server)) == 6


def test_the_command_takes_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "clean"]) == 2
    assert re.search("cache .*'clean'", capsys.readouterr().err)


def test_a_cache_that_cannot_be_used_costs_no_session(server: OpenAIServer, cache_folder: Path) -> None:
    (cache_folder / "replies").write_text("no folder")
    assert cell(server.base_url, "first") == 0
    assert len(requests(server)) == 6
    assert {session["status"] for session in records("first")} == {"completed"}
