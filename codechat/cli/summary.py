"""A finished cell's headline figures for the terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from codechat.metrics import Measures, caution_of
from codechat.metrics.decided import DECIDED, MEANING, constructs_in, inside_in
from codechat.records import SessionRecord
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


def inside_line(metrics: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> str:
    """How many verdicts were decided inside, and the most frequent reason; empty if none was.

    The sessions are those of the metrics; they are read only if there is something to say.
    """
    inside = inside_in(metrics)
    if not inside:
        return ""
    line = f"{inside} of {sum(metrics[DECIDED].values())} verdicts were decided inside ({MEANING})"
    most = constructs_in(sessions).most_common(1)
    return f"{line}, {most[0][1]} of them because of {most[0][0]}" if most else line
