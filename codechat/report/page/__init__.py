"""The report as one HTML file that needs no network: its sections, and every dialogue to read."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any

from codechat.base.files import write_atomically
from codechat.base.template import fill
from codechat.report.chapters import chapter_of
from codechat.report.comparison import LoadedCell
from codechat.report.data import FigureFile, Interval, ReportData, Table
from codechat.report.page.archive import Archive, archive, as_json, packed

# in the order in which they build on each other
SCRIPTS = ("elements.js", "charts.js", "code.js", "sections.js", "sessions.js", "beside.js", "dialogue.js", "page.js")
STYLES = ("page.css", "sessions.css")


def document(archive: Archive, report: ReportData) -> str:
    """The HTML. The page's script stands before the sessions, so that it works while they are still being read."""
    style, script = _joined(STYLES), '"use strict";\n(() => {\n' + _joined(SCRIPTS) + "})();\n"
    blocks = [("index", packed(as_json(archive.index.columns(archive.starts))))]
    blocks.append(("summary", packed(as_json(summary_values(report)))))
    blocks += [(f"chunk-{number}", chunk) for number, chunk in enumerate(archive.chunks)]
    return fill(
        _joined(["page.html"]),
        policy=_policy(style, script),
        style=style,
        script=script,
        overview=as_json(overview(report, archive.limit)).replace("<", "\\u003c"),
        data="".join(
            f'<script type="application/octet-stream" id="packed-{name}">{text}</script>\n' for name, text in blocks
        ),
    )


def _policy(style: str, script: str) -> str:
    """Nothing but this page's own style and script, no connection, and no text ever turned into markup."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _joined(names: Sequence[str]) -> str:
    return "\n".join(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in names)


def summary_values(summary: ReportData) -> dict[str, Any]:
    """The chapters with their tables and figures, as JSON values; a figure is its SVG file."""
    return {
        "groups": [
            {
                "key": key,
                "title": title,
                "tables": [_table(table) for table in summary.tables if table.group == key],
                "figures": [_figure(each) for each in summary.figures if each.of.group == key and each.of.on_page],
            }
            for key, title in summary.groups.items()
        ],
        "notes": list(summary.notes),
    }


def _table(table: Table) -> dict[str, Any]:
    """A value is what is shown, what it sorts by, and whether it is set in bold."""
    rows = [
        [
            [column.text(value), value.low if isinstance(value, Interval) else value, (row, place) in table.strong]
            for place, (column, value) in enumerate(zip(table.columns, values, strict=True))
        ]
        for row, values in enumerate(table.rows)
    ]
    columns = [[column.title, column.numeric] for column in table.columns]
    return {"name": table.name, "title": table.title, "note": table.note, "columns": columns, "rows": rows}


def _figure(figure: FigureFile) -> dict[str, str]:
    svg = base64.b64encode(figure.svg.read_bytes()).decode("ascii")
    return {"name": figure.of.name, "title": figure.of.title, "caption": figure.of.caption, "svg": svg}


def overview(report: ReportData, limit: int | None) -> dict[str, Any]:
    """The cautions, the headline, the cells, the sections; `limit` is the most characters kept of a text, if any."""
    places = {cell.folder: place for place, cell in enumerate(report.cells)}
    cells = [
        {
            "label": cell.label,
            "model": cell.model,
            "dataset": cell.dataset,
            "protocol": cell.protocol,
            "setting": cell.setting,
            "baseline": cell.is_baseline,
            "fates": chapter_of(cell.protocol).fates,
            **({"samples": cell.samples} if cell.samples > 1 else {}),
        }
        for cell in report.cells
    ]
    return {
        "cautions": [cell.caution for cell in report.cells if cell.caution],
        "findings": _plain(report.headline, places),
        "cells": cells,
        "sections": _plain(report.sections, places),
        "limit": limit,
    }


def _plain(value: Any, places: Mapping[Path, int]) -> Any:
    """JSON of a section's parts: a part is an object whose `is` names it, a cell is its number."""
    if isinstance(value, LoadedCell):
        return places[value.folder]
    if is_dataclass(value):
        parts = {field.name: _plain(getattr(value, field.name), places) for field in fields(value)}
        return {"is": type(value).__name__, **parts}
    return [_plain(each, places) for each in value] if isinstance(value, list | tuple) else value


MOST_BYTES = 52_000_000  # of packed sessions; the page as a whole stays below 60 MB
LIMITS = (None, 16_000, 6_000, 2_000)  # characters of a text that are kept, tried until the page is small enough


def write_page(report: ReportData, out: Path) -> Path:
    """Write `index.html` into the folder `out`, and give its path.

    The same report gives the same bytes. If all dialogues together are too much for a browser, long texts keep their
    two ends, and the page says so. Raises `UserError` if a cell cannot be read or the page not be written.
    """
    bounds = [(limit, inf if limit == LIMITS[-1] else MOST_BYTES) for limit in LIMITS]
    tried = (archive((cell.sessions() for cell in report.cells), limit, most) for limit, most in bounds)
    path = out / "index.html"
    write_atomically(path, document(next(found for found in tried if found is not None), report))
    return path
