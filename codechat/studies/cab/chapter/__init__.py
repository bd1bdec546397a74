"""The chapter of a maintainer who explores a repository: CodeAssistBench's table and figures, beside what it prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.report.chapters import Chapter, register
from codechat.report.comparison import Comparison
from codechat.report.data import Drawing, Section, Table
from codechat.report.generic.overview import board_of, section_of
from codechat.report.metrics import Measures
from codechat.studies.cab.chapter.drawings import drawings
from codechat.studies.cab.chapter.tables import GROUP, Judged, labelled, paper_tables, repeated
from codechat.studies.cab.metrics import ASSIST, GRADES, GROUPED

NOTE = "The judge decides, nothing is tested. A turn is an answer of the maintainer."


def _section(comparison: Comparison[Any], groups: Sequence[str]) -> Section:
    """The generic section, its board without the figures of single steps and commands."""
    shown = tuple(final for final in comparison.measures.finals if final.key in GROUPED)
    board = board_of(replace(comparison, measures=replace(comparison.measures, finals=shown)))
    return section_of(comparison, groups, board=board, note=NOTE)


@register(ASSIST.protocol)
class AssistChapter(Chapter):
    leads = False
    reads = Judged

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        """Of every breakdown the share of correct verdicts alone: the tables have all, and each panel takes time."""
        chosen = (GRADES[0], "rounds", "thread_turns")
        shown = tuple(
            part
            for part in measures.breakdowns
            if part.key in chosen and (part.by == "verdict" or part.key == chosen[0])
        )
        super().write_figures(replace(measures, breakdowns=shown), metrics, title, folder)

    def groups(self, comparison: Comparison[Any]) -> dict[str, str]:
        return {GROUP: "The paper's table and figures", comparison.protocol: "Every figure, with its interval"}

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        yield from paper_tables(comparison)
        yield from labelled(comparison)
        yield from super().tables(comparison)
        yield from repeated(comparison)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        return [table for table in tables if table.name in ("assist_correctness", "assist_user_judge")]

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield from drawings(comparison)
        yield from super().drawings(comparison)

    def sections(self, comparison: Comparison[Any]) -> list[Section]:
        return [_section(comparison, tuple(self.groups(comparison)))]
