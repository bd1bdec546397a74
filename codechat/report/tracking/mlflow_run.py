"""MLflow: every cell is one flat run, named like the cell and found by its cell id."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from codechat.base.config import Config, run_option
from codechat.base.errors import UserError
from codechat.base.seal import SEAL
from codechat.report.tracking import TRACKING, DatasetInfo, FinishedCell, TrackedRun, Tracker
from codechat.report.tracking.address import REMEDY, Address, problem_of, without_password
from codechat.report.tracking.live import LiveRun
from codechat.report.tracking.runs import FILES, headline_first, missing_params, run_for, series_of, wall_ms
from codechat.report.tracking.store import Store, check_packages, failures, insist

CONSTRUCTION_FILES = ("items.jsonl", "dropped.jsonl", "questions.jsonl", "yield.json", "card.md")
FOLDERS = ("tables", "figures")
INCOMPLETE = "FAILED"
"""A run's status until everything is logged, so that an early end of a process or store leaves no run RUNNING."""
DIGEST = 12  # characters of the content hash: MLflow takes 36, and its list of runs shows few


class MlflowConfig(Config):
    """Options of the `mlflow` tracker."""

    kind: Literal["mlflow"] = run_option("mlflow", "where the cell's metrics are sent")
    uri: str | None = run_option(
        None, "tracking URI; null: SQLite mlflow/store.db in the working folder, artifacts next to it"
    )
    experiment: str = run_option("codechat", "name of the MLflow experiment", min_length=1, max_length=500)
    artifacts: str | None = run_option(
        None,
        "folder or URI (s3://…) of a new experiment's files, if the URI is a database; "
        "null: next to an SQLite file, else mlflow/artifacts next to runs_dir",
        min_length=1,
    )
    live: bool = run_option(True, "show the cell while it runs: a run with its progress, from the first sessions on")

    @field_validator("uri")
    @classmethod
    def _is_a_store(cls, uri: str | None) -> str | None:
        problem = problem_of(uri) if uri is not None else None
        if problem:
            raise UserError(f"tracking.uri={without_password(uri or '')}: {problem}", REMEDY)
        return uri

    @model_validator(mode="after")
    def _artifacts_have_a_database(self) -> Self:
        if self.artifacts is not None and Address.of(self.uri).is_server:
            raise UserError(
                f"tracking.artifacts={without_password(self.artifacts)}: an MLflow server decides where files go",
                "leave it out, or start the server with --artifacts-destination",
            )
        return self


@TRACKING.register("mlflow", MlflowConfig)
def mlflow_tracker(config: MlflowConfig) -> Tracker:
    """Log every cell as one run of an MLflow experiment."""
    address = Address.of(config.uri)
    check_packages(address, config.artifacts)
    return MlflowTracker(address, config.experiment, config.live, config.artifacts)


class MlflowTracker:
    """Keeps one run per cell id in one store. `artifacts` is the place of a new experiment's files."""

    def __init__(self, address: Address, experiment: str, live: bool, artifacts: str | None = None) -> None:
        self._address, self._experiment, self._live, self._artifacts = address, experiment, live, artifacts

    def _store(self, runs_dir: Path) -> Store:
        return Store.open(self._address, self._experiment, self._artifacts, runs_dir)

    def open(self, runs_dir: Path) -> None:
        """Create the store and its experiment if they are missing."""
        with failures(self._address):
            self._store(runs_dir)

    def show(
        self, cell: Callable[[], FinishedCell], progress: Callable[[], Mapping[str, float]], warn: Callable[[str], None]
    ) -> LiveRun | None:
        return LiveRun(self._address, self._store, cell, progress, warn) if self._live else None

    def log(self, cell: FinishedCell) -> TrackedRun:
        """Log the cell; a second time updates the same run, and adds the sweep to its tag."""
        with failures(self._address):
            store = self._store(Path(cell.runs_dir))
            run, replaced = run_for(store, cell, INCOMPLETE)
            _fill(store, run, cell)
            run_id, experiment = str(run.info.run_id), store.experiment_id
            wall = wall_ms(cell)  # MLflow's Duration: without the pauses of a cell that was resumed or uploaded later
            store.client.set_terminated(run_id, "FINISHED", None if wall is None else run.info.start_time + wall)
            for old in replaced:
                store.client.delete_run(old)
        open_with, charts = self._address.open_with(experiment, run_id), self._address.charts(experiment)
        return TrackedRun(run_id, experiment, open_with, charts)


def _fill(store: Store, run: Any, cell: FinishedCell) -> None:
    """Add the dataset, and missing params and points, to the run, and replace the run's files."""
    from mlflow.entities import Metric

    if cell.dataset is not None:
        log_dataset(store.client, run, cell.dataset)
    series = {point.key for point in cell.points if point.step}
    logged = series_of(store, run, cell.points)
    now = int(time.time() * 1000)
    metrics = [
        Metric(point.key, point.value, now, point.step)
        for point in headline_first(cell)
        if (point not in logged if point.key in series else run.data.metrics.get(point.key) != point.value)
    ]
    store.client.log_batch(run.info.run_id, metrics=metrics, params=missing_params(run, cell))
    for name in (*FILES, *CONSTRUCTION_FILES, SEAL):
        if (cell.folder / name).is_file():
            store.client.log_artifact(run.info.run_id, str(cell.folder / name))
    for name in FOLDERS:
        if (cell.folder / name).is_dir():
            store.client.log_artifacts(run.info.run_id, str(cell.folder / name), artifact_path=name)


def log_dataset(client: Any, run: Any, dataset: DatasetInfo) -> None:
    """Make the dataset an input of the run, once. A store has one entry per content, shared by all cells; a tag of the
    input has the number of tasks in the cell."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    digest = dataset.content_hash[:DIGEST]
    if any(known.dataset.digest == digest for known in run.inputs.dataset_inputs):
        return
    entry = Dataset(
        name=dataset.name,
        digest=digest,
        source_type="codechat",
        source=json.dumps({"uri": dataset.source}),
        profile=json.dumps({"num_rows": dataset.tasks}),
    )
    tags = [InputTag("mlflow.data.context", "eval"), InputTag("codechat.tasks", str(dataset.used))]
    insist(lambda: client.log_inputs(run.info.run_id, [DatasetInput(entry, tags)]))
