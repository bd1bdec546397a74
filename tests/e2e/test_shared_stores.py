"""Cells that end together in one store: none is lost, none is half there, and every file is read from elsewhere.

`CODECHAT_STORE_ROUNDS=10` makes every store afresh for each of ten rounds; otherwise it is made once, for three.
"""

import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.report.metrics import Point
from codechat.report.tracking import TRACKING, DatasetInfo, FinishedCell
from support.stores import PASSWORD, Postgres, client_at, lacking, mlflow_server, postgres

pytestmark = pytest.mark.long
MIGRATED = True  # said to conftest.py: that several make a store at once is one of the subjects

CELLS = 4
FRESH = int(os.environ.get("CODECHAT_STORE_ROUNDS", "1"))
ROUNDS = FRESH if FRESH > 1 else 3
TURNS = 10
needs_postgres = pytest.mark.skipif(bool(lacking()), reason=lacking())


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


def cell_in(runs: Path, number: int) -> FinishedCell:
    """A cell whose every figure and file says which it is."""
    folder = runs / f"cell{number}"
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    for name in ("config.yaml", "sessions.jsonl", "metrics.json", "figures/turns.png"):
        (folder / name).write_text(f"{name} of {number}\n" * 100)
    (folder / "tables" / "turns.csv").write_text(f"turn,value\n0,{number}\n")
    series = tuple(Point("turn/pass_at_1", number + turn / 100, turn) for turn in range(TURNS))
    return FinishedCell(
        cell_id=f"cell{number}",
        name=f"echo {number}",
        params={"number": number},
        points=(*series, Point("final/mst", float(number))),
        folder=folder,
        runs_dir=str(runs),
        sweep="together",
        dataset=DatasetInfo("own", "c0ffee" * 6, 3, 3, "nowhere"),  # one for all: a row that all of them want to add
    )


class Crew:
    """Processes that each log a cell of their own, at the same time in one store after the other."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._start, self._told = context.Barrier(CELLS), context.Queue()
        self._orders = [context.Queue() for _ in range(CELLS)]
        self._processes = [
            context.Process(target=log_in_process, args=(number, orders, self._start, self._told))
            for number, orders in enumerate(self._orders)
        ]
        for process in self._processes:
            process.start()

    def log(self, folder: Path, options: list[dict[str, Any]]) -> None:
        """Log the cells, whose folders are under `folder`, in each of the stores."""
        for orders in self._orders:
            orders.put((str(folder), options))
        assert [self._told.get(timeout=300) for _ in range(CELLS * len(options))] == ["tracked"] * CELLS * len(options)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.join(timeout=30)


def log_in_process(number: int, orders: Any, start: Any, told: Any) -> None:
    while True:
        folder, options = orders.get()
        own = Path(folder, f"process{number}")
        own.mkdir()
        os.chdir(own)  # nothing may depend on the folder that a process works in
        cell = cell_in(Path(folder, "runs"), number)
        for each in options:
            start.wait(timeout=300)
            try:
                TRACKING.build(TRACKING.validate(each)).log(cell)
                told.put("tracked")
            except Exception as error:  # whatever it is, the parent shows it
                told.put(repr(error))


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    """One for all tests: each process takes seconds to import MLflow."""
    made = Crew()
    yield made
    made.end()


def assert_complete(uri: str, experiment: str, downloads: Path) -> None:
    """Every cell is one finished run with all its figures, its dataset and its files."""
    client = client_at(uri)
    found = client.get_experiment_by_name(experiment)
    runs = client.search_runs([found.experiment_id])
    assert sorted(run.data.tags["codechat.cell_id"] for run in runs) == [f"cell{number}" for number in range(CELLS)]
    for run in runs:
        assert run.info.status == "FINISHED"
        number = int(run.data.params["number"])
        history = client.get_metric_history(run.info.run_id, "turn/pass_at_1")
        assert sorted((one.step, one.value) for one in history) == [(t, number + t / 100) for t in range(TURNS)]
        assert run.data.metrics["final/mst"] == number
        assert [one.dataset.digest for one in run.inputs.dataset_inputs] == ["c0ffeec0ffee"]
        assert run.data.tags["codechat.sweep"] == "together"
        place = downloads / experiment / run.info.run_id
        place.mkdir(parents=True)
        client.download_artifacts(run.info.run_id, "", str(place))
        for name in ("config.yaml", "sessions.jsonl", "metrics.json", "figures/turns.png"):
            assert (place / name).read_text() == f"{name} of {number}\n" * 100
        assert {path.name for path in (place / "tables").iterdir()} == {"turns.csv"}


def hold_to_all(crew: Crew, folder: Path, stores: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Log the cells in all stores at once, and read everything back from another folder."""
    options = [{"kind": "mlflow", "experiment": f"round{number}", **each} for number, each in enumerate(stores)]
    crew.log(folder, options)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for each in options:
        assert_complete(each["uri"], each["experiment"], folder / "downloads")
    assert not list(elsewhere.iterdir())
    left = {path.name for number in range(CELLS) for path in (folder / f"process{number}").iterdir()}
    assert not left, "a process's working folder holds nothing of the store"


def test_on_an_sqlite_file(tmp_path: Path, crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    uris = [f"sqlite:///{tmp_path}/store{number % FRESH}.db" for number in range(ROUNDS)]
    hold_to_all(crew, tmp_path, [{"uri": uri} for uri in uris], monkeypatch)


@pytest.mark.postgres
@needs_postgres
def test_on_postgresql(tmp_path: Path, crew: Crew, database: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = [database.create(f"fresh{number}") for number in range(FRESH)]
    for uri in fresh:  # as a sweep does, and mlflow/README.md asks of single cells
        tracker: Any = TRACKING.build(TRACKING.validate({"kind": "mlflow", "uri": uri, "experiment": "first"}))
        tracker.open(tmp_path / "runs")
    hold_to_all(crew, tmp_path, [{"uri": fresh[number % FRESH]} for number in range(ROUNDS)], monkeypatch)
    assert (tmp_path / "mlflow" / "artifacts").is_dir(), "beside runs_dir"


@pytest.mark.postgres
@needs_postgres
def test_on_a_server_with_postgresql(
    tmp_path: Path, crew: Crew, database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.create("served")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)  # as mlflow/README.md says: it stands in no command
    with mlflow_server(database.uri("served", password=""), tmp_path / "served", workers=2) as server:
        stores = [{"kind": "server", "uri": server.uri}] * ROUNDS
        hold_to_all(crew, tmp_path, stores, monkeypatch)
