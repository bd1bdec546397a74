"""Tables and figures from metrics: reads what a cell left, never runs anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codechat.report.chapters import chapter_of
from codechat.report.metrics import Measures

__all__ = ["write_figures", "write_tables"]


def write_tables(measures: Measures, metrics: Mapping[str, Any], folder: Path) -> None:
    """Write the tables of a cell's folder. Rates are shares of 1."""
    chapter_of(measures.protocol).write_tables(measures, metrics, folder)


def write_figures(measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
    """Write the figures of a cell's folder, as SVG and PNG."""
    chapter_of(measures.protocol).write_figures(measures, metrics, title, folder)
