"""A report before it is drawn: the sections of the page, tables and figures.

Values are raw; a `unit` or a `spec` gives their format. On the page a cell is a link to its sessions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from codechat.report.comparison import LoadedCell
from codechat.report.metrics.measures import Unit

Ends = Sequence[float] | None
Shown = str | float | LoadedCell | tuple[str | float | None, str | Ends] | None
"""The content of a board: a value, a value with its interval, or a value to sort by with the text that is shown."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A claim, its qualification, pairs of a figure and its meaning, and the question above the claim."""

    title: str
    text: str = ""
    facts: Sequence[tuple[str, str]] = ()
    kicker: str = ""


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """A column of a board; neighbours of one `group` have a common head. `change` is a number written with its sign.
    A `difference` is one of shares. A value is drawn with its interval on an axis from `least` to `most`; `ends` shows
    the interval as numbers."""

    title: str
    values: Sequence[Shown]
    unit: Unit | Literal["cell", "text", "change", "difference"] = "text"
    group: str = ""
    hint: str = ""
    strong: bool = False
    most: float | None = None
    least: float = 0.0
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """A table of cells that the reader can sort; at first by the column titled `sort`, the highest first."""

    caption: str
    columns: Sequence[BoardColumn]
    sort: str


@dataclass(frozen=True, slots=True)
class Line:
    """A cell's values from turn `first` on, with their intervals. In a card `style` chooses its colour."""

    cell: LoadedCell
    name: str
    values: Sequence[float | None]
    ci: Sequence[Ends] | None = None
    first: int = 0
    style: Literal["", "main", "second", "third", "context"] = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines of several cells, each named at its end, on an axis up to `top`. `share` gives the format of a value."""

    title: str
    what: str
    lines: Sequence[Line]
    text: str = ""
    top: float = 1.0
    share: bool = True


@dataclass(frozen=True, slots=True)
class Card:
    """A small chart of one cell's shares; `figures` (a name, a value, a unit, a suffix) follow the cell's name."""

    cell: LoadedCell
    figures: Sequence[tuple[str, float | None, Literal["number", "change"], str]]
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards under a legend: pairs of a line's style and its meaning."""

    legend: Sequence[tuple[str, str]]
    cards: Sequence[Card]


Part = str | Board | Cards | Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: `key` is the address, `link` the name in the bar at the top, empty for none. A text among
    the parts is a note. The tables and figures of the `groups` follow, with titles if there are several."""

    key: str
    title: str
    link: str
    parts: Sequence[Part] = ()
    groups: Sequence[str] = ()


class Interval(NamedTuple):
    """A 95 % interval. A CSV file gives it two columns, `…_low` and `…_high`."""

    low: float
    high: float

    @classmethod
    def of(cls, ends: Sequence[float] | None) -> "Interval | None":
        return None if ends is None else cls(*ends)


Value = str | int | float | Interval | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `spec` is the format of its numbers (`.3f`, `+.1f`, or `p` for p-values); None is a dash."""

    key: str
    title: str
    spec: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers or intervals, to be set flush right."""
        return bool(self.spec)

    def text(self, value: Value) -> str:
        if value is None:
            return "–"
        if isinstance(value, Interval):
            return f"[{self._number(value.low)}, {self._number(value.high)}]"
        return value if isinstance(value, str) else self._number(value)

    def _number(self, value: float) -> str:
        if self.spec == "p":
            return "<0.0001" if value < 0.0001 else f"{value:.4f}"
        return f"{value:{self.spec}}".replace("-", "−")


def columns_of(spec: str = "", **titles: str) -> tuple[Column, ...]:
    """A column for each key and title, all of one format."""
    return tuple(Column(key, title, spec) for key, title in titles.items())


def with_interval(key: str, title: str, spec: str) -> tuple[Column, Column]:
    """The columns of a figure and of its interval."""
    return Column(key, title, spec), Column(f"{key}_ci", "95 % interval", spec)


@dataclass(frozen=True)
class Table:
    """One table. `name` is the file's stem, `group` the chapter in the report, `note` explains how to read the table.
    `strong` holds (row, column) of the values in bold. With `most`, readers see so many rows, and the CSV file has all.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    group: str = "results"
    strong: frozenset[tuple[int, int]] = frozenset()
    most: int | None = None

    @property
    def bounded(self) -> "Table":
        """The rows for readers; the note says how many are left out."""
        if self.most is None or len(self.rows) <= self.most:
            return self
        note = f"The first {self.most} of {len(self.rows):,} rows; {self.name}.csv has all. {self.note}"
        return replace(self, rows=self.rows[: self.most], note=note, most=None)

    @cached_property
    def blocks(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The rows' numbers by dataset; all under an empty name if the table has less than two datasets."""
        place = next((place for place, column in enumerate(self.columns) if column.key == "dataset"), None)
        names = [str(row[place]) for row in self.rows] if place is not None else []
        if len(set(names)) < 2:
            return (("", tuple(range(len(self.rows)))),)
        return tuple((one, tuple(n for n, name in enumerate(names) if name == one)) for one in dict.fromkeys(names))

    @cached_property
    def shown_columns(self) -> tuple[int, ...]:
        """The columns' places, without the dataset's column if the blocks name the datasets."""
        many = len(self.blocks) > 1
        return tuple(place for place, column in enumerate(self.columns) if not (many and column.key == "dataset"))

    def named_rows(self) -> Iterator[dict[str, Any]]:
        """The rows by the columns' keys."""
        return (dict(zip((column.key for column in self.columns), row, strict=True)) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure to be drawn. `caption` describes it; `on_page` is False if the report's page draws the same. `draw`
    takes the comparison and its `Look`, and returns None if there is nothing to draw."""

    name: str
    title: str
    caption: str
    group: str
    draw: Callable[[Any, Any], Any]
    on_page: bool = True


@dataclass(frozen=True, slots=True)
class FigureFile:
    """One figure with its two files."""

    of: Drawing
    png: Path
    svg: Path


@dataclass(frozen=True, slots=True)
class ReportData:
    """A whole report: cells, tables and figures in reading order, and the page's sections.

    `groups` maps a group of tables and figures to its title, in reading order; `opening` holds the tables that
    the terminal shows; `notes` are short sentences, for example about cells that were left out.
    """

    cells: Sequence[LoadedCell]
    tables: tuple[Table, ...]
    figures: tuple[FigureFile, ...]
    groups: dict[str, str]
    headline: Headline
    sections: tuple[Section, ...] = ()
    opening: tuple[Table, ...] = ()
    notes: Sequence[str] = ()
