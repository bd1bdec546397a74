"""The report, the tables of a cell's folder and the terminal's summary of any protocol, made from its `Measures`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord
from codechat.base.template import counted
from codechat.report.comparison import Comparison, LoadedCell, SessionVerdicts
from codechat.report.data import Drawing, Headline, Section, Table
from codechat.report.drawing import drawings_of, write_cell_figures
from codechat.report.formats import write_table
from codechat.report.generic import repeats
from codechat.report.generic.factors import PASSING, Outcome
from codechat.report.generic.overview import section_of, standing
from codechat.report.generic.paired import differences, pairs
from codechat.report.generic.tables import Sheet, costs, counts, tables_of
from codechat.report.metrics import Measures
from codechat.report.metrics.counts import LACKS_NAME, REPLIES
from codechat.report.metrics.measures import COMMON, FEW, Unit, changes_text, interval_of, size_of, size_text, value_of

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
            turns = f"turn {known[0][0]} → {known[-1][0]}"
            yield f"{series.label}, {turns}", ends_text([value for _, value in known])
            if members := changes_text(metrics, series):
                yield f"n of {series.label}, {turns}", f"{members}: not the same at each turn"
    leading = measures.finals[0].key if measures.finals else None
    for part in measures.breakdowns:
        groups, sizes = value_of(metrics, part) or {}, size_of(metrics, part) or {}
        twins = (each for each in measures.breakdowns if (each.by, each.key) == (part.by, "undecided"))
        undecided = [name for each in twins for name in value_of(metrics, each) or () if name not in groups]
        if part.key == leading and len(groups) + len(undecided) > 1:
            shown = {name: f"{value:{LINE_SPECS[part.unit]}}" for name, value in groups.items() if value is not None}
            texts = {name: f" ({size_text(size)})" for name, size in sizes.items()}
            notes = [", ".join(f"{name}: {text}{texts.get(name, '')}" for name, text in shown.items()) or NONE]
            notes += [f"*: fewer than {FEW}"] if any(sizes.get(name, FEW) < FEW for name in shown) else []
            notes += [f"left out as almost wholly undecided: {', '.join(undecided)}"] if undecided else []
            yield f"{part.label} by {part.by}", "; ".join(notes)
    if any(metrics["outcomes"].values()):  # nothing is tested under some protocols
        yield "outcomes", outcomes_text(metrics)


def sessions_text(metrics: Mapping[str, Any], counts: Iterable[tuple[int | None, str, str]]) -> str:
    """Completed sessions and further counts that are not 0; each count comes with its singular and its plural."""
    every = ((metrics["errored"], "errored", "errored"), *counts)
    texts = (counted(count, one, several) for count, one, several in every if count)
    return ", ".join([f"{metrics['completed']} completed", *texts])


def outcomes_text(metrics: Mapping[str, Any]) -> str:
    """The number of turns by outcome, and of `no_code` how many have other code than the one asked for."""
    lacking = (metrics.get(REPLIES) or {}).get(LACKS_NAME)
    notes = {"no_code": f" ({lacking} with code that lacks the name)"} if lacking else {}
    told = (f"{count} {name}{notes.get(name, '')}" for name, count in metrics["outcomes"].items() if count)
    return ", ".join(told) or NONE


def ends_text(series: Sequence[float | None], change: float | None = None) -> str:
    """The first and the last value of a series, and the change in per cent."""
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
    """A protocol's part of every report, of a cell's folder and of the terminal's summary, from its `Measures`. A
    protocol with further tables or figures registers a subclass (`codechat.report.chapters.register`)."""

    measures: Measures | None = None
    """The description for a metrics.json without one, as in old cells."""
    reads: type[SessionVerdicts] = SessionVerdicts
    """The type of a comparison's cells: the data that is gathered from sessions."""
    outcome: Outcome | None = PASSING
    """The share of a session in which the effects of settings are measured; None if cells are not to be averaged."""
    leads = True
    """Whether a registered chapter comes before others, and can make the report's claim."""
    fates = ("passes at every turn", "fails first at turn")
    """The page's words for a session that always passes, and, before the turn's number, for one that does not."""

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
        """Write the tables of a cell's folder: `finals`, `turns` and `by_<group>`."""
        for table in tables_of(Sheet(measures, (), [((), metrics)])):
            write_table(table, folder)

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        """Write the figures of a cell's folder, as SVG and PNG: `turns` and `by_<group>`."""
        write_cell_figures(measures, metrics, title, folder)

    def groups(self, comparison: Comparison[Any]) -> dict[str, str]:
        """The groups of the report's tables and figures with their titles, in reading order."""
        return {comparison.protocol: comparison.measures.title}

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        """Every table of a report that is not empty; the first is shown in the terminal."""
        yield from tables_of(Sheet.of(comparison))
        compared = [pair for pair in pairs(comparison) if pair.is_scored]
        if compared:
            yield differences(comparison, compared)
        names = {"prefix": f"{comparison.protocol}_", "group": comparison.protocol}
        yield from repeats.tables(comparison, **names)
        yield counts(comparison, **names)
        yield costs(comparison, **names)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        """The tables that the terminal shows."""
        return list(tables[:1])

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        """Every figure of a report."""
        yield from drawings_of(comparison)
        yield from repeats.drawings(comparison, prefix=f"{comparison.protocol}_", group=comparison.protocol)

    def shown(self, cell: LoadedCell) -> Iterator[SessionRecord]:
        """The sessions of a cell as the page shows them."""
        return cell.sessions()

    def headline(self, comparison: Comparison[Any], tables: Sequence[Table]) -> Headline:
        """The claim of the page if this protocol leads the report; `tables` are the report's."""
        return standing(comparison)

    def sections(self, comparison: Comparison[Any]) -> list[Section]:
        """The sections of the report's page, in reading order."""
        return [section_of(comparison)]
