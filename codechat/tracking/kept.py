"""A tracker's input, written into the cell's folder: a store that was unreachable can be filled later."""

import json
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from codechat.errors import UserError
from codechat.files import write_atomically
from codechat.records import TRACKED
from codechat.tracking import FinishedCell


def write_tracking(cell: FinishedCell) -> None:
    """Write the tracked values of a cell beside its records."""
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
