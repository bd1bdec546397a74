"""A table as CSV (raw values), Markdown and LaTeX (as people read them).

Not by pandas: every cell writes such tables when it ends, and importing pandas takes longer than writing them all.
A LaTeX table that fits a page is a float (`table*`), shrunk to the width of the text; a longer one is a `longtable`,
which breaks pages, has one column, and stands in landscape if it is wide.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from codechat.base.files import write_atomically
from codechat.base.spreadsheet import csv_text
from codechat.base.texts import visible
from codechat.report.data import Column, Interval, Table, Value

ROWS = 36  # lines of a float
UPRIGHT, LANDSCAPE = 78, 125  # characters of a line in scriptsize
LONGEST = {"scriptsize": 40, "tiny": 24}  # characters of a column that is as wide as its texts
LINES = 3  # of a longer text
UNBROKEN = 16  # characters of a text that is never broken
LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "→": r"$\rightarrow$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "Δ": r"$\Delta$",
    "χ": r"$\chi$", "²": r"$^2$", "×": r"$\times$", "α": r"$\alpha$", "…": r"\ldots{}", "“": "``", "”": "''",
}  # fmt: skip
FLOAT, LONG = (Path(__file__).with_name(name).read_text("utf-8") for name in ("float.tex", "longtable.tex"))


def write_table(table: Table, folder: Path) -> None:
    """Write the table in every format, under its name; all of its rows as CSV."""
    for suffix, function in FORMATS.items():
        write_atomically(folder / f"{table.name}.{suffix}", function(table if suffix == "csv" else table.bounded))


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
    body = []
    for number, row in enumerate(table.rows):
        texts = [markdown_text(column.text(value)) for column, value in zip(table.columns, row, strict=True)]
        body.append([f"**{text}**" if (number, n) in table.strong else text for n, text in enumerate(texts)])
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]
    note = [markdown_text(table.note), ""] if table.note else []
    return "\n".join([f"**{markdown_text(table.title)}**", "", *lines, "", *note])


MARKDOWN: Mapping[str, str] = {**{sign: f"\\{sign}" for sign in "\\|*_`"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}


def markdown_text(text: str) -> str:
    """The text on one line, escaped: no markup, no link, no end of a table's cell."""
    shown = "".join(MARKDOWN.get(character, character) for character in visible(" ".join(text.split())))
    return shown.replace("](", "]\\(")


def escaped(text: str) -> str:
    """The text on one line, escaped for LaTeX."""
    return "".join(LATEX.get(character, character) for character in visible(" ".join(text.split())))


def as_latex(table: Table) -> str:
    """The table, its note as a comment; a further comment says which packages it needs."""
    places = table.shown_columns
    columns = [table.columns[place] for place in places]
    texts = [[column.text(row[place]) for row in table.rows] for place, column in zip(places, columns, strict=True)]
    longest = [max(map(len, values), default=0) for values in texts]
    body = []
    for name, numbers in table.blocks:
        body += [rf"\multicolumn{{{len(places)}}}{{l}}{{\textit{{{escaped(name)}}}}} \\"] if name else []
        body += [_line(table, number, [values[number] for values in texts]) for number in numbers]
    words = [max(map(len, column.title.split()), default=0) for column in columns]
    width = sum(min(max(both), LONGEST["scriptsize"]) + 2 for both in zip(longest, words, strict=True))
    size = "scriptsize" if width <= LANDSCAPE else "tiny"
    wrapped = [chars > LONGEST[size] for chars in longest]
    # paragraphs share the width that the other columns leave
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{min(0.25, 0.57 / max(sum(wrapped), 1)):.2f}\textwidth}}"
    parts = {
        "NOTE": f"% {visible(' '.join(table.note.split()))}\n" if table.note else "",
        "TITLE": escaped(table.title),
        "LABEL": f"tab:{table.name.replace('_', '-')}",
        "PLACE": "center" if width <= UPRIGHT else "landscape",
        "SIZE": size,
        "SPEC": "".join(paragraph if so else _spec(column) for column, so in zip(columns, wrapped, strict=True)),
        "HEAD": " & ".join(map(_heading, columns, longest)) + r" \\",
        "BODY": "\n".join(body),
    }
    height = len(body) * (LINES if any(wrapped) else 1)
    return re.sub("|".join(parts), lambda match: parts[match.group()], FLOAT if height <= ROWS else LONG)


def _spec(column: Column) -> str:
    return "r" if column.numeric else "l"


def _heading(column: Column, longest: int) -> str:
    """A title, in as many lines as it takes to be no longer than the column's longest value."""
    lines = wrap(column.title, longest + 2, break_long_words=False, break_on_hyphens=False)
    stacked = r"\\".join(map(escaped, lines))
    return stacked if len(lines) < 2 else rf"\shortstack[{_spec(column)}]{{{stacked}}}"


def _line(table: Table, number: int, texts: Sequence[str]) -> str:
    cells = []
    for place, text in zip(table.shown_columns, texts, strict=True):
        # a long name may be broken behind its signs
        parts = re.split(r"(?<=[-_/.,:=(])(?=\w)", text) if len(text) > UNBROKEN else [text]
        cell = r"\allowbreak{}".join(map(escaped, parts))
        cells.append(rf"\textbf{{{cell}}}" if (number, place) in table.strong else cell)
    # LaTeX would read `[` or `*` behind the end of the row above as an option of that end
    return ("{}" if cells[0].startswith(("[", "*")) else "") + " & ".join(cells) + r" \\"


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
