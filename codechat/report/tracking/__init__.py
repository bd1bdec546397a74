"""Tracking: shows a cell beside others, finished or while it runs. One file per kind of store.

The records are the truth: a store can be filled from them again at any time, so a failing tracker loses nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import TypeAdapter, ValidationError

from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import write_atomically
from codechat.base.records import TRACKED
from codechat.base.registry import NoTraits, Registry
from codechat.report.metrics import Point


class TrackingError(InfrastructureError):
    """A store could not be reached or written. The cell itself is safe in its folder: report it and go on."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """The dataset of a cell.

    `tasks` counts all tasks, `used` those of the cell; `source` is a path, an address or a few words. `departure` says
    that the tasks are not what was published under the name; empty if they are.
    """

    name: str
    content_hash: str
    tasks: int
    used: int
    source: str
    departure: str = ""


@dataclass(frozen=True)
class FinishedCell:
    """All that a tracker shows about a cell.

    `params` is the resolved config, nested; `folder` is the cell's, with the artifacts; `sweep` names the cell's sweep,
    if any; `tags` hold what else identifies the result (content hashes, git commit). `command` makes or completes the
    cell. `headline` has the keys of the most important points, with their meaning. `caution` is to be read before them.
    `runs_dir` is the folder of the cells that are not rescored: a store may keep files beside it. Of a cell that only
    begins, there are no points yet.
    """

    cell_id: str
    name: str
    params: Mapping[str, Any]
    points: Sequence[Point]
    folder: Path
    tags: Mapping[str, str] = field(default_factory=dict)
    sweep: str | None = None
    dataset: DatasetInfo | None = None
    command: str | None = None
    headline: Mapping[str, str] = field(default_factory=dict)
    caution: str = ""
    runs_dir: str = "runs"


def write_tracking(cell: FinishedCell) -> None:
    """Write the tracked values of a cell beside its records: a store that was unreachable can be filled later."""
    values = {**asdict(cell), "folder": "."}
    write_atomically(cell.folder / TRACKED, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def read_tracking(folder: Path) -> FinishedCell:
    """The tracked values of the cell in a folder. Raises `UserError` if the folder holds no finished cell."""
    try:
        values = json.loads((folder / TRACKED).read_bytes())
        return TypeAdapter(FinishedCell).validate_python({**values, "folder": folder})
    except (OSError, ValueError, ValidationError) as error:
        raise UserError(
            f"{folder} holds no finished cell: {TRACKED} is missing or unreadable",
            "give the folder of a finished cell, as run=runs/NAME-ID",
        ) from error


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A logged run.

    `open_with` is the command that starts MLflow on it, or the run's page if a server is running; `charts` is the page
    that compares the experiment's cells turn by turn (MLflow itself opens on a page about traces).
    """

    run_id: str
    experiment_id: str
    open_with: str
    charts: str


class Tracker(Protocol):
    """Shows finished cells."""

    def log(self, cell: FinishedCell) -> TrackedRun | None:
        """Show the cell, or update what is shown of it; None if there is no store.

        Blocks. Raises `TrackingError` if the store fails, and `UserError` if the config is wrong.
        """


@runtime_checkable
class SharedStore(Protocol):
    """A tracker whose store several processes may create at the same time."""

    def open(self, runs_dir: Path) -> None:
        """Create what is missing of the store for cells of that folder.

        Raises `TrackingError` and `UserError`, as `log` does.
        """


Ending = Literal["FAILED", "KILLED"]
"""How a cell ended without its figures: by an error, or by the user or the system."""


class Shown(Protocol):
    """A cell that is shown while it runs. The methods raise no error of the store."""

    def stop(self) -> None:
        """The sessions have ended: show how far they came, and nothing further. `Tracker.log` may follow."""

    def end(self, ending: Ending) -> None:
        """The cell has ended, and `Tracker.log` does not follow."""


@runtime_checkable
class LiveStore(Protocol):
    """A tracker that can show a cell while it runs."""

    def show(
        self, cell: Callable[[], FinishedCell], progress: Callable[[], Mapping[str, float]], warn: Callable[[str], None]
    ) -> Shown | None:
        """Show a cell that begins; None if the user does not want that. Returns at once, and raises nothing.

        `progress` gives the names and values to show now. All functions are called in another thread: `warn` once at
        most, if the store fails.
        """


TRACKING: Registry[Tracker, NoTraits] = Registry("tracking", "codechat.report.tracking", NoTraits, Tracker)
