"""MLflow: every cell is one flat run, named like the cell and found by its cell id."""

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal, TypeVar

from pydantic import field_validator

from codechat.config import Config, run_option
from codechat.environment import VERSION
from codechat.errors import UserError
from codechat.metrics import Point
from codechat.seal import SEAL
from codechat.tracking import TRACKING, FinishedCell, TrackedRun, Tracker
from codechat.tracking.address import REMEDY, Address, problem_of, without_password
from codechat.tracking.attachments import TABLES, log_dataset, log_tables
from codechat.tracking.describe import headline_first, note_tags
from codechat.tracking.flatten import flat_params
from codechat.tracking.store import Store, failures, lock
from codechat.tracking.traces import MOST, log_traces
from codechat.tracking.view import view_of

CELL_TAG = "codechat.cell_id"
SWEEP_TAG = "codechat.sweep"
CAUTION_TAG = "codechat.caution"
FILES = ("config.yaml", "sessions.jsonl", "metrics.json")
FOLDERS = (TABLES, "figures")
# MLflow's limits of one request.
METRICS_PER_BATCH = 1_000
PARAMS_PER_BATCH = 100

T = TypeVar("T")


class MlflowConfig(Config):
    """Options of the `mlflow` tracker."""

    kind: Literal["mlflow"] = run_option("mlflow", "where the cell's metrics are sent")
    uri: str | None = run_option(
        None, "tracking URI; null: SQLite mlflow/store.db in the working folder, artifacts beside it"
    )
    experiment: str = run_option("codechat", "name of the MLflow experiment", min_length=1, max_length=500)
    traces: bool = run_option(False, f"log each dialogue as a trace too, the first {MOST} of a cell")

    @field_validator("uri")
    @classmethod
    def _is_a_store(cls, uri: str | None) -> str | None:
        problem = problem_of(uri) if uri is not None else None
        if problem:
            raise UserError(f"tracking.uri={without_password(uri or '')}: {problem}", REMEDY)
        return uri


@TRACKING.register("mlflow", MlflowConfig)
def mlflow_tracker(config: MlflowConfig) -> Tracker:
    """Log every cell as one run of an MLflow experiment."""
    return MlflowTracker(Address.of(config.uri), config.experiment, config.traces)


class MlflowTracker:
    """Keeps one run per cell id in one store."""

    def __init__(self, address: Address, experiment: str, traces: bool) -> None:
        self._address, self._experiment, self._traces = address, experiment, traces

    def log(self, cell: FinishedCell) -> TrackedRun:
        """Log the cell; a second time updates the same run, and adds the sweep to its tag."""
        with failures(self._address):
            store = Store.open(self._address, self._experiment)
            with lock(self._address):
                run_id, outdated = _run_for(store, cell)
                if cell.dataset is not None:  # two cells that add one dataset at once would conflict
                    log_dataset(store.client, store.client.get_run(run_id), cell.dataset)
            _fill(store, run_id, cell)
            sessions = cell.folder / "sessions.jsonl"
            notice = None
            if self._traces and sessions.is_file():
                uri = self._address.client_uri
                notice = log_traces(store.client, uri, store.experiment_id, run_id, sessions)
            store.client.set_terminated(run_id, "FINISHED")
            for run in outdated:
                store.client.delete_run(run)
            experiment, view = store.experiment_id, view_of(cell)
            store.client.set_experiment_tag(experiment, view.tag, view.content)
        charts = self._address.charts(experiment, view.key)
        return TrackedRun(run_id, experiment, self._address.open_with(experiment, run_id), charts, notice)


def _run_for(store: Store, cell: FinishedCell) -> tuple[str, list[str]]:
    """The id of the cell's run, with its tags set, and the ids of the runs that it replaces.

    An older run is used again if its points are still right. MLflow never deletes a point, and its charts draw all of
    them, so a run whose turns have changed (the cell was resumed) is replaced by a fresh one with its tags.
    """
    query = f"tags.`{CELL_TAG}` = '{cell.cell_id}'"
    found = store.client.search_runs([store.experiment_id], query, order_by=["attributes.start_time DESC"])
    ids = [str(run.info.run_id) for run in found]
    inherited = {key: value for run in reversed(found) for key, value in run.data.tags.items()}
    own = {CELL_TAG: cell.cell_id, "mlflow.runName": cell.name}
    tags = {**_versions(), **cell.tags, **own, **note_tags(cell, inherited)}
    if cell.caution or CAUTION_TAG in inherited:
        tags[CAUTION_TAG] = cell.caution
    if cell.sweep:
        sweeps = inherited.get(SWEEP_TAG, "").split(",")
        tags[SWEEP_TAG] = ",".join(dict.fromkeys(name for name in [*sweeps, cell.sweep] if name))
    if not found or not _is_still_right(store, found[0], cell.points):
        fresh = store.client.create_run(store.experiment_id, tags={**inherited, **tags}, run_name=cell.name)
        return str(fresh.info.run_id), ids
    for key, value in tags.items():
        if inherited.get(key) != value:
            store.client.set_tag(ids[0], key, value)
    return ids[0], ids[1:]


def _is_still_right(store: Store, run: Any, points: Sequence[Point]) -> bool:
    """Whether all series of the run are still right; of a scalar only the last value is shown."""
    gone = run.data.metrics.keys() - {point.key for point in points}
    return not gone and _series_of(store, run, points) <= set(points)


def _series_of(store: Store, run: Any, points: Sequence[Point]) -> set[Point]:
    """The run's points of the series among `points`."""
    keys = {point.key for point in points if point.step} & run.data.metrics.keys()
    return {
        Point(key, metric.value, metric.step)
        for key in keys
        for metric in store.client.get_metric_history(run.info.run_id, key)
    }


def _fill(store: Store, run_id: str, cell: FinishedCell) -> None:
    """Add missing params and points to the run, and replace its files by the cell's."""
    from mlflow.entities import Metric, Param

    run = store.client.get_run(run_id)
    series = {point.key for point in cell.points if point.step}
    kept = _series_of(store, run, cell.points)
    now = int(time.time() * 1000)
    metrics = [
        Metric(point.key, point.value, now, point.step)
        for point in headline_first(cell)
        if (point not in kept if point.key in series else run.data.metrics.get(point.key) != point.value)
    ]
    # Params are written once: a run keeps those of its first logging (they may differ in run options)
    params = [Param(key, value) for key, value in flat_params(cell.params).items() if key not in run.data.params]
    for batch in _batches(metrics, METRICS_PER_BATCH):
        store.client.log_batch(run_id, metrics=batch)
    for chunk in _batches(params, PARAMS_PER_BATCH):
        store.client.log_batch(run_id, params=chunk)
    for name in (*FILES, SEAL):
        if (cell.folder / name).is_file():
            store.client.log_artifact(run_id, str(cell.folder / name))
    for name in FOLDERS:
        if (cell.folder / name).is_dir():
            store.client.log_artifacts(run_id, str(cell.folder / name), artifact_path=name)
    log_tables(store.client, run, cell.folder / TABLES)


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _versions() -> Mapping[str, str]:
    """The versions of the software that made the figures."""
    return {
        "codechat.version": VERSION,
        "codechat.version.python": platform.python_version(),
        **{f"codechat.version.{package}": version(package) for package in ("evalplus", "mlflow")},
    }
