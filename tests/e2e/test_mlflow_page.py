"""What the page of a run shows in a real MLflow store: the dataset, files, a description, the headline."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from codechat.report.metrics import Point, headline_of
from codechat.report.tracking import TRACKING, DatasetInfo, FinishedCell, TrackedRun, read_tracking, write_tracking
from codechat.studies.refine.metrics import REFINE
from support.stores import client_of

pytestmark = pytest.mark.long

POINTS = (
    *(Point("turn/pass_at_1", value, turn) for turn, value in enumerate([1.0, 0.75, 0.5])),
    Point("cost/wall_s", 1.5),
    Point("final/sessions", 4.0),
    Point("final/regression", 0.125),
    Point("final/mst", 2.25),
)
DATASET = DatasetInfo("humaneval", "ab" * 32, 164, 4, "/data/HumanEvalPlus.jsonl")
PNG = bytes.fromhex("89504e470d0a1a0a")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cell_in(folder: Path, **changes: Any) -> FinishedCell:
    run = folder / "runs" / "echo-1"
    for name in ("tables", "figures"):
        (run / name).mkdir(parents=True, exist_ok=True)
    (run / "tables" / "turns.csv").write_text('turn,pass_at_1,label\n0,1.0,"a, b"\n1,,nan\n')
    (run / "figures" / "turns.png").write_bytes(PNG)
    cell = FinishedCell(
        "c0ffee", "echo humaneval", {"seed": 0}, POINTS, run, dataset=DATASET, command="codechat model=echo",
        headline=headline_of(REFINE),
    )  # fmt: skip
    return dataclasses.replace(cell, **changes)


def track(cell: FinishedCell) -> TrackedRun:
    config = TRACKING.validate({"kind": "mlflow"})
    run = TRACKING.build(config).log(cell)
    assert run is not None
    return run


def test_logging_again_doubles_nothing_on_the_page(folder: Path) -> None:
    cell = cell_in(folder)
    tracked = track(cell)
    assert track(cell) == tracked
    run_id = tracked.run_id
    run = client_of(folder).get_run(run_id)
    [used] = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("humaneval", "ab" * 6)
    assert json.loads(used.dataset.profile) == {"num_rows": 164}
    assert json.loads(used.dataset.source) == {"uri": "/data/HumanEvalPlus.jsonl"}
    assert {tag.key: tag.value for tag in used.tags} == {"mlflow.data.context": "eval", "codechat.tasks": "4"}
    logged = [item.path for name in ("tables", "figures") for item in client_of(folder).list_artifacts(run_id, name)]
    assert logged == ["tables/turns.csv", "figures/turns.png"]


def test_cells_that_take_different_tasks_share_the_dataset(folder: Path) -> None:
    runs = [
        track(cell_in(folder, cell_id=f"cell{used}", dataset=dataclasses.replace(DATASET, used=used)))
        for used in (4, 164)
    ]
    inputs = [client_of(folder).get_run(run.run_id).inputs.dataset_inputs for run in runs]
    assert [len(found) for found in inputs] == [1, 1]
    assert inputs[0][0].dataset.digest == inputs[1][0].dataset.digest
    told = [tag.value for found in inputs for tag in found[0].tags if tag.key == "codechat.tasks"]
    assert told == ["4", "164"]


def test_the_description_follows_the_cell_until_someone_writes_their_own(folder: Path) -> None:
    cell = cell_in(folder)
    tracked = track(cell)
    note = client_of(folder).get_run(tracked.run_id).data.tags["mlflow.note.content"]
    for part in (
        "**echo humaneval**: 4 of the 164 tasks of humaneval",
        "| Pass@1, turn 0 → 2 | 1.000 → 0.500 |",
        "| Mean Sustainable Turns | 2.25 |",
        "```\ncodechat model=echo\n```",
        f"Run folder: {cell.folder}",
    ):
        assert part in note.replace("\\_", "_")  # as Markdown shows it
    track(dataclasses.replace(cell, command="codechat model=echo seed=0"))
    client = client_of(folder)
    assert "seed=0" in client.get_run(tracked.run_id).data.tags["mlflow.note.content"]
    client.set_tag(tracked.run_id, "mlflow.note.content", "the one for the talk")
    track(cell)
    assert client.get_run(tracked.run_id).data.tags["mlflow.note.content"] == "the one for the talk"


def test_the_headline_comes_first(folder: Path) -> None:
    tracked = track(cell_in(folder))
    shown = list(client_of(folder).get_run(tracked.run_id).data.metrics)
    assert shown == ["final/mst", "final/regression", "turn/pass_at_1", "cost/wall_s", "final/sessions"]


def test_what_the_page_shows_survives_until_an_upload(folder: Path) -> None:
    cell = cell_in(folder)
    write_tracking(cell)
    again = read_tracking(cell.folder)
    assert (again.dataset, again.command) == (cell.dataset, cell.command)
    old = json.loads((cell.folder / "tracking.json").read_text())
    del old["dataset"], old["command"]
    (cell.folder / "tracking.json").write_text(json.dumps(old))
    assert read_tracking(cell.folder).dataset is None
