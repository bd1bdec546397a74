"""The page's part: the board shows what issues are judged by; what else is counted stands in the tables."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codechat.report.generic.overview import board_of, charts_of, section_of, standing
from codechat.report.sections import Section
from codechat.report.study import Study
from codechat.studies.cab.metrics import GROUPED

NOTE = "The judge decides, nothing is tested. A turn is an answer of the maintainer. Bands: 95 % intervals by task."


def section(study: Study[Any], groups: Sequence[str]) -> Section:
    """The generic section, its board without the figures of single steps and commands."""
    shown = tuple(final for final in study.measures.finals if final.key in GROUPED)
    board = board_of(replace(study, measures=replace(study.measures, finals=shown)))
    claim = standing(study)
    parts = (f"{claim.title}. {claim.text}", board, NOTE, charts_of(study))
    return replace(section_of(study), parts=parts, groups=tuple(groups))
