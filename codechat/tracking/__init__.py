"""Tracking: where a finished cell is shown beside others. One file per kind of store.

The records stay the truth: a store can be filled again from them at any time, so a tracker that fails costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from codechat.errors import InfrastructureError
from codechat.metrics import Point
from codechat.registry import NoTraits, Registry


class TrackingError(InfrastructureError):
    """A store could not be reached or written. The cell itself is safe in its folder: say so, and go on."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What a cell's dialogues were about.

    `tasks` counts the dataset, of which the cell took `used`; `source` is a path, an address or a few words.
    """

    name: str
    content_hash: str
    tasks: int
    used: int
    source: str


@dataclass(frozen=True)
class FinishedCell:
    """All that a tracker shows of a cell.

    `params` is the resolved config, nested; `folder` the cell's own, from which the artifacts are taken;
    `sweep` names the sweep that the cell was run for, if any; `tags` hold what else identifies the result
    (content hashes, git commit), under names of the caller's choice. `command` makes the cell again, or what is missing
    of it. `headline` holds the keys of the points that a reader wants first, with what they mean.
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


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """Where a cell was logged.

    `open_with` is the command that starts MLflow on it, or the run's page where a server runs already; `charts` is the
    page that compares the experiment's cells turn by turn (MLflow itself opens on a page about traces). `notice` tells
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
        """Show the cell, or bring what is shown of it up to date; None where nothing is kept.

        Blocks. Raises `TrackingError` where the store fails, `UserError` where the config asks for the impossible.
        """


TRACKING: Registry[Tracker, NoTraits] = Registry("tracking", "codechat.tracking", NoTraits)

__all__ = ["TRACKING", "DatasetInfo", "FinishedCell", "TrackedRun", "Tracker", "TrackingError"]
