"""A table as CSV (raw values), Markdown and LaTeX (as people read them).

Not by pandas: every cell writes such tables when it ends, and importing pandas takes longer than writing them all. Its
Markdown needs a further package, and with its LaTeX (`Styler`) the signs, the notes as comments and the parts that fit
a page would have to be written here all the same.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from codechat.base.files import write_atomically
from codechat.base.spreadsheet import csv_text
from codechat.base.texts import visible
from codechat.report.data import Interval, Table, Value
from codechat.report.latex import as_latex


def write_table(table: Table, folder: Path) -> None:
    """Write the table in every format, under its name."""
    for suffix, function in FORMATS.items():
        write_atomically(folder / f"{table.name}.{suffix}", function(table))


def as_csv(table: Table) -> str:
    """Raw values under the columns' keys. An interval has two columns; what is missing is empty."""
    header: list[str] = []
    rows: list[list[Value]] = [[] for _ in table.rows]
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.rows]
        interval = column.key.rpartition("_")[2] == "ci" or any(isinstance(value, Interval) for value in values)
        header += [f"{column.key}_low", f"{column.key}_high"] if interval else [column.key]
        for row, value in zip(rows, values, strict=True):
            row.extend(value if isinstance(value, Interval) else (None, None) if interval else (value,))
    return csv_text([header, *rows])


def as_markdown(table: Table) -> str:
    """A pipe table under its title, its note below."""
    head = [markdown_text(column.title) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    body = [_texts(table, number) for number in range(len(table.rows))]
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]
    return "\n".join(
        [f"**{markdown_text(table.title)}**", "", *lines, "", *([markdown_text(table.note), ""] if table.note else [])]
    )


def _texts(table: Table, number: int) -> list[str]:
    texts = [markdown_text(column.text(value)) for column, value in zip(table.columns, table.rows[number], strict=True)]
    return [f"**{text}**" if (number, place) in table.strong else text for place, text in enumerate(texts)]


MARKDOWN: Mapping[str, str] = {**{sign: f"\\{sign}" for sign in "\\|*_`"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}


def markdown_text(text: str) -> str:
    """The text on one line, as Markdown that shows it: no markup, no link, no end of a table's cell."""
    shown = "".join(MARKDOWN.get(character, character) for character in visible(" ".join(text.split())))
    return shown.replace("](", "]\\(")


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
