"""The runs of cells in an MLflow store: search, tags, params, the description in words, and downloads for a report."""

import json
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash, write_atomically
from codechat.base.records import TRACKED
from codechat.base.seal import SEAL, break_seal
from codechat.base.texts import visible
from codechat.report.metrics import Point
from codechat.report.metrics.measures import WALL
from codechat.report.tracking import FinishedCell, TrackingError
from codechat.report.tracking.address import Address, without_password
from codechat.report.tracking.store import Store, failures, open_client
from codechat.sandbox.languages import fence

# MLflow refuses more than 6,000 characters, older servers more than 500, and longer texts are not readable there.
LONGEST_VALUE = 250
LONGEST_KEY = 250
SHOWN_OF_LONG = 60
# Not allowed in a key: other characters, a dot at the start, and a slash that is not between two words.
REFUSED = re.compile(r"[^/\w.\- :]|^\.|(?<!\w)/|/(?!\w)")


def flat_params(config: Mapping[str, Any]) -> dict[str, str]:
    """Dotted keys and short texts; config.yaml has the whole values.

    Values that are not text are written as JSON. A long value is cut and gets a hash. A password in a URI is blanked
    out. Characters that MLflow refuses in a key become underscores.
    """
    return {
        REFUSED.sub("_", key)[:LONGEST_KEY]: _short(value if isinstance(value, str) else json.dumps(value))
        for key, value in _leaves(config, "")
    }


def _leaves(config: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _short(text: str) -> str:
    text = without_password(text)
    if len(text) <= LONGEST_VALUE:
        return text
    mark = content_hash(text.encode("utf-8", "replace"))[:12]
    return f"{text[:SHOWN_OF_LONG]}… [{len(text)} characters, sha256 {mark}]"


NOTE_TAG = "mlflow.note.content"
OWN_NOTE_TAG = "codechat.note_hash"
LONGEST_NOTE = 5_000  # the limit of a tag on older servers


def headline_first(cell: FinishedCell) -> list[Point]:
    """The headline's final figures in the headline's order, then the other points."""
    order = {key: place for place, key in enumerate(cell.headline) if not key.startswith("turn/")}
    return sorted(cell.points, key=lambda point: order.get(point.key, len(order)))


def note_tags(cell: FinishedCell, present: Mapping[str, str]) -> dict[str, str]:
    """The tags that describe the cell in Markdown; none if a person has written another description."""
    written = present.get(NOTE_TAG)
    if written is not None and present.get(OWN_NOTE_TAG) != _mark(written):
        return {}
    note = description(cell)
    return {NOTE_TAG: note, OWN_NOTE_TAG: _mark(note)}


def description(cell: FinishedCell) -> str:
    """The cell's name, headline figures, command and folder."""
    about = f"**{_plain(cell.name)}**"
    if cell.dataset is not None:
        about += f": {cell.dataset.used} of the {cell.dataset.tasks} tasks of {_plain(cell.dataset.name)}"
    parts = [about, f"**Caution:** {cell.caution}" if cell.caution else "", _figures(cell)]
    if cell.command is not None:
        parts.append(f"Run again, or resume what is missing:\n\n{fence(visible(cell.command), '')}")
    parts.append(f"Run folder: {_plain(str(cell.folder))}")
    return "\n\n".join(part for part in parts if part)[:LONGEST_NOTE]


def _figures(cell: FinishedCell) -> str:
    """The headline as a table; a series has its first and last value."""
    rows = []
    for key, meaning in cell.headline.items():
        points = sorted((point.step, point.value) for point in cell.points if point.key == key)
        if points and key.startswith("turn/"):
            (first, start), (last, end) = points[0], points[-1]
            sizes = [p.value for p in sorted(cell.points, key=lambda p: p.step) if p.key == f"{key}_n"]
            members = f" (n {sizes[0]:.0f} → {sizes[-1]:.0f}: not the same)" if sizes else ""
            rows.append(f"| {meaning}, turn {first} → {last} | {start:.3f} → {end:.3f}{members} |")
        elif points:
            rows.append(f"| {meaning} | {points[0][1]:.4g} |")
    return "\n".join(["| figure | value |", "| --- | --- |", *rows]) if rows else ""


def _plain(name: str) -> str:
    """A name as Markdown that shows it, on one line."""
    return re.sub(r"([\\`*_<>&|\[\]])", r"\\\1", visible(" ".join(name.split())))


def _mark(note: str) -> str:
    return content_hash(note.encode())[:16]


FILES = ("config.yaml", "sessions.jsonl", "metrics.json")
PAGE = 1_000
CONTENT_TAG = "codechat.dataset_hash"
CELL_TAG = "codechat.cell_id"
SWEEP_TAG = "codechat.sweep"
CAUTION_TAG = "codechat.caution"
PROGRESS = "progress/"
"""The prefix of the series that are logged while a cell runs."""


def run_for(store: Store, cell: FinishedCell, status: str) -> tuple[Any, list[str]]:
    """The cell's run, set to a status and tagged, and the ids of the runs that it replaces.

    An older run is continued if the cell only begins, or the run's points are still right. MLflow never deletes a
    point, and charts draw all of them: a run with outdated turns (the cell was resumed) is replaced by a new run with
    the same tags.
    """
    from mlflow.entities import RunTag

    query = f"tags.`{CELL_TAG}` = '{cell.cell_id}'"
    found = store.client.search_runs([store.experiment_id], query, order_by=["attributes.start_time DESC"])
    replaced = [str(run.info.run_id) for run in found]
    inherited = {key: value for run in reversed(found) for key, value in run.data.tags.items()}
    tags = tags_for(cell, inherited)
    if found and (not cell.points or _is_right(store, found[0], cell.points)):
        run_id = replaced.pop(0)
        store.client.update_run(run_id, status)
        store.client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])
    else:
        tags = {**inherited, **tags}
        began = int(time.time() * 1000) - (wall_ms(cell) or 0)
        run_id = store.client.create_run(store.experiment_id, began, tags, cell.name).info.run_id
        store.client.update_run(run_id, status)
    return store.client.get_run(run_id), replaced


def wall_ms(cell: FinishedCell) -> int | None:
    """The time of all processes of a finished cell in milliseconds; None if it is not known."""
    return next((int(1000 * point.value) for point in cell.points if point.key == WALL), None)


def _is_right(store: Store, run: Any, points: Sequence[Point]) -> bool:
    """Whether the cell has all points of a run; of a scalar only the last value is shown."""
    logged = {key for key in run.data.metrics if not key.startswith(PROGRESS)}
    return logged <= {point.key for point in points} and series_of(store, run, points) <= set(points)


def series_of(store: Store, run: Any, points: Sequence[Point]) -> set[Point]:
    """The run's points of the series among `points`."""
    keys = {point.key for point in points if point.step} & run.data.metrics.keys()
    return {
        Point(key, metric.value, metric.step)
        for key in keys
        for metric in store.client.get_metric_history(run.info.run_id, key)
    }


def tags_for(cell: FinishedCell, inherited: Mapping[str, str]) -> dict[str, str]:
    """The tags of a cell's run; the sweep is added to the earlier sweeps of the cell."""
    tags = {**cell.tags, CELL_TAG: cell.cell_id, "mlflow.runName": cell.name, **note_tags(cell, inherited)}
    if cell.caution or CAUTION_TAG in inherited:
        tags[CAUTION_TAG] = cell.caution
    if cell.sweep:
        sweeps = inherited.get(SWEEP_TAG, "").split(",")
        tags[SWEEP_TAG] = ",".join(dict.fromkeys(name for name in [*sweeps, cell.sweep] if name))
    return tags


def missing_params(run: Any, cell: FinishedCell) -> list[Any]:
    """The params that a run lacks; written params keep their first values (they may differ in run options)."""
    from mlflow.entities import Param

    return [Param(key, value) for key, value in flat_params(cell.params).items() if key not in run.data.params]


def find_cells(uri: str | None, experiment: str, condition: str, downloads: Path) -> list[Path]:
    """A folder per finished cell of the experiment that meets the condition (MLflow's filter string; empty: all).

    A run's files are downloaded into a folder under `downloads`, named by the cell id. Raises `UserError` for an
    unknown experiment, a wrong condition or no runs, and `TrackingError` if the store fails.
    """
    address = Address.of(uri)
    if address.database is not None and not address.database.is_file():
        remedy = "give uri=…, or run from the folder that has it"
        raise UserError(f"there is no MLflow store {address.database}", remedy)
    with failures(address):
        client = open_client(address)
        return [_fetch(client, run, downloads) for run in _runs(client, experiment, condition)]


def _runs(client: Any, experiment: str, condition: str) -> list[Any]:
    import mlflow

    found = client.get_experiment_by_name(experiment)
    if found is None:
        known = [one.name for one in client.search_experiments()]
        raise UserError(f"there is no MLflow experiment '{experiment}'", nearest(experiment, known))
    runs: list[Any] = []
    token: str | None = ""
    try:
        while token is not None:
            page = client.search_runs([found.experiment_id], condition, max_results=PAGE, page_token=token or None)
            # a cell that only began has no metric but its progress
            finished = (run for run in page if any(not key.startswith(PROGRESS) for key in run.data.metrics))
            runs += [run for run in finished if CELL_TAG in run.data.tags]
            token = page.token or None
    except mlflow.exceptions.MlflowException as error:
        if error.error_code != "INVALID_PARAMETER_VALUE":
            raise
        cause = str(error).partition("\n")[0]
        raise UserError(f"filter={condition}: {cause}", "e.g. filter=\"params.`agenda.turns` = '10'\"") from error
    if not runs:
        none = f"no cell of the experiment '{experiment}' meets the filter"
        raise UserError(
            none if condition else f"'{experiment}' has no finished cell",
            "look at its runs in MLflow; a filter names params.`…`, tags.`…` or metrics.`…`",
        )
    return runs


def _fetch(client: Any, run: Any, downloads: Path) -> Path:
    name = str(run.data.tags[CELL_TAG])  # set by anyone who may write to the store: it must not lead elsewhere
    folder = downloads / (name if re.fullmatch(r"\w+", name) else content_hash(name))[:16]
    folder.mkdir(parents=True, exist_ok=True)
    logged = {item.path for item in client.list_artifacts(run.info.run_id)}
    break_seal(folder)
    for name in (*FILES, *({SEAL} & logged)):
        if name not in logged:
            raise TrackingError(f"the run {run.info.run_name} has no {name}: log the cell again")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.download_artifacts(run.info.run_id, name, str(folder))
    content = {"dataset": {"content_hash": run.data.tags.get(CONTENT_TAG)}}
    write_atomically(folder / TRACKED, json.dumps(content) + "\n")
    return folder
