"""The refinement's chapter: the paper's tables and figures (III-F, V and VI), its leaderboard and its curves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.records import GATE, SessionRecord
from codechat.report.chapters import Chapter, register, study_of
from codechat.report.comparison import LoadedCell
from codechat.report.data import Column, Drawing, Headline, Interval, Section, Table, Value
from codechat.report.drawing import write_cell_figures
from codechat.report.formats import as_csv
from codechat.report.generic import NONE, TextLine, ends_text, outcomes_text, repeats, sessions_text, value_text
from codechat.report.generic.paired import pairs
from codechat.report.generic.tables import costs, counts
from codechat.report.metrics import Measures
from codechat.report.metrics.counts import OF_ENGINE, SKIPPED_UNPARSABLE
from codechat.report.metrics.measures import FIELD, interval_of
from codechat.studies.refine.agendas.learned import Learned
from codechat.studies.refine.chapter import agendas, comparisons, composite, gate, outcomes, probed, tables, twins
from codechat.studies.refine.chapter.comparisons import AXES, SUSTAINED, ablation_table
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineComparison, together
from codechat.studies.refine.chapter.page import DRAWINGS, headline, sections_of
from codechat.studies.refine.metrics import REFINE, RefineMetrics
from codechat.studies.refine.probe.figures import PROBE

GROUPS = {
    "leaderboard": "Who keeps code working longest",
    "trend": "How much is lost over the turns",
    "breaks": "Where code breaks, and where it heals",
    "adherence": "Do models do what they are asked",
    outcomes.GROUP: "All models together",
    "pairs": "Are the differences real",
    "ablations": "What agenda, session length, judge and prompts change",
    "data": "What the figures rest on",
    repeats.GROUP: repeats.TITLE,
}

BEYOND = (composite, gate, twins, agendas, probed)
"""Questions beyond the paper: `tables` and `drawings` are empty without cells that have the options."""

OPENING = (PROBE, composite.GROUP, GATE, "session_length", twins.GROUP)
"""Names of the tables that answer them first."""

TABLES = (
    *(tables.leaderboard, tables.mst, tables.decay, tables.sensitivity, tables.turns),
    *(tables.transitions, tables.breaking_table, tables.adherence, tables.association),
)


@register(REFINE.protocol)
class RefineChapter(Chapter):
    measures = REFINE
    reads = Outcomes
    outcome = SUSTAINED
    fates = ("never broken", "broken at turn")

    def checked(self, metrics: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
        try:
            added = {name: metrics[name] for name in OF_ENGINE if name in metrics}
            values = {name: value for name, value in metrics.items() if name != FIELD and name not in added}
            return RefineMetrics.model_validate(values).model_dump(mode="json") | added
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            remedy = "run the cell again: it calls no model, and writes its metrics anew"
            raise UserError(f"{path} is not what this version writes: {place}: {first['msg']}", remedy) from error

    def summary(self, measures: Measures, metrics: Mapping[str, Any]) -> Iterator[TextLine]:
        last = len(metrics["pass_at_1"]) - 1
        trend = metrics["mann_kendall"]["pass_at_1"]
        counts = (
            (metrics.get("without_code"), "without code", "without code"),
            (metrics["skipped_turns"], "turn skipped", "turns skipped"),
            (
                metrics.get(SKIPPED_UNPARSABLE),
                "of them on code that does not parse",
                "of them on code that does not parse",
            ),
            (metrics["undecided"], "turn undecided", "turns undecided"),
        )
        yield "sessions", sessions_text(metrics, counts)
        yield f"Pass@1, turn 0 → {last}", ends_text(metrics["pass_at_1"], metrics["delta_pct"])
        yield "Mann–Kendall trend", NONE if trend is None else f"{trend['trend']} (p = {trend['p']:.3g})"
        yield "Mean Sustainable Turns", value_text(metrics["mst"], metrics["ci"]["mst"]) + f" of {last + 1}"
        judged = sum(metrics["phi"][count] for count in outcomes.COUNTS)
        turns = metrics["completed"] * last
        of = f"; {judged} of {turns} turns judged: not the same at each turn" if judged < turns else ""
        yield f"adherence, turn 1 → {last}", ends_text(metrics["iar"], metrics["iar_delta_pct"]) + of
        yield "regression", _rates(metrics["regression"])
        yield "self-correction", _rates(metrics["self_correction"])
        yield "outcomes", outcomes_text(metrics)
        if found := metrics.get(GATE):
            accepted = sum(found["accepted"].values())
            told = f"{found['turns']} turns asked again, {accepted} accepted, {found['given_up']} given up"
            yield "gate", f"{told}; code that stands {ends_text(found['standing'])}"
        if learned := metrics.get(agendas.LEARNED):
            yield "agendas from", agendas.learned_words(Learned.model_validate(learned))

    def write_tables(self, measures: Measures, metrics: Mapping[str, Any], folder: Path) -> None:
        intervals = [Interval.of(ends) for ends in interval_of(metrics, REFINE.series[0])]
        iar = [None, *metrics["iar"]][: len(intervals)]
        turns = [(turn, *values) for turn, values in enumerate(zip(metrics["pass_at_1"], intervals, iar, strict=True))]
        _write("turns", ("turn", "pass_at_1", "ci", "iar"), turns, folder)
        regression, correction = metrics["regression"], metrics["self_correction"]
        rows: list[tuple[Value, ...]] = [("overall", "", regression["overall"], correction["overall"])]
        for breakdown in ("by_scope", "by_change", "by_cell"):
            rows += [
                (breakdown, name, rate, correction[breakdown][name]) for name, rate in regression[breakdown].items()
            ]
        _write("transitions", ("breakdown", "type", "regression", "self_correction"), rows, folder)

    def write_figures(self, measures: Measures, metrics: Mapping[str, Any], title: str, folder: Path) -> None:
        write_cell_figures(replace(measures, breakdowns=()), metrics, title, folder)

    def groups(self, comparison: RefineComparison) -> dict[str, str]:
        first = ("ablations", "pairs") if study_of(comparison).leads else ()
        beyond = {key: title for question in BEYOND for key, title in question.GROUPS.items()}
        return beyond | {key: GROUPS[key] for key in first} | GROUPS

    def tables(self, comparison: RefineComparison) -> Iterator[Table]:
        yield from (table(comparison) for table in TABLES)
        compared = pairs(comparison)
        if comparisons.has_labels(comparison):
            yield comparisons.corrected_rates(comparison)
            labelled = [pair for pair in compared if pair.a.cell.labels is pair.b.cell.labels is not None]
            yield from [comparisons.corrected_differences(labelled)] if labelled else []
        yield from outcomes.tables(together(comparison))
        if compared:
            yield comparisons.differences(compared)
            yield comparisons.turns(compared)
        ablations = (ablation_table(comparison, axis) for axis in AXES)
        yield from filter(None, (comparisons.by_language(comparison), *ablations))
        yield from repeats.tables(comparison)
        for question in BEYOND:
            yield from question.tables(comparison)
        yield from filter(None, (tables.datasets(comparison),))
        yield counts(comparison)
        yield costs(comparison)

    def opening(self, tables: Sequence[Table]) -> list[Table]:
        return [each for each in tables if each.group == outcomes.GROUP or each is tables[0] or each.name in OPENING]

    def drawings(self, comparison: RefineComparison) -> Iterator[Drawing]:
        yield from DRAWINGS
        yield from outcomes.drawings(together(comparison))
        yield from repeats.drawings(comparison)
        for question in BEYOND:
            yield from question.drawings(comparison)

    def shown(self, cell: LoadedCell) -> Iterator[SessionRecord]:
        return probed.shown(cell) if PROBE in cell.results else super().shown(cell)

    def headline(self, comparison: RefineComparison, tables: Sequence[Table]) -> Headline:
        return headline(comparison.loaded, tables)

    def sections(self, comparison: RefineComparison) -> list[Section]:
        groups = tuple(key for key in self.groups(comparison) if key != PROBE)
        *first, results = sections_of(comparison, groups, study_of(comparison))
        return [*first, *probed.sections(comparison), results]


def _write(name: str, keys: Sequence[str], rows: Sequence[tuple[Value, ...]], folder: Path) -> None:
    table = Table(name, "", tuple(Column(key, key) for key in keys), tuple(rows))
    write_atomically(folder / f"{name}.csv", as_csv(table))


def _rates(rates: Mapping[str, Any]) -> str:
    if rates["overall"] is None:
        return NONE
    scopes = ", ".join(f"{name} {value:.3f}" for name, value in rates["by_scope"].items() if value is not None)
    return f"{rates['overall']:.3f} ({scopes})"
