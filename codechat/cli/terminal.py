"""The terminal's two consoles, its plain tables and its progress bars."""

import os
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from codechat.base.texts import visible


class _Plain(Console):
    """A console that shows hidden characters, and those that a terminal obeys, by their codes.

    It outlives its reader.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Every text that is printed passes here, the cells of tables too."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Go on in silence: a reader that has seen enough, as `head` has, is no reason to end a cell."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


# Piped or logged output must not be wrapped at 80 columns.
_PIPED_WIDTH = 160
out = _Plain(highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = _Plain(
    stderr=True, highlight=False, emoji=False, soft_wrap=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH
)


def plain_table(*headers: str, title: str = "", left: int | None = None) -> Table:
    """A table without lines. Only its first `left` columns are aligned to the left, all of them unless given."""
    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 2, 0, 0), show_header=bool(headers))
    for place, header in enumerate(headers):
        table.add_column(header, justify="left" if left is None or place < left else "right", overflow="fold")
    return table


def counting_bar(unit: str) -> Progress:
    """A bar for work counted in one unit; on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn(f"{unit} ·"),
        TimeElapsedColumn(),
        TextColumn("· left"),
        TimeRemainingColumn(),
        console=err,
        disable=not err.is_terminal,
    )
