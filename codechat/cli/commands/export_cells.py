"""The cells of an export, and the columns that tell them apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from codechat.cli.commands.report import options_of
from codechat.engine.results.measured import remeasure
from codechat.errors import UserError
from codechat.protocols import PROTOCOLS
from codechat.records import SessionRecord, TurnRecord, read_sessions
from codechat.report.loading import cell_folders, content_notes, load_cells
from codechat.seal import edited

Source = Callable[[SessionRecord, TurnRecord], Any]


@dataclass(frozen=True)
class ExportedCell:
    """A cell's records. `dataset` replaces the name in them if others of the export have it for different tasks.

    `entrant` is the name that a report gives to it and to the cells which differ from it in the seed alone; empty if it
    is exported by itself.
    """

    folder: Path
    dataset: str | None
    choices: Mapping[str, str]
    uses: frozenset[str]
    entrant: str = ""

    @property
    def path(self) -> Path:
        """The file of the sessions."""
        return self.folder / "sessions.jsonl"

    def chosen(self, group: str) -> str | None:
        """The option of a group; None if the protocol does not use it, or nothing tells."""
        return self.choices.get(group) if group in self.uses else None


def one_cell(folder: Path) -> tuple[ExportedCell, list[str]]:
    """A cell, finished or not, and what the user should know of it. Raises `UserError`."""
    if not (folder / "sessions.jsonl").is_file():
        several = folder.is_dir() and next(folder.glob("*/sessions.jsonl"), None) is not None
        remedy = f"it holds cells: runs={folder} takes all of them" if several else "a run prints its folder at the end"
        raise UserError(f"{folder} is no cell's folder: it has no sessions.jsonl", remedy)
    said = edited(folder)
    return _exported(folder, None), [f"{folder}: {said}."] if said else []


def several_cells(folders: Sequence[Path]) -> tuple[list[ExportedCell], list[str]]:
    """The finished cells of the folders, and what the user should know of them. Raises `UserError`."""
    loaded = load_cells(folders, options_of, remeasure)
    notes = list(content_notes(loaded))
    left = [cell.name for folder in folders for cell in cell_folders(folder)[1]]
    if left:
        notes.append(f"Left out, as they have not finished: {', '.join(left)}.")
    return [_exported(part.folder, cell.dataset, cell.label) for cell in loaded for part in cell.parts], notes


def _exported(folder: Path, dataset: str | None, entrant: str = "") -> ExportedCell:
    try:
        config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
        choices, kind = config.get("choices") or {}, config["protocol"]["kind"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        return ExportedCell(folder, dataset, {}, frozenset(), entrant)  # a recording without its configuration
    installed = {component.name: component.traits.uses for component in PROTOCOLS}
    return ExportedCell(folder, dataset, choices, installed.get(kind, frozenset(choices)), entrant)


def cell_columns(cells: Sequence[ExportedCell]) -> dict[str, Source]:
    """What the columns of a cell's settings hold, by name. Raises `UserError` if two cells cannot be told apart."""
    by_id: dict[str, ExportedCell] = {}
    for cell in cells:
        first = next(read_sessions(cell.path), None)
        if first is not None and by_id.setdefault(first.cell_id, cell) is not cell:
            places = f"{by_id[first.cell_id].folder} and {cell.folder}"
            raise UserError(f"{places} have the same cell id", "export them one by one: run=DIR")

    def of(value: Callable[[ExportedCell, SessionRecord], Any]) -> Source:
        return lambda session, _: value(by_id.get(session.cell_id, cells[0]), session)

    return {
        "dataset": of(lambda cell, session: cell.dataset or session.dataset),
        "entrant": of(lambda cell, session: cell.entrant or session.model),
        "agenda": of(lambda cell, _: cell.chosen("agenda")),
        "judge": of(lambda cell, _: cell.chosen("judge")),
    }
