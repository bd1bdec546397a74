"""A table as CSV (raw values), Markdown and LaTeX (as people read them).

Not by pandas: every cell writes such tables when it ends, and importing pandas takes longer than writing them all. Its
Markdown needs a further package, and with its LaTeX (`Styler`) the signs, the notes as comments and the choice between
`table*` and `longtable` would have to be written here all the same.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codechat.files import write_atomically
from codechat.report.data import Interval, Table, Value

LONG = 45  # rows that a page takes


def write_table(table: Table, folder: Path) -> None:
    """Write the table in every format, under its name."""
    for suffix, function in FORMATS.items():
        write_atomically(folder / f"{table.name}.{suffix}", function(table))


def as_csv(table: Table) -> str:
    """Raw values under the columns' keys. An interval has two columns; what is missing is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    intervals = [any(isinstance(row[place], Interval) for row in table.rows) or column.key.rpartition("_")[2] == "ci"
                 for place, column in enumerate(table.columns)]  # fmt: skip
    header: list[str] = []
    for column, interval in zip(table.columns, intervals, strict=True):
        header += [f"{column.key}_low", f"{column.key}_high"] if interval else [column.key]
    writer.writerow(header)
    for row in table.rows:
        values: list[Value] = []
        for value, interval in zip(row, intervals, strict=True):
            values += _ends(value) if interval else [value]
        writer.writerow(values)
    return text.getvalue()


def _ends(value: Value) -> list[Value]:
    return [value.low, value.high] if isinstance(value, Interval) else [None, None]


def as_markdown(table: Table) -> str:
    """A pipe table under its title, its note below."""
    head = [_markdown(column.title) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    body = [_texts(table, number, row, _markdown, "**{}**") for number, row in enumerate(table.rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]
    return "\n".join(
        [f"**{_markdown(table.title)}**", "", *lines, "", *([_markdown(table.note), ""] if table.note else [])]
    )


def as_latex(table: Table) -> str:
    """A `tabular` of the booktabs package; a `longtable` where it is longer than a page."""
    spec = "".join("r" if column.numeric else "l" for column in table.columns)
    head = " & ".join(_latex(column.title) for column in table.columns) + r" \\"
    body = [
        " & ".join(_texts(table, number, row, _latex, r"\textbf{{{}}}")) + r" \\"
        for number, row in enumerate(table.rows)
    ]
    caption = [rf"\caption{{{_latex(table.title)}}}", rf"\label{{tab:{table.name.replace('_', '-')}}}"]
    rules = [r"\toprule", head, r"\midrule"]
    notes = [f"% {line}" for line in [table.note] if line]
    if len(table.rows) > LONG:
        start = [
            rf"\begin{{longtable}}{{{spec}}}",
            *(line + (r" \\" if line == caption[1] else "") for line in caption),
        ]
        lines = [*start, *rules, r"\endhead", *body, r"\bottomrule", r"\end{longtable}"]
    else:
        start = [r"\begin{table*}[t]", r"\centering", *caption, rf"\begin{{tabular}}{{{spec}}}"]
        lines = [*start, *rules, *body, r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
    return "\n".join(["% needs \\usepackage{booktabs,longtable}", *notes, *lines, ""])


def _texts(table: Table, number: int, row: Sequence[Value], escape: Callable[[str], str], strong: str) -> list[str]:
    texts = [escape(column.text(value)) for column, value in zip(table.columns, row, strict=True)]
    return [strong.format(text) if (number, place) in table.strong else text for place, text in enumerate(texts)]


def _markdown(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "→": r"$\rightarrow$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "Δ": r"$\Delta$",
    "χ": r"$\chi$", "²": r"$^2$", "×": r"$\times$", "α": r"$\alpha$", "…": r"\ldots{}",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in " ".join(text.split()))


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
