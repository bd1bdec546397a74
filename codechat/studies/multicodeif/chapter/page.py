"""The page's part: figures by different harnesses are no rivals, so the claim keeps to one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codechat.report.generic.overview import board_of, charts_of, passing, rivals_of, section_of, standing
from codechat.report.sections import Headline, Section
from codechat.report.study import LoadedCell, Study


def claim(study: Study[Any]) -> Headline:
    """Who leads by the harness that most models share, with the counts of the whole study."""
    harnesses = sorted({_harness(cell) for cell in study.loaded})
    shared = [_harness(cell) for cell in rivals_of(study.loaded)]
    leading = max(harnesses, key=shared.count)  # the first of equals
    found = standing(replace(study, loaded=tuple(cell for cell in study.loaded if _harness(cell) == leading)))
    said = f" All of these with protocol.harness={leading}." if len(harnesses) > 1 else ""
    return replace(found, text=f"{found.text}{said}", facts=standing(study).facts)


def section(study: Study[Any], groups: Sequence[str]) -> Section:
    """The generic section; its charts begin at zero, so that gains, which may be losses, are left to the tables."""
    leader = claim(study)
    drawn = replace(study.measures, series=tuple(each for each in study.measures.series if each.unit == "share"))
    charts = charts_of(replace(study, measures=drawn))
    parts = (f"{leader.title}. {leader.text}", board_of(study), passing(study), charts)
    return replace(section_of(study), parts=parts, groups=tuple(groups))


def _harness(cell: LoadedCell) -> str:
    return str((cell.config.get("protocol") or {}).get("harness", "guarded"))
