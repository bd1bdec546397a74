"""The chapters of constraints on code: the tables and figures of MultiCodeIF's paper, beside what it prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.metrics import Measures
from codechat.report.chapters import Chapter, register
from codechat.report.data import Drawing, Table
from codechat.report.sections import Headline, Section
from codechat.report.study import Study
from codechat.studies.multicodeif.chapter import page, tables
from codechat.studies.multicodeif.chapter.drawings import drawings, types
from codechat.studies.multicodeif.chapter.kept import Kept
from codechat.studies.multicodeif.chapter.means import means
from codechat.studies.multicodeif.metrics_levels import LEVELS
from codechat.studies.multicodeif.metrics_repair import REPAIR

TYPE = "type"
TITLES = {"paper": "The paper's tables and figures", "generic": "Every figure, with its interval"}


class _PaperChapter(Chapter):
    """A chapter whose tables and figures of the paper come before the generic ones."""

    leads = False

    def groups(self, study: Study[Any]) -> dict[str, str]:
        return {f"{study.protocol}_paper": TITLES["paper"], study.protocol: TITLES["generic"]}

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        shown = tuple(part for part in measures.breakdowns if part.by != TYPE)  # too many for one figure
        super().write_figures(replace(measures, breakdowns=shown), metrics, title, folder)

    def drawings(self, study: Study[Any]) -> Iterator[Drawing]:
        yield from (each for each in super().drawings(study) if each.name != f"{study.protocol}_by_{TYPE}")
        yield types(study)

    def sections(self, study: Study[Any]) -> list[Section]:
        return [page.section(study, tuple(self.groups(study)))]

    def headline(self, study: Study[Any], tables: Sequence[Table]) -> Headline:
        return page.claim(study)


@register(REPAIR.protocol)
class RepairChapter(_PaperChapter):
    reads = Kept
    fates = ("met at every turn", "first unmet at turn")

    def tables(self, study: Study[Any]) -> Iterator[Table]:
        yield tables.categories(study)
        yield from means(study)
        yield tables.rounds(study)
        yield tables.round_categories(study)
        yield from super().tables(study)

    def drawings(self, study: Study[Any]) -> Iterator[Drawing]:
        yield from drawings(study)
        yield from super().drawings(study)


@register(LEVELS.protocol)
class LevelsChapter(_PaperChapter):
    fates = ("met at every level", "first unmet at turn")

    def tables(self, study: Study[Any]) -> Iterator[Table]:
        yield tables.levels(study)
        yield from super().tables(study)
