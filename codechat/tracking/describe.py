"""What a reader of a run's page wants first: the few figures that count, and in words where they come from."""

from collections.abc import Mapping, Sequence

from codechat.files import content_hash
from codechat.metrics import Point
from codechat.tracking import FinishedCell

NOTE_TAG = "mlflow.note.content"
OWN_NOTE_TAG = "codechat.note_hash"
LONGEST_NOTE = 5_000  # older servers take no more in a tag

# The figures of the paper's questions, and the one that says how far to trust them. They are logged before all others.
HEADLINE = {
    "final/mst": "mean sustainable turns",
    "final/delta_pct": "change of Pass@1, first to last turn, in %",
    "final/regression": "regression rate",
    "final/self_correction": "self-correction rate",
    "final/phi": "phi of passing and adherence",
    "final/errored": "errored sessions",
}


def headline_first(points: Sequence[Point]) -> list[Point]:
    """The headline figures in their order, then the other points in theirs."""
    order = {key: place for place, key in enumerate(HEADLINE)}
    return sorted(points, key=lambda point: order.get(point.key, len(order)))


def note_tags(cell: FinishedCell, present: Mapping[str, str]) -> dict[str, str]:
    """The tags that describe the cell in Markdown; none where a person has written a description instead."""
    written = present.get(NOTE_TAG)
    if written is not None and present.get(OWN_NOTE_TAG) != _mark(written):
        return {}
    note = description(cell)
    return {NOTE_TAG: note, OWN_NOTE_TAG: _mark(note)}


def description(cell: FinishedCell) -> str:
    """What ran, its headline figures, how to run it again, and where its files are."""
    about = f"**{cell.name}**"
    if cell.dataset is not None:
        about += f": {cell.dataset.used} of the {cell.dataset.tasks} tasks of `{cell.dataset.name}`"
    parts = [about, _figures(cell.points)]
    if cell.command is not None:
        parts.append(f"Run again, or resume what is missing:\n\n```\n{cell.command}\n```")
    parts.append(f"Run folder: `{cell.folder}`")
    return "\n\n".join(part for part in parts if part)[:LONGEST_NOTE]


def _figures(points: Sequence[Point]) -> str:
    values = {point.key: point.value for point in points}
    rows = [f"| {meaning} | {values[key]:.4g} |" for key, meaning in HEADLINE.items() if key in values]
    passing = sorted((point.step, point.value) for point in points if point.key == "turn/pass_at_1")
    if passing:
        rows.insert(
            0, f"| Pass@1, turn {passing[0][0]} → {passing[-1][0]} | {passing[0][1]:.3f} → {passing[-1][1]:.3f} |"
        )
    return "\n".join(["| figure | value |", "| --- | --- |", *rows]) if rows else ""


def _mark(note: str) -> str:
    return content_hash(note.encode())[:16]
