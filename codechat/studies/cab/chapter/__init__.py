"""The chapter of CodeAssistBench: the tables and figures of the paper over the report's cells, next to its values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from codechat.report.chapters import Chapter, register
from codechat.report.comparison import Comparison, SessionVerdicts
from codechat.report.data import Drawing, Section, Table
from codechat.report.drawing import Look, legend, panels
from codechat.report.generic.overview import board_of, section_of
from codechat.report.metrics import Measures
from codechat.studies.cab.chapter import issues, tables
from codechat.studies.cab.chapter.tables import COHORTS, GROUP, WORDS, Judged
from codechat.studies.cab.metrics import ASSIST, GRADES, GROUPED, STATUSES

GOOD, MIDDLING, BAD = "#009E73", "#E69F00", "#B64A5A"
SHADES: Mapping[str, str] = {
    **dict(zip(GRADES, (GOOD, MIDDLING, BAD), strict=True)),
    "appropriate": GOOD, "verbose": MIDDLING, "concise": "#8C8C8C",
    **dict(zip(STATUSES, (GOOD, MIDDLING, BAD), strict=True)),
}  # fmt: skip
BLUES = ("#C6DBEF", "#9ECAE1", "#6BAED6", "#3182BD", "#08519C")  # of the turns of threads
STACKED = ("appropriate", "verbose", "concise")
MOST = 12  # entrants whose bars, or panels, fit a figure
FILLED = 0.84  # the share of a language's strip that bars fill


def _drawings() -> Iterator[Drawing]:
    yield Drawing(
        "figure_5_threads", "Turns of the real threads by language (paper, Fig. 5)",
        "Shares of a dataset's issues by the turns of their maintainers, stacked; the number of issues stands above.",
        GROUP, _threads,
    )  # fmt: skip
    for number, what, names in ((6, "Verdicts", GRADES), (7, "Verbosity", STACKED)):
        key = what.lower()
        yield Drawing(
            f"figure_{number}_{key}", f"{what} by language and cohort (paper, Fig. {number})",
            "Shares of the decided issues, stacked; a bar for each entrant, numbered as above. The number of issues "
            "stands above the first of a language.", GROUP, partial(_by_language, names=names),
        )  # fmt: skip


def _threads(comparison: Comparison[Judged], look: Look) -> Any:
    lengths = {dataset: issues.thread_lengths(issues.issues_of(comparison, dataset)) for dataset in comparison.datasets}
    figure, axes = panels([dataset if len(lengths) > 1 else "" for dataset in lengths], 8.0, 3.2, columns=1)
    for panel, counts in zip(axes, lengths.values(), strict=True):
        for place, own in enumerate(counts.values()):
            shares = {issues.turns_text(turns): own[turns] / own.total() for turns in issues.TURNS}
            _stack(panel, place, shares, BLUES, 0.7)
            panel.text(place, 1.02, f"n={own.total()}", ha="center", fontsize=8)
        panel.set_xticks(range(len(counts)), [*counts])
        _shares(panel, len(counts))
    legend(figure, axes)
    return figure


def _by_language(comparison: Comparison[Any], look: Look, names: Sequence[str]) -> Any:
    """A panel per dataset and cohort: a strip for each language, in it a bar for each entrant."""
    places = [(dataset, cohort) for dataset in comparison.datasets for cohort in COHORTS]
    shown = [(place, groups) for place in places if (groups := _languages(comparison.on(place[0]), place[1], names[0]))]
    if not shown or max(len(comparison.on(dataset)) for dataset in comparison.datasets) > MOST:
        return None
    many, several = len(comparison.datasets) > 1, len(comparison.labels) > 1
    titles = [f"{COHORTS[cohort]}, {dataset}" if many else COHORTS[cohort] for (dataset, cohort), _ in shown]
    figure, axes = panels([title.capitalize() for title in titles], width=10.0, height=3.2, columns=1)
    for panel, ((dataset, cohort), groups) in zip(axes, shown, strict=True):
        numbers = {label: str(number) for number, label in enumerate(comparison.labels, 1)} if several else {}
        bars = [(numbers.get(found.cell.label, ""), found) for found in comparison.on(dataset)]
        for place, group in enumerate(groups):
            _strip(panel, place, bars, f"{group}, {cohort}", names)
        panel.set_xticks(range(len(groups)), groups)
        panel.tick_params(axis="x", length=0, pad=14 if several else 3)
        _shares(panel, len(groups))
    legend(figure, axes)
    if several:
        figure.suptitle(
            "   ".join(f"{number}: {label}" for number, label in enumerate(comparison.labels, 1)), fontsize=9
        )
    return figure


def _languages(cells: Sequence[SessionVerdicts], cohort: str, name: str) -> list[str]:
    """The languages with decided issues of a cohort in any cell."""
    places = {place for found in cells for place in found.cell.metrics["by_language_cohort"][name]}
    return sorted(language for language, each in (place.rsplit(", ", 1) for place in places) if each == cohort)


def _strip(
    panel: Any, place: int, bars: Sequence[tuple[str, SessionVerdicts]], group: str, names: Sequence[str]
) -> None:
    width = FILLED / len(bars)
    for number, (entrant, found) in enumerate(bars):
        metrics = found.cell.metrics
        shares = [metrics["by_language_cohort"][name].get(group) for name in names]
        if None in shares:
            continue
        x = place + width * (number + 0.5) - FILLED / 2
        words = [WORDS.get(name, name.replace("_", " ").capitalize()) for name in names]
        _stack(panel, x, dict(zip(words, shares, strict=True)), [SHADES[name] for name in names], width * 0.9)
        if number == 0:
            panel.text(x, 1.02, f"n={metrics['n']['by_language_cohort'][names[0]][group]}", ha="center", fontsize=8)
        panel.text(x, -0.03, entrant, ha="center", va="top", fontsize=8, color="#666666")


def _stack(panel: Any, x: float, shares: Mapping[str, float], colours: Sequence[str], width: float) -> None:
    """A bar of shares by their names, from the foot up."""
    foot = 0.0
    for (label, share), colour in zip(shares.items(), colours, strict=True):
        panel.bar(x, share, width, bottom=foot, color=colour, label=label, linewidth=0)
        foot += share


def _shares(panel: Any, places: int) -> None:
    panel.set(xlim=(-0.5, places - 0.5), ylim=(0, 1.1), yticks=[0, 0.25, 0.5, 0.75, 1])
    panel.grid(visible=False, axis="x")


NOTE = "The judge decides, nothing is tested. A turn is an answer of the maintainer."


@register(ASSIST.protocol)
class AssistChapter(Chapter):
    leads = False
    reads = Judged

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        """Breakdowns of the share of correct verdicts alone: the tables have all, and each panel takes time."""
        chosen = (GRADES[0], "rounds", "thread_turns")
        shown = tuple(
            part
            for part in measures.breakdowns
            if part.key in chosen and (part.by == "verdict" or part.key == chosen[0])
        )
        super().write_figures(replace(measures, breakdowns=shown), metrics, title, folder)

    def groups(self, comparison: Comparison[Any]) -> dict[str, str]:
        return {GROUP: "The paper's table and figures", comparison.protocol: "Every figure, with its interval"}

    def tables(self, comparison: Comparison[Any]) -> Iterator[Table]:
        yield tables.correctness(comparison)
        yield tables.languages(comparison)
        yield issues.by_language(comparison)
        yield issues.thread_turns(comparison)
        yield tables.user_and_judge(comparison)
        yield issues.key_issues(comparison)
        yield from tables.labelled(comparison)
        yield from super().tables(comparison)
        yield from tables.repeated(comparison)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        return [table for table in tables if table.name in ("assist_correctness", "assist_user_judge")]

    def drawings(self, comparison: Comparison[Any]) -> Iterator[Drawing]:
        yield from _drawings()
        yield from super().drawings(comparison)

    def sections(self, comparison: Comparison[Any]) -> list[Section]:
        """The generic section, its board without the figures of single steps and commands."""
        shown = tuple(final for final in comparison.measures.finals if final.key in GROUPED)
        board = board_of(replace(comparison, measures=replace(comparison.measures, finals=shown)))
        return [section_of(comparison, tuple(self.groups(comparison)), board=board, note=NOTE)]
