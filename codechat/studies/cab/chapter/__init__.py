"""The chapter of a maintainer who explores a repository: CodeAssistBench's table and figures, beside what it prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.metrics import Measures
from codechat.report.chapters import Chapter, register
from codechat.report.data import Drawing, Table
from codechat.report.sections import Section
from codechat.report.study import Study
from codechat.studies.cab.chapter import page
from codechat.studies.cab.chapter.drawings import drawings
from codechat.studies.cab.chapter.repeated import Judged, repeated
from codechat.studies.cab.chapter.tables import GROUP, paper_tables
from codechat.studies.cab.metrics import ASSIST, GRADES


@register(ASSIST.protocol)
class AssistChapter(Chapter):
    leads = False
    reads = Judged

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        """Of every breakdown the share of correct verdicts alone: the tables have all, and each panel takes time."""
        shown = tuple(part for part in measures.breakdowns if part.by == "verdict" or part.key == GRADES[0])
        super().write_figures(replace(measures, breakdowns=shown), metrics, title, folder)

    def groups(self, study: Study[Any]) -> dict[str, str]:
        return {GROUP: "The paper's table and figures", study.protocol: "Every figure, with its interval"}

    def tables(self, study: Study[Any]) -> Iterator[Table]:
        yield from paper_tables(study)
        yield from super().tables(study)
        yield from repeated(study)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        return [table for table in tables if table.name in ("assist_correctness", "assist_user_judge")]

    def drawings(self, study: Study[Any]) -> Iterator[Drawing]:
        yield from drawings(study)
        yield from super().drawings(study)

    def sections(self, study: Study[Any]) -> list[Section]:
        return [page.section(study, tuple(self.groups(study)))]
