"""From a finished cell to its tracked run, and what the terminal says of it."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from codechat.cell import Cell
from codechat.cli.provenance import tags_of
from codechat.cli.terminal import err, out
from codechat.datasets import DATASETS
from codechat.environment import shell_command
from codechat.metrics import headline_of, points_of
from codechat.tracking import DatasetInfo, FinishedCell, TrackedRun, Tracker, TrackingError
from codechat.tracking.address import without_password
from codechat.tracking.kept import keep


def track(cell: Cell, tracker: Tracker, metrics: Mapping[str, Any], sweep: str | None, command: Sequence[str]) -> None:
    """Keep what is tracked beside the records, then send it; a store that fails costs a warning, never the cell."""
    config = cell.experiment.dataset
    options = config.model_dump(mode="json")
    source = options.get("path") or options.get("url") or f"{config.kind}: {DATASETS.of(config).summary}"
    measures = cell.protocol().measures
    finished = FinishedCell(
        cell_id=cell.id,
        name=cell.name,
        params=cell.experiment.model_dump(mode="json", exclude={"tracking", "runs_dir"}),
        tags=tags_of(cell),
        sweep=sweep,
        points=points_of(measures, metrics),
        headline=headline_of(measures),
        folder=cell.folder,
        dataset=DatasetInfo(
            cell.dataset.name,
            cell.dataset.content_hash,
            len(cell.dataset.tasks),
            len(cell.tasks),
            without_password(source),
        ),
        command=without_password(shlex.join(command)),
    )
    keep(finished)
    try:
        tracked = tracker.log(finished)
    except TrackingError as error:
        later = shlex.join([shell_command("codechat"), "upload", f"run={cell.folder}"])
        err.print(f"warning: not tracked: {error}\nThe records are safe. Later: {later}", markup=False)
        return
    if tracked is not None:
        show_tracked(tracked)


def show_tracked(tracked: TrackedRun) -> None:
    """Where the run is, and how to see it."""
    if tracked.notice:
        err.print(f"notice: {tracked.notice}", markup=False)
    out.print(f"MLflow run  {tracked.run_id}", markup=False)
    out.print(f"compare     {tracked.open_with}", markup=False)
    out.print(f"            then open {tracked.charts}", markup=False)
