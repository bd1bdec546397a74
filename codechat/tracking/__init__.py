"""Tracking: shows a finished cell beside others. One file per kind of store.

The records are the truth: a store can be filled from them again at any time, so a failing tracker loses nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from codechat.errors import InfrastructureError
from codechat.metrics import Point
from codechat.registry import NoTraits, Registry


class TrackingError(InfrastructureError):
    """A store could not be reached or written. The cell itself is safe in its folder: report it and go on."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """The dataset of a cell.

    `tasks` counts all tasks, `used` those of the cell; `source` is a path, an address or a few words.
    """

    name: str
    content_hash: str
    tasks: int
    used: int
    source: str


@dataclass(frozen=True)
class FinishedCell:
    """All that a tracker shows about a cell.

    `params` is the resolved config, nested; `folder` is the cell's, with the artifacts; `sweep` names the cell's sweep,
    if any; `tags` hold what else identifies the result (content hashes, git commit). `command` makes or completes the
    cell. `headline` has the keys of the most important points, with their meaning. `caution` is to be read before them.
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


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A logged run.

    `open_with` is the command that starts MLflow on it, or the run's page if a server is running; `charts` is the page
    that compares the experiment's cells turn by turn (MLflow itself opens on a page about traces). `notice` reports
    what was left out.
    """

    run_id: str
    experiment_id: str
    open_with: str
    charts: str
    notice: str | None = None


class Tracker(Protocol):
    """Shows finished cells."""

    def log(self, cell: FinishedCell) -> TrackedRun | None:
        """Show the cell, or update what is shown of it; None if there is no store.

        Blocks. Raises `TrackingError` if the store fails, and `UserError` if the config is wrong.
        """


TRACKING: Registry[Tracker, NoTraits] = Registry("tracking", "codechat.tracking", NoTraits, Tracker)

__all__ = ["TRACKING", "DatasetInfo", "FinishedCell", "TrackedRun", "Tracker", "TrackingError"]
