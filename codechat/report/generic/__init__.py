"""What reports, cells' folders and the terminal show of any protocol: all of it follows from its `Measures`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.report.comparison import Comparison, SessionVerdicts
from codechat.report.data import Drawing, Headline, Section, Table
from codechat.report.formats import write_table
from codechat.report.generic import repeats
from codechat.report.generic.figures import drawings_of, write_cell_figures
from codechat.report.generic.overview import section_of, standing
from codechat.report.generic.paired import differences, pairs
from codechat.report.generic.tables import Sheet, costs, counts, tables_of
from codechat.report.metrics import Measures
from codechat.report.metrics.measures import COMMON, FEW, Unit, interval_of, size_of, size_text, value_of

TextLine = tuple[str, str]
LINE_SPECS: Mapping[Unit, str] = {"share": ".3f", "percent": "+.1f", "count": ".0f", "number": ".3f", "p": ".3g"}
NONE = "—"


def summary_lines(measures: Measures, metrics: Mapping[str, Any]) -> Iterator[TextLine]:
    """Counts, finals with their intervals, both ends of each series, and the first final by every group."""
    labels = ((count, count.label[:1].lower() + count.label[1:]) for count in measures.counts)
    counts = ((value_of(metrics, count), label, label) for count, label in labels)
    yield "sessions", sessions_text(metrics, counts)
    for final in measures.finals:
        yield final.label, value_text(value_of(metrics, final), interval_of(metrics, final), LINE_SPECS[final.unit])
    for series in measures.series:
        values = list(enumerate(value_of(metrics, series) or [], series.first_turn))
        known = [(turn, value) for turn, value in values if value is not None]
        if known:
            yield f"{series.label}, turn {known[0][0]} → {known[-1][0]}", ends_text([value for _, value in known])
    leading = measures.finals[0].key if measures.finals else None
    for part in measures.breakdowns:
        groups, sizes = value_of(metrics, part) or {}, size_of(metrics, part) or {}
        twins = (each for each in measures.breakdowns if (each.by, each.key) == (part.by, "undecided"))
        rest = [name for each in twins for name in value_of(metrics, each) or () if name not in groups]
        if part.key == leading and len(groups) + len(rest) > 1:
            shown = {name: f"{value:{LINE_SPECS[part.unit]}}" for name, value in groups.items() if value is not None}
            told = {name: f" ({size_text(size)})" for name, size in sizes.items()}
            notes = [", ".join(f"{name}: {text}{told.get(name, '')}" for name, text in shown.items()) or NONE]
            notes += [f"*: fewer than {FEW}"] if any(sizes.get(name, FEW) < FEW for name in shown) else []
            notes += [f"left out as almost wholly undecided: {', '.join(rest)}"] if rest else []
            yield f"{part.label} by {part.by}", "; ".join(notes)
    if any(metrics["outcomes"].values()):  # nothing is tested under some protocols
        yield "outcomes", outcomes_text(metrics)


def sessions_text(metrics: Mapping[str, Any], counts: Iterable[tuple[int | None, str, str]]) -> str:
    """Completed sessions, and what else was counted if it is not nought: each in words for one, and for several."""
    rest = ((metrics["errored"], "errored", "errored"), *counts)
    told = (counted(count, one, several) for count, one, several in rest if count)
    return ", ".join([f"{metrics['completed']} completed", *told])


def outcomes_text(metrics: Mapping[str, Any]) -> str:
    """How often each outcome was met."""
    return ", ".join(f"{count} {name}" for name, count in metrics["outcomes"].items() if count) or NONE


def ends_text(series: Sequence[float | None], change: float | None = None) -> str:
    """The first and the last value of a series, with the change between them in per cent."""
    if not series:
        return NONE
    ends = " → ".join(value_text(value) for value in (series[0], series[-1]))
    return ends if change is None else f"{ends} ({change:+.1f} %)"


def value_text(value: float | None, interval: Sequence[float] | None = None, spec: str = ".3f") -> str:
    """A value with its interval."""
    if value is None:
        return NONE
    return f"{value:{spec}}" + (f" [{interval[0]:{spec}}, {interval[1]:{spec}}]" if interval else "")


class Chapter:
    """A protocol's part of every report, of a cell's folder and of the terminal's summary, drawn from its `Measures`.

    A protocol that has more to say registers a chapter of its own (`codechat.report.chapters.register`), a subclass
    that overrides what it shows otherwise. Such a protocol comes first in a report if its chapter `leads`.
    """

    measures: Measures | None = None
    """How to read a metrics.json that does not say it, as old ones do not."""
    reads: type[SessionVerdicts] = SessionVerdicts
    """What is gathered of a cell's sessions: the cells of a comparison are of this type."""
    leads = True
    """Whether a chapter of a protocol's own comes before others, and can make the report's claim."""
    fates = ("passes at every turn", "fails first at turn")
    """What the page says of a session that passes throughout, and, before the turn's number, of one that does not."""

    def checked(self, metrics: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
        """The content of metrics.json. Raises `UserError` if it lacks what the chapter reads."""
        missing = [name for name in COMMON if name not in metrics]
        if missing:
            raise UserError(f"{path} has no {missing[0]}", "run the cell again: it calls no model, and writes it anew")
        return metrics

    def summary(self, measures: Measures, metrics: Mapping[str, Any]) -> Iterator[TextLine]:
        """The lines of the terminal's summary: names and values."""
        return summary_lines(measures, metrics)

    def write_tables(self, measures: Measures, metrics: Mapping[str, Any], folder: Path) -> None:
        """Write the tables that a cell leaves beside its metrics.json: `finals`, `turns` and `by_<group>`."""
        for table in tables_of(Sheet(measures, (), [((), metrics)])):
            write_table(table, folder)

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        """Write the figures that a cell leaves, as SVG and PNG: `turns` and `by_<group>`."""
        write_cell_figures(measures, metrics, title, folder)

    def groups(self, comparison: Comparison[Any]) -> dict[str, str]:
        """The groups of the report's tables and figures with their titles, in reading order."""
        return {comparison.protocol: comparison.measures.title}

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        """Every table of a report that there is something for; the first is shown in the terminal."""
        yield from tables_of(Sheet.of(comparison))
        compared = [pair for pair in pairs(comparison) if pair.is_scored]
        if compared:
            yield differences(comparison, compared)
        names = {"prefix": f"{comparison.protocol}_", "group": comparison.protocol}
        yield from repeats.tables(comparison, **names)
        yield counts(comparison, **names)
        yield costs(comparison, **names)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        """Which of its tables the terminal shows."""
        return list(tables[:1])

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        """Every figure of a report."""
        yield from drawings_of(comparison)
        yield from repeats.drawings(comparison, prefix=f"{comparison.protocol}_", group=comparison.protocol)

    def headline(self, comparison: Comparison[Any], tables: Sequence[Table]) -> Headline:
        """What the page claims if this protocol leads the report; `tables` are the report's."""
        return standing(comparison)

    def sections(self, comparison: Comparison[Any]) -> list[Section]:
        """The sections of the report's page, in reading order."""
        return [section_of(comparison)]
