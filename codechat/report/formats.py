"""A table as CSV (raw values), Markdown and LaTeX (as people read them).

Not by pandas: every cell writes such tables when it ends, and importing pandas takes longer than writing them all. Its
Markdown needs a further package, and with its LaTeX (`Styler`) the signs, the notes as comments and the choice between
`table*` and `longtable` would have to be written here all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codechat.files import write_atomically
from codechat.report.data import Interval, Table, Value
from codechat.spreadsheet import csv_text
from codechat.texts import visible

LONG = 45  # rows that a page takes


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
    body = [_texts(table, number, row, markdown_text, "**{}**") for number, row in enumerate(table.rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]
    return "\n".join(
        [f"**{markdown_text(table.title)}**", "", *lines, "", *([markdown_text(table.note), ""] if table.note else [])]
    )


def as_latex(table: Table) -> str:
    """A `tabular` of the booktabs package; a `longtable` where it is longer than a page."""
    spec = "".join("r" if column.numeric else "l" for column in table.columns)
    head = " & ".join(_latex(column.title) for column in table.columns) + r" \\"
    body = [_latex_row(_texts(table, *row, _latex, r"\textbf{{{}}}")) for row in enumerate(table.rows)]
    caption, label = rf"\caption{{{_latex(table.title)}}}", rf"\label{{tab:{table.name.replace('_', '-')}}}"
    rules = [r"\toprule", head, r"\midrule"]
    notes = [f"% {_one_line(table.note)}"] if table.note else []
    if len(table.rows) > LONG:
        start = [rf"\begin{{longtable}}{{{spec}}}", caption, label + r" \\", *rules, r"\endhead"]
        lines = [*start, *body, r"\bottomrule", r"\end{longtable}"]
    else:
        start = [r"\begin{table*}[t]", r"\centering", caption, label, rf"\begin{{tabular}}{{{spec}}}", *rules]
        lines = [*start, *body, r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
    return "\n".join(["% needs \\usepackage{booktabs,longtable}", *notes, *lines, ""])


def _texts(table: Table, number: int, row: Sequence[Value], escape: Callable[[str], str], strong: str) -> list[str]:
    texts = [escape(column.text(value)) for column, value in zip(table.columns, row, strict=True)]
    return [strong.format(text) if (number, place) in table.strong else text for place, text in enumerate(texts)]


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def _latex_row(texts: list[str]) -> str:
    """The row; LaTeX would read `[` or `*` after the end of the row above as an option of that end."""
    return ("{}" if texts[0].startswith(("[", "*")) else "") + " & ".join(texts) + r" \\"


MARKDOWN: Mapping[str, str] = {**{sign: f"\\{sign}" for sign in "\\|*_`"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}


def markdown_text(text: str) -> str:
    """The text on one line, as Markdown that shows it: no markup, no link, no end of a table's cell."""
    shown = "".join(MARKDOWN.get(character, character) for character in _one_line(text))
    return shown.replace("](", "]\\(")


LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "→": r"$\rightarrow$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "Δ": r"$\Delta$",
    "χ": r"$\chi$", "²": r"$^2$", "×": r"$\times$", "α": r"$\alpha$", "…": r"\ldots{}",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in _one_line(text))


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
