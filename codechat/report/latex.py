r"""Tables as LaTeX: one that fits a page is a float (`table*`), a longer one a `longtable`, which breaks pages.

A float is shrunk to the width of the text. LaTeX sets a `longtable` in one column only; a wide one stands in landscape.
"""

import re
from collections.abc import Mapping, Sequence
from textwrap import wrap

from codechat.base.texts import visible
from codechat.report.data import Column, Table

ROWS = 36  # lines of a float
LONGEST_NAME, LINES = 40, 3  # characters of a column that is as wide as its texts; lines of a longer text
UPRIGHT, LANDSCAPE = 78, 125  # characters of a line in scriptsize
LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "→": r"$\rightarrow$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "Δ": r"$\Delta$",
    "χ": r"$\chi$", "²": r"$^2$", "×": r"$\times$", "α": r"$\alpha$", "…": r"\ldots{}", "“": "``", "”": "''",
}  # fmt: skip
FLOAT = r"""% needs \usepackage{array,booktabs,graphicx}
NOTE\begin{table*}[tp]
\centering\footnotesize\setlength{\tabcolsep}{3pt}
\caption{TITLE}\label{LABEL}
\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%
\begin{tabular}{SPEC}
\toprule
HEAD
\midrule
BODY
\bottomrule
\end{tabular}}
\end{table*}
"""
LONG = r"""% needs \usepackage{array,booktabs,longtable,pdflscape}
NOTE\begin{PLACE}\SIZE\setlength{\tabcolsep}{3pt}
\begin{longtable}{SPEC}
\caption{TITLE}\label{LABEL}\\
\toprule
HEAD
\midrule
\endfirsthead
\toprule
HEAD
\midrule
\endhead
\bottomrule
\endfoot
BODY
\end{longtable}
\end{PLACE}
"""


def escaped(text: str) -> str:
    """The text on one line, as LaTeX that shows it."""
    return "".join(LATEX.get(character, character) for character in visible(" ".join(text.split())))


def as_latex(table: Table) -> str:
    """The table, its note as a comment; a further comment says which packages it needs."""
    places = table.told_apart
    columns = [table.columns[place] for place in places]
    texts = [[column.text(row[place]) for row in table.rows] for place, column in zip(places, columns, strict=True)]
    longest = [max(map(len, own), default=0) for own in texts]
    body = []
    for name, numbers in table.blocks:
        body += [rf"\multicolumn{{{len(places)}}}{{l}}{{\textit{{{escaped(name)}}}}} \\"] if name else []
        body += [_line(table, number, [own[number] for own in texts]) for number in numbers]
    words = [max(map(len, column.title.split()), default=0) for column in columns]
    width = sum(min(max(own), LONGEST_NAME) + 2 for own in zip(longest, words, strict=True))
    parts = {
        "NOTE": f"% {visible(' '.join(table.note.split()))}\n" if table.note else "",
        "TITLE": escaped(table.title),
        "LABEL": f"tab:{table.name.replace('_', '-')}",
        "PLACE": "center" if width <= UPRIGHT else "landscape",
        "SIZE": "scriptsize" if width <= LANDSCAPE else "tiny",
        "SPEC": "".join(map(_spec, columns, longest)),
        "HEAD": " & ".join(map(_heading, columns, longest)) + r" \\",
        "BODY": "\n".join(body),
    }
    height = len(body) * (LINES if max(longest) > LONGEST_NAME else 1)
    return re.sub("|".join(parts), lambda match: parts[match.group()], FLOAT if height <= ROWS else LONG)


def _spec(column: Column, longest: int) -> str:
    if longest > LONGEST_NAME:
        return r">{\raggedright\arraybackslash}p{.25\textwidth}"
    return "r" if column.numeric else "l"


def _heading(column: Column, longest: int) -> str:
    """A title, in as many lines as it takes to be no longer than the column's longest value."""
    lines = wrap(column.title, longest + 2, break_long_words=False, break_on_hyphens=False)
    stacked = r"\\".join(map(escaped, lines))
    return stacked if len(lines) < 2 else rf"\shortstack[{_spec(column, 0)}]{{{stacked}}}"


def _line(table: Table, number: int, texts: Sequence[str]) -> str:
    cells = []
    for place, text in zip(table.told_apart, texts, strict=True):
        # a long name may be broken behind its signs
        parts = re.split(r"(?<=[-_/.,:])(?=\w)", text) if len(text) > LONGEST_NAME else [text]
        cell = r"\allowbreak{}".join(map(escaped, parts))
        cells.append(rf"\textbf{{{cell}}}" if (number, place) in table.strong else cell)
    # LaTeX would read `[` or `*` behind the end of the row above as an option of that end
    return ("{}" if cells[0].startswith(("[", "*")) else "") + " & ".join(cells) + r" \\"
