"""The sections of a report's page as data: notes, boards, charts and cards, which the page's script draws.

Values are raw; a `unit` says how they are written. A cell stands for a link to its sessions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codechat.metrics.measures import Unit
from codechat.report.study import LoadedCell

Ends = Sequence[float] | None
Shown = str | float | LoadedCell | tuple[str | float | None, str | Ends] | None
"""What a board holds: a value, a value with its interval, or a value to sort by with the text that is shown."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A claim, what qualifies it, pairs of a figure and what it is, and the question that stands above."""

    title: str
    text: str = ""
    facts: Sequence[tuple[str, str]] = ()
    kicker: str = ""


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """A column of a board; neighbours of one `group` have a common head. `change` is a number written with its sign.

    `most` ends the axis on which a value is drawn with its interval, beside the value, or the interval if `ends`.
    """

    title: str
    values: Sequence[Shown]
    unit: Unit | Literal["cell", "text", "change"] = "text"
    group: str = ""
    hint: str = ""
    strong: bool = False
    most: float | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """A table of cells that the reader sorts; at first by the column titled `sort`, the highest first."""

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
    """Lines of several cells, each named at its end, on an axis up to `top`; shares are written in per cent."""

    title: str
    what: str
    lines: Sequence[Line]
    text: str = ""
    top: float = 1.0
    share: bool = True


@dataclass(frozen=True, slots=True)
class Card:
    """A small chart of one cell's shares; `figures` (a name, a value, its unit, what follows) stand beside its name."""

    cell: LoadedCell
    figures: Sequence[tuple[str, float | None, Literal["number", "change"], str]]
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards under a legend: pairs of a line's style and what it means."""

    legend: Sequence[tuple[str, str]]
    cards: Sequence[Card]


Part = str | Board | Cards | Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Section:
    """A section: `key` is its address, `link` its name in the bar at the top, empty for none; a text is a note.

    It ends with the report's tables and figures of its `groups`, whose titles are shown if there are several.
    """

    key: str
    title: str
    link: str
    parts: Sequence[Part] = ()
    groups: Sequence[str] = ()
