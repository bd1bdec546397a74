"""A finished cell's headline figures for the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from codechat.metrics import Measures, caution_of
from codechat.report.chapters import chapter_of


def summary(measures: Measures, metrics: Mapping[str, Any], title: str) -> Table:
    """A line per figure that the protocol's chapter shows, after what to know before reading them."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    caution = caution_of(metrics)
    if caution:
        table.add_row("[bold red]caution[/bold red]", escape(caution))
    for name, value in chapter_of(measures.protocol).summary(measures, metrics):
        table.add_row(f"[bold]{escape(name)}[/bold]", escape(value))
    return table
