"""The runs of a cell in an MLflow store: how they are found, their tags and params, and their description in words."""

import json
import os
import platform
import re
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeVar

from codechat.base.environment import VERSION
from codechat.base.files import content_hash
from codechat.base.texts import visible
from codechat.report.metrics import Point
from codechat.report.tracking import FinishedCell
from codechat.report.tracking.address import without_password
from codechat.report.tracking.store import Store
from codechat.sandbox.languages import fence

# MLflow refuses more than 6,000 characters, older servers more than 500, and longer texts are not readable there.
LONGEST_VALUE = 250
LONGEST_KEY = 250
SHOWN_OF_LONG = 60
# Not allowed in a key: other characters, a dot at the start, and a slash that is not between two words.
REFUSED = re.compile(r"[^/\w.\- :]|^\.|(?<!\w)/|/(?!\w)")


def flat_params(config: Mapping[str, Any]) -> dict[str, str]:
    """Dotted keys and short texts.

    Values that are not text are written as JSON. A long one is cut and gets a hash that distinguishes it; the whole is
    in config.yaml. A password in a URI is blanked out. Characters that MLflow refuses in a key become underscores.
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
    return (
        f"{text[:SHOWN_OF_LONG]}… [{len(text)} characters, sha256 {content_hash(text.encode('utf-8', 'replace'))[:12]}]"
    )


NOTE_TAG = "mlflow.note.content"
OWN_NOTE_TAG = "codechat.note_hash"
LONGEST_NOTE = 5_000  # the limit of a tag on older servers


def headline_first(cell: FinishedCell) -> list[Point]:
    """The headline's final figures in their order, then the other points in theirs."""
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
    """The headline as a table, with the first and the last value of a series."""
    rows = []
    for key, meaning in cell.headline.items():
        points = sorted((point.step, point.value) for point in cell.points if point.key == key)
        if points and key.startswith("turn/"):
            (first, start), (last, end) = points[0], points[-1]
            rows.append(f"| {meaning}, turn {first} → {last} | {start:.3f} → {end:.3f} |")
        elif points:
            rows.append(f"| {meaning} | {points[0][1]:.4g} |")
    return "\n".join(["| figure | value |", "| --- | --- |", *rows]) if rows else ""


def _plain(name: str) -> str:
    """A name as Markdown that shows it, on one line."""
    return re.sub(r"([\\`*_<>&|\[\]])", r"\\\1", visible(" ".join(name.split())))


def _mark(note: str) -> str:
    return content_hash(note.encode())[:16]


CELL_TAG = "codechat.cell_id"
SWEEP_TAG = "codechat.sweep"
CAUTION_TAG = "codechat.caution"
PROCESS_TAG = "codechat.process"
"""The process that showed the run while its cell ran: the host, its number there, and a text that no other has."""
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
    versions = {f"codechat.version.{package}": version(package) for package in ("evalplus", "mlflow")}
    versions |= {"codechat.version": VERSION, "codechat.version.python": platform.python_version()}
    tags = {**versions, **cell.tags, **own, **note_tags(cell, inherited)}
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
