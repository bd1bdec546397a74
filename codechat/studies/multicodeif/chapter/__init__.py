"""The chapters of constraints on code: the tables and figures of MultiCodeIF's paper, beside what it prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codechat.report.chapters import Chapter, register
from codechat.report.comparison import Comparison, LoadedCell
from codechat.report.data import Drawing, Headline, Section, Table
from codechat.report.generic.overview import charts_of, rivals_of, section_of, standing
from codechat.report.generic.published import Asked, labels_table
from codechat.report.metrics import Measures
from codechat.studies.multicodeif.chapter import tables
from codechat.studies.multicodeif.chapter.drawings import by_level, drawings, types
from codechat.studies.multicodeif.chapter.kept import Kept
from codechat.studies.multicodeif.chapter.tables import means
from codechat.studies.multicodeif.metrics_levels import LEVELS
from codechat.studies.multicodeif.metrics_repair import REPAIR


def claim(comparison: Comparison[Any]) -> Headline:
    """Who leads by the harness that most models share, with the counts of the whole comparison."""
    harnesses = sorted({_harness(cell) for cell in comparison.loaded})
    shared = [_harness(cell) for cell in rivals_of(comparison.loaded)]
    leading = max(harnesses, key=shared.count)  # the first of equals
    found = standing(replace(comparison, loaded=tuple(cell for cell in comparison.loaded if _harness(cell) == leading)))
    said = f" All of these with protocol.harness={leading}." if len(harnesses) > 1 else ""
    return replace(found, text=f"{found.text}{said}", facts=standing(comparison).facts)


def _section(comparison: Comparison[Any], groups: Sequence[str]) -> Section:
    """The generic section; its charts begin at zero, so that gains, which may be losses, are left to the tables."""
    drawn = replace(
        comparison.measures, series=tuple(each for each in comparison.measures.series if each.unit == "share")
    )
    return section_of(
        comparison, groups, claim=claim(comparison), charts=charts_of(replace(comparison, measures=drawn))
    )


def _harness(cell: LoadedCell) -> str:
    return str((cell.config.get("protocol") or {}).get("harness", "guarded"))


TYPE = "type"
TITLES = {"paper": "The paper's tables and figures", "generic": "Every figure, with its interval"}


class _PaperChapter(Chapter):
    """A chapter whose tables and figures of the paper come before the generic ones."""

    leads = False

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        asked = {"constraint": Asked("Right verdicts", "verdicts on constraints that are right")}
        yield from labels_table(
            comparison, asked, "Category", name=f"{comparison.protocol}_labels", group=f"{comparison.protocol}_paper",
            title="People's labels of verdicts on constraints",
        )  # fmt: skip
        yield from super().tables(comparison)

    def groups(self, comparison: Comparison[Any]) -> dict[str, str]:
        return {f"{comparison.protocol}_paper": TITLES["paper"], comparison.protocol: TITLES["generic"]}

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        shown = tuple(part for part in measures.breakdowns if part.by != TYPE)  # too many for one figure
        super().write_figures(replace(measures, breakdowns=shown), metrics, title, folder)

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield from (each for each in super().drawings(comparison) if each.name != f"{comparison.protocol}_by_{TYPE}")
        yield types(comparison)

    def sections(self, comparison: Comparison[Any]) -> list[Section]:
        return [_section(comparison, tuple(self.groups(comparison)))]

    def headline(self, comparison: Comparison[Any], tables: Sequence[Table]) -> Headline:
        return claim(comparison)


@register(REPAIR.protocol)
class RepairChapter(_PaperChapter):
    reads = Kept
    fates = ("met at every turn", "first unmet at turn")

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        yield tables.categories(comparison)
        yield tables.constraints(comparison)
        yield from means(comparison)
        yield tables.rounds(comparison)
        yield tables.round_categories(comparison)
        yield from super().tables(comparison)

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield from drawings(comparison)
        yield from super().drawings(comparison)


@register(LEVELS.protocol)
class LevelsChapter(_PaperChapter):
    fates = ("met at every level", "first unmet at turn")

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        yield tables.levels(comparison)
        yield from super().tables(comparison)

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield by_level(comparison)
        yield from super().drawings(comparison)
