"""The chapter of a maintainer who explores a repository: CodeAssistBench's table and figures, beside what it prints."""

from collections.abc import Iterator, Sequence
from typing import Any

from codechat.metrics.assist import ASSIST
from codechat.report.chapters import Chapter, register
from codechat.report.chapters.assist import page
from codechat.report.chapters.assist.drawings import drawings
from codechat.report.chapters.assist.tables import GROUP, paper_tables
from codechat.report.data import Drawing, Table
from codechat.report.sections import Section
from codechat.report.study import Study


@register(ASSIST.protocol)
class AssistChapter(Chapter):
    leads = False

    def groups(self, study: Study[Any]) -> dict[str, str]:
        return {GROUP: "The paper's table and figures", study.protocol: "Every figure, with its interval"}

    def tables(self, study: Study[Any]) -> Iterator[Table]:
        yield from paper_tables(study)
        yield from super().tables(study)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        return [table for table in tables if table.name in ("assist_correctness", "assist_user_judge")]

    def drawings(self, study: Study[Any]) -> Iterator[Drawing]:
        yield from drawings(study)
        yield from super().drawings(study)

    def sections(self, study: Study[Any]) -> list[Section]:
        return [page.section(study, tuple(self.groups(study)))]
