"""The runs of a cell in an MLflow store: how they are found, and what they say of the cell besides its figures."""

import os
import platform
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeVar

from codechat.environment import VERSION
from codechat.tracking import FinishedCell
from codechat.tracking.describe import note_tags
from codechat.tracking.flatten import flat_params
from codechat.tracking.store import Store

CELL_TAG = "codechat.cell_id"
SWEEP_TAG = "codechat.sweep"
CAUTION_TAG = "codechat.caution"
PROCESS_TAG = "codechat.process"
"""Which process showed the run while its cell ran: the host, the number there, and a text that no other has."""
PROGRESS = "progress/"
"""The prefix of the series that are logged while a cell runs."""
PARAMS_PER_BATCH = 100  # MLflow's limit of one request

T = TypeVar("T")
_OWN = secrets.token_hex(4)


def this_process() -> str:
    """The value of `PROCESS_TAG` for this process."""
    return f"{socket.gethostname()} {os.getpid()} {_OWN}"


def runs_of(store: Store, cell: FinishedCell) -> list[Any]:
    """The cell's runs in the store's experiment, the latest first."""
    query = f"tags.`{CELL_TAG}` = '{cell.cell_id}'"
    return list(store.client.search_runs([store.experiment_id], query, order_by=["attributes.start_time DESC"]))


def inherited_tags(runs: Sequence[Any]) -> dict[str, str]:
    """The tags of a cell's runs together; the latest run's count."""
    return {key: value for run in reversed(runs) for key, value in run.data.tags.items()}


def tags_for(cell: FinishedCell, inherited: Mapping[str, str]) -> dict[str, str]:
    """The tags of a cell's run. The sweep is added to those in which the cell took part before."""
    own = {CELL_TAG: cell.cell_id, "mlflow.runName": cell.name}
    tags = {**_versions(), **cell.tags, **own, **note_tags(cell, inherited)}
    if cell.caution or CAUTION_TAG in inherited:
        tags[CAUTION_TAG] = cell.caution
    if cell.sweep:
        sweeps = inherited.get(SWEEP_TAG, "").split(",")
        tags[SWEEP_TAG] = ",".join(dict.fromkeys(name for name in [*sweeps, cell.sweep] if name))
    return tags


def set_tags(store: Store, run_id: str, tags: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Set those tags of a run that differ from the present ones."""
    for key, value in tags.items():
        if present.get(key) != value:
            store.client.set_tag(run_id, key, value)


def log_params(store: Store, run_id: str, present: Mapping[str, str], cell: FinishedCell) -> None:
    """Add a run's missing params: written once, they keep their first values (they may differ in run options)."""
    from mlflow.entities import Param

    params = [Param(key, value) for key, value in flat_params(cell.params).items() if key not in present]
    for chunk in batches(params, PARAMS_PER_BATCH):
        store.client.log_batch(run_id, params=chunk)


def is_shown_by_this_process(run: Any) -> bool:
    """Whether the run is shown as running by this process, which also sees to its end."""
    return bool(run.info.status == "RUNNING" and run.data.tags.get(PROCESS_TAG) == this_process())


def has_figures(run: Any) -> bool:
    """Whether the cell of the run has been logged as a finished one; a run that MLflow shows may be under way."""
    return PROCESS_TAG not in run.data.tags or any(not key.startswith(PROGRESS) for key in run.data.metrics)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in parts of at most that size."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _versions() -> Mapping[str, str]:
    """The versions of the software that made the figures."""
    return {
        "codechat.version": VERSION,
        "codechat.version.python": platform.python_version(),
        **{f"codechat.version.{package}": version(package) for package in ("evalplus", "mlflow")},
    }
