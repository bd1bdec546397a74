"""The chapter of requirements that come step by step: the tables of SR-Eval's paper, next to its printed figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codechat.report.chapters import Chapter, register
from codechat.report.comparison import Comparison, LoadedCell
from codechat.report.data import Chart, Headline, Section, Table
from codechat.report.generic import NONE, TextLine, value_text
from codechat.report.generic.overview import board_of, charts_of, rivals_of, section_of, standing
from codechat.report.generic.published import PUBLISHED
from codechat.report.metrics import Measures
from codechat.studies.sreval.chapter.tables import GROUP, paper_tables, setting_of, variant_of
from codechat.studies.sreval.metrics import STEPWISE

Asked = tuple[str, str]  # prompting and context
WORDS = {"full_history": "full history", "code_edit": "code edits", "cumulative": "cumulative instructions"}
ORDER = (*WORDS, "basic", "golden")
TOTAL = "tokens"  # the board's column of all tokens, next to the tokens per task


def claim(comparison: Comparison[Any]) -> Headline:
    """The leading model in the setting that most models share, with the counts of the whole comparison."""
    rivals = rivals_of(comparison.loaded)
    settings = settings_in(comparison.loaded)
    leading = max(settings, key=lambda setting: sum(_asked(cell) == setting for cell in rivals))  # the first of equals
    found = standing(_within(comparison, leading))
    said = f" All of these {named(leading)}." if len(settings) > 1 else ""
    return replace(found, text=f"{found.text}{said}", facts=standing(comparison).facts)


def settings_in(cells: Sequence[LoadedCell]) -> list[Asked]:
    """The cells' promptings and contexts, in the paper's order."""
    return sorted({_asked(cell) for cell in cells}, key=lambda each: [ORDER.index(word) for word in reversed(each)])


def named(setting: Asked) -> str:
    """A prompting and a context in words."""
    prompting, context = setting
    return f"with {WORDS[prompting]} and {context} context"


def _within(comparison: Comparison[Any], setting: Asked) -> Comparison[Any]:
    """The comparison of one setting, without the setting in the cells' names."""
    cells = [cell for cell in comparison.loaded if _asked(cell) == setting]
    return replace(comparison, loaded=tuple(replace(cell, variant=", ".join(variant_of(cell))) for cell in cells))


def _asked(cell: LoadedCell) -> Asked:
    _, prompting, context = setting_of(cell)
    return prompting, context


@register(STEPWISE.protocol)
class StepwiseChapter(Chapter):
    leads = False

    def summary(self, measures: Measures, metrics: Mapping[str, Any]) -> Iterator[TextLine]:
        """The generic summary, but Acc with every round, since each is a figure of the paper."""
        for name, text in super().summary(measures, metrics):
            if name.startswith("Acc(k)"):
                yield f"Acc, round 1 → {len(metrics['acc'])}", " → ".join(map(value_text, metrics["acc"])) or NONE
            else:
                yield name, text

    def groups(self, comparison: Comparison[Any]) -> dict[str, str]:
        return {GROUP: "The paper's tables", comparison.protocol: "Every figure, with its interval"}

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        yield from paper_tables(comparison)
        yield from super().tables(comparison)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        return [
            table
            for table in tables
            if table.name == "stepwise_finals"
            or (table.name.startswith("stepwise_models") and any(PUBLISHED in row for row in table.rows))
        ]

    def headline(self, comparison: Comparison[Any], tables: Sequence[Table]) -> Headline:
        return claim(comparison)

    def sections(self, comparison: Comparison[Any]) -> list[Section]:
        """The generic section, but with charts setting by setting."""
        settings, whole = settings_in(comparison.loaded), board_of(comparison)
        board = replace(whole, columns=[column for column in whole.columns if column.title != TOTAL])
        charts: list[Chart] = []
        for setting in settings:
            suffix = f", {named(setting)}" if len(settings) > 1 else ""
            drawn = charts_of(_within(comparison, setting))
            charts += [replace(chart, title=f"{chart.title}{suffix}") for chart in drawn]
        groups = (GROUP, comparison.protocol)
        return [section_of(comparison, groups, claim=claim(comparison), board=board, charts=charts)]
