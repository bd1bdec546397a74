"""Tracking: shows cells in a store, finished or while they run. One file per kind of store.

The records are the truth: a store can be filled from them again at any time, so a failing tracker loses nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import TypeAdapter

from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import write_atomically
from codechat.base.records import TRACKED
from codechat.base.registry import NoTraits, Registry
from codechat.base.texts import read_json
from codechat.report.metrics import Point


class TrackingError(InfrastructureError):
    """A store could not be reached or written. The cell itself is safe in its folder: report it and go on."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """The dataset of a cell. `tasks` counts all tasks, `used` the cell's tasks; `source` is a path, an address or a few
    words. `departure` says how the tasks differ from the published ones of this name; empty if they do not."""

    name: str
    content_hash: str
    tasks: int
    used: int
    source: str
    departure: str = ""


@dataclass(frozen=True)
class FinishedCell:
    """All that a tracker shows about a cell; a cell that only begins has no points yet.

    `params` is the resolved config, nested; `folder` is the cell's folder, with the artifacts; `sweep` names the cell's
    sweep, if any; `tags` hold further identities of the result (content hashes, git commit). `command` makes or
    completes the cell. `headline` has the keys of the most important points, with their meaning; `caution` precedes
    them. `runs_dir` is the folder of cells that are not rescored: a store may keep files next to it.
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
    """Write the tracked values of a cell into its folder: a store that was unreachable can be filled later."""
    values = {**asdict(cell), "folder": "."}
    write_atomically(cell.folder / TRACKED, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def read_tracking(folder: Path) -> FinishedCell:
    """The tracked values of the cell in a folder. Raises `UserError` if the folder holds no finished cell."""
    try:
        values = read_json((folder / TRACKED).read_bytes())
        return TypeAdapter(FinishedCell).validate_python({**values, "folder": folder})
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"{folder} holds no finished cell: {TRACKED} is missing or unreadable",
            "give the folder of a finished cell, as run=runs/NAME-ID",
        ) from error


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A logged run. `open_with` is the command that starts MLflow, or the run's page if a server is running; `charts`
    is the page that compares the experiment's cells turn by turn (MLflow's start page is about traces)."""

    run_id: str
    experiment_id: str
    open_with: str
    charts: str


class Tracker(Protocol):
    """Shows finished cells."""

    def log(self, cell: FinishedCell) -> TrackedRun | None:
        """Show or update the cell; None without a store. Blocks. Raises `TrackingError` if the store fails, and
        `UserError` if the config is wrong."""


@runtime_checkable
class SharedStore(Protocol):
    """A tracker whose store several processes may create at the same time."""

    def open(self, runs_dir: Path) -> None:
        """Create the missing parts of the store for cells of this folder. Raises as `log` does."""


Ending = Literal["FAILED", "KILLED"]
"""How a cell ended without its figures: by an error, or by the user or the system."""


class Shown(Protocol):
    """A cell that is shown while it runs. The methods raise no error of the store."""

    def stop(self) -> None:
        """The sessions have ended: show a last state. `Tracker.log` may follow."""

    def end(self, ending: Ending) -> None:
        """The cell has ended, and `Tracker.log` does not follow."""


@runtime_checkable
class LiveStore(Protocol):
    """A tracker that can show a cell while it runs."""

    def show(
        self, cell: Callable[[], FinishedCell], progress: Callable[[], Mapping[str, float]], warn: Callable[[str], None]
    ) -> Shown | None:
        """Show a cell that begins; None if the user does not want this. Returns at once, and raises nothing.

        `progress` returns the present names and values. All functions are called in another thread; `warn` at most
        once, if the store fails.
        """


TRACKING: Registry[Tracker, NoTraits] = Registry("tracking", "codechat.report.tracking", NoTraits, Tracker)
