"""The terminal's console and progress bars."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

# Piped or logged output must not be wrapped at 80 columns.
_PIPED_WIDTH = 160
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH)


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
