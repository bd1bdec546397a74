r"""Tables as LaTeX that fits the page it is pasted into: for one column (`table`), or for the whole page (`table*`).

What is too wide for the page is set in parts below each other, each under the names of its rows; what is too long goes
on in a further table. Widths are those of letters in `\footnotesize`; if a font is wider, the part is shrunk.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, TypeVar

from codechat.report.data import Column, Table
from codechat.texts import visible

POINTS = 4.5  # of a character in \footnotesize
GAP = 6.0  # between two columns
LINES = 46  # that a page takes
MOST = 10  # floats that LaTeX is to keep in mind
HEAD = 4  # lines of a part's titles and rules
RAGGED = 1.25  # how much longer a text is for lines that are not full
NAMED = 0.45  # of the width: what the names of the rows take, unless a word of theirs needs more
BREAKS = re.compile(r"(?<=[-_/.,:])(?=\w)|\s+")  # where a name may be broken

LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "→": r"$\rightarrow$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "Δ": r"$\Delta$",
    "χ": r"$\chi$", "²": r"$^2$", "×": r"$\times$", "α": r"$\alpha$", "…": r"\ldots{}", "“": "``", "”": "''",
}  # fmt: skip


def escaped(text: str) -> str:
    """The text on one line, as LaTeX that shows it."""
    return "".join(LATEX.get(character, character) for character in _one_line(text))


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


@dataclass(frozen=True)
class Page:
    """The environment of a table, the length that it must fit, and that length in points at the least."""

    environment: str
    length: str
    points: float


COMPACT = Page("table", r"\columnwidth", 225.0)
WIDE = Page("table*", r"\textwidth", 460.0)


def as_latex(table: Table, page: Page = COMPACT) -> str:
    """The table as floats, each as long as a page at most; a comment says which packages it needs."""
    label = rf"\label{{tab:{table.name.replace('_', '-')}}}"
    lines = [r"% needs \usepackage{array,booktabs,graphicx}", *([f"% {_one_line(table.note)}"] if table.note else [])]
    floats = list(_floats(list(_Set(table, page).parts())))
    for number, parts in enumerate(floats):
        again = rf"\noindent Table~\ref{{tab:{table.name.replace('_', '-')}}}, continued\par"
        head = again if number else rf"\caption{{{escaped(table.title)}}}{label}"
        lines += [rf"\begin{{{page.environment}}}[tp]", r"\centering\footnotesize\setlength{\tabcolsep}{3pt}", head]
        for part in parts:
            fitted = rf"\resizebox{{{page.length}}}{{!}}{{\usebox0}}"
            lines += [r"\sbox0{%", *part.lines, rf"\ifdim\wd0>{page.length} {fitted}\else\usebox0\fi", r"\par\medskip"]
        lines[-1] = rf"\end{{{page.environment}}}"
        lines += [r"\clearpage"] if number % MOST == MOST - 1 else []
    return "\n".join([*lines, ""])


class Part(NamedTuple):
    """A `tabular`, and how many lines of print it takes."""

    lines: Sequence[str]
    height: int


def _floats(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts, as many together as a page takes."""
    together: list[Part] = []
    for part in parts:
        if together and sum(each.height for each in [*together, part]) > LINES:
            yield together
            together = []
        together.append(part)
    yield together


T = TypeVar("T")


def _even(most: int, split: Callable[[int], list[T]]) -> list[T]:
    """What `split` makes with the least room that needs no more pieces than `most` does.

    Cut wherever a page ends, a table can leave a single row, or column, for the last piece.
    """
    pieces = len(split(most))
    least = 1
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if len(split(middle)) <= pieces else (middle + 1, most)
    return split(most)


@dataclass(frozen=True)
class _Set:
    """A table to be set on a page."""

    table: Table
    page: Page

    def parts(self) -> Iterator[Part]:
        """The lines of every `tabular`: all rows of the first columns, then of the next."""
        names = self._names()
        widths = self._widths(names)
        left = self.page.points - sum(widths[place] + GAP for place in names)
        rows = list(self._rows())
        values = [place for place in self.table.told_apart if place not in names]
        pages = _even(LINES - HEAD, lambda most: list(self._pages(rows, widths, most)))
        for places in _even(math.floor(left), lambda most: list(self._panels(values, widths, most))):
            for some in pages:
                yield Part(self._tabular([*names, *places], widths, names, some), HEAD + self._height(some, widths))

    def _height(self, rows: Sequence[int | str], widths: Mapping[int, float]) -> int:
        """The lines that the rows take, at the most."""
        before = [None, *rows]
        return sum(
            1 if self._repeats(row, above) else self._lines(row, widths)
            for row, above in zip(rows, before, strict=False)
        )

    def _repeats(self, row: int | str, above: int | str | None) -> bool:
        """Whether a row has the names of the one above."""
        if not isinstance(row, int) or not isinstance(above, int):
            return False
        places = [place for place in self._names() if not self.table.columns[place].spec]
        return bool(places) and all(self.table.rows[row][place] == self.table.rows[above][place] for place in places)

    def _pages(
        self, rows: Sequence[int | str], widths: Mapping[int, float], most: int
    ) -> Iterator[Sequence[int | str]]:
        """The rows, as many together as take `most` lines."""
        some: list[int | str] = []
        for row in rows:
            if some and self._height([*some, row], widths) > most:
                yield some
                some = []
            some.append(row)
        yield some

    def _names(self) -> list[int]:
        """The places of the columns that name a row: those up to the last of the leading texts, and the turn."""
        columns = [(place, self.table.columns[place]) for place in self.table.told_apart]
        leading = list(takewhile(lambda each: each[1].spec in ("", "d"), columns))
        last = max((number for number, (_, column) in enumerate(leading) if not column.spec), default=-1)
        while last + 1 < len(leading) and leading[last + 1][1].key in ("turn", "turns", "tasks"):
            last += 1
        return [place for place, _ in leading[: last + 1]]

    def _texts(self, place: int) -> list[str]:
        return [_one_line(self.table.columns[place].text(row[place])) for row in self.table.rows]

    def _widths(self, names: Sequence[int]) -> dict[int, float]:
        """Points by column. Names that would take too much are set in several lines."""
        widths = {}
        for place in self.table.told_apart:
            words = BREAKS.split(self.table.columns[place].title)
            widths[place] = POINTS * max(len(text) for text in [*self._texts(place), *words])
        texts = [place for place in names if not self.table.columns[place].spec]
        rest = NAMED * self.page.points - sum(widths[place] for place in names if place not in texts)
        while texts:  # the shorter ones leave the longer ones what they don't need
            place = min(texts, key=lambda each: widths[each])
            parts = [word for text in self._texts(place) for word in BREAKS.split(text)]
            least = POINTS * (2 + max(map(len, parts), default=0))
            widths[place] = min(widths[place], max(rest / len(texts), least))
            rest -= widths[place]
            texts.remove(place)
        return widths

    def _lines(self, row: int | str, widths: Mapping[int, float]) -> int:
        """The lines that a row takes, at the most."""
        if isinstance(row, str):
            return 1
        texts = ((place, one) for place in widths if not (one := self.table.columns[place]).numeric)
        lengths = [(len(column.text(self.table.rows[row][place])) * POINTS, widths[place]) for place, column in texts]
        return max([1, *(1 + int(RAGGED * length / width) for length, width in lengths if length > width)])

    def _panels(self, places: Sequence[int], widths: Mapping[int, float], most: int) -> Iterator[list[int]]:
        """The columns of values, as many together as take `most` points; an interval stays with its value."""
        panel: list[int] = []
        for place in places:
            follows = place + 1 < len(self.table.columns) and self.table.columns[place + 1].key.endswith("_ci")
            need = sum(widths[each] + GAP for each in [*panel, place, *([place + 1] if follows else [])])
            is_interval = self.table.columns[place].key.endswith("_ci")
            if panel and need > most and not is_interval:
                yield panel
                panel = []
            panel.append(place)
        yield panel

    def _rows(self) -> Iterator[int | str]:
        """The numbers of the rows, each block's under its name."""
        for name, numbers in self.table.blocks:
            yield from [name] if name else []
            yield from numbers

    def _tabular(
        self, places: Sequence[int], widths: Mapping[int, float], names: Sequence[int], rows: Sequence[int | str]
    ) -> list[str]:
        spec = "".join(self._column(place, widths) for place in places)
        head = " & ".join(_heading(self.table.columns[place], widths[place]) for place in places)
        lines = [rf"\begin{{tabular}}{{{spec}}}", r"\toprule", rf"{head} \\", r"\midrule"]
        for row, above in zip(rows, [None, *rows], strict=False):
            if isinstance(row, str):
                lines += [rf"\multicolumn{{{len(places)}}}{{l}}{{\textit{{{escaped(row)}}}}} \\"]
                continue
            said = names if self._repeats(row, above) else ()
            lines.append(_row([
                "" if place in said and not self.table.columns[place].spec else self._text(row, place, names)
                for place in places
            ]))  # fmt: skip
        return [*lines, r"\bottomrule", r"\end{tabular}}%"]

    def _column(self, place: int, widths: Mapping[int, float]) -> str:
        """A text that is longer than its column is set in several lines."""
        column = self.table.columns[place]
        natural = POINTS * max(map(len, self._texts(place)), default=0)
        if column.numeric:
            return "r"
        return rf">{{\raggedright\arraybackslash}}p{{{widths[place]:.0f}pt}}" if natural > widths[place] else "l"

    def _text(self, number: int, place: int, names: Sequence[int]) -> str:
        column, value = self.table.columns[place], self.table.rows[number][place]
        text = column.text(value)
        shown = r"\allowbreak{}".join(
            escaped(part) for part in re.split(r"(?<=[-_/.,:])(?=\w)", _one_line(text))
        ) if place in names and not column.spec else escaped(text)  # fmt: skip
        return rf"\textbf{{{shown}}}" if (number, place) in self.table.strong else shown


def _heading(column: Column, width: float) -> str:
    """A title in as many lines as its column's width asks for."""
    lines: list[str] = []
    for word in _one_line(column.title).split(" "):
        for part in re.split(r"(?<=-)(?=\w)", word) if POINTS * len(word) > width else [word]:
            if lines and POINTS * (len(lines[-1]) + 1 + len(part)) <= width + GAP:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
    if len(lines) == 1:
        return escaped(lines[0])
    side = "r" if column.numeric else "l"
    return rf"\shortstack[{side}]{{" + r"\\".join(map(escaped, lines)) + "}"


def _row(texts: Sequence[str]) -> str:
    """The row; LaTeX would read `[` or `*` after the end of the row above as an option of that end."""
    return ("{}" if texts[0].startswith(("[", "*")) else "") + " & ".join(texts) + r" \\"
