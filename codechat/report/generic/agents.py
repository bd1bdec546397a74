"""What coding agents did, next to the figures of any protocol: tables, a section of the page, a line of the summary."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from codechat.report.comparison import Comparison
from codechat.report.data import Board, Part, Section, Table
from codechat.report.generic.overview import charts_of, final_column, groups_of, naming_columns
from codechat.report.generic.tables import Naming, Sheet, tables_of
from codechat.report.metrics.agents import AGENTS, FINALS, measures_of
from codechat.report.metrics.counts import AGENT
from codechat.report.metrics.measures import value_of

CHARTED = ("commands", "ran_code", "tokens", "lines")
TITLE = "What coding agents did"
NOTE = "Means over the turns at which the agent was asked, and shares of these turns; skipped turns do not count."
SPECS = {"number": ",.1f", "share": ".3f", "count": ",d"}


def tables(comparison: Comparison[Any]) -> Iterator[Table]:
    """The figures (a row a cell), turn by turn, and by scope; nothing without an agent."""
    naming, group = Naming(comparison), f"{comparison.protocol}_agents"
    cells = [(naming.of(found), found.cell.metrics) for found in comparison.in_order()]
    agents = [(named, metrics[AGENT]) for named, metrics in cells if AGENT in metrics]
    if agents:
        measures = measures_of([figures for _, figures in agents])
        for table in tables_of(Sheet(measures, naming.columns, agents, f"{group}_", group)):
            yield replace(table, note=f"{NOTE} {table.note}")


def sections(comparison: Comparison[Any]) -> list[Section]:
    """The section of the page; none without an agent."""
    cells = [replace(cell, metrics=cell.metrics[AGENT]) for cell in comparison.loaded if AGENT in cell.metrics]
    if not cells:
        return []
    finals = measures_of([cell.metrics for cell in cells]).finals
    columns = [*naming_columns(cells), *(final_column(cells, final, first=False) for final in finals)]
    series = tuple(each for each in AGENTS.series if each.key in CHARTED)
    lines = tuple(final for final in FINALS if final.key == "lines")
    shown = Comparison[Any](replace(AGENTS, series=series, finals=lines), (), tuple(cells))
    board = Board(TITLE, columns, FINALS[0].label)
    parts: list[Part] = [
        NOTE,
        board,
        "Turn by turn. Bands: 95 % intervals by task.",
        charts_of(shown),
        *groups_of(shown),
    ]
    name = comparison.protocol
    return [Section(f"agents-{name}", TITLE, "Agents", parts, groups=(f"{name}_agents",))]


def summary_text(metrics: Mapping[str, Any]) -> str:
    """The figures for the terminal's summary, without zeros and ordinary ends; empty without an agent."""
    figures = metrics.get(AGENT) or {}
    known = ((each, value_of(figures, each)) for each in measures_of([figures]).finals)
    return ", ".join(
        f"{each.label.lower()} {value:{SPECS[each.unit]}}"
        for each, value in known
        if value and each.key != "ended_exit"
    )
