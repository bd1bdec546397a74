"""CSV that spreadsheets can open: no text in it is run as a formula, and every reader finds the same cells."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """The rows as CSV with Unix line ends; None is empty, and texts are escaped (`escape_formula`), numbers are not.

    A text with a carriage return is quoted, and NUL, which R and Excel cannot read, becomes U+FFFD.
    """
    lines = _UnixLines()
    csv.writer(lines, lineterminator="\r\n").writerows(map(_cell, row) for row in rows)
    return lines.text.getvalue()


def escape_formula(text: str) -> str:
    """The text, with an apostrophe in front if it is a formula, or apostrophes and a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """The text that `escape_formula` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _cell(value: Any) -> Any:
    return escape_formula(value).replace("\0", "\ufffd") if isinstance(value, str) else value


class _UnixLines:
    """Ends rows by a line feed. Python's writer quotes a carriage return only if its line ends have one."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    def write(self, row: str) -> None:
        self.text.write(row.removesuffix("\r\n") + "\n")
