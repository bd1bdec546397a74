"""The page's part: figures of different prompting or context are no rivals, so each such setting stands by itself."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from codechat.report.generic.overview import board_of, charts_of, passing, rivals_of, section_of, standing
from codechat.report.sections import Chart, Headline, Section
from codechat.report.study import LoadedCell, Study
from codechat.studies.sreval.chapter.entries import setting_of, told

Asked = tuple[str, str]  # prompting and context
WORDS = {"full_history": "full history", "code_edit": "code edits", "cumulative": "cumulative instructions"}
ORDER = (*WORDS, "basic", "golden")
TOTAL = "tokens"  # the board's column of all tokens, beside those per task


def claim(study: Study[Any]) -> Headline:
    """Who leads in the setting that most models share, with the counts of the whole study."""
    rivals = rivals_of(study.loaded)
    settings = settings_in(study.loaded)
    leading = max(settings, key=lambda setting: sum(_asked(cell) == setting for cell in rivals))  # the first of equals
    found = standing(_within(study, leading))
    said = f" All of these {named(leading)}." if len(settings) > 1 else ""
    return replace(found, text=f"{found.text}{said}", facts=standing(study).facts)


def section(study: Study[Any], groups: Sequence[str]) -> Section:
    """The generic section, but its charts are drawn setting by setting."""
    leader, settings, whole = claim(study), settings_in(study.loaded), board_of(study)
    board = replace(whole, columns=[column for column in whole.columns if column.title != TOTAL])
    charts = [chart for setting in settings for chart in _charts(study, setting, several=len(settings) > 1)]
    parts = (f"{leader.title}. {leader.text}", board, passing(study), charts)
    return replace(section_of(study), parts=parts, groups=tuple(groups))


def settings_in(cells: Sequence[LoadedCell]) -> list[Asked]:
    """The cells' promptings and contexts, in the paper's order."""
    return sorted({_asked(cell) for cell in cells}, key=lambda each: [ORDER.index(word) for word in reversed(each)])


def named(setting: Asked) -> str:
    """A prompting and a context in words."""
    prompting, context = setting
    return f"with {WORDS[prompting]} and {context} context"


def _charts(study: Study[Any], setting: Asked, *, several: bool) -> Iterator[Chart]:
    for chart in charts_of(_within(study, setting)):
        yield replace(chart, title=f"{chart.title}, {named(setting)}") if several else chart


def _within(study: Study[Any], setting: Asked) -> Study[Any]:
    """The study of one setting, which the cells' names then need not tell."""
    cells = [cell for cell in study.loaded if _asked(cell) == setting]
    return replace(study, loaded=tuple(replace(cell, variant=", ".join(told(cell))) for cell in cells))


def _asked(cell: LoadedCell) -> Asked:
    _, prompting, context = setting_of(cell)
    return prompting, context
