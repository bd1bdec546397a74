"""The description on a run's page: the headline figures, and their origin in words."""

import re
from collections.abc import Mapping

from codechat.files import content_hash
from codechat.languages import fence
from codechat.metrics import Point
from codechat.texts import visible
from codechat.tracking import FinishedCell

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
