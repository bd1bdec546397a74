"""What reports, cells' folders and the terminal show of any protocol: all of it follows from its `Measures`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.errors import UserError
from codechat.metrics import Measures
from codechat.metrics.measures import COMMON
from codechat.report.data import Drawing, Table
from codechat.report.formats import write_table
from codechat.report.generic import repeats
from codechat.report.generic.counts import costs, counts
from codechat.report.generic.figures import drawings_of, write_cell_figures
from codechat.report.generic.lines import TextLine, summary_lines
from codechat.report.generic.overview import section_of, standing
from codechat.report.generic.paired import differences, pairs
from codechat.report.generic.tables import Sheet, tables_of
from codechat.report.sections import Headline, Section
from codechat.report.study import Study, Verdicts


class Chapter:
    """A protocol's part of every report, of a cell's folder and of the terminal's summary, drawn from its `Measures`.

    A protocol that has more to say registers a chapter of its own (`codechat.report.chapters.register`), a subclass
    that overrides what it shows otherwise. Such a protocol comes first in a report if its chapter `leads`.
    """

    measures: Measures | None = None
    """How to read a metrics.json that does not say it, as old ones do not."""
    reads: type[Verdicts] = Verdicts
    """What is gathered of a cell's sessions: the cells of a study are of this type."""
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

    def groups(self, study: Study[Any]) -> dict[str, str]:
        """The groups of the report's tables and figures with their titles, in reading order."""
        return {study.protocol: study.measures.title}

    def tables(self, study: Study[Any]) -> Iterator[Table]:
        """Every table of a report that there is something for; the first is shown in the terminal."""
        yield from tables_of(Sheet.of(study))
        compared = [pair for pair in pairs(study) if pair.is_scored]
        if compared:
            yield differences(study, compared)
        names = {"prefix": f"{study.protocol}_", "group": study.protocol}
        yield from repeats.tables(study, **names)
        yield counts(study, **names)
        yield costs(study, **names)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        """Which of its tables the terminal shows."""
        return list(tables[:1])

    def drawings(self, study: Study[Any]) -> Iterator[Drawing]:
        """Every figure of a report."""
        yield from drawings_of(study)
        yield from repeats.drawings(study, prefix=f"{study.protocol}_", group=study.protocol)

    def headline(self, study: Study[Any], tables: Sequence[Table]) -> Headline:
        """What the page claims if this protocol leads the report; `tables` are the report's."""
        return standing(study)

    def sections(self, study: Study[Any]) -> list[Section]:
        """The sections of the report's page, in reading order."""
        return [section_of(study)]
