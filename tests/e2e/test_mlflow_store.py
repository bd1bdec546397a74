"""Cells in real MLflow stores: once, complete, found again, and never at the cost of the cell."""

import dataclasses
import re
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.models import Prices
from codechat.report.metrics import Point
from codechat.report.tracking import TRACKING, FinishedCell, LiveStore, TrackedRun, TrackingError
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome, Stage
from codechat.testing import OpenAIServer
from support.construction import run, seeds
from support.mistakes import mistake
from support.processes import wait_until
from support.stores import MlflowServer, client_at, client_of, mlflow_server

pytestmark = pytest.mark.long

POINTS = (
    *(Point("turn/pass_at_1", value, turn) for turn, value in enumerate([1.0, 0.75, 0.5])),
    *(Point("turn/iar", value, turn) for turn, value in enumerate([0.9, 0.8], 1)),
    Point("final/mst", 2.25),
    Point("cost/wall_s", 1.5),
)
LOGGED = {"config.yaml", "sessions.jsonl", "metrics.json", "tables/turns.csv"}


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database: making one takes seconds, copying it none."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        track({"experiment": "template"}, cell_in(folder))
    return folder / "mlflow" / "store.db"


@pytest.fixture
def store(tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder whose default store exists, without the experiment."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlflow").mkdir()
    shutil.copy(migrated, tmp_path / "mlflow" / "store.db")
    return tmp_path


def cell_in(folder: Path, cell_id: str = "c0ffee", **changes: Any) -> FinishedCell:
    run = folder / "runs" / cell_id
    (run / "tables").mkdir(parents=True, exist_ok=True)
    for name in ("config.yaml", "sessions.jsonl", "metrics.json", "tables/turns.csv", "journal.sqlite"):
        (run / name).write_text(f"{name} of {cell_id}\n")
    cell = FinishedCell(
        cell_id=cell_id,
        name=f"echo {cell_id}",
        params={"model": {"kind": "echo", "max_concurrency": 8}, "prompt": "x" * 9000},
        points=POINTS,
        folder=run,
        tags={"codechat.dataset_hash": "abc", "codechat.git_commit": "def"},
    )
    return dataclasses.replace(cell, **changes)


def track(options: dict[str, Any], cell: FinishedCell) -> TrackedRun:
    config = TRACKING.validate({"kind": "mlflow", **options})
    run = TRACKING.build(config).log(cell)
    assert run is not None
    return run


def runs_in(folder: Path, experiment: str = "codechat") -> list[Any]:
    client = client_of(folder)
    return list(client.search_runs([client.get_experiment_by_name(experiment).experiment_id]))


def series(folder: Path, run_id: str, key: str) -> list[tuple[int, float]]:
    return [(metric.step, metric.value) for metric in client_of(folder).get_metric_history(run_id, key)]


def files_of(folder: Path, run_id: str, path: str = "") -> set[str]:
    found = client_of(folder).list_artifacts(run_id, path)
    return {name for item in found for name in (files_of(folder, run_id, item.path) if item.is_dir else {item.path})}


def test_a_cell_is_one_run_with_everything(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tracked = track({}, cell_in(store, sweep="table4"))
    [run] = runs_in(store)
    assert run.info.run_id == tracked.run_id
    assert (run.info.run_name, run.info.status) == ("echo c0ffee", "FINISHED")
    assert run.data.params["model.kind"] == "echo"
    assert len(run.data.params["prompt"]) < 250
    tags = run.data.tags
    assert (tags["codechat.cell_id"], tags["codechat.sweep"], tags["codechat.dataset_hash"]) == (
        "c0ffee",
        "table4",
        "abc",
    )
    assert series(store, run.info.run_id, "turn/pass_at_1") == [(0, 1.0), (1, 0.75), (2, 0.5)]
    assert series(store, run.info.run_id, "turn/iar") == [(1, 0.9), (2, 0.8)]
    assert run.data.metrics["final/mst"] == 2.25
    assert files_of(store, run.info.run_id) == LOGGED
    assert (store / "mlflow" / "artifacts" / run.info.run_id / "artifacts" / "config.yaml").is_file()
    assert {path.name for path in store.iterdir()} == {"mlflow", "runs"}
    assert tracked.open_with.endswith("mlflow ui --backend-store-uri sqlite:///mlflow/store.db")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("seconds", [8.7, 0.004, 90_000.0])
def test_the_duration_is_the_time_of_the_cell(store: Path, seconds: float) -> None:
    """Whenever it is sent, and sent again: an upload, or a look at a finished cell, adds no pause."""
    cell = cell_in(store, points=(*POINTS[:-1], Point("cost/wall_s", seconds)))
    for _ in range(2):
        track({}, cell)
        [run] = runs_in(store)
        assert run.info.end_time - run.info.start_time == int(1000 * seconds)
    longer = dataclasses.replace(cell, points=(*POINTS[:-1], Point("cost/wall_s", seconds + 2)))
    track({}, longer)
    [run] = runs_in(store)
    assert run.info.end_time - run.info.start_time == int(1000 * (seconds + 2)), "a process more has worked on it"


def test_a_resumed_cell_that_fails_again_has_no_pause_in_its_duration(store: Path) -> None:
    tracker = TRACKING.build(TRACKING.validate({"kind": "mlflow"}))
    assert isinstance(tracker, LiveStore)
    cell = dataclasses.replace(cell_in(store), points=())

    def is_running() -> bool:
        begun = client_of(store).get_experiment_by_name("codechat") is not None
        return begun and any(each.info.status == "RUNNING" for each in runs_in(store))

    spent = []
    for _ in range(2):
        began = time.monotonic()
        shown = tracker.show(lambda: cell, lambda: {"tokens": 1.0}, print)
        assert shown is not None
        wait_until(is_running)
        shown.end("FAILED")
        spent.append(1000 * (time.monotonic() - began))
        [run] = runs_in(store)
        assert run.info.status == "FAILED"
        assert run.info.end_time - run.info.start_time <= sum(spent)
        time.sleep(2)


def test_logging_again_changes_nothing_but_what_changed(store: Path) -> None:
    cell = cell_in(store)
    first = track({}, cell)
    changed = dataclasses.replace(
        cell,
        params={"model": {"kind": "echo", "max_concurrency": 64}, "prompt": "x", "new": 1},
        points=(*POINTS[:-1], Point("cost/wall_s", 9.0), Point("final/phi", 0.1)),
    )
    (cell.folder / "metrics.json").write_text("newer\n")
    assert track({}, changed).run_id == track({}, changed).run_id == first.run_id
    [run] = runs_in(store)
    assert series(store, first.run_id, "turn/pass_at_1") == [(0, 1.0), (1, 0.75), (2, 0.5)]
    assert (run.data.metrics["cost/wall_s"], run.data.metrics["final/phi"]) == (9.0, 0.1)
    assert len(series(store, first.run_id, "cost/wall_s")) == 2
    assert (run.data.params["model.max_concurrency"], run.data.params["new"]) == ("8", "1")
    kept = store / "mlflow" / "artifacts" / first.run_id / "artifacts" / "metrics.json"
    assert kept.read_text() == "newer\n"


@pytest.mark.parametrize(
    "points",
    [(Point("turn/pass_at_1", 0.5, 0), Point("turn/pass_at_1", 0.25, 1)), POINTS[:-1]],
    ids=["other turns", "a figure is null now"],
)
def test_a_run_whose_points_no_longer_hold_gives_way(store: Path, points: tuple[Point, ...]) -> None:
    """A resumed cell has new values at the same turns; a chart would draw the old ones beside them."""
    cell = cell_in(store, sweep="one")
    old = track({}, cell)
    client_of(store).set_tag(old.run_id, "mlflow.note.content", "look at this")
    new = track({}, dataclasses.replace(cell, points=points, sweep="two"))
    [run] = runs_in(store)
    assert run.info.run_id == new.run_id != old.run_id
    assert run.data.metrics.keys() == {point.key for point in points}
    assert series(store, new.run_id, "turn/pass_at_1") == [
        (point.step, point.value) for point in points if point.key == "turn/pass_at_1"
    ]
    assert (run.data.tags["codechat.sweep"], run.data.tags["mlflow.note.content"]) == ("one,two", "look at this")


@pytest.mark.parametrize("broken", ["log_batch", "log_artifact", "set_terminated"])
def test_a_run_that_breaks_off_is_marked_and_then_completed(
    store: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    import mlflow

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("the network is gone")

    cell = cell_in(store, sweep="one")
    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, broken, fail)
        with pytest.raises(TrackingError, match="the network is gone"):
            track({}, cell)
    (run,) = runs_in(store)
    assert run.info.status == "FAILED"
    again = track({}, cell)
    assert again.run_id == run.info.run_id
    (run,) = runs_in(store)
    assert run.info.status == "FINISHED"
    assert run.data.metrics.keys() == {point.key for point in POINTS}
    assert files_of(store, again.run_id) == LOGGED


def test_files_go_where_the_user_says(store: Path) -> None:
    cell = cell_in(store)
    there = track({"experiment": "chosen", "artifacts": "files"}, cell)
    assert (store / "files" / there.run_id / "artifacts" / "config.yaml").is_file()
    assert not (store / "mlflow" / "artifacts").exists()
    assert track({"experiment": "chosen", "artifacts": str(store / "files")}, cell).run_id == there.run_id
    assert track({"experiment": "chosen"}, cell).run_id == there.run_id
    with mistake("file:", "/files", "tracking.artifacts"):
        track({"experiment": "chosen", "artifacts": "elsewhere"}, cell)


def test_every_sweep_adds_itself_once(store: Path) -> None:
    cell = cell_in(store)
    tags = []
    for sweep in (None, "table4", "adhoc-12345678", "table4", None):
        track({}, dataclasses.replace(cell, sweep=sweep))
        [run] = runs_in(store)
        tags.append(run.data.tags.get("codechat.sweep"))
    assert tags == [None, "table4", *["table4,adhoc-12345678"] * 3]


def test_another_store_and_another_experiment_get_runs_of_their_own(store: Path, migrated: Path) -> None:
    cell = cell_in(store)
    shutil.copy(migrated, store / "other store.db")
    there = track({"uri": "sqlite:///other store.db"}, cell)
    assert (store / "artifacts" / there.run_id / "artifacts" / "config.yaml").is_file()
    here = track({}, cell)
    beside = track({"experiment": "beside"}, cell)
    assert len({there.run_id, here.run_id, beside.run_id}) == 3
    assert [run.info.run_id for run in runs_in(store, "beside")] == [beside.run_id]
    assert [run.info.run_id for run in runs_in(store)] == [here.run_id]


def test_more_points_than_mlflow_takes_at_once(store: Path) -> None:
    points = tuple(Point("turn/pass_at_1", turn / 2500, turn) for turn in range(2500))
    params = {f"option_{number}": number for number in range(250)}
    run = track({}, cell_in(store, points=points, params=params))
    assert len(series(store, run.run_id, "turn/pass_at_1")) == 2500
    assert len(runs_in(store)[0].data.params) == 250


def test_an_experiment_in_the_trash_is_the_users_to_restore(store: Path) -> None:
    track({}, cell_in(store))
    client = client_of(store)
    client.delete_experiment(client.get_experiment_by_name("codechat").experiment_id)
    with mistake("in the trash", "mlflow experiments restore -x", "tracking.experiment"):
        track({}, cell_in(store))


@pytest.fixture
def server(tmp_path: Path, migrated: Path) -> Iterator[MlflowServer]:
    """A running MLflow server with a store of its own."""
    shutil.copy(migrated, tmp_path / "server.db")
    with mlflow_server(f"sqlite:///{tmp_path}/server.db", tmp_path / "served") as running:
        yield running


def test_a_server_gets_the_same_run(tmp_path: Path, server: MlflowServer, capfd: pytest.CaptureFixture[str]) -> None:
    cell = cell_in(tmp_path)
    first = track({"kind": "mlflow", "uri": server.uri}, dataclasses.replace(cell, sweep="one"))
    again = track({"kind": "server", "uri": server.uri}, dataclasses.replace(cell, sweep="two"))
    assert first == again
    assert first.open_with == f"{server.uri}/#/experiments/{first.experiment_id}/runs/{first.run_id}"
    assert capfd.readouterr() == ("", "")
    import mlflow

    run = mlflow.MlflowClient(server.uri).get_run(first.run_id)
    assert run.data.tags["codechat.sweep"] == "one,two"
    assert (run.data.metrics["turn/pass_at_1"], run.data.params["model.kind"]) == (0.5, "echo")
    assert (tmp_path / "served" / first.experiment_id / first.run_id / "artifacts" / "tables" / "turns.csv").is_file()
    # It ends while a second cell is logged: that cell's run is marked, and the next logging takes it up.
    upload = mlflow.MlflowClient.log_artifact

    def upload_to_a_dead_server(*given: Any, **named: Any) -> None:
        server.kill()
        upload(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_artifact", upload_to_a_dead_server)
        with pytest.raises(TrackingError, match=re.escape(server.uri)):
            track({"kind": "server", "uri": server.uri}, cell_in(tmp_path, "cut"))
    runs = client_at(f"sqlite:///{tmp_path}/server.db").search_runs([first.experiment_id])
    assert {run.info.run_name: run.info.status for run in runs} == {"echo c0ffee": "FINISHED", "echo cut": "FAILED"}


def not_a_database(folder: Path) -> dict[str, Any]:
    (folder / "mlflow").mkdir()
    (folder / "mlflow" / "store.db").write_text("this is no database, but a note to myself " * 50)
    return {}


def a_file_in_the_way(folder: Path) -> dict[str, Any]:
    (folder / "mlflow").write_text("")
    return {}


def nobody_listens(folder: Path) -> dict[str, Any]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return {"uri": f"http://user:secret@127.0.0.1:{probe.getsockname()[1]}"}


def no_database_server(folder: Path) -> dict[str, Any]:
    return {"uri": nobody_listens(folder)["uri"].replace("http", "postgresql")}


@pytest.mark.parametrize("broken", [not_a_database, a_file_in_the_way, nobody_listens, no_database_server])
def test_a_store_that_fails_says_so_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Any) -> None:
    monkeypatch.chdir(tmp_path)
    options = broken(tmp_path)
    cell = cell_in(tmp_path)
    start = time.monotonic()
    with pytest.raises(TrackingError, match="MLflow at") as caught:
        track(options, cell)
    assert time.monotonic() - start < 60
    assert "secret" not in str(caught.value)


def test_a_server_that_never_answers_costs_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        start = time.monotonic()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TrackingError, match=address):
            track({"uri": address}, cell_in(tmp_path))
        assert time.monotonic() - start < 60


def test_no_tracking_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cell = cell_in(tmp_path)
    config = TRACKING.validate({"kind": "none"})
    assert TRACKING.build(config).log(cell) is None
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_construction_shows_what_it_made_and_cost(store: Path) -> None:
    async def write(item: Item, kit: Kit) -> Outcome:
        said = (await kit.ask("poet", f"write {item.id}")).text
        return Kept(item.having(said=said)) if item.data["number"] else Dropped("too short")

    out, tracking = store / "o", TRACKING.validate({"kind": "mlflow", "experiment": "made"})
    stages, prices = [Stage("write", write)], {"prices": Prices(input=1.0, output=2.0)}
    with OpenAIServer(lambda call: "it is") as server:
        for _ in range(2):
            outcome = run(out, stages, seeds(3), server, poet=prices, top={"tracking": tracking})
            assert outcome.status == 0 and not outcome.tracking.failure
    client = client_of(store)
    (experiment,) = [each for each in client.search_experiments() if each.name == "made"]
    (found,) = client.search_runs([experiment.experiment_id])
    metrics = found.data.metrics
    assert found.info.status == "FINISHED" and found.data.tags["codechat.construct"] == "trial"
    assert [metrics[f"final/{key}"] for key in ("kept", "dropped", "errored")] == [2, 1, 0]
    assert metrics["stage/write/reached"] == metrics["stage/write/calls"] == 3
    tokens = metrics["cost/all/input_tokens"], metrics["cost/all/output_tokens"]
    assert metrics["cost/all/usd"] == pytest.approx((tokens[0] + 2 * tokens[1]) / 1e6) and min(tokens) > 0
    assert found.info.end_time - found.info.start_time == int(1000 * metrics["cost/wall_s"])
    files = {each.path for each in client.list_artifacts(found.info.run_id)}
    assert {"items.jsonl", "dropped.jsonl", "yield.json"} <= files
