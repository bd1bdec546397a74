"""MLflow: every cell is one flat run, named like the cell and found by its cell id.

Besides params and metrics a run has the cell's dataset and its tables, and its experiment a shared view (`view_of`):
MLflow then opens on the charts that one came for. It keeps such a view as a tag of the experiment, and a link names it
by its key; without one it sorts its sections by name, so that costs come first.
"""

import csv
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import field_validator, model_validator

from codechat.base.config import Config, run_option
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.seal import SEAL
from codechat.report.metrics import Point
from codechat.report.tracking import TRACKING, DatasetInfo, FinishedCell, TrackedRun, Tracker
from codechat.report.tracking.address import REMEDY, Address, problem_of, without_password
from codechat.report.tracking.live import LiveRun
from codechat.report.tracking.locks import insist, lock
from codechat.report.tracking.runs import (
    PROGRESS,
    batches,
    headline_first,
    inherited_tags,
    is_shown_by_this_process,
    log_params,
    runs_of,
    set_tags,
    tags_for,
)
from codechat.report.tracking.store import Store, check_packages, failures
from codechat.report.tracking.traces import MOST, log_traces

TABLES = "tables"
FILES = ("config.yaml", "sessions.jsonl", "metrics.json")
MADE = ("items.jsonl", "dropped.jsonl", "questions.jsonl", "yield.json", "card.md")
"""The files of tasks that were made (`codechat construct`)."""
FOLDERS = (TABLES, "figures")
INCOMPLETE = "FAILED"
"""A run's state until everything is logged: whatever ends the process or the store, no run is left RUNNING.

One that this process has shown while its cell ran stays RUNNING, since its guard sees to the end.
"""
METRICS_PER_BATCH = 1_000  # MLflow's limit of one request


class MlflowConfig(Config):
    """Options of the `mlflow` tracker."""

    kind: Literal["mlflow"] = run_option("mlflow", "where the cell's metrics are sent")
    uri: str | None = run_option(
        None, "tracking URI; null: SQLite mlflow/store.db in the working folder, artifacts beside it"
    )
    experiment: str = run_option("codechat", "name of the MLflow experiment", min_length=1, max_length=500)
    artifacts: str | None = run_option(
        None,
        "folder or URI (s3://…) of a new experiment's files, if the URI is a database; "
        "null: beside an SQLite file, else mlflow/artifacts beside runs_dir",
        min_length=1,
    )
    traces: bool = run_option(False, f"log each dialogue as a trace too, the first {MOST} of a cell")
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
                f"tracking.artifacts={without_password(self.artifacts)}: an MLflow server itself says where files go",
                "leave it out, or start the server with --artifacts-destination",
            )
        return self


@TRACKING.register("mlflow", MlflowConfig)
def mlflow_tracker(config: MlflowConfig) -> Tracker:
    """Log every cell as one run of an MLflow experiment."""
    address = Address.of(config.uri)
    check_packages(address, config.artifacts)
    return MlflowTracker(address, config.experiment, config.traces, config.live, config.artifacts)


class MlflowTracker:
    """Keeps one run per cell id in one store. `artifacts` is the place of a new experiment's files, None if any."""

    def __init__(
        self, address: Address, experiment: str, traces: bool, live: bool, artifacts: str | None = None
    ) -> None:
        self._address, self._experiment, self._artifacts = address, experiment, artifacts
        self._traces, self._live = traces, live

    def open(self, runs_dir: Path) -> None:
        """Create the store and its experiment if they are missing."""
        with failures(self._address):
            Store.open(self._address, self._experiment, self._artifacts, runs_dir.absolute())

    def show(
        self, cell: Callable[[], FinishedCell], progress: Callable[[], Mapping[str, float]], tell: Callable[[str], None]
    ) -> LiveRun | None:
        """Show a cell that begins; None if the user does not want that."""
        if not self._live:
            return None

        def open_store(begun: FinishedCell) -> Store:
            return Store.open(self._address, self._experiment, self._artifacts, Path(begun.runs_dir))

        return LiveRun(self._address, open_store, cell, progress, tell)

    def log(self, cell: FinishedCell) -> TrackedRun:
        """Log the cell; a second time updates the same run, and adds the sweep to its tag."""
        view = view_of(cell)
        with failures(self._address):
            store = Store.open(self._address, self._experiment, self._artifacts, Path(cell.runs_dir))
            with lock(self._address):
                run_id, outdated = _run_for(store, cell)
                # Two cells that add one dataset, or one tag of the experiment, at once would conflict.
                if cell.dataset is not None:
                    log_dataset(store.client, run_id, cell.dataset)
                insist(lambda: store.client.set_experiment_tag(store.experiment_id, view.tag, view.content))
            _fill(store, run_id, cell)
            sessions = cell.folder / "sessions.jsonl"
            notice = None
            if self._traces and sessions.is_file():
                uri = self._address.client_uri
                notice = log_traces(store.client, uri, store.experiment_id, run_id, sessions)
            store.client.set_terminated(run_id, "FINISHED")
            for run in outdated:
                store.client.delete_run(run)
            experiment = store.experiment_id
        charts = self._address.charts(experiment, view.key)
        return TrackedRun(run_id, experiment, self._address.open_with(experiment, run_id), charts, notice)


def _run_for(store: Store, cell: FinishedCell) -> tuple[str, list[str]]:
    """The id of the cell's run, with its tags set, and the ids of the runs that it replaces.

    An older run is used again if its points are still right. MLflow never deletes a point, and its charts draw all of
    them, so a run whose turns have changed (the cell was resumed) is replaced by a fresh one with its tags.
    """
    found = runs_of(store, cell)
    ids = [str(run.info.run_id) for run in found]
    inherited = inherited_tags(found)
    tags = tags_for(cell, inherited)
    shown = bool(found) and is_shown_by_this_process(found[0])
    logged = {key for run in found[:1] for key in run.data.metrics if not key.startswith(PROGRESS)}
    gone = logged - {point.key for point in cell.points}
    # of a scalar only the last value is shown
    if not found or gone or not _series_of(store, found[0], cell.points) <= set(cell.points):
        fresh = store.client.create_run(store.experiment_id, tags={**inherited, **tags}, run_name=cell.name)
        if not shown:
            store.client.update_run(fresh.info.run_id, INCOMPLETE)
        return str(fresh.info.run_id), ids
    if not shown:
        store.client.update_run(ids[0], INCOMPLETE)
    set_tags(store, ids[0], tags, inherited)
    return ids[0], ids[1:]


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
    from mlflow.entities import Metric

    run = store.client.get_run(run_id)
    series = {point.key for point in cell.points if point.step}
    kept = _series_of(store, run, cell.points)
    now = int(time.time() * 1000)
    metrics = [
        Metric(point.key, point.value, now, point.step)
        for point in headline_first(cell)
        if (point not in kept if point.key in series else run.data.metrics.get(point.key) != point.value)
    ]
    for batch in batches(metrics, METRICS_PER_BATCH):
        store.client.log_batch(run_id, metrics=batch)
    log_params(store, run_id, run.data.params, cell)
    for name in (*FILES, *MADE, SEAL):
        if (cell.folder / name).is_file():
            store.client.log_artifact(run_id, str(cell.folder / name))
    for name in FOLDERS:
        if (cell.folder / name).is_dir():
            store.client.log_artifacts(run_id, str(cell.folder / name), artifact_path=name)
    log_tables(store.client, run, cell.folder / TABLES)


LOGGED_TAG = "mlflow.loggedArtifacts"  # lists the files that the user interface shows as tables
DIGEST = 12  # characters of the content hash: MLflow takes 36, and its list of runs shows few


def log_dataset(client: Any, run_id: str, dataset: DatasetInfo) -> None:
    """Make the dataset an input of the run, once.

    A store has one entry per content, shared by all its cells: a tag of the input says which tasks the cell used.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    digest = dataset.content_hash[:DIGEST]
    if any(known.dataset.digest == digest for known in client.get_run(run_id).inputs.dataset_inputs):
        return
    entry = Dataset(
        name=dataset.name,
        digest=digest,
        source_type="codechat",
        source=json.dumps({"uri": dataset.source}),
        profile=json.dumps({"num_rows": dataset.tasks}),
    )
    tags = [InputTag("mlflow.data.context", "eval"), InputTag("codechat.tasks", str(dataset.used))]
    insist(lambda: client.log_inputs(run_id, [DatasetInput(entry, tags)]))


def log_tables(client: Any, run: Any, folder: Path) -> None:
    """Log a cell's CSV files a second time, as the JSON that MLflow draws and compares.

    A file of an earlier logging is replaced (MLflow's own `log_table` would append rows to it).
    """
    tables = {path.stem: as_table(path) for path in sorted(folder.glob("*.csv"))}
    if not tables:
        return
    with tempfile.TemporaryDirectory() as temporary:
        for name, table in tables.items():
            Path(temporary, f"{name}.json").write_text(json.dumps(table), encoding="utf-8")
        client.log_artifacts(run.info.run_id, temporary, artifact_path=TABLES)
    known = json.loads(run.data.tags.get(LOGGED_TAG, "[]"))
    new = [entry for name in tables if (entry := {"path": f"{TABLES}/{name}.json", "type": "table"}) not in known]
    if new:
        client.set_tag(run.info.run_id, LOGGED_TAG, json.dumps([*known, *new]))


def as_table(path: Path) -> Mapping[str, list[Any]]:
    """A CSV file's header and rows in MLflow's layout; numbers as numbers, empty fields null."""
    with path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    return {"columns": header, "data": [[_value(text) for text in row] for row in rows]}


def _value(text: str) -> str | float | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text  # JSON has no other numbers
    return text or None


VIEW_TAG = "mlflow.sharedViewState."
SECTIONS = ("turn", "final", "cost")
OPEN = ("turn", "final")
WIDE = 2  # charts beside each other: a chart's title is its metric's whole key


class View(NamedTuple):
    """A view's key, and its content as the tag holds it. Equal views have one key."""

    key: str
    content: str

    @property
    def tag(self) -> str:
        """The name of the experiment's tag."""
        return VIEW_TAG + self.key


def view_of(cell: FinishedCell) -> View:
    """The headline first: its series over the turns, then its final figures; MLflow adds all others behind them."""
    state = {
        "compareRunCharts": list(_charts(cell)),
        "compareRunSections": [
            {
                "uuid": name,
                "name": name,
                "display": name in OPEN,
                "isReordered": True,
                "isGenerated": True,
                "columns": WIDE,
            }
            for name in SECTIONS
        ],
        "isAccordionReordered": True,
    }
    content = json.dumps(state, separators=(",", ":"))
    return View(f"codechat-{content_hash(content.encode())[:8]}", content)


def _charts(cell: FinishedCell) -> Iterator[dict[str, Any]]:
    """A chart for each headline figure that the cell has: a line over the turns, or a bar."""
    for key in cell.headline:
        steps = [point.step for point in cell.points if point.key == key]
        section, _, name = key.partition("/")
        if steps:
            yield {
                "type": "LINE" if max(steps) > 0 else "BAR",
                "uuid": key,
                "metricSectionId": section,
                "metricKey": key,
                "displayName": name,
                "runsCountToCompare": 10,
                "isGenerated": True,
                "deleted": False,
                **(LINE if max(steps) > 0 else {}),
            }


LINE = {
    "lineSmoothness": 0,
    "xAxisScaleType": "linear",
    "scaleType": "linear",
    "range": {},
    "xAxisKey": "step",
    "selectedXAxisMetricKey": "",
    "yAxisKey": "metric",
    "yAxisExpressions": [],
    "ignoreOutliers": False,
    "useGlobalXaxisKey": True,
    "useGlobalLineSmoothing": True,
}
"""MLflow's own settings of a line, written out: it takes a chart as it is given."""
