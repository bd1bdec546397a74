"""`codechat report`: tables, figures and one page that compare finished cells."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import JustifyMethod
from rich.markup import escape
from rich.table import Table as TerminalTable

from codechat.base.config import Config
from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.cli.terminal import err, out, parse_words
from codechat.report.build import build_report
from codechat.report.comparison import LoadedCell
from codechat.report.data import Column, Table
from codechat.report.generic.overview import pooling_notes
from codechat.report.loading import cell_folders, content_notes, load_cells
from codechat.report.page import write_page
from codechat.report.tracking import TrackingError
from codechat.run.extensions import extensions
from codechat.run.results.measured import remeasure
from codechat.run.settings.config import GROUPS, CellConfig

SHORT_NAME = 30  # characters of a text in a terminal that is never broken
KEYS = {
    "runs": "folders of cells, or folders that hold such, separated by commas",
    "experiment": "the MLflow experiment whose cells are compared, instead of runs",
    "filter": "with experiment: an MLflow filter, such as tags.`codechat.sweep` = 'rq1'",
    "uri": "with experiment: the tracking URI; SQLite mlflow/store.db in the working folder unless given",
    "audit": "folders of audits, DIR[,DIR]: adherence corrected by people's labels; scored labels of other kinds shown",
    "out": "the folder that tables, figures and the page are written to",
}


def run_report(words: list[str]) -> int:
    """Write the report; returns the exit status. Raises `UserError`."""
    further = extensions().results
    values = parse_words(words, KEYS | {name: each.meaning for name, each in further.items()}, required=("out",))
    started = time.monotonic()
    folder = Path(values["out"])
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is no folder", "out names the folder that the report is written to")
    loaded = load_cells(_folders(values, folder), options_of, remeasure)
    cells = [cell for cell in loaded if cell.measures is not None]
    notes = _notes(values, loaded)
    if "audit" in values:
        cells, remarks = _with_labels([Path(name) for name in values["audit"].split(",")], cells)
        notes += remarks
    if not cells:
        raise UserError("none of these cells says what it measures", notes[-1])
    for name in further.keys() & values:
        cells = _with_results(name, Path(values[name]), cells)
    data = build_report(cells, folder, notes)
    page = write_page(data, folder)
    for note in data.notes:
        err.print(f"note: {note}", markup=False)
    for cell in cells:
        if cell.caution:
            out.print(f"caution: {cell.caution}", markup=False)
    for shown in (shown for table in data.opening for shown in _terminal_tables(table)):
        out.print(shown)
    parts = [part for cell in cells for part in cell.parts]
    made = {"cell": parts, "table": data.tables, "figure": data.figures}
    out.print("\n" + ", ".join(counted(len(each), noun) for noun, each in made.items()), markup=False, end="")
    out.print(f" ({time.monotonic() - started:.1f} s)", markup=False)
    out.print(f"tables   {folder / 'tables'}\nfigures  {folder / 'figures'}\npage     {page}", markup=False)
    return 0


def options_of(place: str, values: Mapping[str, Any]) -> type[Config] | None:
    """The option model of a config.yaml, or of one of its groups; None if no installed component fits."""
    if not place:
        return CellConfig.whole()
    try:
        return GROUPS[place].chosen_by(values).config if place in GROUPS else None
    except UserError:
        return None


def _folders(values: Mapping[str, str], out: Path) -> list[Path]:
    """The cells' folders: given, or from the runs of an MLflow experiment."""
    if ("runs" in values) == ("experiment" in values):
        raise UserError("report needs cells", "give runs=DIR[,DIR], or experiment=NAME with filter=… if need be")
    for key in ("filter", "uri"):
        if key in values and "experiment" not in values:
            raise UserError(f"{key} goes with experiment", f"{key}: {KEYS[key]}")
    if "runs" in values:
        return [Path(name) for name in values["runs"].split(",") if name]
    from codechat.report.tracking.runs import find_cells

    try:
        return find_cells(values.get("uri"), values["experiment"], values.get("filter", ""), out / "cells")
    except TrackingError as error:
        raise UserError(str(error), "start the server, or give runs=DIR instead") from error


def _with_labels(places: Sequence[Path], cells: list[LoadedCell]) -> tuple[list[LoadedCell], Sequence[str]]:
    """The cells with people's labels of judges' decisions, and remarks.

    Labels of adherence correct it; labels of other kinds are shown as scored by `audit score`. Raises `UserError` if
    there are no labels, or none for these cells.
    """
    from codechat.report.audit.kinds import DEFAULT, kinds
    from codechat.report.audit.scoring import read_scores

    correcting, others = kinds()[DEFAULT], {kind.questions[0].name: kind for kind in kinds().values()}
    if not any(kind.concerns(cell) for kind in kinds().values() for cell in cells):
        raise UserError(
            "no cell of this report judges adherence, or has decisions of another kind that people label",
            "audit needs cells whose metrics.json has iar, or cells that audit export draws from",
        )
    scores: dict[str, Any] = {}
    adherence: list[Path] = []  # folders with labels of adherence
    for place in places:
        scored = {name: s for name, s in read_scores(place).items() if others.get(name, correcting) is not correcting}
        for name in scored:
            if not any(map(others[name].concerns, cells)):
                problem = f"{place}: no cell of this report has a {name}, which was labelled there"
                raise UserError(problem, f"give {others[name].source} too, or leave the folder out")
        scores |= scored
        adherence += [] if scored else [place]
    cells = [replace(c, scored={name: s for name, s in scores.items() if others[name].concerns(c)}) for c in cells]
    if not adherence:
        return cells, []
    first = adherence[0]
    if not any(map(correcting.concerns, cells)):
        raise UserError(f"{first} holds no scored labels", f"audit score labels=FILE[,FILE] out={first}")
    if len(adherence) > 1:
        raise UserError(f"labels of adherence are in {first} and in {adherence[1]}", "put the files into one folder")
    return correcting.correct(cells, first, options_of)


def _with_results(name: str, folder: Path, cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells, with the folder in the cells that it has results of. Raises `UserError` if there are none."""
    held = extensions().results[name].cells(folder)
    if not any(part.cell_id in held for cell in cells for part in cell.parts):
        raise UserError(f"{folder} has no results of these cells", f"give the runs that codechat {name} was given")
    return [
        replace(cell, results={**cell.results, name: folder}) if held & {part.cell_id for part in cell.parts} else cell
        for cell in cells
    ]


def _notes(values: Mapping[str, str], loaded: tuple[LoadedCell, ...]) -> list[str]:
    """Remarks on equal names of different tasks, and on cells that are left out: unfinished, or without data."""
    folders = [Path(name) for name in values.get("runs", "").split(",") if name]
    unfinished = [path.name for folder in folders for path in cell_folders(folder)[1]]
    silent = [cell.folder.name for cell in loaded if cell.measures is None]
    notes = [*pooling_notes(loaded), *content_notes(loaded)]
    if unfinished:
        notes.append(f"Left out, as they have not finished: {', '.join(unfinished)}.")
    if silent:
        remedy = "run them again: no model is called, and metrics.json is written again"
        notes.append(f"Left out: their metrics.json does not describe its measures ({remedy}): {', '.join(silent)}.")
    return notes


def _terminal_tables(table: Table) -> Iterator[TerminalTable]:
    """A table for the terminal, one per dataset; without intervals if it is wider than a line. Nothing is cut."""
    for name, numbers in table.blocks:
        columns = [_terminal_column(table, place, numbers) for place in table.shown_columns]
        if sum(width + 2 for _, _, width in columns) > out.width:
            columns = [each for each in columns if not each[0].key.endswith(("_ci", "_n"))]
        title = escape(f"{table.title}: {name}" if name else table.title)
        shown = TerminalTable(title=f"\n{title}", title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column, _, width in columns:
            side: JustifyMethod = "right" if column.numeric else "left"
            shown.add_column(escape(column.title), justify=side, overflow="fold", min_width=width)
        for cells in zip(*(texts for _, texts, _ in columns), strict=True):
            shown.add_row(*map(escape, cells))
        yield shown


def _terminal_column(table: Table, place: int, numbers: Sequence[int]) -> tuple[Column, list[str], int]:
    """A column, its texts, and the width that breaks neither a short text nor a word of the heading."""
    column = table.columns[place]
    texts = [column.text(table.rows[number][place]) for number in numbers]
    return column, texts, max(min(max(map(len, texts)), SHORT_NAME), *map(len, column.title.split()))
