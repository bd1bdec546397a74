"""Several instructions a turn whose conflicts a language model decides: what is asked, recorded, and kept if killed."""

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.run.run import run
from codechat.run.settings.compose import compose
from codechat.testing import Call, OpenAIServer, dataset_tasks, error

pytestmark = pytest.mark.long

(TASK,) = dataset_tasks("starter")[:1]
NUMBERS = range(1, 25)
SCOPES = ("cosmetic", "structural", "semantic")
POOL = [{"id": f"i{number}", "scope": SCOPES[number % 3], "text": f"Add thing {number}."} for number in NUMBERS]


def contradictory(one: int, other: int) -> str:
    return ("CONTRADICTORY", "COMPATIBLE", "who knows")[(one + other) % 3 if one % 2 else 1]


def answers(call: Call) -> Any:
    """Every fourth instruction does not apply, even ones are followed, and the numbers decide about conflicts."""
    last = call.messages[-1]["content"]
    numbers = [int(found) for found in re.findall(r"thing (\d+)", last)]
    if "VERDICT: CONTRADICTORY" in last:
        return f"VERDICT: {contradictory(*numbers)}"
    if "VERDICT: APPLICABLE" in last:
        return f"VERDICT: {'APPLICABLE' if numbers[0] % 4 else 'NOT_APPLICABLE'}"
    if "VERDICT: ADHERED" in last:
        return f"VERDICT: {'VIOLATED' if numbers[0] % 2 else 'ADHERED'}"
    return f"```python\n{TASK.reference}\n# {len(call.messages)}\n```"


def words(server: OpenAIServer, folder: Path, *more: str) -> list[str]:
    models = ("model", "model@judge.applicability", "model@judge.adherence")
    keys = ("model", "judge.applicability", "judge.adherence")
    return [
        *(f"{model}=openai" for model in models[:1]), "judge=llm", *(f"{model}=openai" for model in models[1:]),
        *(f"{key}.name=stand-in" for key in keys), *(f"{key}.base_url={server.base_url}" for key in keys),
        *(f"{key}.api_key_env=null" for key in keys), *(f"{key}.cache=false" for key in keys),
        "judge.check=false", "judge.max_reasks=0", "instructions.path=pool.csv", "dataset.limit=1", "agenda.turns=4",
        "agenda.composite=3", "tracking=none", "sandbox.allow_weak=true", "hardware.workers=1", f"runs_dir={folder}",
        *more,
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with Path("pool.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, ("id", "scope", "text"))
        rows.writeheader()
        rows.writerows(POOL)
    return tmp_path


def record(folder: Path) -> dict[str, Any]:
    (line,) = (folder / "sessions.jsonl").read_text().splitlines()
    found: dict[str, Any] = json.loads(line)
    for turn in found["turns"]:
        turn.pop("latency_s"), turn.pop("cpu_s")
    return found


def test_an_instruction_joins_unless_the_judge_finds_a_conflict_or_cannot_say() -> None:
    with OpenAIServer(answers) as server:
        outcome = run(compose(words(server, Path("runs"))))
    session, given, seen = record(outcome.folder), set[str](), Counter[str]()
    for turn in session["turns"][1:]:
        numbers = [int(asked["id"][1:]) for asked in turn["asked"]]
        assert [asked["adherence"]["verdict"] for asked in turn["asked"]] == [
            "violated" if number % 2 else "adhered" for number in numbers
        ]
        assert (turn["instruction"] is None, turn["adherence"] is None) == (len(numbers) > 1, len(numbers) > 1)
        assert not given & {asked["id"] for asked in turn["asked"]}, "no instruction is given twice"
        given |= {asked["id"] for asked in turn["asked"]}
        chosen = list[int]()
        for candidate in turn["candidates"]:
            number = int(candidate["id"][1:])
            assert candidate["applicable"] is bool(number % 4) and candidate["by"] == "llm"
            said = [(one, contradictory(one, number)) for one in chosen] if number % 4 else []
            against = next(((one, word) for one, word in said if word != "COMPATIBLE"), None)
            assert ("conflict" in candidate) == (against is not None)
            if against is not None:
                conflict = candidate["conflict"]
                assert conflict["instruction"] == f"i{against[0]}" and conflict["by"] == "llm"
                assert conflict["contradicts"] is (True if against[1] == "CONTRADICTORY" else None)
                seen["llm" if conflict["contradicts"] else "undecided"] += 1
            elif number % 4:
                chosen.append(number)
        assert numbers == chosen
        said = turn["request"][-1]["content"]
        assert said.startswith("\n".join(f"{at}. Add thing {number}." for at, number in enumerate(numbers, 1)))
    assert seen["llm"] and seen["undecided"], "this session would show no conflict"
    assert outcome.metrics is not None and outcome.metrics["composite"]["conflicts"] == dict(seen)
    assert max(len(turn["asked"]) for turn in session["turns"][1:]) > 1


@pytest.mark.parametrize("killed_at", [4, 11, 17])
def test_a_session_killed_within_a_composite_turn_ends_as_if_it_had_not_been(killed_at: int) -> None:
    calls = list[Call]()

    def fails(call: Call) -> Any:
        calls.append(call)
        return error(400, "gone") if len(calls) == killed_at + 1 else answers(call)

    with OpenAIServer(answers) as server:
        whole = run(compose(words(server, Path("whole"))))
        needed = len(server.calls)
    with OpenAIServer(fails) as server:
        cell = words(server, Path("runs"))
        assert run(compose(cell)).status != 0
        again = run(compose(cell))
    assert again.status == 0
    assert record(again.folder) | {"cell_id": 0, "session_id": 0} == record(whole.folder) | {
        "cell_id": 0,
        "session_id": 0,
    }
    assert len(calls) <= needed + 3, "what was asked before is not asked again"


def test_a_recording_is_replayed_and_scored_again_with_all_its_instructions(tmp_path: Path) -> None:
    with OpenAIServer(answers) as server:
        folder = run(compose(words(server, Path("runs")))).folder
        file = folder / "sessions.jsonl"
        replayed = words(server, Path("replayed"))[1:]
        replay = [word for word in replayed if not word.startswith("model.")]
        assert run(compose(["model=replay", f"model.path={file}", *replay])).status == 0
        assert main(["rescore", f"run={folder}", f"out={tmp_path / 'again'}"]) == 0
    first, again = record(folder), record(tmp_path / "again")
    same = ("asked", "request", "candidates", "passed", "code")
    assert [[turn.get(key) for key in same] for turn in again["turns"]] == [
        [turn.get(key) for key in same] for turn in first["turns"]
    ]
    assert main(["export", f"run={folder}", "out=turns.csv"]) == 0
    with Path("turns.csv").open(newline="") as file:
        _, row, *_ = csv.DictReader(file)
    asked = first["turns"][1]["asked"]
    assert row["instruction_id"].split("\n") == [each["id"] for each in asked]
    assert row["adherence"].split("\n") == [each["adherence"]["verdict"] for each in asked]
