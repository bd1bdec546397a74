"""The refinement's chapter: the paper's tables and figures (III-F, V and VI), its leaderboard and its curves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from codechat.errors import UserError
from codechat.metrics import REFINE, Measures, RefineMetrics
from codechat.metrics.measures import FIELD
from codechat.report.chapters import Chapter, register
from codechat.report.chapters.refine import breaks, cell_files, differences, leaderboard, trends
from codechat.report.chapters.refine.ablations import AXES, ablation_table
from codechat.report.chapters.refine.boards import sections_of
from codechat.report.chapters.refine.drawings import DRAWINGS
from codechat.report.chapters.refine.findings import headline
from codechat.report.chapters.refine.outcomes import Outcomes, RefineStudy
from codechat.report.data import Drawing, Table
from codechat.report.generic.counts import costs, counts
from codechat.report.generic.figures import write_cell_figures
from codechat.report.generic.lines import TextLine
from codechat.report.generic.pairs import pairs
from codechat.report.sections import Headline, Section

GROUPS = {
    "leaderboard": "Who keeps code working longest",
    "trend": "How much is lost over the turns",
    "breaks": "Where code breaks, and where it heals",
    "adherence": "Do models do what they are asked",
    "pairs": "Are the differences real",
    "ablations": "What agenda, session length and judge change",
    "data": "What the figures rest on",
}


TABLES = (
    *(leaderboard.leaderboard, leaderboard.mst, trends.decay, trends.sensitivity, trends.turns),
    *(breaks.transitions, breaks.instructions, trends.adherence, trends.association),
)


@register(REFINE.protocol)
class RefineChapter(Chapter):
    measures = REFINE
    reads = Outcomes
    fates = ("never broken", "broken at turn")

    def checked(self, metrics: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
        try:
            values = {name: value for name, value in metrics.items() if name != FIELD}
            return RefineMetrics.model_validate(values).model_dump(mode="json")
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise UserError(
                f"{path} is not what this version writes: {place}: {first['msg']}",
                "run the cell again: it calls no model, and writes its metrics anew",
            ) from error

    def summary(self, measures: Measures, metrics: Mapping[str, Any]) -> Iterator[TextLine]:
        return cell_files.summary_lines(metrics)

    def write_tables(self, measures: Measures, metrics: Mapping[str, Any], folder: Path) -> None:
        cell_files.write_tables(metrics, folder)

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        write_cell_figures(replace(measures, breakdowns=()), metrics, title, folder)

    def groups(self, study: RefineStudy) -> dict[str, str]:
        return GROUPS

    def tables(self, study: RefineStudy) -> Iterator[Table]:
        yield from (table(study) for table in TABLES)
        compared = pairs(study)
        if compared:
            yield differences.differences(compared)
            yield differences.turns(compared)
            yield differences.survival(study, compared)
        yield from filter(None, (ablation_table(study, axis) for axis in AXES))
        yield counts(study)
        yield costs(study)

    def drawings(self, study: RefineStudy) -> Iterator[Drawing]:
        return iter(DRAWINGS)

    def headline(self, study: RefineStudy, tables: Sequence[Table]) -> Headline:
        return headline(study.loaded, tables)

    def sections(self, study: RefineStudy) -> list[Section]:
        return sections_of(study, tuple(GROUPS))
