"""The chapter of requirements that come step by step: the tables of SR-Eval's paper, beside what it prints."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codechat.metrics import Measures
from codechat.report.chapters import Chapter, register
from codechat.report.data import Table
from codechat.report.generic.lines import NONE, TextLine, value_text
from codechat.report.sections import Headline, Section
from codechat.report.study import Study
from codechat.studies.sreval.chapter import page
from codechat.studies.sreval.chapter.entries import PUBLISHED
from codechat.studies.sreval.chapter.tables import GROUP, paper_tables
from codechat.studies.sreval.metrics import STEPWISE


@register(STEPWISE.protocol)
class StepwiseChapter(Chapter):
    leads = False

    def summary(self, measures: Measures, metrics: Mapping[str, Any]) -> Iterator[TextLine]:
        """As of any protocol, but Acc with every round: they are few, and each is a figure of the paper."""
        for name, text in super().summary(measures, metrics):
            if name.startswith("Acc(k)"):
                yield f"Acc, round 1 → {len(metrics['acc'])}", " → ".join(map(value_text, metrics["acc"])) or NONE
            else:
                yield name, text

    def groups(self, study: Study[Any]) -> dict[str, str]:
        return {GROUP: "The paper's tables", study.protocol: "Every figure, with its interval"}

    def tables(self, study: Study[Any]) -> Iterator[Table]:
        yield from paper_tables(study)
        yield from super().tables(study)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        return [
            table
            for table in tables
            if table.name == "stepwise_finals"
            or (table.name.startswith("stepwise_models") and any(PUBLISHED in row for row in table.rows))
        ]

    def headline(self, study: Study[Any], tables: Sequence[Table]) -> Headline:
        return page.claim(study)

    def sections(self, study: Study[Any]) -> list[Section]:
        return [page.section(study, (GROUP, study.protocol))]
