"""Published outputs of MultiCodeIF through import, replay, rescoring and export: the published verdicts come out.

Made-up rows, and a sample of the published ones.
"""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord, read_sessions
from codechat.cli.app import main
from codechat.studies.multicodeif.metrics import ConstrainedTurn
from support.codeif import write_rows
from support.multicodeif import chain, constrained

pytestmark = pytest.mark.long

NAMING = {"category": "code_convention", "constraint_type": "naming_convention", "language": "python",
          "answer": "python;variable:snake_case", "task_id": "naming/1"}  # fmt: skip
QUALITY = {"category": "non_functional_requirements", "constraint_type": "non_functional_requirements",
           "language": "python", "answer": "total = sum(basket)", "task_id": "quality/1"}  # fmt: skip
BAD, GOOD = "badName = 1\n", "good_name = 1\n"


def replied(task: str, number: int, code: str, met: bool, asked: str | None = None, **more: Any) -> dict[str, Any]:
    row = {"task_id": task, "model": "m", "round": f"R{number}", "response_raw": f"```python\n{code}```", "code": code}
    return {**row, "feedback_prompt": asked, "official_verdict": met, "reference_verdict": None, **more}


ROUNDS = [
    replied("naming/1", 0, BAD, False),
    replied("naming/1", 1, GOOD, True, "mend it"),
    replied("naming/1", 2, GOOD, True, response_raw=GOOD),
    replied("quality/1", 0, BAD, True),
    replied("quality/1", 1, BAD, False, response_raw=BAD),  # the same reply, judged otherwise
    replied("quality/1", 2, GOOD, True, "mend it"),
]
OTHER = "```java\nimport java.util.TreeMap;\nclass A { TreeMap<String, String> phones = new TreeMap<>(); }\n```"
ASKED = "```java\nimport java.util.HashMap;\nclass A { HashMap<String, String> phones = new HashMap<>(100); }\n```"


def imported(folder: Path, *rows: dict[str, Any]) -> Path:
    source = write_rows(folder / "replies.jsonl", *rows)
    assert main(["import", "format=multicodeif", f"source={source}", f"out={folder / 'recording.jsonl'}"]) == 0
    return folder / "recording.jsonl"


def replay(folder: Path, recording: Path, tasks: Path, *words: str) -> Path:
    """The folder of the cell."""
    judged = ["judge=recorded", f"judge.path={recording}", "tracking=none", f"runs_dir={folder / 'runs'}"]
    source = ["dataset=multicodeif", f"dataset.path={tasks}", "model=replay", f"model.path={recording}"]
    assert main([*source, *words, "protocol.harness=official", *judged]) == 0
    return next((folder / "runs").glob("*/sessions.jsonl")).parent


def verdicts(path: Path) -> dict[str, list[list[bool | None]]]:
    """What is met at each turn, by task."""
    return {
        session.task_id: [[each.met for each in ConstrainedTurn.of(turn).constraints] for turn in session.turns]
        for session in read_sessions(path)
    }


def shape(session: SessionRecord) -> list[tuple[Any, ...]]:
    return [(turn.response, turn.code, turn.passed, turn.outcome, turn.model_extra) for turn in session.turns]


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A recording of self-repair, and the cell that replays it."""
    folder = tmp_path_factory.mktemp("repaired")
    tasks = write_rows(folder / "multicodeif_tasks.jsonl", constrained(**NAMING), constrained(**QUALITY))
    recording = imported(folder, *ROUNDS)
    words = ("protocol=repair", "protocol.rejudge=true", "protocol.rounds=2")
    return recording, replay(folder, recording, tasks, *words)


def test_a_replay_of_rounds_has_the_published_verdicts(repaired: tuple[Path, Path]) -> None:
    recording, cell = repaired
    assert verdicts(cell / "sessions.jsonl") == verdicts(recording)
    assert verdicts(recording) == {"naming/1": [[False], [True], [True]], "quality/1": [[True], [False], [True]]}
    metrics = json.loads((cell / "metrics.json").read_text())
    assert metrics["ifrepair"] == [0.5, 0.5, 1.0]
    assert metrics["ifrepair_without_leaks"] == [0.0, 1.0, 1.0]


def test_rescoring_changes_nothing_without_another_judge(repaired: tuple[Path, Path], tmp_path: Path) -> None:
    cell = repaired[1]
    assert main(["rescore", f"run={cell}", f"out={tmp_path / 'again'}"]) == 0
    before, after = (list(read_sessions(each / "sessions.jsonl")) for each in (cell, tmp_path / "again"))
    assert [shape(session) for session in after] == [shape(session) for session in before]
    assert main(["rescore", f"run={cell}", "judge=rules", f"out={tmp_path / 'rules'}"]) == 0
    assert verdicts(tmp_path / "rules" / "sessions.jsonl") == {
        "naming/1": [[False], [True], [True]],
        "quality/1": [[None], [None], [None]],
    }


def test_an_export_has_a_row_a_turn_with_its_verdicts(repaired: tuple[Path, Path], tmp_path: Path) -> None:
    assert main(["export", f"run={repaired[1]}", f"out={tmp_path / 'turns.csv'}"]) == 0
    rows = list(csv.DictReader((tmp_path / "turns.csv").read_text().splitlines()))
    assert [(row["task_id"], row["round"], row["carried"]) for row in rows] == [
        *(("naming/1", str(number), carried) for number, carried in enumerate(["FALSE", "FALSE", "TRUE"])),
        *(("quality/1", str(number), carried) for number, carried in enumerate(["FALSE", "TRUE", "FALSE"])),
    ]
    assert [row["official_passed"] for row in rows] == ["FALSE", "TRUE", "TRUE", "TRUE", "FALSE", "TRUE"]
    assert [json.loads(row["constraints"])[0]["type"] for row in rows] == ["naming"] * 3 + ["code_quality"] * 3


def test_a_replay_of_levels_has_the_published_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = write_rows(tmp_path / "multicodeif_tasks.jsonl", *chain())
    met = [[True], [True, False], [False, False, False], [True, False, True, True]]
    rows = [
        {"task_id": f"multi/{number}", "model": "m", "level": f"L{number}", "chain": 0, "reference_verdicts": verdicts,
         "response_raw": ASKED if verdicts[0] else OTHER}
        for number, verdicts in enumerate(met, 1)
    ]  # fmt: skip
    recording = imported(tmp_path, *rows)
    words = ("protocol=levels", "dataset.part=levels")
    cell = replay(tmp_path, recording, tasks, *words)
    assert verdicts(cell / "sessions.jsonl") == verdicts(recording) == {"chain/0": met}
    assert main(["rescore", f"run={cell}", f"out={tmp_path / 'again'}"]) == 0
    assert verdicts(tmp_path / "again" / "sessions.jsonl") == {"chain/0": met}
    assert main(["export", f"run={cell}", f"out={tmp_path / 'turns.csv'}"]) == 0
    rows_out = list(csv.DictReader((tmp_path / "turns.csv").read_text().splitlines()))
    assert [row["level"] for row in rows_out] == ["L1", "L2", "L3", "L4"]


@pytest.mark.parametrize("words", [("protocol=repair",), ("protocol=levels", "dataset.part=levels")])
def test_what_it_would_take_is_told(tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    tasks = write_rows(tmp_path / "tasks.jsonl", constrained(**NAMING), constrained(**QUALITY), *chain())
    judge = ["judge=llm", "judge.check=false"]
    given = ["dataset=multicodeif", f"dataset.path={tasks}", "model=gpt4o", *judge, "tracking=none"]
    assert main([*given, *words, f"runs_dir={tmp_path}", "dry_run=true"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    calls = {"protocol=repair": ("model 10 ", "judges 5 "), "protocol=levels": ("model 4 ", "judges 0 ")}
    assert all(each in told for each in calls[words[0]])


TASKS = {
    "repair": ["code_convention_naming_convention/3", "syntax_library/2", "non_functional_requirements/4", "example/2"],
    "levels": ["chain/0", "chain/70", "chain/130"],
}


@pytest.fixture(scope="module")
def data() -> Path:
    named = os.environ.get("CODECHAT_TEST_DATA")
    if not named or not (Path(named) / "multicodeif_selfrepair_gpt-4o.jsonl.gz").is_file():
        pytest.skip("CODECHAT_TEST_DATA names no folder with MultiCodeIF's outputs")
    return Path(named)


@pytest.mark.parametrize(
    ("protocol", "mode", "model"), [("repair", "selfrepair", "gpt-4o"), ("levels", "multi", "deepseek-v3-0324")]
)
def test_the_published_verdicts_come_out(data: Path, tmp_path: Path, protocol: str, mode: str, model: str) -> None:
    source, recording = data / f"multicodeif_{mode}_{model}.jsonl.gz", tmp_path / "recording.jsonl"
    assert main(["import", "format=multicodeif", f"source={source}", f"out={recording}", "missing=empty"]) == 0
    words = {
        "repair": ("protocol=repair", "protocol.rejudge=true", "protocol.rounds=3"),
        "levels": ("protocol=levels", "dataset.part=levels"),
    }[protocol]
    chosen = f"dataset.tasks=[{','.join(TASKS[protocol])}]"
    cell = replay(tmp_path, recording, data / "multicodeif_tasks.jsonl.gz", *words, chosen)
    found, known = verdicts(cell / "sessions.jsonl"), verdicts(recording)
    assert set(found) == set(TASKS[protocol])
    assert found == {name: known[name][: len(found[name])] for name in found}
    assert {met for turns in found.values() for turn in turns for met in turn} == {True, False}
