"""From a finished cell to its tracked run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.config import Config
from codechat.datasets import DATASETS
from codechat.engine.cell import Cell
from codechat.engine.provenance import tags_of
from codechat.engine.served import tags_of_servers
from codechat.metrics import caution_of, headline_of, points_of
from codechat.tracking import TRACKING, DatasetInfo, FinishedCell, SharedStore, TrackedRun, Tracker, TrackingError
from codechat.tracking.address import without_password
from codechat.tracking.kept import write_tracking


@dataclass(frozen=True)
class Tracking:
    """The tracked run, None if there is none. `failure` is why the store refused it, empty if it did not."""

    run: TrackedRun | None = None
    failure: str = ""


def track(cell: Cell, tracker: Tracker, metrics: Mapping[str, Any], sweep: str | None, command: str) -> Tracking:
    """Write the tracked values beside the records, then send them; a failing store does not fail the cell."""
    finished = finished_cell(cell, metrics, sweep, command)
    write_tracking(finished)
    try:
        return Tracking(tracker.log(finished))
    except TrackingError as error:
        return Tracking(failure=str(error))


def open_store(config: Config, runs_dir: Path) -> str:
    """Create the store of a folder's cells before several processes use it.

    Returns why that was impossible, in words; empty if nothing is wrong. Raises `UserError`, as tracking a cell does.
    """
    tracker = TRACKING.build(config)
    try:
        if isinstance(tracker, SharedStore):
            tracker.open(runs_dir)
    except TrackingError as error:
        return str(error)
    return ""


def finished_cell(cell: Cell, metrics: Mapping[str, Any] | None, sweep: str | None, command: str) -> FinishedCell:
    """All that a tracker shows about a cell; without metrics, about one that begins."""
    config = cell.config.dataset
    options = config.model_dump(mode="json")
    source = options.get("path") or options.get("url") or f"{config.kind}: {DATASETS.of(config).summary}"
    measures = cell.protocol().measures
    return FinishedCell(
        cell_id=cell.id,
        name=cell.name,
        params=cell.config.model_dump(mode="json", exclude={"tracking", "runs_dir", "shard"}),
        tags={**tags_of(cell), **tags_of_servers(metrics or {})},
        sweep=sweep,
        points=points_of(measures, metrics) if metrics is not None else (),
        headline=headline_of(measures),
        caution=caution_of(metrics or {}),
        runs_dir=cell.config.runs_dir,
        folder=cell.folder,
        dataset=DatasetInfo(
            cell.dataset.name,
            cell.dataset.content_hash,
            len(cell.dataset.tasks),
            len(cell.tasks),
            without_password(source),
        ),
        command=without_password(command),
    )
