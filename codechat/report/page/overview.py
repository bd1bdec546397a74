"""What the page shows before a session is opened, as one JSON value."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from codechat.report.chapters import chapter_of
from codechat.report.data import ReportData
from codechat.report.study import LoadedCell


def overview(report: ReportData, limit: int | None) -> dict[str, Any]:
    """The headline, the cells, the sections; `limit` is the most characters kept of a text, None if all are."""
    places = {cell.folder: place for place, cell in enumerate(report.cells)}
    return {
        "findings": _plain(report.headline, places),
        "cells": [_cell(cell) for cell in report.cells],
        "sections": _plain(report.sections, places),
        "limit": limit,
    }


def _cell(cell: LoadedCell) -> dict[str, Any]:
    return {
        "label": cell.label,
        "model": cell.model,
        "dataset": cell.dataset,
        "protocol": cell.protocol,
        "setting": cell.variant or cell.agenda,
        "baseline": cell.is_baseline,
        "fates": chapter_of(cell.protocol).fates,
    }


def _plain(value: Any, places: Mapping[Path, int]) -> Any:
    """JSON of a section's parts: a part is an object whose `is` names it, a cell is its number."""
    if isinstance(value, LoadedCell):
        return places[value.folder]
    if is_dataclass(value):
        parts = {field.name: _plain(getattr(value, field.name), places) for field in fields(value)}
        return {"is": type(value).__name__, **parts}
    return [_plain(each, places) for each in value] if isinstance(value, list | tuple) else value
