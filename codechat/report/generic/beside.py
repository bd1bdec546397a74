"""What a paper prints beside what was measured: models by their plain names, rows below those of their model."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from codechat.report.comparison import REPLAYED

T = TypeVar("T")
MEASURED, PUBLISHED = "measured", "published"
NOWHERE = " No cell here has."
MOST_APART = 3  # cells in a note


def plain_name(model: str) -> str:
    """A model's name without its publisher, capitals and signs."""
    return re.sub(r"[^a-z0-9]", "", model.removesuffix(REPLAYED).rpartition("/")[2].lower())


def beside(measured: Iterable[tuple[str, Iterable[T]]], printed: Mapping[str, T]) -> list[T]:
    """Measured rows in their order, each with the paper's name of its model, and the printed ones by that name.

    A printed row follows the last measured one of its model; those of other models come last.
    """
    entries, left = list(measured), dict(printed)
    last = {name: number for number, (name, _) in enumerate(entries)}
    rows: list[T] = []
    for number, (name, own) in enumerate(entries):
        rows += own
        if last[name] == number and name in left:
            rows.append(left.pop(name))
    return [*rows, *left.values()]


def per_cent(value: float | None) -> float | None:
    """A share in per cent."""
    return None if value is None else 100 * value


def said_apart(cells: Iterable[tuple[str, Sequence[str]]]) -> str:
    """What sets cells apart from a paper's setup, each by its label, for a table's note; the first three cells."""
    found = [f"{label}: {', '.join(apart)}" for label, apart in cells if apart]
    return f" What differs: {'; '.join(found[:MOST_APART])}{'; …' if len(found) > MOST_APART else ''}." if found else ""
