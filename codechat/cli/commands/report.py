"""`codechat report`: tables, figures and one page that compare finished cells."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table as TerminalTable

from codechat.cli.terminal import err, out
from codechat.cli.words import parse_words
from codechat.config import Config
from codechat.engine.results.measured import remeasure
from codechat.engine.settings.config import GROUPS, CellConfig
from codechat.errors import UserError
from codechat.report.build import build_report
from codechat.report.data import Table
from codechat.report.generic.overview import pooling_notes
from codechat.report.loading import cell_folders, content_notes, load_cells
from codechat.report.page import write_page
from codechat.report.study import LoadedCell
from codechat.template import counted
from codechat.tracking import TrackingError

MOST_COLUMNS = 14  # of a table in a terminal; in a wider one intervals are left out
KEYS = {
    "runs": "folders of cells, or folders that hold such, separated by commas",
    "experiment": "the MLflow experiment whose cells are compared, instead of runs",
    "filter": "with experiment: an MLflow filter, such as tags.`codechat.sweep` = 'rq1'",
    "uri": "with experiment: the tracking URI; SQLite mlflow/store.db in the working folder unless given",
    "audit": "an audit's folder with people's labels: adherence corrected for the judge's errors, beside the raw",
    "out": "the folder that tables, figures and the page are written to",
}


def run_report(words: list[str]) -> int:
    """Write the report; returns the exit status. Raises `UserError`."""
    values = parse_words(words, KEYS, required=("out",))
    started = time.monotonic()
    folder = Path(values["out"])
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is no folder", "out names the folder that the report is written to")
    loaded = load_cells(_folders(values, folder), options_of, remeasure)
    cells = [cell for cell in loaded if cell.measures is not None]
    notes = _notes(values, loaded)
    if "audit" in values:
        cells, remarks = _with_labels(values["audit"], cells)
        notes += remarks
    if not cells:
        raise UserError("none of these cells says what it measures", notes[-1])
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
    """The option model of a config.yaml, or of one of its groups; None if no installed component has such options."""
    if not place:
        return CellConfig
    try:
        return GROUPS[place].chosen_by(values).config if place in GROUPS else None
    except UserError:
        return None


def _folders(values: Mapping[str, str], out: Path) -> list[Path]:
    """The cells' folders: the given ones, or those of an MLflow experiment's runs."""
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


def _with_labels(named: str, cells: list[LoadedCell]) -> tuple[list[LoadedCell], list[str]]:
    """The cells with people's labels of their judge, and remarks. Raises `UserError` if none can be read."""
    from codechat.audit.people import measures_adherence, read_people, with_labels

    if not any(map(measures_adherence, cells)):
        return _with_scores([Path(name) for name in named.split(",")], cells), []
    people = read_people(Path(named), cells, options_of)
    found = with_labels(cells, people, options_of)
    missed = [f"Adherence of {cell.label} on {cell.dataset} is not corrected: {cell.labels}." for cell in found
              if isinstance(cell.labels, str)]  # fmt: skip
    return found, [*people.notes, *missed]


def _with_scores(places: list[Path], cells: list[LoadedCell]) -> list[LoadedCell]:
    """The cells with what people's labels of another kind came to: those of the protocols that have the kind."""
    from codechat.audit.judged import kinds

    protocols = {protocol for kind in kinds().values() for protocol in kind.protocols}
    if not any(cell.protocol in protocols for cell in cells):
        raise UserError(
            "no cell of this report judges adherence, or has decisions of another kind that people label",
            "audit goes with cells whose metrics.json has iar, or with those that audit export draws from",
        )
    scores: dict[str, Any] = {}
    for place in places:
        try:
            found = json.loads((place / "audit.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{place} holds no scored labels", f"audit score labels=FILE[,FILE] out={place}") from error
        agreed = found.get("agreement") or {}
        for each in found["scores"].values():  # of two annotators what both say comes last, and counts
            between = {question: (agreed.get(question) or {}).get("kappa") for question in each}
            scores |= {question: {**score, "between": between[question]} for question, score in each.items()}
    return [replace(cell, scored=scores) if cell.protocol in protocols else cell for cell in cells]


def _notes(values: Mapping[str, str], loaded: tuple[LoadedCell, ...]) -> list[str]:
    """Remarks on names that stand for different tasks, and on cells that are left out: unfinished, or without data."""
    unfinished = [
        path.name for name in values.get("runs", "").split(",") if name for path in cell_folders(Path(name))[1]
    ]
    silent = [cell.folder.name for cell in loaded if cell.measures is None]
    notes = [*pooling_notes(loaded), *content_notes(loaded)]
    if unfinished:
        notes.append(f"Left out, as they have not finished: {', '.join(unfinished)}.")
    if silent:
        remedy = "run them again: no model is called, and metrics.json is written again"
        notes.append(f"Left out: their metrics.json does not describe its measures ({remedy}): {', '.join(silent)}.")
    return notes


def _terminal_tables(table: Table) -> Iterator[TerminalTable]:
    """A table for the terminal, one per dataset; a wide one without intervals."""
    wide = len(table.columns) > MOST_COLUMNS
    places = [place for place in table.told_apart if not (wide and table.columns[place].key.endswith(("_ci", "_n")))]
    for name, numbers in table.blocks:
        title = escape(f"{table.title}: {name}" if name else table.title)
        shown = TerminalTable(title=f"\n{title}", title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in (table.columns[place] for place in places):
            # a heading or a name may take several lines; nothing is cut
            shown.add_column(escape(column.title), justify="right" if column.numeric else "left", overflow="fold")
        for number in numbers:
            row = table.rows[number]
            shown.add_row(*(escape(table.columns[place].text(row[place])) for place in places))
        yield shown
