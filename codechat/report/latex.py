r"""Tables as LaTeX for one column (`table`) or for the whole page (`table*`); LaTeX itself measures what they need.

A float holds so many columns of values and rows; further ones follow in parts below each other, each under the names of
its rows. Long names are broken into lines; a part that is still wider or higher than the page is shrunk. `longtable`
would break pages by itself, but LaTeX refuses it in two columns, and in floats.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from math import ceil
from typing import TypeVar

from codechat.base.texts import visible
from codechat.report.data import Column, Table, Value

ROWS = 42  # of a float
FLOATS = 10  # that LaTeX is to keep in mind
HEIGHT = r".85\textheight"
BREAK = r"\allowbreak{}"
BREAKS = re.compile(rf"{re.escape(BREAK)}|\s+")
T = TypeVar("T")

LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "→": r"$\rightarrow$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "Δ": r"$\Delta$",
    "χ": r"$\chi$", "²": r"$^2$", "×": r"$\times$", "α": r"$\alpha$", "…": r"\ldots{}", "“": "``", "”": "''",
}  # fmt: skip


def escaped(text: str) -> str:
    """The text on one line, as LaTeX that shows it."""
    return "".join(LATEX.get(character, character) for character in visible(" ".join(text.split())))


@dataclass(frozen=True)
class Page:
    """The environment of a table, the length that it must fit, how many values stand beside each other in it.

    `characters` is what a line holds about: it says after how many rows a float ends, not what LaTeX sets in a line.
    """

    environment: str
    length: str
    values: int
    characters: int


COMPACT = Page("table", r"\columnwidth", 6, 50)
WIDE = Page("table*", r"\textwidth", 12, 100)


def as_latex(table: Table, page: Page = COMPACT) -> str:
    """The table as floats, each as long as a page at most; a comment says which packages it needs."""
    label = f"tab:{table.name.replace('_', '-')}"
    note = [f"% {visible(' '.join(table.note.split()))}"] if table.note else []
    lines = [r"% needs \usepackage{array,booktabs,graphicx}", *note]
    for number, parts in enumerate(_floats(table, page)):
        again = rf"\noindent Table~\ref{{{label}}}, continued\par"
        lines += [
            rf"\begin{{{page.environment}}}[tp]",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            again if number else rf"\caption{{{escaped(table.title)}}}\label{{{label}}}",
            rf"\sbox1{{\begin{{minipage}}{{{page.length}}}\centering",
            *[line for part in parts for line in (r"\par\medskip", *part)][1:],
            r"\end{minipage}}%",
            rf"\ifdim\dimexpr\ht1+\dp1\relax>{HEIGHT} \resizebox*{{!}}{{{HEIGHT}}}{{\usebox1}}\else\usebox1\fi",
            rf"\end{{{page.environment}}}",
            *([r"\clearpage"] if number % FLOATS == FLOATS - 1 else []),
        ]
    return "\n".join([*lines, ""])


def _floats(table: Table, page: Page) -> Iterator[list[list[str]]]:
    """The parts of each float: all rows of the first columns of values, then of the next."""
    names = _names(table)
    values: list[list[int]] = []
    for place in (each for each in table.told_apart if each not in names):
        if values and table.columns[place].key.endswith("_ci"):
            values[-1].append(place)  # an interval stays with its value
        else:
            values.append([place])
    rows = [row for name, numbers in table.blocks for row in ([name] if name else []) + list(numbers)]
    lines = {row: _lines(table, page, names, row, above) for row, above in zip(rows, [None, *rows], strict=False)}
    together: list[list[str]] = []
    height = 0
    for panel in _evenly(values, [3 if len(group) > 1 else 1 for group in values], page.values) or [[]]:
        for some in _evenly(rows, [lines[row] for row in rows], ROWS) or [[]]:
            if together and height + sum(lines[row] for row in some) > ROWS:
                yield together
                together, height = [], 0
            together.append(_part(table, page, names, [place for group in panel for place in group], some))
            height += sum(lines[row] for row in some) + 4  # the lines of titles and rules
    yield together


def _evenly(values: Sequence[T], weights: Sequence[int], most: int) -> list[list[T]]:
    """The values in as few pieces of at most about `most` as there can be, so that the last is no remnant."""
    total = sum(weights)
    pieces: list[list[T]] = [[] for _ in range(-(-total // most))]
    for value, weight, up_to in zip(values, weights, accumulate(weights), strict=True):
        pieces[int((up_to - weight / 2) * len(pieces) / total)].append(value)
    return [piece for piece in pieces if piece]


def _names(table: Table) -> list[int]:
    """The places of the columns that name a row: those up to the last of the leading texts, and the turn."""
    columns = [(place, table.columns[place]) for place in table.told_apart]
    leading = list(takewhile(lambda each: each[1].spec in ("", "d"), columns))
    last = max((number for number, (_, column) in enumerate(leading) if not column.spec), default=-1)
    while last + 1 < len(leading) and leading[last + 1][1].key in ("turn", "turns", "tasks"):
        last += 1
    return [place for place, _ in leading[: last + 1]]


def _shares(table: Table, names: list[int]) -> dict[int, float]:
    """The parts of a line that the columns of names may take, by their longest names: 0.45 of it together."""
    texts = [place for place in names if not table.columns[place].spec]
    longest = {place: max([1, *(len(table.columns[place].text(row[place])) for row in table.rows)]) for place in texts}
    return {place: 0.45 * length / sum(longest.values()) for place, length in longest.items()}


def _lines(table: Table, page: Page, names: list[int], row: int | str, above: int | str | None) -> int:
    """About how many lines of print a row takes, by the characters of its names."""
    if isinstance(row, str) or _repeats(table, names, row, above):
        return 1
    texts = (
        (len(table.columns[place].text(table.rows[row][place])), most) for place, most in _shares(table, names).items()
    )
    return max([1, *(ceil(1.25 * length / (most * page.characters)) for length, most in texts)])


def _repeats(table: Table, names: list[int], row: int, above: int | str | None) -> bool:
    """Whether a row has the names of the one above."""
    places = [place for place in names if not table.columns[place].spec]
    same = isinstance(above, int) and all(table.rows[row][place] == table.rows[above][place] for place in places)
    return same and bool(places)


def _part(table: Table, page: Page, names: list[int], values: list[int], rows: Sequence[int | str]) -> list[str]:
    """A `tabular` that LaTeX measures, and shrinks if it is wider than the page.

    A column of names is as wide as the longest, its share of the page at most, and its longest word at least.
    """
    texts = _shares(table, names)
    setup: list[str] = []
    spec = ""
    for place in [*names, *values]:
        if place not in texts:
            spec += "r" if table.columns[place].numeric else "l"
            continue
        shown = {_text(table.columns[place], row[place]) for row in table.rows} - {""}
        words = {word for text in shown for word in BREAKS.split(text)} - {""}
        length, most = rf"\name{'abcdefgh'[len(setup)]}", f"{texts[place]:.3f}{page.length}"
        least = _stacked(words, _heading(table, place))
        setup.append(
            rf"\settowidth{{\dimen0}}{{{_stacked(shown)}}}\ifdim\dimen0>{most} \dimen0={most} \fi"
            rf"\settowidth{{\dimen2}}{{\bfseries{least}}}\ifdim\dimen0<\dimen2 \dimen0=\dimen2 \fi"
            rf"\edef{length}{{\the\dimen0}}%"
        )
        spec += rf">{{\raggedright\arraybackslash}}p{{{length}}}"
    head = " & ".join(_heading(table, place) for place in [*names, *values])
    lines = [*setup, r"\sbox0{%", rf"\begin{{tabular}}{{{spec}}}", r"\toprule", rf"{head} \\", r"\midrule"]
    for row, above in zip(rows, [None, *rows], strict=False):
        if isinstance(row, str):
            lines += [rf"\multicolumn{{{len(names) + len(values)}}}{{l}}{{\textit{{{escaped(row)}}}}} \\"]
            continue
        again = _repeats(table, names, row, above)
        cells = []
        for place in [*names, *values]:
            text = "" if again and place in texts else _text(table.columns[place], table.rows[row][place])
            cells.append(rf"\textbf{{{text}}}" if text and (row, place) in table.strong else text)
        # LaTeX would read `[` or `*` behind the end of the row above as an option of that end
        lines.append(("{}" if cells[0].startswith(("[", "*")) else "") + " & ".join(cells) + r" \\")
    fitted = rf"\ifdim\wd0>{page.length} \resizebox{{{page.length}}}{{!}}{{\usebox0}}\else\usebox0\fi"
    return [*lines, r"\bottomrule", r"\end{tabular}}%", fitted]


def _stacked(texts: Iterable[str], *more: str) -> str:
    """The longest texts and `more` above each other, which is as wide as the widest of them."""
    return r"\shortstack{" + r"\\{}".join([*sorted(texts, key=lambda text: (-len(text), text))[:5], *more]) + "}"


def _text(column: Column, value: Value) -> str:
    """A value; a name may be broken behind its signs."""
    text = column.text(value)
    parts = [text] if column.spec else re.split(r"(?<=[-_/.,:])(?=\w)", " ".join(text.split()))
    return BREAK.join(map(escaped, parts))


def _heading(table: Table, place: int) -> str:
    """A title, in as many lines as it takes to be no longer than the column's longest value."""
    column: Column = table.columns[place]
    longest = max((len(column.text(row[place])) for row in table.rows), default=0)
    lines: list[str] = []
    for word in column.title.split():
        if lines and len(lines[-1]) + len(word) < longest + 2:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    stacked = rf"\shortstack[{'r' if column.numeric else 'l'}]{{" + r"\\".join(map(escaped, lines)) + "}"
    return escaped(column.title) if len(lines) < 2 else stacked
