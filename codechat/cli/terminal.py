"""The terminal's two consoles and plain tables, and `key=value` words that Hydra does not parse."""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from codechat.base.errors import UserError, nearest
from codechat.base.texts import visible

SAMPLES_MEANING = "run so many seeds, from seed on: a cell each, which reports pool"


class _Plain(Console):
    """A console that shows hidden and control characters by their codes, and ignores a closed pipe."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Every printed text passes here, including cells of tables."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Drop further output: `| head` must not end a cell."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


_PIPED_WIDTH = 160  # piped or logged output must not be wrapped at 80 columns
out = _Plain(highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = _Plain(
    stderr=True, highlight=False, emoji=False, soft_wrap=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH
)


def plain_table(*headers: str, title: str = "", left: int | None = None) -> Table:
    """A table without lines. The first `left` columns are aligned to the left; None: all of them."""
    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 2, 0, 0), show_header=bool(headers))
    for place, header in enumerate(headers):
        table.add_column(header, justify="left" if left is None or place < left else "right", overflow="fold")
    return table


def parse_words(words: Sequence[str], allowed: Mapping[str, str], required: Collection[str] = ()) -> dict[str, str]:
    """The values by key. `allowed` maps each key to its one-line description.

    Raises `UserError` for a word without `=`, an unknown key, a key that is given twice or has no value, and a missing
    required key.
    """
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"cannot read '{word}'", f"write key=value; the keys are {', '.join(allowed)}")
        if key not in allowed:
            raise UserError(f"there is no setting '{key}'", nearest(key, allowed))
        if key in values:
            raise UserError(f"{key} is given twice", f"give it once: {key}={values[key]} or {key}={value}")
        if not value:
            raise UserError(f"{key} has no value", f"{key}: {allowed[key]}")
        values[key] = value
    for key in required:
        if key not in values:
            raise UserError(f"{key} is required", f"add {key}=…: {allowed[key]}")
    return values
