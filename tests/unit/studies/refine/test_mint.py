"""MINT's dialogues: imported, tested again beside their published verdicts, every difference listed."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, read_sessions
from codechat.cli.app import main
from codechat.datasets.importing import FORMATS
from support.mistakes import mistake

DOUBLE = "def double(x):\n    return 2 * x"
SUM = "def sum(a, b):\n    return a * b"
WRONG = "Observation:\nYour answer is wrong.\nYou have 3 steps left and 1 chances to propose solution left."


def said(*contents: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[place % 2], "content": content} for place, content in enumerate(contents)]


def row(number: int, history: list[dict[str, str]], success: bool, name: str = "double") -> dict[str, Any]:
    task = {
        "task_name": "mbpp",
        "task_id": number,
        "prompt": f"Write {name}.",
        "reference": f"assert {name}(2, *[]) == 4",
    }
    if name == "sum":
        task["reference"] = "assert sum(2, 3) == 6\nassert sum(1, 1) == 1"
    return {"state": {"history": history, "success": success, "terminate_reason": "max_steps"}, "task": task}


ROWS = [
    row(
        0,
        said(
            "Write double.",
            "Let me see. <execute>print(1)</execute>",
            "Observation:\n1",
            "<solution>\ndef double(x):\n    return x\n</solution>",
            WRONG,
            f"<thought>Twice.</thought>\n<solution>\nimport math\n</solution> and\n<solution>{DOUBLE}</solution>",
        ),
        True,
    ),
    row(1, said("Write double.", "I do not know."), False),
    row(2, said("Write sum.", f"<solution>{SUM}</solution>"), True, "sum"),
    row(3, said("Write double.", f"<solution>{DOUBLE}</solution>", WRONG), False),  # a published verdict that is wrong
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "some-model" / "F=None" / "results.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in ROWS))
    return path


def sessions(results: Path) -> list[SessionRecord]:
    return FORMATS.build(FORMATS.validate({"format": "mint", "source": str(results)})).sessions


def test_each_proposal_is_a_turn_with_what_came_before_it_as_its_request(results: Path) -> None:
    first, silent, *_ = sessions(results)
    assert (first.task_id, first.dataset, first.protocol) == ("mbpp/0", "mint_mbpp", "recorded")
    assert "some-model" in first.model
    assert [turn.code for turn in first.turns] == ["def double(x):\n    return x", f"import math\n{DOUBLE}"]
    assert [len(turn.request) for turn in first.turns] == [3, 5]
    assert first.turns[0].request[2].content == "Observation:\n1"
    official = [(turn.model_extra or {})["official"] for turn in first.turns]
    assert [each["passed"] for each in official] == [False, True]
    assert [(turn.model_extra or {})["executed"] for turn in first.turns] == [1, 0]
    (turn,) = silent.turns
    assert (turn.code, turn.outcome, turn.response) == (None, "no_code", "I do not know.")


def test_a_folder_will_do_and_what_is_no_dialogue_is_named_by_its_line(results: Path) -> None:
    assert [each.task_id for each in sessions(results.parent)] == ["mbpp/0", "mbpp/1", "mbpp/2", "mbpp/3"]
    results.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps({"state": {}, "task": {}}) + "\n")
    with pytest.raises(UserError, match=r"results\.jsonl:2: .*history"):
        sessions(results)
    results.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[0]) + "\n")
    with mistake("results.jsonl:2", "mbpp/0"):
        sessions(results)


def test_the_task_file_may_name_its_data_set_by_its_folder(results: Path) -> None:
    tasks = results.parents[2] / "mbpp" / "test_prompts.json"
    tasks.parent.mkdir()
    own = [{"id": each["task"]["task_id"], **each["task"]} for each in reversed(ROWS)]
    tasks.write_text("".join(json.dumps({k: v for k, v in one.items() if "task" not in k}) + "\n" for one in own))
    imported = FORMATS.build(FORMATS.validate({"format": "mint", "source": str(results), "tasks": str(tasks)}))
    assert [each.task_id for each in imported.sessions] == ["mbpp/3", "mbpp/2", "mbpp/1", "mbpp/0"]


def test_ours_stand_beside_the_published_verdicts(results: Path, tmp_path: Path) -> None:
    recording, runs = tmp_path / "s.jsonl", tmp_path / "runs"
    assert main(["import", "format=mint", f"source={results}", f"out={recording}"]) == 0
    words = [f"dataset.path={results}", "dataset=mint"]
    cell = ["protocol=recorded", "model=replay", f"model.path={recording}", "tracking=none", f"runs_dir={runs}"]
    assert main([*cell, *words]) == 0
    (folder,) = runs.iterdir()
    found = {session.task_id: session for session in read_sessions(folder / "sessions.jsonl")}
    assert [turn.outcome for turn in found["mbpp/0"].turns] == ["fail", "pass"]
    assert [turn.outcome for turn in found["mbpp/1"].turns] == ["no_code"]
    assert [turn.outcome for turn in found["mbpp/2"].turns] == ["pass"], "a function may be called like a builtin"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["overall"]["agreement"] == 4 / 5
    assert main(["report", f"runs={runs}", f"out={tmp_path / 'report'}"]) == 0
    (compared,) = table(tmp_path, "recorded_published")
    assert (compared["compared"], compared["agree"]) == ("5", "4")
    (program,) = table(tmp_path, "recorded_published_programs")
    assert (program["task"], program["turn"], program["ours"], program["code"]) == ("mbpp/3", "0", "pass", DOUBLE)
    (by_task,) = table(tmp_path, "recorded_published_by_task")
    assert by_task["kind"] == "published fails, ours passes"
    assert main(["rescore", f"run={folder}", f"out={tmp_path / 'again'}"]) == 0
    again = read_sessions(tmp_path / "again" / "sessions.jsonl")
    assert {each.task_id: each.turns[-1].outcome for each in again}["mbpp/3"] == "pass"


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "report" / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_verify_takes_the_turns_of_sessions_as_samples(results: Path, tmp_path: Path) -> None:
    recording = tmp_path / "s.jsonl"
    assert main(["import", "format=mint", f"source={results}", f"out={recording}"]) == 0
    words = ["dataset=mint", f"dataset.path={results}", f"samples={recording}", f"out={tmp_path / 'v.jsonl'}"]
    assert main(["verify", *words]) == 0
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [(each["task_id"], each["turn"], each["outcome"], each["official"]["passed"]) for each in rows] == [
        ("mbpp/0", 0, "fail", False),
        ("mbpp/0", 1, "pass", True),
        ("mbpp/2", 0, "pass", True),
        ("mbpp/3", 0, "pass", False),
    ]


def test_a_dialogue_of_no_task_is_refused(tmp_path: Path) -> None:
    state = {"history": [{"role": "assistant", "content": "<solution>a = 1</solution>"}], "success": True}
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps({"state": state, "task": {"task_name": "mbpp"}}))
    with pytest.raises(UserError, match=r"m\.jsonl:1: .* no id"):
        sessions(path)
