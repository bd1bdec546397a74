"""`codechat report`: tables, figures and one page that compare finished cells."""

import time
from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape
from rich.table import Table as TerminalTable

from codechat.cli.terminal import err, out
from codechat.cli.words import parse_words
from codechat.errors import UserError
from codechat.report.build import build_report
from codechat.report.cells import LoadedCell, cell_folders, load_cells
from codechat.report.data import Table
from codechat.report.page import write_page
from codechat.tracking import TrackingError

KEYS = {
    "runs": "folders of cells, or folders that hold such, separated by commas",
    "experiment": "the MLflow experiment whose cells are compared, instead of runs",
    "filter": "with experiment: an MLflow filter, such as tags.`codechat.sweep` = 'rq1'",
    "uri": "with experiment: the tracking URI; SQLite mlflow/store.db in the working folder unless given",
    "out": "the folder that tables, figures and the page are written to",
}


def run_report(words: list[str]) -> int:
    """Write the report; returns the exit status. Raises `UserError`."""
    values = parse_words(words, KEYS, required=("out",))
    started = time.monotonic()
    folder = Path(values["out"])
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is no folder", "out names the folder that the report is written to")
    loaded = load_cells(_folders(values, folder))
    cells = [cell for cell in loaded if cell.protocol == "refine"]
    notes = _notes(values, loaded)
    if not cells:
        raise UserError("none of these cells follows the protocol refine", notes[-1])
    data = build_report(cells, folder, notes)
    page = write_page(cells, data, folder)
    for note in data.notes:
        err.print(f"note: {note}", markup=False)
    out.print(_leaderboard(data.tables[0]))
    out.print(f"\n{len(cells)} cells, {len(data.tables)} tables, {len(data.figures)} figures", markup=False, end="")
    out.print(f" ({time.monotonic() - started:.1f} s)", markup=False)
    out.print(f"tables   {folder / 'tables'}\nfigures  {folder / 'figures'}\npage     {page}", markup=False)
    return 0


def _folders(values: Mapping[str, str], out: Path) -> list[Path]:
    """Where the cells lie: the folders given, or those of an MLflow experiment's runs."""
    if ("runs" in values) == ("experiment" in values):
        raise UserError("report needs cells", "give runs=DIR[,DIR], or experiment=NAME with filter=… if need be")
    for key in ("filter", "uri"):
        if key in values and "experiment" not in values:
            raise UserError(f"{key} goes with experiment", f"{key}: {KEYS[key]}")
    if "runs" in values:
        return [Path(name) for name in values["runs"].split(",") if name]
    from codechat.tracking.find import find_cells

    try:
        return find_cells(values.get("uri"), values["experiment"], values.get("filter", ""), out / "cells")
    except TrackingError as error:
        raise UserError(str(error), "start the server, or give runs=DIR instead") from error


def _notes(values: Mapping[str, str], loaded: tuple[LoadedCell, ...]) -> list[str]:
    """What is left out, in words: cells that have not finished, and cells of other protocols."""
    unfinished = [
        path.name for name in values.get("runs", "").split(",") if name for path in cell_folders(Path(name))[1]
    ]
    others = sorted({cell.protocol for cell in loaded if cell.protocol != "refine"})
    notes = []
    if unfinished:
        notes.append(f"Left out, as they have not finished: {', '.join(unfinished)}.")
    for protocol in others:
        count = sum(cell.protocol == protocol for cell in loaded)
        cells = "1 cell" if count == 1 else f"{count} cells"
        notes.append(f"Left out: {cells} of the protocol {protocol}; these tables are those of the protocol refine.")
    return notes


def _leaderboard(table: Table) -> TerminalTable:
    """The leaderboard as the terminal shows it."""
    shown = TerminalTable(title=f"\n{table.title}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in table.columns:
        shown.add_column(column.title, justify="right" if column.numeric else "left")
    for row in table.rows:
        shown.add_row(*(escape(column.text(value)) for column, value in zip(table.columns, row, strict=True)))
    return shown
