"""Cells of which one verdict is decided outside and one inside: their records, their counts, and what the user reads."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose

MOCKED = "from unittest.mock import Mock\ntwo = Mock(return_value=2)\nassert double(two()) == 4\n"
ROWS: list[dict[str, Any]] = [
    {
        "task_id": f"mine/{name}",
        "prompt": "Write double(x), which doubles a number.",
        "entry_point": "double",
        "canonical_solution": "def double(x):\n    return 2 * x\n",
        "tests": [test],
        "requirements": [
            {"type": "Edge Case Handling", "text": "0 gives 0.", "tests": "assert double(0) == 0"},
            {"type": "Input-Output Conditions", "text": "2 gives 4.", "tests": MOCKED},
        ],
    }
    for name, test in (("outside", "assert double(2) == 4"), ("inside", MOCKED))
]


@pytest.fixture(autouse=True)
def without_figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Drawing them costs more than all the rest, and is tested elsewhere."""
    monkeypatch.setattr("codechat.run.run.write_figures", lambda *_, **__: [])
    yield


def words(folder: Path, *more: str) -> list[str]:
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return [
        "model=echo", "dataset=jsonl", f"dataset.path={path}", "tracking=none", f"runs_dir={folder / 'runs'}",
        "hardware.workers=1", *more,
    ]  # fmt: skip


def turns_of(cell: Path) -> dict[str, list[dict[str, Any]]]:
    sessions = [json.loads(line) for line in (cell / "sessions.jsonl").read_text().splitlines()]
    return {session["task_id"]: session["turns"] for session in sessions}


def metrics_of(cell: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((cell / "metrics.json").read_text())
    return found


def test_a_refinement_tells_which_verdicts_were_decided_inside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(tmp_path, "agenda.turns=2")) == 0
    (cell,) = (tmp_path / "runs").iterdir()
    turns = turns_of(cell)
    assert [turn["passed"] for each in turns.values() for turn in each] == [True] * 4
    assert [(turn["decided"], "inside" in turn) for turn in turns["mine/outside"]] == [("outside", False)] * 2
    assert {turn["decided"] for turn in turns["mine/inside"]} == {"inside"}
    (construct,) = {turn["inside"] for turn in turns["mine/inside"]}
    assert "mock" in construct.lower()
    counted = [turn["decided"] for each in turns.values() for turn in each if not turn["skipped"]]
    inside = counted.count("inside")
    assert inside >= 1
    assert metrics_of(cell)["decided"] == {"outside": counted.count("outside"), "inside": inside}
    line = f"{inside} of {len(counted)} verdicts were decided inside (the program shared a process with its tests"
    said = " ".join(capsys.readouterr().out.split())
    assert f"{line}: read a surprising pass), {inside} of them because of {construct}" in said
    points = {point["key"]: point["value"] for point in json.loads((cell / "tracking.json").read_text())["points"]}
    assert points["final/decided_inside"] == inside


def test_a_refinement_decided_outside_says_nothing_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(tmp_path, "agenda.turns=2", "dataset.limit=1")) == 0
    (cell,) = (tmp_path / "runs").iterdir()
    assert metrics_of(cell)["decided"]["outside"] >= 1 and metrics_of(cell)["decided"]["inside"] == 0
    assert "decided inside" not in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["static", "dynamic"])
def test_a_turn_of_a_conversation_is_decided_inside_if_one_of_its_checks_was(tmp_path: Path, protocol: str) -> None:
    outcome: Outcome = run_composed(compose(words(tmp_path, f"protocol={protocol}", "dataset.limit=1")))
    assert outcome.status == 0
    (turns,) = turns_of(outcome.folder).values()
    assert len(turns) > 1 if protocol == "static" else turns
    for turn in turns:
        holding = [check for check in turn["checks"] if check["asked"]]
        expected = "inside" if any(check["decided"] == "inside" for check in holding) else "outside"
        assert turn["decided"] == expected
        assert ("mock" in turn["inside"].lower()) if expected == "inside" else ("inside" not in turn)
    places = [turn["decided"] for turn in turns]
    assert metrics_of(outcome.folder)["decided"] == {place: places.count(place) for place in ("outside", "inside")}
    if protocol == "static":
        assert places == ["outside", "outside", "inside"]


@pytest.mark.parametrize("protocol", ["refine", "static", "dynamic"])
def test_a_program_that_brings_itself_inside_is_counted_in_every_study(tmp_path: Path, protocol: str) -> None:
    own = "class Own:\n    def __init__(self, x):\n        self.x = x\n"
    edge = {"type": "Edge Case Handling", "text": "0 gives 0.", "tests": "assert double(0).x == 0"}
    row = ROWS[0] | {"tests": ["assert double(2).x == 4"], "requirements": [edge]}
    row |= {"canonical_solution": f"{own}\ndef double(x):\n    return Own(2 * x)\n"}
    given = words(tmp_path, f"protocol={protocol}", *(["agenda.turns=2"] if protocol == "refine" else []))
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    outcome: Outcome = run_composed(compose(given))
    assert outcome.status == 0
    (turns,) = turns_of(outcome.folder).values()
    assert all(turn["inside_by_program"] for turn in turns if turn["decided"] == "inside")
    assert metrics_of(outcome.folder)["decided"]["by_program"] == sum(turn["decided"] == "inside" for turn in turns) > 0


def test_verify_counts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words(tmp_path)
    samples = [{"task_id": row["task_id"], "solution": row["canonical_solution"]} for row in ROWS]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    out = tmp_path / "out.jsonl"
    given = [f"samples={tmp_path / 'samples.jsonl'}", f"out={out}", f"dataset.path={tmp_path / 'tasks.jsonl'}"]
    assert main(["verify", "dataset=jsonl", *given]) == 0
    assert [json.loads(line)["decided"] for line in out.read_text().splitlines()] == ["outside", "inside"]
    assert "1 of 2 verdicts were decided inside" in capsys.readouterr().out
